"""`course class init` and `course class update`: what the students of a class get, and what their instructor keeps.

FOLDER/instructor/   nbgrader's course directory: settings, sources, hidden checks, and a key of its own
FOLDER/student/      what students install: lessons, library, released assignments; FOLDER/student.zip packs it
FOLDER/bundle.json   the SHA-256 of each file that was written into student/
"""

import hashlib
import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Container, Iterable
from itertools import islice
from pathlib import Path, PurePosixPath
from posixpath import normpath

import nbformat

from course_lib.data.place import CannotStart, course_folder
from course_lib.grading.folders import CONFIG, Folders, instructor_key, write_whole
from course_lib.grading.wording import counted
from course_lib.teaching.private import leaks, private_texts

GUIDES = "students home library data scale site capstone capstone_example calibration".split()
GIVEN = "course.py pyproject.toml constraints.txt environment.yml README.md".split()
GIVEN += "CITATION.cff LICENSE LICENSE-TEXT.md".split()
GIVEN += [f"docs/{guide}.md" for guide in GUIDES] + ["docs/cards/*.md", "docs/*.png"]
GIVEN += ["course_lib/**/*", "data/**/*", "notebooks/[0-9][0-9]_*.ipynb"]
NOT_GIVEN = re.compile(r"course_lib/(authoring|teaching)/|(^|/)(\.|__pycache__)")
MADE = {  # from course_lib/teaching/student/: for Git, GitHub and Colab
    "gitignore": ".gitignore",
    "devcontainer.json": ".devcontainer/devcontainer.json",
    "assignments.yml": ".github/workflows/assignments.yml",
    "colab.ipynb": "colab.ipynb",
    "colab.py": "colab.py",
}
SECTIONS = ("Learn", "Licence")  # of the README; the others are for instructors and authors
RELEASED = "notebooks/assignments/release"
ONLINE = (  # each opens a repository on GitHub
    ("GitHub Codespaces", "https://codespaces.new/{}"),
    ("Colab", "https://colab.research.google.com/github/{}/blob/main/colab.ipynb"),
    ("Binder", "https://mybinder.org/v2/gh/{}/main?urlpath=lab/tree/notebooks/00_start_here.ipynb"),
)
_LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<target>[^)\s#:]*)(?P<anchor>#[^)\s]*)?\)")


def init(folder: Path, *, packed: bool = False) -> int:
    """Makes the instructor's folder, if it is not there, and the student bundle; `packed` writes a .zip, too.

    What the instructor has changed stays. Raises CannotStart if this is not the whole course.
    """
    make_instructors_folder(course_folder(), folder / "instructor")
    return _write(folder, packed=packed)


def update(folder: Path) -> int:
    """Makes the student bundle anew, with what is released by now. Raises CannotStart if `init` has not made one."""
    if not _manifest(folder).is_file():
        raise CannotStart(f"There is no class in {folder.absolute()}. Make one with: course class init {folder}")
    return _write(folder, packed=_archive(folder).exists())


def make_instructors_folder(course: Path, place: Path) -> None:
    """Copies the assignments into a private course directory; a part of it that is there stays as it is."""
    origin = course / "notebooks" / "assignments"
    if not all((origin / part).is_dir() for part in ("source", "hidden")):
        raise CannotStart(
            f"{origin} has no source/ and hidden/, as in a student bundle: a class is made from the whole course."
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o700)
        for part in ("source", "hidden"):
            if not (place / part).exists():
                half = place / f".{part}.part"
                shutil.rmtree(half, ignore_errors=True)
                shutil.copytree(origin / part, half, ignore=shutil.ignore_patterns("__pycache__", ".*"))
                half.rename(place / part)
    except OSError as error:
        raise CannotStart(f"{place} cannot be written: {error}. Name another folder, then start again.") from error
    if not (place / CONFIG).exists():
        write_whole(place / CONFIG, (origin / CONFIG).read_bytes())
    instructor_key(Folders(root=place))


def student_files(course: Path, instructor: Path) -> dict[str, bytes]:
    """The files of a student bundle, by their names in it."""
    paths = {path.relative_to(course).as_posix(): path for part in GIVEN for path in course.glob(part)}
    released = instructor / "release"
    paths |= {f"{RELEASED}/{path.relative_to(released).as_posix()}": path for path in released.glob("*/**/*")}
    templates = Path(__file__).parent / "student"
    paths = {name: path for name, path in paths.items() if path.is_file() and not NOT_GIVEN.search(name)}
    paths |= {name: templates / template for template, name in MADE.items()}
    project = tomllib.loads((course / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project["urls"]["Students"]
    files = {}
    for name, path in sorted(paths.items()):
        content = path.read_bytes()
        if re.fullmatch(r"notebooks/\d\d_\w+\.ipynb", name):
            content = without_lecture(content)
        elif name == "README.md":
            content = linked(students_readme(content.decode(), address), name, paths).encode()
        elif name.startswith("docs/") and name.endswith(".md") or name.endswith("/README.md"):
            content = linked(content.decode(), name, paths).encode()
        files[name] = content.replace(b"ADDRESS", address.encode()) if name.startswith("colab.") else content
    return files


def without_lecture(content: bytes) -> bytes:
    """A lesson's notebook without the slides and speaker notes in its cells' metadata."""
    notebook = nbformat.reads(content.decode(), as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("lecture", None)
    return (nbformat.writes(notebook) + "\n").encode()


def students_readme(text: str, address: str) -> str:
    """The README's sections for learners; if the bundle has an address on GitHub, with links that open it."""
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    head = re.sub(r"^\| part \|.*\n(\|.*\n)+\n?", "", head, flags=re.MULTILINE)
    if found := re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?", address):
        links = " · ".join(f"[{where}]({link.format(found[1])})" for where, link in ONLINE)
        head += f"**Without installing anything**, open it in: {links}. [What each can do](docs/students.md).\n\n"
    return head + "".join(part for part in sections if part[3:].split("\n")[0] in SECTIONS)


def linked(text: str, page: str, files: Container[str]) -> str:
    """Markdown in which a link to a file, or a section of this page, that students do not have becomes its words."""
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    sections = {"#" + re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}

    def link(found: re.Match) -> str:
        target = normpath(PurePosixPath(page).parent / found["target"])
        there = target in files if found["target"] else found["anchor"] in sections
        return found[0] if there else found["words"]

    return _LINK.sub(link, text)


def _write(folder: Path, *, packed: bool) -> int:
    """Writes what has changed into student/, and leaves alone what somebody else has changed there."""
    instructor, student = folder / "instructor", folder / "student"
    files = student_files(course_folder(), instructor)
    before = json.loads(_manifest(folder).read_text()) if _manifest(folder).exists() else {}
    written = {name: _sha256(content) for name, content in files.items()}
    there = {name: (student / name).read_bytes() for name in {*before, *files} if (student / name).is_file()}
    kept = {
        name: content
        for name, content in sorted(there.items())
        if _sha256(content) not in (before.get(name), written.get(name))
    }
    found = leaks((files | kept).items(), private_texts(course_folder(), instructor))
    if problems := list(islice(found, 10)):
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise CannotStart(f"The bundle would give something away, and {student} is left as it was:{listed}")
    for name in sorted(before.keys() - files.keys() - kept.keys()):
        (student / name).unlink(missing_ok=True)
    for name in sorted(files.keys() - kept.keys()):
        if there.get(name) != files[name]:
            write_whole(student / name, files[name])
    written |= {name: before.get(name, "") for name in kept}
    write_whole(_manifest(folder), json.dumps(written, indent=1) + "\n")
    write_whole(folder / ".gitignore", "*\n")  # the key must not get into the repository around it
    if packed:
        _pack(student, written, _archive(folder))
    size = sum(map(len, files.values())) / 1e6
    released = sorted({name.split("/")[3] for name in files if name.startswith(RELEASED)})
    archive = f"packed in {_archive(folder).name}" if packed else "--zip packs them"
    print(f"For students: {student.absolute()}, {counted(len(files), 'file')}, {size:.0f} MB; {archive}")
    print(f"  assignments: {', '.join(released) or 'none yet'}")
    for name in kept:
        print(f"  {name} was changed there, and is left as it is. For the course's own: delete it, and update again.")
    print(f"For you alone: {instructor.absolute()}, the course directory of grading. Next:")
    print(f"  course assign release 05 --folder {instructor}\n  course class update {folder}")
    return 0


def _pack(student: Path, names: Iterable[str], place: Path) -> None:
    """Writes the bundle's files, and nothing else that lies there, as a .zip with one folder in it."""
    part = place.with_name(f".{place.name}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted(names):
                entry = zipfile.ZipInfo(f"course/{name}", (2000, 1, 1, 0, 0, 0))  # equal bundles are equal bytes
                entry.external_attr = 0o644 << 16  # for every account of a hub
                archive.writestr(entry, (student / name).read_bytes(), zipfile.ZIP_DEFLATED)
        part.replace(place)
    except OSError as error:
        raise CannotStart(f"{place} cannot be written: {error.strerror}. Make room, then start again.") from error


def _manifest(folder: Path) -> Path:
    return folder / "bundle.json"


def _archive(folder: Path) -> Path:
    return folder / "student.zip"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
