"""The whole way with the real venv, the real pip and a real lesson, in a folder with spaces and accents.

The packages themselves come from the environment that runs the tests, so that nothing is downloaded.
"""

import os
import shutil
import site
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]

DRIVE = """
import importlib.util, sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("course", sys.argv[1])
course = importlib.util.module_from_spec(spec)
spec.loader.exec_module(course)
make_venv = course.make_venv


def make_venv_with_packages():
    make_venv()
    (packages,) = Path(course.VENV).glob("[Ll]ib/**/site-packages")
    (packages / "borrowed.pth").write_text(f"import sys; sys.path[:0] = {PACKAGES!r}\\n", encoding="utf-8")


course.make_venv = make_venv_with_packages
sys.exit(course.main(sys.argv[2:]))
"""


def test_a_fresh_copy_sets_itself_up_and_runs_a_lesson(course, tmp_path):
    folder = course.folder
    shutil.copytree(ROOT / "course_lib", folder / "course_lib", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "README.md").write_text("A copy of the course.", encoding="utf-8")
    (folder / "constraints.txt").write_text("# the borrowed packages are taken as they are\n", encoding="utf-8")
    lesson = nbformat.v4.new_notebook()
    lesson.cells = [nbformat.v4.new_code_cell("import torch\nimport course_lib")]
    (folder / "notebooks").mkdir()
    nbformat.write(lesson, folder / "notebooks" / "05_attention.ipynb")
    driver = tmp_path / "drive.py"
    driver.write_text(f"PACKAGES = {site.getsitepackages()!r}\n{DRIVE}", encoding="utf-8")
    python, *_ = course.command()
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}

    code, output = course.run([python, str(driver), str(folder / "course.py"), "run", "attention"], **offline)
    assert code == 0, output + (course.venv / "course-setup.log").read_text(encoding="utf-8")
    assert "Ready after" in output and "05_attention" in output and "all ran through" in output

    # The second start goes straight to the command, as does the command that pip has installed.
    code, output = course.run([python, str(folder / "course.py"), "bench", "--help"])
    assert code == 0 and output.lstrip().startswith("Usage: course bench")
    scripts = course.venv / ("Scripts" if os.name == "nt" else "bin")
    code, output = course.run([str(scripts / "course"), "bench", "--help"])
    assert code == 0 and output.lstrip().startswith("Usage: course bench")

    code, output = course.run([str(scripts / "python"), "-P", "-c", "import course_lib; print(course_lib.__file__)"])
    assert code == 0 and Path(output.strip()) == folder / "course_lib" / "__init__.py"
