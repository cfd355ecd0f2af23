"""`course assign list | fetch | validate | submit | results | verify`: a student's side. Works without nbgrader.

What needs torch is imported where it is used: to list and to fetch shall take no seconds.
"""

import getpass
import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat

from course_lib.data.place import CannotStart, course_folder
from course_lib.grading.exchange import Exchange, feedback_page, find_exchange, hand_in, is_plain_name
from course_lib.grading.folders import FILE_BYTES, Folders, assignments_folder, read_small, write_whole
from course_lib.grading.stripped import student_version
from course_lib.grading.wording import counted, one_line

if TYPE_CHECKING:
    from course_lib.grading.intake import Submission
    from course_lib.grading.spec import AssignmentFiles
    from course_lib.grading.validation import TaskResult

FETCHED = ".fetched"  # beside the student's copy: the release as it was, to see what has changed
SUBMISSIONS, FEEDBACK, RECEIPT = "submissions", "feedback", ".receipt.json"


@dataclass(frozen=True, kw_only=True)
class Release:
    """An assignment as students get it; `origin` says in words where it comes from."""

    name: str
    notebook: str  # without .ipynb
    content: bytes
    origin: str

    @property
    def title(self) -> str:
        """The first heading of the notebook."""
        cells = nbformat.reads(self.content.decode("utf-8"), as_version=4).cells
        lines = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
        return next((line.lstrip("# ") for line in lines if line.startswith("# ")), self.notebook)


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What was handed in, by whom and when; `sha256` and `bytes` are those of the notebook file."""

    assignment: str
    student: str
    submitted: str  # with the time zone
    file: str
    sha256: str
    bytes: int
    exchange: str | None  # where it was put; None: the file itself is to be handed in
    secret: str | None  # names the feedback in the exchange


def list_assignments(folder: Path | None = None) -> int:
    """Prints the assignments that can be fetched, with what the student has of each."""
    folders, exchange = _places(folder)
    names = _available(folders, exchange)
    if not names:
        print(f"There is no assignment yet in {_origin(folders, exchange)}.")
    for name in names:
        try:
            release = find_release(name, folder)
        except CannotStart as problem:
            print(f"  {name}  {problem}")
            continue
        print(f"  {name}  {release.title}")
        copy = default_folder(name) / f"{release.notebook}.ipynb"
        if not copy.exists():
            print(f"      Get your copy with: course assign fetch {name}")
            continue
        print(f"      Your copy: {copy}")
        if receipts := _receipts(copy):
            last = max(receipt.submitted for receipt in receipts)
            print(f"      Submitted {counted(len(receipts), 'time')}, last at {last}.")
    return 0


def fetch(name: str, *, to: Path | None = None, again: bool = False, folder: Path | None = None) -> int:
    """Puts the student's copy of an assignment beside the lessons, or into the folder `to`.

    A copy with the student's work in it is never overwritten; `again` puts a new one beside it. Returns 1 if there was
    such a copy and nothing was fetched. Raises CannotStart if there is no such assignment.
    """
    release = find_release(name, folder)
    place = default_folder(name) if to is None else Path(to).expanduser().absolute()
    copy = place / f"{release.notebook}.ipynb"
    kept = place / FETCHED / f"{release.notebook}.ipynb"
    if copy.exists() and again:
        number = 2
        while copy.exists():
            copy, number = place / f"{release.notebook}-{number}.ipynb", number + 1
    elif copy.exists():
        mine, before = _sources(read_small(copy, FILE_BYTES)), _sources(read_small(kept, FILE_BYTES))
        if mine is not None and mine == _sources(release.content):
            print(f"You have assignment {name} already, and it is up to date: {copy}\n{_next(name, copy)}")
            return 0
        if mine is None or mine != before:
            newer = before is not None and before != _sources(release.content)
            print(
                f"Nothing was fetched: {copy} holds your work, and is left as it is."
                + ("\nThe assignment has changed since you fetched it." if newer else "")
                + f"\nGo on with your copy; or put a new one beside it with: course assign fetch {name} --again"
            )
            return 1
    try:
        write_whole(copy, release.content)
        write_whole(kept, release.content)
    except OSError as error:
        raise CannotStart(
            f"{copy} cannot be written: {error.strerror}. Name a folder of your own: "
            f"course assign fetch {name} --to FOLDER"
        ) from error
    print(f"{release.title}, from {release.origin}.\nYour copy: {copy}\n{_next(name, copy)}")
    return 0


def validate(name: str, *, notebook: Path | None = None, folder: Path | None = None) -> int:
    """Runs the visible checks as the grader would, and prints what would cost points; returns 1 if anything would.

    Where there is no sandbox they run in a process without walls, which says so. Raises CannotStart if there is no
    notebook that can be read.
    """
    from course_lib.grading.intake import take_in
    from course_lib.grading.sandbox import SandboxError
    from course_lib.grading.validation import run_visible_checks

    copy, files = own_copy(name, notebook, folder)
    content = read_small(copy, FILE_BYTES)
    submission = take_in(copy, files, student=student_name(None, None))
    if content is None or not submission.readable:
        raise CannotStart(
            f"{copy}: {' '.join(submission.notes)} Where that does not work, an earlier state may lie beside it, in "
            f".ipynb_checkpoints or {SUBMISSIONS}; a new copy comes with: course assign fetch {name} --again"
        )
    missing = unanswered(submission, files)
    print(f"{copy}, as saved at {datetime.fromtimestamp(copy.stat().st_mtime):%H:%M:%S}", flush=True)
    try:
        result = run_visible_checks(content, submission, files, missing)
    except SandboxError as problem:
        raise CannotStart(f"The visible checks could not be run: {problem}. Try again.") from None
    if result.sandbox is not None:
        print(
            f"The grader's sandbox is not to be had here: {result.sandbox}\nYour code was run in a process of its own "
            "without it. That is your own code on your own machine; limits of time and memory may differ."
        )
    for task in result.tasks:
        print("\n".join(_validated(task)))
    if found := [*warnings(submission, files), *result.costs]:
        print("This would cost points:")
        print("\n".join(f"  - {one_line(warning, 400)}" for warning in found))
    if missing >= {**submission.answers, **submission.written}.keys():
        print("No cell holds an answer. If you wrote any, save the notebook in JupyterLab (Ctrl+S) and validate again.")
    if unchecked := [task.name for task in result.tasks if task.answered and not task.checks]:
        print(f"Nobody has looked at: {', '.join(unchecked)}. Test that yourself.")
    hand_in_with = _command("submit", name, copy)
    good = not found and all(task.passed == task.checks for task in result.tasks)
    print(
        f"All visible checks pass; the grader asks more, with other numbers. Hand it in: {hand_in_with}"
        if good
        else f"Correct it, save it and validate again; or hand it in as it is: {hand_in_with}"
    )
    return 0 if good else 1


def submit(name: str, *, notebook: Path | None = None, student: str | None = None, folder: Path | None = None) -> int:
    """Hands in a checked copy of the student's notebook, and writes a receipt. Earlier submissions stay.

    It goes into the exchange if there is one; else the copy in submissions/ is the file to hand in. Cells that are
    missing or untouched are named, and it is handed in all the same. Raises CannotStart, and hands in nothing, if the
    notebook cannot be read.
    """
    from course_lib.grading.intake import take_in

    _, exchange = _places(folder)
    copy, files = own_copy(name, notebook, folder)
    guessed = student is None and (exchange is None or not exchange.check_owner)
    student = student_name(student, exchange)
    saved = datetime.fromtimestamp(copy.stat().st_mtime).astimezone()
    with tempfile.TemporaryDirectory(prefix="course-submit-") as scratch:
        draft = Path(scratch) / copy.name  # what is looked at is what is handed in, whatever is saved meanwhile
        content = read_small(copy, FILE_BYTES)
        if content is not None:
            draft.write_bytes(content)
        submission = take_in(copy if content is None else draft, files, student=student)
    if content is None or not submission.readable:
        raise CannotStart(f"Nothing was submitted. {copy}: {' '.join(submission.notes)}")
    moment, place, secret = datetime.now().astimezone(), None, None
    if exchange is not None:
        place, secret = hand_in(exchange, name, student, moment, {f"{files.notebook}.ipynb": content})
    file = _keep(copy.parent / SUBMISSIONS, student, files, moment, content)
    receipt = Receipt(
        assignment=name,
        student=student,
        submitted=moment.isoformat(timespec="seconds"),
        file=file.name,
        sha256=submission.sha256,
        bytes=len(content),
        exchange=None if place is None else str(place),
        secret=secret,
    )
    written = file.with_name(file.stem + RECEIPT)
    write_whole(written, json.dumps(asdict(receipt), indent=2, ensure_ascii=False) + "\n")
    print("\n".join(_submitted(receipt, copy, saved, file, guessed=guessed)))
    if found := warnings(submission, files):
        print("This would cost points; you can correct it and submit again:")
        print("\n".join(f"  - {warning}" for warning in found))
    print("You can submit again at any time: the newest counts, the earlier ones stay.")
    return 0


def results(name: str, *, notebook: Path | None = None, folder: Path | None = None) -> int:
    """Copies the feedback on what the student submitted to feedback/ beside the notebook; returns 1 if there is none.

    Raises CannotStart if there is no exchange, or nothing was handed in through one.
    """
    _, exchange = _places(folder)
    if exchange is None:
        raise CannotStart("There is no exchange here: your instructor sends the feedback in another way.")
    copy, files = own_copy(name, notebook, folder)
    handed = [receipt for receipt in _receipts(copy) if receipt.secret and receipt.assignment == name]
    if not handed:
        raise CannotStart(f"Nothing was submitted from {copy.parent} yet. Type: course assign submit {name}")
    found = False
    for receipt in handed:
        if (page := feedback_page(exchange, receipt.secret, files.notebook)) is not None:
            place = copy.parent / FEEDBACK / Path(receipt.file).with_suffix(".html").name
            write_whole(place, page)
            print(f"Feedback on what you submitted at {receipt.submitted}: {place}")
            found = True
    number = counted(len(handed), "submission")
    print("Open it in a browser." if found else f"There is no feedback yet on your {number} of assignment {name}.")
    return 0 if found else 1


def verify(receipt: Path, file: Path | None = None) -> int:
    """Tells whether a file, by default the one beside a receipt, is the one of the receipt; returns 1 if it is not.

    Raises CannotStart if the receipt cannot be read or there is no file.
    """
    said = read_receipt(Path(receipt))
    path = Path(file) if file is not None else Path(receipt).parent / Path(said.file).name
    content = read_small(path, FILE_BYTES)
    if content is None:
        raise CannotStart(f"{path} is no file that can be read. Put it beside the receipt, or name it with --file.")
    same = hashlib.sha256(content).hexdigest() == said.sha256
    print(f"Receipt: assignment {said.assignment}, {said.student}, {said.submitted}, {said.bytes:,} bytes.")
    print(f"  {'the same' if same else 'ANOTHER FILE'}: {path}")
    if not same:
        print("A file that was opened and saved again is another file. Compare the one that was handed in.")
    return 0 if same else 1


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


def find_release(name: str, folder: Path | None = None) -> Release:
    """The assignment from the exchange if there is one, else from the course itself, without its solutions.

    Raises CannotStart if there is no such assignment.
    """
    folders, exchange = _places(folder)
    places = [exchange.outbound(name)] if exchange else [folders.source(name), folders.release(name)] if folders else []
    found = next(filter(None, map(_only_notebook, places)), None) if is_plain_name(name) else None
    if found is None:
        there = ", ".join(_available(folders, exchange)) or "none yet"
        raise CannotStart(f"There is no assignment {name!r} in {_origin(folders, exchange)}. There are: {there}.")
    content = read_small(found, FILE_BYTES)
    if content is None:
        raise CannotStart(f"{found} cannot be read: it is no ordinary file, not readable, or far too large.")
    if exchange is None and found.parent == folders.source(name):
        try:
            content = (nbformat.writes(student_version(content, str(found))) + "\n").encode("utf-8")
        except ValueError as problem:
            raise CannotStart(f"Assignment {name} cannot be handed out: {problem}") from None
    return Release(name=name, notebook=found.stem, content=content, origin=_origin(folders, exchange))


def own_copy(name: str, notebook: Path | None, folder: Path | None = None) -> tuple[Path, "AssignmentFiles"]:
    """The student's notebook, and the release that it is compared with.

    Looked for at `notebook`, in the current folder, and where `fetch` puts it. Raises CannotStart if it is nowhere.
    """
    from course_lib.grading.validation import visible_files

    release = None
    try:
        release = find_release(name, folder)
    except CannotStart:
        if notebook is None and not (default_folder(name) / FETCHED).is_dir():
            raise
    stem = release.notebook if release else "*"
    here = [Path.cwd()] if (Path.cwd() / FETCHED).is_dir() else []
    looked = [*here, Path.cwd() / f"assignment_{name}", default_folder(name)]
    if notebook is not None:
        looked = [Path(notebook).expanduser().absolute()]
    named = [path for path in looked if path.is_file()]
    found = next(iter([*named, *(path for place in looked for path in sorted(place.glob(f"{stem}.ipynb")))]), None)
    if found is None:
        raise CannotStart(
            f"There is no notebook of assignment {name} in {' or '.join(map(str, dict.fromkeys(looked)))}. "
            f"Get it with: course assign fetch {name}   or name yours: --notebook FILE"
        )
    if release is None:
        kept = _only_notebook(found.parent / FETCHED)
        if kept is None:
            raise CannotStart(f"The assignment {name} as it was handed out is not to be had: fetch it again first.")
        release = Release(name=name, notebook=kept.stem, content=kept.read_bytes(), origin=str(kept))
    try:
        return found, visible_files(name, release.notebook, release.content)
    except ValueError as problem:
        raise CannotStart(f"The assignment as it was handed out ({release.origin}) is damaged: {problem}") from None


def default_folder(name: str) -> Path:
    """Where a student's copy lies: beside the lessons if that folder can be written, else in the current folder."""
    try:
        beside = course_folder() / "notebooks"
    except CannotStart:
        beside = None
    return (beside if beside and os.access(beside, os.W_OK) else Path.cwd()) / f"assignment_{name}"


def student_name(given: str | None, exchange: Exchange | None) -> str:
    """Who submits: the name given, else that of the account (on a hub whose accounts are all alike, the hub's).

    Raises CannotStart for a name that cannot stand in a path, or that the exchange would refuse.
    """
    from course_lib.grading.collect import plain

    try:
        import pwd

        account = pwd.getpwuid(os.getuid()).pw_name  # not the environment: it can say anything
    except (ImportError, KeyError):
        account = getpass.getuser()
    account = os.environ.get("JUPYTERHUB_USER", account) if account == "jovyan" else account
    name = plain(account if given is None else given)
    if not is_plain_name(name):
        raise CannotStart(f"{given or account!r} cannot be a student's name: use letters, digits, and . _ - @")
    if exchange is not None and exchange.check_owner and name != account:
        raise CannotStart(
            f"The exchange takes submissions under the name of your account, {account!r}, and not as {name!r}. Leave "
            "out --student."
        )
    return name


def _places(folder: Path | None = None) -> tuple[Folders | None, Exchange | None]:
    """The course directory, if this machine has one that is open to this account, and the exchange, if there is one."""
    try:
        folders = assignments_folder(folder)
    except CannotStart:
        if folder is not None:
            raise
        folders = None
    return folders, find_exchange(folders.root if folders else None)


def _available(folders: Folders | None, exchange: Exchange | None) -> list[str]:
    """The names of all assignments that can be fetched."""
    if exchange is None and folders is None:
        return []
    place = exchange.outbound("x").parent if exchange else folders.root / "release"
    found = {path.name for path in place.glob("*") if path.is_dir() and path.name[0] != "."}
    return sorted(found if exchange else {*found, *folders.assignments()})


def _origin(folders: Folders | None, exchange: Exchange | None) -> str:
    """In words, where assignments come from on this machine."""
    if exchange is not None:
        return f"the exchange {exchange.root}"
    return f"the course ({folders.root})" if folders else "this installation of the course"


def _only_notebook(folder: Path) -> Path | None:
    """The one notebook in a folder; None if there is none or more than one."""
    found = sorted(path for path in folder.glob("*.ipynb") if not path.name.startswith("."))
    return found[0] if len(found) == 1 else None


def _receipts(copy: Path) -> list[Receipt]:
    return [read_receipt(path) for path in sorted((copy.parent / SUBMISSIONS).glob(f"*{RECEIPT}"))]


def _keep(folder: Path, student: str, files: "AssignmentFiles", moment: datetime, content: bytes) -> Path:
    """Writes a file that is not there yet, whole or not at all."""
    stamp = f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = [f"{student}_{files.name}_{stamp}_{files.notebook}{suffix}.ipynb" for suffix in ("", "-2", "-3", "-4")]
    file = next(folder / name for name in names if not (folder / name).exists())
    write_whole(file, content)
    return file


# words ------------------------------------------------------------------------------------------------------


def warnings(submission: "Submission", files: "AssignmentFiles") -> list[str]:
    """What in a submission would cost points and can be seen without running it."""
    missing = sorted(unanswered(submission, files))
    blank = [f"The cell {name!r} is as it was handed out: an answer is missing." for name in missing]
    return [*submission.notes, *blank]


def unanswered(submission: "Submission", files: "AssignmentFiles") -> set[str]:
    """The cells that are there and hold no answer: empty, or as they were released, apart from blanks."""
    cells = nbformat.reads(files.source_notebook.decode("utf-8"), as_version=4).cells
    released = {cell.metadata["nbgrader"]["grade_id"]: cell.source for cell in cells if "nbgrader" in cell.metadata}
    answers = {**submission.answers, **submission.written}
    return {
        name for name, text in answers.items() if "".join(text.split()) in ("", "".join(released.get(name, "").split()))
    }


def _validated(task: "TaskResult") -> Iterator[str]:
    if not task.answered:
        yield f"  -  {task.name}: no answer yet"
    elif task.checks == 0:
        yield f"  -  {task.name}: has no visible check"
    elif task.passed == task.checks:
        yield f"  ok {task.name}: {counted(task.checks, 'visible check')} passed"
    else:
        yield f"  NO {task.name}: {task.passed} of {counted(task.checks, 'visible check')} passed"
    yield from (f"       {one_line(finding.replace('`', ''), 600)}" for finding in task.findings)


def _submitted(receipt: Receipt, copy: Path, saved: datetime, file: Path, *, guessed: bool) -> Iterator[str]:
    """What a student reads after submitting; `guessed`: the name is that of the account, and may be another."""
    if receipt.exchange is None:
        yield f"Assignment {receipt.assignment}: your notebook is ready to be handed in."
        yield f"  Hand in this file   {file}"
    else:
        yield f"Assignment {receipt.assignment}: submitted."
        yield f"  handed to           {receipt.exchange}"
        yield f"  your own copy       {file}"
    yield f"  taken from          {copy}"
    yield f"                      as saved at {saved:%H:%M:%S}; what JupyterLab has not saved by then is not in it"
    yield f"  student             {receipt.student}"
    if guessed:
        yield "                      your account's name; not you? Submit again with --student NAME"
    yield f"  time                {receipt.submitted}"
    yield f"  size                {receipt.bytes:,} bytes"
    yield f"  SHA-256             {receipt.sha256}"
    yield f"  receipt             {file.with_name(file.stem + RECEIPT)}"


def _next(name: str, copy: Path) -> str:
    return (
        "Open it in JupyterLab (course lab) and save it there. Then, in a terminal:\n"
        f"  {_command('validate', name, copy)}\n  {_command('submit', name, copy)}"
    )


def _command(what: str, name: str, copy: Path) -> str:
    """What to type; a copy that is not found by itself is named."""
    usual = copy.parent == default_folder(name) and "-" not in copy.stem
    return f"course assign {what} {name}" + ("" if usual else f" --notebook {shlex.quote(str(copy))}")


def _sources(content: bytes | None) -> list[tuple[str, str]] | None:
    """What a person can change in a notebook: the kinds and texts of its cells; None if it cannot be read."""
    try:
        cells = json.loads(content)["cells"]
        return [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in cells]
    except (ValueError, KeyError, TypeError):
        return None
