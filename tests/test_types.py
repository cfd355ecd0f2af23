"""The types of course_lib hold together, as far as pyproject.toml has mypy check them."""

import subprocess
import sys
from pathlib import Path


def test_mypy_finds_no_error():
    run = subprocess.run([sys.executable, "-m", "mypy"], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
