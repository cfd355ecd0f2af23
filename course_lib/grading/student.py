"""`course assign list | fetch | validate | submit | results | verify`: a student's side. Works without nbgrader.

What needs torch is imported where it is used: to list and to fetch shall take no seconds.
"""

import getpass
import hashlib
import itertools
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from course_lib.data.place import CannotStart, course_folder
from course_lib.grading.alternatives import as_in, chosen
from course_lib.grading.exchange import Exchange, feedback_page, find_exchange, hand_in, is_plain_name, plain
from course_lib.grading.folders import FILE_BYTES, assignments_folder, one_notebook, read_small, write_whole
from course_lib.grading.stripped import student_version
from course_lib.grading.wording import counted, one_line

if TYPE_CHECKING:
    from course_lib.grading.intake import Submission
    from course_lib.grading.spec import AssignmentFiles

SUBMISSIONS, FEEDBACK, RECEIPT = "submissions", "feedback", ".receipt.json"


@dataclass(frozen=True, kw_only=True)
class Release:
    """An assignment as students get it."""

    name: str
    notebook: str  # without .ipynb
    content: bytes

    @property
    def title(self) -> str:
        """The first heading of the notebook."""
        cells = nbformat.reads(self.content.decode("utf-8"), as_version=4).cells
        lines = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
        return next((line.lstrip("# ") for line in lines if line.startswith("# ")), self.notebook)

    @property
    def usual_copy(self) -> Path:
        """Where a student's copy lies: beside the lessons if that folder can be written, else in the current folder."""
        try:
            beside = course_folder() / "notebooks"
        except CannotStart:
            beside = Path.cwd()
        place = beside if os.access(beside, os.W_OK) else Path.cwd()
        return place / f"assignment_{self.name}" / f"{self.notebook}.ipynb"


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What was handed in, by whom and when."""

    assignment: str
    student: str
    submitted: str  # with the time zone
    file: str
    sha256: str
    secret: str | None  # names the feedback in the exchange; None: the file itself is to be handed in


def list_assignments(folder: Path | None = None) -> int:
    """Prints the assignments that can be fetched, with what the student has of each."""
    shelves, _ = _places(folder)
    names = _names(shelves)
    if not names:
        print(f"There is no assignment yet in {_in_words(shelves)}.")
    for name in names:
        release = find_release(name, folder)
        copy = release.usual_copy
        print(f"  {name}  {release.title}")
        print(f"      Your copy: {copy}" if copy.exists() else f"      Get your copy with: course assign fetch {name}")
        if receipts := _receipts(copy):
            last = max(receipt.submitted for receipt in receipts)
            print(f"      Submitted {counted(len(receipts), 'time')}, last at {last}.")
    return 0


def fetch(name: str, *, to: Path | None = None, again: bool = False) -> int:
    """Puts the student's copy of an assignment beside the lessons, or into the folder `to`.

    A copy that is there is never overwritten; `again` puts a new one beside it. Returns 1 if nothing was fetched.
    Raises CannotStart if there is no such assignment.
    """
    release = find_release(name)
    copy = release.usual_copy
    if to is not None:
        copy = Path(to).expanduser().absolute() / copy.name
    if copy.exists() and again:
        others = (copy.with_name(f"{release.notebook}-{number}.ipynb") for number in itertools.count(2))
        copy = next(other for other in others if not other.exists())
    elif copy.exists():
        print(
            f"Nothing was fetched: you have {copy} already, and it is left as it is. Go on with it; or put the "
            f"assignment as it is handed out now beside it with: course assign fetch {name} --again"
        )
        return 1
    write_whole(copy, release.content)
    print(
        f"{release.title}.\nYour copy: {copy}\nOpen it in JupyterLab (course lab) and save it there. Then, in a "
        f"terminal:\n  {_command('validate', release, copy)}\n  {_command('submit', release, copy)}"
    )
    return 0


def validate(name: str, *, notebook: Path | None = None) -> int:
    """Runs the visible checks as the grader would, and prints what would cost points; returns 1 if anything would.

    Where there is no sandbox they run in a process without walls, which says so. Raises CannotStart if there is no
    notebook that can be read.
    """
    from course_lib.grading.sandbox import SandboxError
    from course_lib.grading.validation import run_visible_checks

    copy, release = own_copy(name, notebook, to_validate=True)
    content, submission, files = _taken(copy, release, "you")
    print(f"{copy}, as saved at {datetime.fromtimestamp(copy.stat().st_mtime):%H:%M:%S}", flush=True)
    try:
        tasks, costs, problem = run_visible_checks(content, submission, files, unanswered(submission, files))
    except SandboxError as problem:
        raise CannotStart(f"The visible checks could not be run: {problem}. Try again.") from None
    if problem is not None:
        print(
            f"The grader's sandbox is not to be had here: {problem}\nYour code was run in a process of its own "
            "without it. That is your own code on your own machine; limits of time and memory may differ."
        )
    for task, found in tasks.items():
        print("\n".join(_validated(task, found)))
    if costs := [*warnings(submission, files), *costs]:
        print("This would cost points:")
        print("\n".join(f"  - {one_line(cost, 400)}" for cost in costs))
    good = not costs and all(check["passed"] for task in tasks.values() for check in task["checks"])
    asked = "All visible checks pass; the grader asks more, with other numbers. Hand it in"
    again = "Correct it, save it in JupyterLab (Ctrl+S) and validate again; or hand it in as it is"
    print(f"{asked if good else again}: {_command('submit', release, copy)}")
    if submission.written:
        print(f"A person reads and grades, and nothing here looks at: {', '.join(submission.written)}.")
    return int(not good)


def submit(name: str, *, notebook: Path | None = None, student: str | None = None) -> int:
    """Hands in a checked copy of the student's notebook, and writes a receipt. Earlier submissions stay.

    It goes into the exchange if there is one; else the copy in submissions/ is the file to hand in. Cells that are
    missing or untouched are named, and it is handed in all the same. Raises CannotStart, and hands in nothing, if the
    notebook cannot be read.
    """
    _, exchange = _places()
    guessed = student is None and (exchange is None or not exchange.check_owner)
    student = student_name(student)
    copy, release = own_copy(name, notebook)
    saved = datetime.fromtimestamp(copy.stat().st_mtime)
    content, submission, files = _taken(copy, release, student)
    moment, place, secret = datetime.now().astimezone(), None, None
    if exchange is not None:
        place, secret = hand_in(exchange, name, student, moment, f"{release.notebook}.ipynb", content)
    stamp = f"{moment.astimezone(UTC):%Y%m%dT%H%M%S%f}Z"
    file = copy.parent / SUBMISSIONS / f"{student}_{name}_{stamp}_{release.notebook}.ipynb"
    receipt = Receipt(
        assignment=name,
        student=student,
        submitted=moment.isoformat(timespec="seconds"),
        file=file.name,
        sha256=submission.sha256,
        secret=secret,
    )
    written = file.with_name(file.stem + RECEIPT)
    write_whole(file, content)
    write_whole(written, json.dumps(asdict(receipt), indent=2, ensure_ascii=False) + "\n")
    said = {
        "hand in this file" if exchange is None else "your own copy": file,
        "handed to": place,
        "taken from": f"{copy}, as saved at {saved:%H:%M:%S}; what JupyterLab has not saved by then is not in it",
        "student": student + (", your account's name; not you? Submit again with --student NAME" if guessed else ""),
        "time": receipt.submitted,
        "SHA-256": receipt.sha256,
        "receipt": written,
    }
    print(f"Assignment {name}: {'your notebook is ready to be handed in' if exchange is None else 'submitted'}.")
    print("\n".join(f"  {what:<20}{value}" for what, value in said.items() if value is not None))
    if found := warnings(submission, files):
        print("This would cost points; you can correct it and submit again:")
        print("\n".join(f"  - {warning}" for warning in found))
    print("You can submit again at any time: the newest counts, the earlier ones stay.")
    return 0


def results(name: str, *, notebook: Path | None = None) -> int:
    """Copies the feedback on what the student submitted to feedback/ beside the notebook; returns 1 if there is none.

    Raises CannotStart if there is no exchange, or nothing was handed in through one.
    """
    _, exchange = _places()
    if exchange is None:
        raise CannotStart("There is no exchange here: your instructor sends the feedback in another way.")
    copy, release = own_copy(name, notebook)
    handed = [receipt for receipt in _receipts(copy) if receipt.secret and receipt.assignment == name]
    if not handed:
        raise CannotStart(f"Nothing was submitted from {copy.parent} yet. Type: course assign submit {name}")
    pages = {receipt: feedback_page(exchange, receipt.secret, release.notebook) for receipt in handed}
    for receipt, page in pages.items():
        if page is not None:
            place = copy.parent / FEEDBACK / Path(receipt.file).with_suffix(".html").name
            write_whole(place, page)
            print(f"Feedback on what you submitted at {receipt.submitted}: {place}")
    if any(pages.values()):
        print("Open it in a browser.")
        return 0
    print(f"There is no feedback yet on your {counted(len(handed), 'submission')} of assignment {name}.")
    return 1


def verify(receipt: Path, file: Path | None = None) -> int:
    """Tells whether a file, by default the one beside a receipt, is the one of the receipt; returns 1 if it is not.

    Raises CannotStart if the receipt cannot be read or there is no file.
    """
    said = read_receipt(receipt)
    path = file or receipt.parent / Path(said.file).name
    content = read_small(path, FILE_BYTES)
    if content is None:
        raise CannotStart(f"{path} is no file that can be read. Put it beside the receipt, or name it with --file.")
    same = hashlib.sha256(content).hexdigest() == said.sha256
    print(f"Receipt: assignment {said.assignment}, {said.student}, {said.submitted}.")
    print(f"  the same: {path}" if same else f"  ANOTHER FILE, as after it was opened and saved again: {path}")
    return int(not same)


def read_receipt(path: Path) -> Receipt:
    """The receipt in a file. Raises CannotStart if it holds none."""
    try:
        return Receipt(**json.loads(read_small(path, 100_000) or b""))
    except (ValueError, TypeError, RecursionError) as error:
        raise CannotStart(
            f"{path} is no receipt: `course assign submit` writes one, NAME{RECEIPT}, into {SUBMISSIONS}/ beside your "
            "notebook."
        ) from error


# where things are -------------------------------------------------------------------------------------------


def find_release(name: str, folder: Path | None = None, *, exchange: bool = True, copy: bytes = b"") -> Release:
    """The assignment from the exchange if there is one, else from the course itself, without its solutions.

    Without `exchange` it comes from the course itself, with the alternatives that a student's `copy` of it has, or
    those that come first. Raises CannotStart if there is no such assignment.
    """
    shelves = _places(folder)[0] if exchange else _own_shelves(folder)
    found = [one_notebook(shelf / name) for shelf in shelves] if is_plain_name(name) else []
    place = next(filter(None, found), None)
    if place is None:
        there = ", ".join(_names(shelves)) or "none yet"
        raise CannotStart(f"There is no assignment {name!r} in {_in_words(shelves)}. There are: {there}.")
    content = read_small(place, FILE_BYTES)
    if content is None:
        raise CannotStart(f"{place} cannot be read: it is no ordinary file, not readable, or far too large.")
    if place.parent.parent.name == "source":
        try:
            content = student_version(chosen(content, str(place), as_in(copy)), str(place))
            content = (nbformat.writes(content) + "\n").encode("utf-8")
        except ValueError as problem:
            raise CannotStart(f"Assignment {name} cannot be handed out: {problem}") from None
    return Release(name=name, notebook=place.stem, content=content)


def own_copy(name: str, notebook: Path | None, *, to_validate: bool = False) -> tuple[Path, Release]:
    """The student's notebook, and the release that it is compared with.

    Looked for at `notebook`; else in the current folder, and where `fetch` puts it. Raises CannotStart if it is not
    there, or there is no such assignment.
    """
    exchange = True
    try:
        release = find_release(name)
    except CannotStart as problem:
        try:  # to validate, nothing has to be handed out or in
            release = find_release(name, exchange=(exchange := not to_validate))
        except CannotStart:
            raise problem from None
    usual = release.usual_copy
    looked = [Path.cwd() / usual.name, Path.cwd() / usual.parent.name / usual.name, usual]
    if notebook is not None:
        looked = [Path(notebook).expanduser().absolute()]
    for path in looked:
        if path.exists():
            return path, find_release(name, exchange=exchange, copy=read_small(path, FILE_BYTES) or b"")
    raise CannotStart(
        f"There is no {' or '.join(map(str, dict.fromkeys(looked)))}. Get the notebook with: "
        f"course assign fetch {name}   or name yours: --notebook FILE"
    )


def student_name(given: str | None) -> str:
    """Who submits: the name given, else that of the account (on a hub whose accounts are all alike, the hub's).

    Raises CannotStart for a name that cannot stand in a path.
    """
    if given is None:
        given = getpass.getuser()
        given = os.environ.get("JUPYTERHUB_USER", given) if given == "jovyan" else given
    name = plain(given)
    if not is_plain_name(name):
        raise CannotStart(f"{given!r} cannot be a student's name: use letters, digits, and . _ - @")
    return name


def _taken(copy: Path, release: Release, student: str) -> tuple[bytes, "Submission", "AssignmentFiles"]:
    """The notebook's bytes, read once, what the grader would take from them, and what they are compared with."""
    from course_lib.grading.intake import take_from
    from course_lib.grading.validation import visible_files

    try:
        files = visible_files(release.name, release.notebook, release.content)
    except ValueError as problem:
        raise CannotStart(f"The assignment {release.name} as it was handed out is damaged: {problem}") from None
    content = read_small(copy, FILE_BYTES)
    submission = take_from(content, files, student=student)
    if content is None or not submission.readable:
        raise CannotStart(
            f"{copy}: {' '.join(submission.notes)} Where that does not work, an earlier state may lie beside it, in "
            f".ipynb_checkpoints or {SUBMISSIONS}; a new copy comes with: course assign fetch {release.name} --again"
        )
    return content, submission, files


def _places(folder: Path | None = None) -> tuple[list[Path], Exchange | None]:
    """The folders that hold one for each assignment, the first before the others; and the exchange, if there is one.

    A student's machine may have no course directory, or one that is not open to this account.
    """
    shelves = _own_shelves(folder)
    exchange = find_exchange(shelves[0].parent if shelves else None)
    return (shelves, None) if exchange is None else ([exchange.outbound("x").parent], exchange)


def _own_shelves(folder: Path | None) -> list[Path]:
    """The folders of the course directory that hold assignments; none where there is no such directory."""
    try:
        root = assignments_folder(folder).root
    except CannotStart:
        if folder is not None:
            raise
        return []
    return [root / "release", root / "source"]


def _names(shelves: list[Path]) -> list[str]:
    """The names of all assignments that can be fetched."""
    return sorted({path.name for shelf in shelves for path in shelf.glob("[!.]*") if path.is_dir()})


def _in_words(shelves: list[Path]) -> str:
    return " or ".join(map(str, shelves)) or "this installation of the course"


def _receipts(copy: Path) -> list[Receipt]:
    return [read_receipt(path) for path in sorted((copy.parent / SUBMISSIONS).glob(f"*{RECEIPT}"))]


# words ------------------------------------------------------------------------------------------------------


def warnings(submission: "Submission", files: "AssignmentFiles") -> list[str]:
    """What in a submission would cost points and can be seen without running it."""
    missing = sorted(unanswered(submission, files))
    blank = [f"The cell {name!r} is as it was handed out: an answer is missing." for name in missing]
    return [*submission.notes, *blank]


def unanswered(submission: "Submission", files: "AssignmentFiles") -> set[str]:
    """The cells that are there and hold no answer: empty, or as they were released, apart from blanks."""
    cells = nbformat.reads(files.source_notebook.decode("utf-8"), as_version=4).cells
    blank = {(), *(tuple(cell.source.split()) for cell in cells)}
    return {name for name, text in {**submission.answers, **submission.written}.items() if tuple(text.split()) in blank}


def _validated(name: str, task: Mapping[str, Any]) -> Iterator[str]:
    """What a student reads of one task of the verdict."""
    checks, passed = task["checks"], sum(check["passed"] for check in task["checks"])
    if not task["answered"]:
        yield f"  -  {name}: no answer yet"
    elif not checks:
        yield f"  -  {name}: has no visible check, so nobody has looked at it. Test that yourself."
    else:
        mark = "ok" if passed == len(checks) else "NO"
        yield f"  {mark} {name}: {passed} of {counted(len(checks), 'visible check')} passed"
        found = [finding for check in checks for finding in check["findings"]]
        said = dict.fromkeys(_sentences(finding["message"], finding["hint"]) for finding in found)
        yield from (f"       {one_line(text.replace('`', ''), 600)}" for text in said)


def _sentences(message: str, hint: str) -> str:
    """A message and its hint, with a full stop between them where the message, an error of Python's, say, has none."""
    return f"{message}{'' if message.endswith(('.', '!', '?')) else '.'} {hint}".strip()


def _command(what: str, release: Release, copy: Path) -> str:
    """What to type; a copy that is not found by itself is named."""
    named = "" if copy == release.usual_copy else f" --notebook {shlex.quote(str(copy))}"
    return f"course assign {what} {release.name}{named}"
