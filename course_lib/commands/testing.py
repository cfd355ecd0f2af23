"""Run every test: those of the package, and each notebook against its stored outputs."""

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import course_lib
from course_lib.commands.lessons import CannotStart, course_folder

PACKAGES = ("pytest", "nbval", "xdist", "beartype", "hypothesis", "playwright", "sacrebleu", "jupytext")
SANITIZE = Path(course_lib.__file__).parent / "classroom" / "nbval_sanitize.cfg"
NOTEBOOKS = ("--nbval", "--nbval-current-env", "--nbval-cell-timeout=900", f"--nbval-sanitize-with={SANITIZE}")
# loadscope keeps the cells of a notebook, and the tests of a module, in one process. Three processes for two cores: a
# test that waits for a browser or a kernel leaves its core idle, but each process collects all tests, and four make one
# another slower. Six at most: each takes up to 3 GB of memory.
# In the order of the paths, the long ones first: else a process would begin its longest module when others are done.
PROCESSES = ("-n", str(min(6, (3 * (os.cpu_count() or 1) + 1) // 2)), "--dist", "loadscope", "--no-loadscope-reorder")


def run_tests(arguments: Sequence[str] = ()) -> int:
    """Run pytest over notebooks/ and tests/, or over the paths among the arguments; returns its exit code."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise CannotStart(
            f"The packages for the tests are not installed here ({', '.join(missing)}). Install them and run the tests "
            'with: python3 course.py test - or, in an environment of your own: pip install -e ".[dev]"'
        )
    return subprocess.call(test_command(arguments), cwd=course_folder(), env=os.environ | {"PYTHONUTF8": "1"})


def test_command(arguments: Sequence[str]) -> list[str]:
    """The pytest command line; paths among the arguments take the place of notebooks/ and tests/."""
    folder = course_folder()
    if not (folder / "tests").is_dir():
        raise CannotStart(f"There are no tests in {folder}: they are not part of what students install.")
    names_path = any(is_path(argument, folder) for argument in arguments)
    everything = [] if names_path else ["notebooks", "tests"]
    return [sys.executable, "-m", "pytest", *NOTEBOOKS, *PROCESSES, *everything, *arguments]


def is_path(argument: str, folder: Path) -> bool:
    return not argument.startswith("-") and (folder / argument.split("::")[0]).exists()
