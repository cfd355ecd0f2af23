"""`course assign marking NAME`: a page on which a person marks written answers, without a network and without names.

A student's answer becomes harmless HTML (`safe_markdown`), and the page's policy runs no script but its own. The page
keeps its state in the browser and downloads a small file; `course assign marks FILE` carries that into the gradebook.
"""

import base64
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from course_lib.data.place import CannotStart
from course_lib.grading.folders import (
    Folders,
    assignments_folder,
    grading_lock,
    instructor_key,
    read_config,
    read_small,
    write_whole,
)
from course_lib.grading.gradebook import Gradebook, Score, answer_hash, scores
from course_lib.grading.intake import take_in
from course_lib.grading.pseudonyms import pseudonyms
from course_lib.grading.spec import AssignmentFiles, load, read_released
from course_lib.grading.stripped import student_version, tags_of
from course_lib.grading.wording import counted, one_line, points, visible
from course_lib.grading.written import Written, written_questions
from course_lib.lectures.assets import MATHJAX, asset
from course_lib.lectures.rendering import inline_script

FORMAT = "course marks 1"
FILE_BYTES = 20_000_000  # of a file of marks
COMMENT = 10_000  # characters


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One student's answer to one question, as the page shows it; `given` is what the gradebook has already."""

    student: str  # the pseudonym
    cell: str
    sha256: str
    text: Markup
    given: str = ""


def marking(name: str, *, folder: Path | None = None, tutors: int = 1, seed: int = 0, to: Path | None = None) -> int:
    """Writes a page for each tutor into marking/ of the course directory, or into the folder `to`.

    The order of students comes from `seed`; they are dealt to tutors in turn. Raises CannotStart if the assignment has
    no written question, or no answer to one.
    """
    folders = assignments_folder(folder)
    files = read_released(folders.root, name)
    questions = written_questions(files, folders.hidden(name))
    if not questions:
        raise CannotStart(f"Assignment {name} has no question that is answered in words: there is nothing to mark.")
    rows = scores(folders.gradebook, name)
    names = pseudonyms(instructor_key(folders), _purpose(name), (row.student for row in rows))
    answers, stale = _answers(rows, questions, folders, files, names)
    if not answers:
        raise CannotStart(
            f"No answer in words is there for assignment {name}. If it is not graded yet: course grade {name}"
        )
    order = sorted(answers)
    random.Random(f"{name} {seed}").shuffle(order)
    mathjax = _mathjax()
    for tutor in range(min(tutors, len(order))):
        dealt = [answer for student in order[tutor::tutors] for answer in answers[student]]
        mine = [answer for cell in questions for answer in dealt if answer.cell == cell]
        file = f"{name}.html" if tutors == 1 else f"{name}-tutor-{tutor + 1}.html"
        target = (to or folders.root / "marking") / file
        write_whole(target, page(files, questions, mine, tutor=tutor if tutors > 1 else None, mathjax=mathjax))
        print(f"{target}: {counted(len(mine), 'answer')} of {counted(len(order[tutor::tutors]), 'student')}")
    if stale:
        print(f"Not graded as they are now: {counted(len(stale), 'submission')}. Run first: course grade {name}")
    print("Open it in a browser. What it downloads goes back with: course assign marks FILE.json")
    return 0


def _purpose(name: str) -> str:
    return f"marking {name}"


def _answers(
    rows: Sequence[Score],
    questions: Mapping[str, Written],
    folders: Folders,
    files: AssignmentFiles,
    names: Mapping[str, str],
) -> tuple[dict[str, list[Answer]], list[str]]:
    """The answers in words by pseudonym, and the students whose submission is not graded as it is now."""
    stubs = {name: text.strip() for name, text in _stubs(files).items()}
    found: dict[str, list[Answer]] = {}
    stale = []
    for row in rows:
        submission = take_in(folders.submitted(row.student, files.name) / f"{files.notebook}.ipynb", files)
        if row.verdict is None or row.verdict["submission"] != submission.sha256:
            stale.append(row.student)
            continue
        for cell in questions:
            text = submission.written.get(cell, "").strip()
            if text in ("", stubs[cell]):
                continue
            given = f"{points(row.points[cell])} points" if cell in row.by_hand and cell not in row.unread else ""
            found.setdefault(names[row.student], []).append(
                Answer(student=names[row.student], cell=cell, sha256=answer_hash(text), text=_shown(text), given=given)
            )
    return found, stale


def _stubs(files: AssignmentFiles) -> dict[str, str]:
    """What a release holds in place of each answer in words."""
    cells = student_version(files.source_notebook, files.notebook).cells
    return {tags_of(cell)["grade_id"]: cell.source for cell in cells if tags_of(cell).get("grade_id")}


def page(
    files: AssignmentFiles,
    questions: Mapping[str, Written],
    answers: Sequence[Answer],
    *,
    tutor: int | None = None,
    mathjax: str = "",
) -> str:
    """The page for one tutor, as HTML."""
    part = "" if tutor is None else f"-tutor-{tutor + 1}"
    scripts = [
        'window.MathJax = {tex: {inlineMath: [["$", "$"]], processEscapes: true, packages: {"[-]": ["html", "require", '
        '"autoload"]}}, svg: {fontCache: "local"}, options: {enableMenu: false}, startup: {typeset: false}};',
        mathjax,
        _own_file("marking.js"),
    ]
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return _template().render(
        policy=(
            f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
        style=_own_file("marking.css"),
        scripts=scripts,
        heading=f"{files.name} {load(files).assignment.title}",
        assignment=files.name,
        file=f"marks-{files.name}{part}.json",
        format=FORMAT,
        tutor=tutor,
        questions=[question for name, question in questions.items() if any(one.cell == name for one in answers)],
        answers=answers,
    )


def _mathjax() -> str:
    """The script that draws formulas; nothing where it is not to be had: they then stay as they were typed."""
    try:
        return inline_script(asset(MATHJAX, "es5/tex-svg-full.js").decode())
    except CannotStart:
        print("Formulas are shown as they were typed: MathJax is not on this machine and could not be fetched.")
        return ""


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _shown(text: str) -> Markup:
    """A student's or our own Markdown as harmless HTML."""
    from course_lib.grading.nbgrader_plugin import safe_markdown

    return Markup(safe_markdown(visible(text)))


@cache
def _template() -> Any:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"points": points, "line": one_line, "markdown": _shown}
    return environment.from_string(_own_file("marking.html.j2"))


def _own_file(name: str) -> str:
    return (package_files("course_lib.grading") / name).read_text(encoding="utf-8")


# back into the gradebook --------------------------------------------------------------------------------------


def marks(file: Path, *, folder: Path | None = None) -> int:
    """Carries the points and comments of a downloaded file into the gradebook: all of them, or none.

    An answer that its student has changed since is left as it is, and named. Raises CannotStart, and changes nothing,
    for a file that is no such file, is of another assignment or course directory, or has points out of range.
    """
    folders = assignments_folder(folder)
    name, entries = _read_marks(file, folders)
    files = read_released(folders.root, name)
    config = read_config(folders.root)
    with (
        grading_lock(folders),
        Gradebook(folders.gradebook, assignment=name, notebook=files.notebook, config=config) as book,
    ):
        rows = book.scores()
        names = pseudonyms(instructor_key(folders), _purpose(name), (row.student for row in rows))
        students = {pseudonym: student for student, pseudonym in names.items()}
        possible = {cell: most for cell, most in book.points.items() if cell in load(files).manual_cells}
        for entry in entries:
            _refuse_unfit(entry, file, name, students, possible)
        found = {(students[one["student"]], one["cell"]): one for one in entries}
        changed = book.mark({key: (one["answer"], float(one["points"]), one["comment"]) for key, one in found.items()})
        book.update_penalties()
    unread = sum(bool(set(row.unread) & possible.keys()) for row in scores(folders.gradebook, name))
    print(f"{counted(len(found) - len(changed), 'answer')} of assignment {name} marked.")
    if changed:
        left = ", ".join(sorted({names[student] for student, _ in changed}))
        print(f"Changed since the page was made, and left as they were: {left}. Make the page again for them.")
    if unread:
        print(f"Of {counted(unread, 'student')} an answer is still unmarked.")
    print(f"Next: course assign feedback {name}")
    return 0


def _read_marks(file: Path, folders: Folders) -> tuple[str, list[dict[str, Any]]]:
    """The assignment and the marks in a downloaded file."""
    try:
        found = json.loads((read_small(file, FILE_BYTES) or b"").decode("utf-8"))
        good = found["format"] == FORMAT and isinstance(found["assignment"], str) and isinstance(found["marks"], list)
        good = good and all(_is_mark(entry) for entry in found["marks"])
    except (ValueError, TypeError, KeyError, RecursionError):
        good = False
    if not good:
        raise CannotStart(f"{file} is no file of marks: name the one that the marking page has downloaded.")
    if found["assignment"] not in folders.assignments():
        raise CannotStart(
            f"{file} is of assignment {one_line(found['assignment'], 40)!r}, which this course directory does not "
            "have: name the right one with --folder."
        )
    if not found["marks"]:
        raise CannotStart(f"{file} holds no marks: on the page no answer has points for all of its parts yet.")
    return found["assignment"], found["marks"]


def _is_mark(entry: Any) -> bool:
    texts = isinstance(entry, dict) and all(
        isinstance(entry.get(part), str) for part in ("student", "cell", "answer", "comment")
    )
    number = texts and entry.get("points")
    return texts and isinstance(number, int | float) and not isinstance(number, bool)


def _refuse_unfit(
    entry: Mapping[str, Any], file: Path, name: str, students: Mapping[str, str], possible: Mapping[str, float]
) -> None:
    who, cell, number = one_line(entry["student"], 40), one_line(entry["cell"], 40), entry["points"]
    if entry["cell"] not in possible or entry["student"] not in students:
        what = f"a question {cell!r}" if entry["cell"] not in possible else f"a student {who!r}"
        raise CannotStart(f"{file} does not belong to assignment {name} of this course directory: it has {what}.")
    if not 0 <= number <= possible[entry["cell"]]:  # NaN is not, either
        most = points(possible[entry["cell"]])
        raise CannotStart(
            f"{file} gives {who} {number:g} points for {cell!r}, which has 0 to {most}; nothing was changed."
        )
    if len(entry["comment"]) > COMMENT:
        raise CannotStart(f"{file} has a comment for {who} of more than {COMMENT} characters; nothing was changed.")
