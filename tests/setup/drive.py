"""Run the course.py of a folder with a stand-in for pip, so that a set-up takes a moment; all else is the real thing.

usage: python drive.py FOLDER ARGUMENT...
"""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

folder = Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("course", folder / "course.py")
course = importlib.util.module_from_spec(spec)
spec.loader.exec_module(course)

run_logged = course.run_logged


def with_stand_in(command, failure):
    if command[1:3] != ["-m", "venv"]:
        return run_logged(command, failure)
    output = run_logged([*command, "--without-pip"], failure)
    (packages,) = Path(course.VENV).glob("[Ll]ib/**/site-packages")
    shutil.copy(Path(__file__).with_name("fake_pip.py"), packages / "pip.py")
    return output


course.run_logged = with_stand_in
course.CPU_INDEX = os.environ.get("FAKE_CPU_INDEX", "http://127.0.0.1:9")  # nobody listens there
if "FAKE_PROGRESS_SECONDS" in os.environ:
    course.PROGRESS_SECONDS = float(os.environ["FAKE_PROGRESS_SECONDS"])
if "FAKE_NO_VENV" in os.environ:
    sys.modules["ensurepip"] = None  # as on Debian without python3-venv
if "FAKE_SMALL_SETUP" in os.environ:
    course.DISK_BYTES = {"cpu": 0, "plain": 0}  # so that the disk fills up later than at the first look
if "FAKE_CRASH_WHILE_CLEARING" in os.environ:
    course.make_venv = lambda: os._exit(9)  # as if the power failed just before
sys.exit(course.main(sys.argv[2:]))
