"""Where students can work: what the bundle has for Codespaces, GitHub Classroom, Colab and Binder runs as it stands."""

import json
import os
import re
import shlex
import site
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from course_lib.grading.collect import recognise
from course_lib.teaching.bundle import MADE, ONLINE, student_files, students_readme
from tests.setup.test_end_to_end import DRIVE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESS = PROJECT["urls"]["Students"]
SHIM = """#!/bin/sh
[ "$1" = course.py ] || exec {python} "$@"
shift
exec {python} {driver} {course} "$@"
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle with one lesson and without weights, in a folder where nothing is installed."""
    folder = tmp_path_factory.mktemp("Les élèves") / "course"
    for name, content in student_files(ROOT, ROOT / "notebooks" / "assignments").items():
        if name.startswith(("data/checkpoints/", "notebooks/", "docs/")) and "00_start" not in name:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "constraints.txt").write_text("# the borrowed packages are taken as they are\n")
    return folder


@pytest.fixture(scope="module")
def type_line(bundle, tmp_path_factory):
    """Types lines in the bundle, where `python3 course.py` makes a real .venv; packages come from this environment."""
    folder = tmp_path_factory.mktemp("programs")
    driver = folder / "drive.py"
    driver.write_text(f"PACKAGES = {site.getsitepackages()!r}\n{DRIVE}")
    python = getattr(sys, "_base_executable", None) or sys.executable
    parts = {"python": python, "driver": driver, "course": bundle / "course.py"}
    (folder / "python3").write_text(SHIM.format(**{name: shlex.quote(str(part)) for name, part in parts.items()}))
    (folder / "python3").chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("COURSE_", "PYTHON"))}
    environment |= {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "COURSE_HOME": str(folder / "home")}
    environment |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}

    def run(line):
        done = subprocess.run(["bash", "-e", "-c", line], cwd=bundle, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_codespace_sets_the_course_up_by_its_own_command(bundle, type_line):
    made = json.loads((bundle / ".devcontainer" / "devcontainer.json").read_text())
    code, said = type_line(made["updateContentCommand"])
    assert code == 0 and "Ready after" in said and "There is no assignment yet" in said, said
    place = made["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    python = Path(place.replace("${containerWorkspaceFolder}", str(bundle)))
    assert subprocess.run([python, "-c", "import course_lib"], cwd="/").returncode == 0
    (version,) = re.findall(r"python:([\d.]+)$", made["image"])
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)


def test_the_workflow_is_green_as_long_as_no_assignment_would_cost_points(bundle, type_line):
    (job,) = yaml.safe_load((bundle / ".github/workflows/assignments.yml").read_text())["jobs"].values()
    set_up, validate = (step["run"] for step in job["steps"] if "run" in step)
    assert type_line(set_up)[0] == 0
    assert type_line(validate) == (0, "")
    (bundle / "notebooks" / "assignment_99").mkdir()
    code, said = type_line(validate)
    assert code == 1 and "There is no assignment '99'" in said


def test_cloned_repositories_become_a_folder_that_is_collected(tmp_path):
    for name in ("ada", "bob"):
        place = tmp_path / f"attention-submissions/attention-{name}/notebooks/assignment_05"
        place.mkdir(parents=True)
        (place / "attention.ipynb").write_text(name)
    page = (ROOT / "docs" / "students.md").read_text()
    (line,) = re.findall(r"^for repo in .*$", page, flags=re.MULTILINE)
    subprocess.run(["bash", "-e", "-c", line], cwd=tmp_path, check=True)
    handed = sorted((tmp_path / "handed").rglob("*.ipynb"))
    assert [recognise(path.relative_to(tmp_path / "handed"), "05") for path in handed] == [
        "attention-ada",
        "attention-bob",
    ]
    assert [path.read_text() for path in handed] == ["ada", "bob"]


# ------------------------------------------------------------------------------------------------------- Colab

IN_A_KERNEL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
result = InteractiveShell.instance().run_cell(sys.argv[1])
result.raise_error()
import course_lib
from pathlib import Path
print("found", Path(course_lib.__file__).parent, Path.cwd())
"""


def test_the_first_cell_in_colab_fetches_the_course_and_makes_it_importable(bundle, tmp_path):
    git = ["git", "-C", str(bundle), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "The course"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    notebook = nbformat.read(bundle / "colab.ipynb", as_version=4)
    cell = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert ADDRESS in cell
    cell = cell.replace(ADDRESS, shlex.quote(str(bundle))).replace("/content", str(tmp_path))
    done = subprocess.run([sys.executable, "-P", "-c", IN_A_KERNEL, cell], cwd=tmp_path, capture_output=True, text=True)
    assert f"found {tmp_path}/course/course_lib {tmp_path}/course/notebooks" in done.stdout, done.stdout + done.stderr
    assert re.search(r"is ready: \d+ packages were here, 0 were installed", done.stdout)


def test_in_an_empty_environment_colab_installs_what_is_missing_and_leaves_the_page_alone(bundle, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = tmp_path.glob("venv/lib/python3*/site-packages")
    (packages / "pip.py").write_text("import sys\nopen(sys.argv[0] + '.txt', 'w').write('\\n'.join(sys.argv[1:]))")
    (packages / "numpy-1.0.dist-info").mkdir()
    (packages / "numpy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n")
    subprocess.run([tmp_path / "venv/bin/python", "-I", bundle / "colab.py"], check=True, capture_output=True)
    asked = (packages / "pip.py.txt").read_text().splitlines()
    wanted = [line for line in PROJECT["dependencies"] if not line.startswith(("jupyterlab", "numpy"))]
    assert asked == ["install", "--quiet", *wanted]


# --------------------------------------------------------------------------------------------------- addresses


def test_the_page_on_places_names_what_the_bundle_has():
    page = (ROOT / "docs" / "students.md").read_text()
    for name in (MADE["devcontainer.json"], MADE["assignments.yml"], "colab.ipynb", "environment.yml"):
        assert f"`{name}`" in page
    template = nbformat.read(ROOT / "course_lib/teaching/student/colab.ipynb", as_version=4)
    assert next(cell.source for cell in template.cells if cell.cell_type == "code") in page


def test_addresses_stand_in_the_table_of_urls_alone():
    assert ADDRESS.startswith("https://")
    pages = [ROOT / "README.md", ROOT / "docs" / "students.md", *(ROOT / "course_lib/teaching/student").iterdir()]
    hosts = ("codespaces.new", "colab.research", "mybinder.org", "github.com", ADDRESS.removeprefix("https://"))
    assert not [(page.name, host) for page in pages for host in hosts if host in page.read_text()]


def test_a_bundle_with_an_address_on_github_has_links_that_open_it():
    text = "# T\n\n| part | for whom |\n|---|---|\n| a | b |\n\n## Learn\n\nx\n\n## Grade\n\ny\n"
    assert students_readme(text, "https://example.org/students") == "# T\n\n## Learn\n\nx\n\n"
    links = re.findall(r"\]\((https:[^)]+)\)", students_readme(text, "https://github.com/ada/course.git"))
    assert len(links) == len(ONLINE) and all("ada/course" in link and ".git" not in link[20:] for link in links)
