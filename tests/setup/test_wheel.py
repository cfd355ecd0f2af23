"""The library as a wheel: everything that the package holds is in it, and it can tell what it has."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel, unpacked where nothing else of the course is."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "course_lib", source / "course_lib", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", str(source), *options], check=True, capture_output=True)
    (wheel,) = folder.glob("course_lib-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def test_a_wheel_holds_all_that_the_package_holds(installed):
    there = {path.relative_to(ROOT) for path in (ROOT / "course_lib").rglob("*") if path.is_file()}
    there = {path for path in there if "__pycache__" not in path.parts}
    assert there == {path.relative_to(installed) for path in (installed / "course_lib").rglob("*") if path.is_file()}


def test_the_doctor_of_a_library_alone_says_that_its_lessons_are_elsewhere(installed, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(installed), "COURSE_HOME": str(tmp_path), "COLUMNS": "200"}
    command = [sys.executable, "-P", "-m", "course_lib.cli", "doctor"]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    assert "the library alone" in said and "needed, all there" in said and "CannotStart" not in said
