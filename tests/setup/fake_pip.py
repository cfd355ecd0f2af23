"""Stands in for pip in the .venv of a test: says what pip says, and "installs" packages that are all but empty."""

import json
import os
import sys
import time
from pathlib import Path

PACKAGES = Path(__file__).parent
VENV = Path(sys.prefix)
COURSE = "import json, sys, typer\nprint('course', json.dumps(sys.argv[1:]))\n"
NO_NETWORK = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(<pip._vendor.urllib3.connection"
    ".HTTPSConnection object>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')"
)

arguments = sys.argv[1:]
mode = os.environ.get("FAKE_PIP", "ok")
with (VENV.parent / "pip-calls.txt").open("a") as calls:
    calls.write(json.dumps(arguments) + "\n")


def install(*names):
    print("Installing collected packages:", ", ".join(names), flush=True)
    for name in names:
        (PACKAGES / name).mkdir(exist_ok=True)
        (PACKAGES / name / "__init__.py").touch()
        (PACKAGES / f"{name}-1.0.dist-info").mkdir(exist_ok=True)
    (PACKAGES / "course_lib" / "cli.py").write_text(COURSE) if "course_lib" in names else None


if "--no-index" in arguments:
    sys.exit(0 if (PACKAGES / "torch").exists() else "ERROR: No matching distribution found for torch")
if mode == "no network":
    sys.exit(NO_NETWORK)
if mode == "proxy":
    sys.exit(NO_NETWORK + "\nERROR: [SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate")
if mode == "conflict":
    sys.exit("ERROR: ResolutionImpossible: for help visit https://pip.pypa.io")
if mode == "full disk":
    install("torch")
    sys.exit("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
if mode == "slow":
    install("numpy")  # half of it
    print("Installing collected packages: numpy, jupyter-lab, typer", flush=True)
    (VENV.parent / "pip-started").touch()
    deadline = time.monotonic() + 900
    while not (VENV.parent / "pip-go").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
if "--editable" in arguments:
    install("numpy", "jupyterlab", "ipykernel", "typer", "course_lib")
    if arguments[-1].endswith("[dev]"):
        install("pytest")
else:
    install("torch")
