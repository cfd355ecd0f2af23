"""`course class`: students get all that they need and nothing that is for instructors; nobody's changes are lost."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.collect import collect
from course_lib.grading.folders import Folders
from course_lib.grading.release import release
from course_lib.grading.spec import load, read_assignment
from course_lib.site.build import build
from course_lib.site.sources import GUIDES, Sources
from course_lib.teaching.bundle import init, linked, make_instructors_folder, update
from course_lib.teaching.private import files_in, leaks, private_texts
from tests.grading.unreleased import answer

ROOT = Path(__file__).parents[2]
NOTEBOOK = "attention.ipynb"
START = """import sys
sys.meta_path = [finder for finder in sys.meta_path if "ditable" not in repr(finder)]  # which finds this checkout
from course_lib.cli import main
main()"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A class with assignment 05 released, as `course class init` leaves it."""
    folder = tmp_path_factory.mktemp("class")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("COURSE_EXCHANGE", "COURSE_ASSIGNMENTS"):
            patch.delenv(variable, raising=False)
        make_instructors_folder(ROOT, folder / "instructor")
        release("05", folder=folder / "instructor")
        assert init(folder, packed=True) == 0
    return folder


@pytest.fixture(scope="module")
def private(made):
    return private_texts(ROOT, made / "instructor")


@pytest.fixture
def other_class(made, tmp_path):
    """A copy of the class that a test may change; the bundle's files are links, which a rewrite replaces."""
    shutil.copytree(made / "student", tmp_path / "autumn" / "student", copy_function=os.link)
    shutil.copytree(made / "instructor", tmp_path / "autumn" / "instructor")
    shutil.copy(made / "bundle.json", tmp_path / "autumn")
    return tmp_path / "autumn"


# ---------------------------------------------------------------------------------------- what is in the bundle


def test_the_bundle_has_what_students_need_and_no_place_for_instructors(made):
    top = {path.name for path in (made / "student").iterdir()}
    assert top == {
        *(".devcontainer", ".github", ".gitignore", "colab.ipynb", "colab.py"),
        *("course.py", "pyproject.toml", "constraints.txt", "environment.yml", "README.md"),
        *("course_lib", "data", "docs", "notebooks", "CITATION.cff", "LICENSE", "LICENSE-TEXT.md"),
    }
    notebooks = made / "student" / "notebooks"
    assert len(list(notebooks.glob("[0-9]*.ipynb"))) == 18
    assert [path.relative_to(notebooks).as_posix() for path in notebooks.glob("*/**/*.*")] == [
        f"assignments/release/05/{NOTEBOOK}"
    ]
    assert not {path.name for path in (made / "student" / "course_lib").iterdir()} & {"authoring", "teaching"}


def test_the_instructors_folder_is_a_private_course_directory_with_a_key_of_its_own(made):
    folders = Folders(root=made / "instructor")
    assert len(folders.assignments()) == 17 and folders.config.is_file()
    assert folders.hidden("05").joinpath("tasks.py").is_file()
    assert folders.root.stat().st_mode & 0o077 == 0 and folders.key.stat().st_mode & 0o077 == 0


def test_git_sees_nothing_of_a_class_in_the_repository_around_it(made, tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for name in (".gitignore", "bundle.json", "instructor/instructor.key"):
        (tmp_path / "autumn" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / name, tmp_path / "autumn" / name)
    seen = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert seen.stdout == ""


def test_no_module_of_the_bundle_needs_one_that_is_not_in_it(made):
    own = [path for path in (made / "student" / "course_lib").rglob("*.py") if path.name != "cli.py"]
    assert not [path for path in own if re.search(r"(import|from) course_lib\.(authoring|teaching)", path.read_text())]


def test_each_link_of_the_bundles_pages_leads_to_something_in_it(made):
    student = made / "student"
    pages = [student / "README.md", *student.glob("docs/*.md"), *student.glob("course_lib/*/README.md")]
    names = {path.relative_to(student).as_posix() for path in student.rglob("*") if path.is_file()}
    for page in pages:
        text = page.read_text()
        assert linked(text, page.relative_to(student).as_posix(), names) == text, page
    assert "[Lesson 05" in pages[0].read_text() and "## Grade" not in pages[0].read_text()


def test_a_link_to_what_students_do_not_have_becomes_its_words():
    text = "# A B\n[one](b.md) [two](../c.md#x) [three](#a-b) [four](#d) [five](https://example.org)"
    assert linked(text, "docs/a.md", {"docs/b.md"}) == (
        "# A B\n[one](b.md) two [three](#a-b) four [five](https://example.org)"
    )


# --------------------------------------------------------------------------------------------------- the leak scan


def test_nothing_private_is_in_the_bundle_whatever_it_is_packed_in(made, private):
    assert len(private) > 150 and sum(map(len, private.values())) > 5000
    assert list(leaks(files_in(made / "student"), private)) == []


def test_nothing_private_is_in_a_wheel_that_is_built_from_the_bundle(made, private, tmp_path):
    source = tmp_path / "source"
    shutil.copytree(made / "student", source, ignore=shutil.ignore_patterns("data", "notebooks", "docs"))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(tmp_path)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", str(source), *options], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "course_lib/cli.py" in names and "course_lib/teaching/bundle.py" not in names
    assert list(leaks([(wheel.name, wheel.read_bytes())], private)) == []


@pytest.mark.needs("lecture_assets")
def test_nothing_private_is_on_a_site_that_is_built_from_the_bundle(made, private, tmp_path):
    student = made / "student"
    guides = [name for name in GUIDES if (student / name).is_file()]
    site = Sources(course=student, lessons=["notebooks/05_attention.ipynb"], guides=guides)
    build(site, tmp_path / "site")
    pages = {name for name, _ in files_in(tmp_path / "site")}
    assert {"docs/students.html", "notebooks/05_attention.html"} <= pages and "docs/grading.html" not in pages
    assert list(leaks(files_in(tmp_path / "site"), private)) == []


def solution(text):
    """A solution as a comment in some other file."""
    return "data/prose/note.txt", re.sub("^", "# ", text["answer"], flags=re.MULTILINE).encode()


def in_metadata(text):
    notebook = nbformat.v4.new_notebook(metadata={"note": {"kept": text["answer"]}})
    return "notebooks/05_attention.ipynb", nbformat.writes(notebook).encode()


def as_html(text):
    lines = (f"<pre><span>{line.replace('=', '</span><b>=</b>')}\n</pre>" for line in text["answer"].splitlines())
    return "site/page.html", "".join(lines).encode()


def packed(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.py", text["answer"])
    return "data/images/more.npz", file.getvalue()


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (solution, "note.txt holds . of . telling lines of the answer 'norm_gradient' of assignment 06"),
        (in_metadata, "05_attention.ipynb holds .* the answer 'norm_gradient'"),
        (as_html, "page.html holds .* the answer 'norm_gradient'"),
        (packed, "more.npz/inside.py holds .* the answer 'norm_gradient'"),
        (lambda text: ("a.py", text["hidden"].encode()), r"a.py holds .* hidden/05/tasks.py"),
        (lambda text: ("a.md", text["question"].encode()), "a.md holds .* exams/08.md, '"),
        (lambda text: ("a.md", text["lecture"].encode()), "a.md holds .* docs/lectures/05.md"),
        (lambda text: ("a.txt", text["key"].encode()), "a.txt holds 1 of 1 telling lines of the instructor's key"),
        (lambda text: ("notebooks/05.ipynb", text["lesson"].encode()), "holds '\"lecture\": {'"),
        (lambda text: ("notebooks/assignments/hidden/05/a.py", b""), "is for instructors alone"),
    ],
)
def test_a_leak_that_is_planted_is_found(made, private, plant, said):
    assignments = ROOT / "notebooks" / "assignments"
    cells = load(read_assignment(assignments, "06")).cells
    text = {
        "answer": next(cell.source for cell in cells if cell.grade_id == "norm_gradient"),
        "hidden": (assignments / "hidden" / "05" / "tasks.py").read_text(),
        "question": (ROOT / "exams" / "08.md").read_text().split("\n## ")[1],
        "lecture": (ROOT / "docs" / "lectures" / "05.md").read_text(),
        "key": (made / "instructor" / "instructor.key").read_text(),
        "lesson": (ROOT / "notebooks" / "05_attention.ipynb").read_text(),
    }
    assert any(re.search(said, found) for found in leaks([plant(text)], private))


@pytest.mark.parametrize("place", ["instructor/release/05/more.ipynb", "student/notebooks/07_bert.ipynb"])
def test_an_update_with_a_leak_is_refused_and_changes_nothing(other_class, place):
    (other_class / place).unlink(missing_ok=True)
    shutil.copy(ROOT / "notebooks/assignments/source/06/transformer.ipynb", other_class / place)
    before = dict(files_in(other_class / "student"))
    with pytest.raises(CannotStart, match=f"left as it was:\n  - .*{Path(place).name} holds"):
        update(other_class)
    assert dict(files_in(other_class / "student")) == before


# ----------------------------------------------------------------------------------------------------- updates


def test_an_update_follows_the_releases_and_loses_nobodys_changes(other_class, capsys):
    instructor, student = other_class / "instructor", other_class / "student"
    key = (instructor / "instructor.key").read_text()
    for path in (instructor / "hidden/06/tasks.md", student / "docs/data.md", student / ".git/config"):
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text("mine")
    (instructor / "release" / "05").rename(instructor / "release" / "07")
    assert init(other_class) == 0
    said = capsys.readouterr().out
    assert "assignments: 07" in said and "docs/data.md was changed there, and is left as it is" in said
    assert (student / f"notebooks/assignments/release/07/{NOTEBOOK}").is_file()
    assert not (student / f"notebooks/assignments/release/05/{NOTEBOOK}").exists()
    assert (instructor / "instructor.key").read_text() == key
    for name in ("instructor/hidden/06/tasks.md", "student/docs/data.md", "student/.git/config"):
        assert (other_class / name).read_text() == "mine"
    assert update(other_class) == 0
    assert "docs/data.md was changed there" in capsys.readouterr().out


def test_a_zip_holds_the_bundle_in_one_folder_and_nothing_else_that_lies_there(made):
    names = zipfile.ZipFile(made / "student.zip").namelist()
    assert set(names) == {f"course/{name}" for name in json.loads((made / "bundle.json").read_text())}


def test_what_is_no_class_is_refused_with_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(CannotStart, match="There is no class in .*course class init"):
        update(tmp_path)
    with pytest.raises(CannotStart, match="a class is made from the whole course"):
        make_instructors_folder(tmp_path, tmp_path / "instructor")
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------- in the bundle


def in_bundle(student, home, *arguments):
    """`course` as it stands in a bundle: its exit code, and what it says."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("COURSE_EXCHANGE", "COURSE_ASSIGNMENTS")
    }
    environment |= {"PYTHONPATH": str(student), "COURSE_HOME": str(home)}
    command = [sys.executable, "-P", "-c", START, *arguments]
    done = subprocess.run(command, cwd=student, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def solutions(instructor):
    cells = load(read_assignment(instructor, "05")).cells
    return {cell.grade_id: cell.source for cell in cells if cell.kind == "solution"}


def test_an_assignment_goes_from_the_bundle_to_the_instructors_folder(other_class, tmp_path):
    student, instructor = other_class / "student", other_class / "instructor"
    copy = student / "notebooks" / "assignment_05" / NOTEBOOK
    code, said = in_bundle(student, tmp_path, "assign", "fetch", "05")
    assert code == 0 and copy.is_file(), said
    answer(copy, **solutions(instructor))
    code, said = in_bundle(student, tmp_path, "assign", "validate", "05")
    assert "  NO " not in said and "visible checks passed" in said, said
    code, said = in_bundle(student, tmp_path, "assign", "submit", "05", "--student", "ada")
    assert code == 0, said
    assert collect("05", source=copy.parent / "submissions", folder=instructor) == 0
    assert (instructor / "submitted" / "ada" / "05" / NOTEBOOK).read_bytes() == copy.read_bytes()


@pytest.mark.parametrize("command", ["class init autumn", "exam --lessons 08", "test"])
def test_a_command_of_instructors_says_so_in_the_bundle(made, tmp_path, command):
    code, said = in_bundle(made / "student", tmp_path, *command.split())
    assert code == 1 and "not part of what students install" in said and "Traceback" not in said
