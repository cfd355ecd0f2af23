"""The library as a wheel: it holds all that the package holds, and with the archive of files it is the course."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import course_lib
from course_lib.authoring.archive import contents, write_archive
from course_lib.commands import unpack
from course_lib.data import place
from course_lib.data.fetching import Failed
from course_lib.data.place import MARK, CannotStart

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what it is built from."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "course_lib", source / "course_lib", ignore=shutil.ignore_patterns("__pycache__"))
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", str(source), *options], check=True, capture_output=True)
    (wheel,) = folder.glob("course_lib-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel):
    """The wheel, unpacked where nothing else of the course is."""
    folder = wheel.parent / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_a_wheel_holds_all_that_the_package_holds(installed):
    there = {path.relative_to(ROOT) for path in (ROOT / "course_lib").rglob("*") if path.is_file()}
    there = {path for path in there if "__pycache__" not in path.parts}
    assert there == {path.relative_to(installed) for path in (installed / "course_lib").rglob("*") if path.is_file()}


def test_the_doctor_of_a_library_alone_says_that_its_lessons_are_elsewhere(installed, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(installed), "COURSE_HOME": str(tmp_path), "COLUMNS": "200"}
    command = [sys.executable, "-P", "-m", "course_lib.cli", "doctor"]
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    assert "the library alone" in said and "needed, all there" in said and "CannotStart" not in said


# the course from a wheel and an archive ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return write_archive(ROOT, tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def course(wheel, tmp_path_factory):
    """course(*words): the command in a new environment that has the wheel, and no network; in a folder of a learner's.

    What the wheel needs is borrowed from this environment, which has the course itself in another way.
    """
    folder = tmp_path_factory.mktemp("learner")
    venv.create(folder / ".venv", with_pip=False)
    python = folder / ".venv" / "bin" / "python"
    (site,) = (folder / ".venv" / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    options = ["--quiet", "--no-deps", "--no-index", "--force-reinstall"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    changes = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    changes |= {"COURSE_HOME": str(folder / "home"), "COLUMNS": "200"}
    changes |= {"JUPYTER_PATH": str(Path(sysconfig.get_path("data"), "share", "jupyter"))}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COURSE_", "PYTHONPATH"))}

    def course(*words, within="."):
        where = {"cwd": folder / within, "env": kept | changes, "stdin": subprocess.DEVNULL}
        done = subprocess.run([python.with_name("course"), *words], capture_output=True, text=True, **where)
        return done.returncode, done.stdout + done.stderr

    course.folder = folder
    course.python = [str(python), "-c"]
    course.environment = kept | changes
    return course


def test_the_course_from_a_wheel_says_how_to_get_its_files(course):
    code, said = course("lab")
    assert code == 1 and "this wheel names no release" in said and "course lab --from course-files-" in said
    code, said = course("run", "00")
    assert code == 1 and "Get them here, and start, with: course lab" in said


def test_a_wheel_and_an_archive_are_the_course_without_a_network(course, archive):
    start = "import sys; from pathlib import Path; from course_lib.commands.unpack import get_files; "
    start += "get_files(Path(sys.argv[1]))"  # as `course lab --from` does, which then serves until it is stopped
    subprocess.run([*course.python, start, archive], cwd=course.folder, env=course.environment, check=True)
    _, said = course("doctor", within="course/notebooks")
    assert "needed, all there" in said and "the library alone" not in said
    code, said = course("run", "00")
    assert code == 0 and "all ran through" in said, said
    code, said = course("assign", "fetch", "05")
    assert code == 0 and (course.folder / "course/notebooks/assignment_05/attention.ipynb").is_file(), said
    code, said = course("lab", "--from", str(archive))
    assert code == 1 and "The files of the course are here already" in said


def test_the_archive_gives_no_solution_and_no_hidden_check_away(archive):
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        assignments = [name for name in names if "/assignments/" in name]
        assert len(assignments) == 17 and all("/assignments/release/" in name for name in assignments)
        assert "BEGIN SOLUTION" not in opened.read("notebooks/assignments/release/05/attention.ipynb").decode()
        assert json.loads(opened.read(MARK)) == {"version": course_lib.__version__}
    assert sum(name.startswith("notebooks/") for name in names) == 18 + 17
    assert {"data/checkpoints/vit/card.json", "LICENSE", "LICENSE-TEXT.md", "constraints.txt"} <= set(names)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A small archive, and a library that lies in no course."""
    path = tmp_path / "small.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MARK, json.dumps({"version": "0.0.9"}))
        archive.writestr("notebooks/00_a.ipynb", "{}")
    elsewhere = tmp_path / "site-packages"
    for module in (place, unpack):
        monkeypatch.setattr(module, "beside_package", lambda: elsewhere)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("COURSE_FOLDER", raising=False)
    return path


def test_files_of_another_version_are_used_and_said_to_be(small, capsys):
    folder = unpack.get_files(small)
    assert folder == (Path.cwd() / "course").resolve() == place.course_folder() == unpack.get_files()
    assert "are of version 0.0.9, and course_lib is of version" in capsys.readouterr().out
    (folder / "notebooks" / "deep").mkdir()
    os.chdir(folder / "notebooks" / "deep")
    assert place.course_folder() == folder


def test_a_folder_that_is_there_is_not_overwritten(small):
    Path("course").mkdir()
    Path("course/mine.txt").write_text("mine")
    with pytest.raises(CannotStart, match="is there already, and is not overwritten"):
        unpack.get_files(small)
    assert [path.name for path in Path("course").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.zip", None, "There is no file"),
        ("text.zip", b"no zip", "is damaged, or no zip file"),
        ("other.zip", {"a.txt": "x"}, "does not hold the files of the course"),
        ("evil.zip", {MARK: "{}", "../evil.txt": "x"}, "does not hold the files of the course"),
    ],
)
def test_an_archive_that_is_none_is_said_in_a_sentence_and_leaves_nothing(small, tmp_path, name, content, said):
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    elif content:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member, text in content.items():
                archive.writestr(member, text)
    with pytest.raises(CannotStart, match=said):
        unpack.get_files(tmp_path / name)
    assert list(Path.cwd().iterdir()) == []


def test_the_archive_of_the_release_is_fetched_once(small, tmp_path, monkeypatch):
    asked = []

    def download(address, kept, file, *, say):
        asked.append(address)
        if len(asked) == 1:
            raise Failed("cannot be reached")
        kept.parent.mkdir(parents=True)
        shutil.copy(small, kept)

    monkeypatch.setattr(unpack, "download", download)
    monkeypatch.setattr(unpack, "releases", lambda: "https://releases.invalid/v1")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    with pytest.raises(CannotStart, match=r"course-files-\S+\.zip cannot be reached\. Copy .* course lab --from"):
        unpack.get_files()
    assert unpack.find_archive() == unpack.find_archive()
    assert asked == [f"https://releases.invalid/v1/{unpack.archive_name()}"] * 2
    monkeypatch.setenv("COURSE_FILES", str(small))
    assert unpack.find_archive() == small


def test_equal_files_make_an_equal_archive(tmp_path, monkeypatch):
    files = [(MARK, b'{"version": "1"}'), ("a.txt", b"a")]
    monkeypatch.setattr("course_lib.authoring.archive.contents", lambda course: iter(files))
    one, two = (write_archive(ROOT, tmp_path / name) for name in ("one", "two"))
    assert one.name == "course-files-1.zip" and one.read_bytes() == two.read_bytes()


def test_hidden_files_stay_out_of_the_archive(tmp_path):
    for name in ("data/.cache/x", "data/a.txt", "LICENSE", "LICENSE-TEXT.md", "CHANGELOG.md", "constraints.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1"\n')
    (tmp_path / "notebooks" / "assignments").mkdir(parents=True)
    assert [name for name, _ in contents(tmp_path) if name.startswith("data")] == ["data/a.txt"]
