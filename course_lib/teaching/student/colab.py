"""Sets the course up in the Python that runs this file, such as Colab's: `%run /content/course/colab.py`.

Packages that are there stay as they are, since Colab's own depend on their versions; only missing ones are installed.
"""

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

COURSE = Path(__file__).resolve().parent
NOT_HERE = {"jupyterlab"}  # a page of its own, which Colab takes the place of


def is_installed(requirement):
    """Whether some version of the package is there."""
    try:
        return bool(version(re.split(r"[<>=~! ]", requirement)[0]))
    except PackageNotFoundError:
        return False


project = tomllib.loads((COURSE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
needed = [line for line in project["dependencies"] if re.split(r"[<>=~! ]", line)[0] not in NOT_HERE]
missing = [line for line in needed if not is_installed(line)]
if missing:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)
sys.path.insert(0, str(COURSE))
os.chdir(COURSE / "notebooks")
try:
    from google.colab import output
except ImportError:
    pass
else:
    output.enable_custom_widget_manager()  # playgrounds are widgets
print(f"The course is ready: {len(needed) - len(missing)} packages were here, {len(missing)} were installed.")
