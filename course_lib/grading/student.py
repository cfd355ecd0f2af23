"""`course assign list | fetch | validate | submit | verify`: a student's side. Works without nbgrader.

What needs torch is imported where it is used: to list and to fetch shall take no seconds.
"""

import getpass
import hashlib
import json
import os
import shlex
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from course_lib.data.place import CannotStart, course_folder
from course_lib.grading.exchange import Exchange, hand_in, is_plain_name, plain
from course_lib.grading.folders import FILE_BYTES, read_small, write_whole
from course_lib.grading.handout import (
    Release,
    available,
    find_release,
    only_notebook,
    origin,
    read_notebook,
    student_places,
    title,
)
from course_lib.grading.notebook_format import nbformat
from course_lib.grading.receipts import RECEIPT, SCHEMA, Receipt, read_receipt, receipt_path
from course_lib.grading.wording import counted, one_line

if TYPE_CHECKING:
    from course_lib.grading.intake import Submission
    from course_lib.grading.spec import AssignmentFiles
    from course_lib.grading.validation import TaskResult

FETCHED = ".fetched"  # beside the student's copy: the release as it was, to see what has changed
SUBMISSIONS = "submissions"


# ------------------------------------------------------------------------------------------------ which there are


def list_assignments(folder: Path | None = None) -> int:
    """Prints the assignments that can be fetched, with what the student has of each."""
    folders, exchange = student_places(folder)
    names = available(folders, exchange)
    if not names:
        print(f"There is no assignment yet in {origin(folders, exchange)}.")
        return 0
    for name in names:
        try:
            release = find_release(name, folder)
        except CannotStart as problem:
            print(f"  {name}  {problem}")
            continue
        print(f"  {name}  {title(release)}")
        copy = default_folder(name) / f"{release.notebook}.ipynb"
        if not copy.exists():
            print(f"      Get your copy with: course assign fetch {name}")
            continue
        print(f"      Your copy: {copy}")
        receipts = [read_receipt(path) for path in sorted((copy.parent / SUBMISSIONS).glob(f"*{RECEIPT}"))]
        if receipts:
            last = max(receipt.submitted for receipt in receipts)
            print(f"      Submitted {counted(len(receipts), 'time')}, last at {last}.")
    return 0


# ------------------------------------------------------------------------------------------------ fetch


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
        copy = _unused(copy)
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
    print(f"{title(release)}, from {release.origin}.\nYour copy: {copy}\n{_next(name, copy)}")
    return 0


def default_folder(name: str) -> Path:
    """Where a student's copy lies: beside the lessons if that folder can be written, else in the current folder."""
    try:
        beside = course_folder() / "notebooks"
    except CannotStart:
        beside = None
    return (beside if beside and os.access(beside, os.W_OK) else Path.cwd()) / f"assignment_{name}"


def _next(name: str, copy: Path) -> str:
    return (
        "Open it in JupyterLab (course lab) and save it there. Then, in a terminal:\n"
        f"  {_command('validate', name, copy)}\n  {_command('submit', name, copy)}"
    )


def _command(what: str, name: str, copy: Path) -> str:
    """What to type; a copy that is not found by itself is named."""
    usual = copy.parent == default_folder(name) and "-" not in copy.stem
    return f"course assign {what} {name}" + ("" if usual else f" --notebook {shlex.quote(str(copy))}")


def _unused(copy: Path) -> Path:
    number = 2
    while (other := copy.with_name(f"{copy.stem}-{number}.ipynb")).exists():
        number += 1
    return other


def _sources(content: bytes | None) -> list[tuple[str, str]] | None:
    """What a person can change in a notebook: the kinds and texts of its cells; None if it cannot be read."""
    try:
        cells = json.loads(content)["cells"]
        return [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in cells]
    except (ValueError, KeyError, TypeError):
        return None


# ------------------------------------------------------------------------------------------------ validate


def validate(name: str, *, notebook: Path | None = None, folder: Path | None = None) -> int:
    """Runs the visible checks as the grader would, and prints what would cost points; returns 1 if anything would.

    Where there is no sandbox they run in a process without walls, which says so. Raises CannotStart if there is no
    notebook that can be read.
    """
    from course_lib.grading.intake import take_in
    from course_lib.grading.sandbox import SandboxError
    from course_lib.grading.validation import run_visible_checks, stray_names

    copy, files = own_copy(name, notebook, folder)
    content = read_small(copy, FILE_BYTES)
    submission = take_in(copy, files, student=student_name(None, None))
    if content is None or not submission.readable:
        raise CannotStart(
            f"{copy}: {' '.join(submission.notes)} Where that does not work, an earlier state may lie beside it, in "
            f".ipynb_checkpoints or {SUBMISSIONS}; a new copy comes with: course assign fetch {name} --again"
        )
    missing = unanswered(submission, files)
    found = [*warnings(submission, files), *stray_names(content, submission, files)]
    print(f"{copy}, as saved at {datetime.fromtimestamp(copy.stat().st_mtime):%H:%M:%S}", flush=True)
    try:
        result = run_visible_checks(submission, files, missing)
    except SandboxError as problem:
        raise CannotStart(f"The visible checks could not be run: {problem} Try again.") from None
    if result.sandbox is not None:
        print(
            f"The grader's sandbox is not to be had here: {result.sandbox}\nYour code was run in a process of its own "
            "without it. That is your own code on your own machine; limits of time and memory may differ."
        )
    for task in result.tasks:
        print("\n".join(_validated(task)))
    found += result.imports
    if found:
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


# ------------------------------------------------------------------------------------------------ submit


def submit(name: str, *, notebook: Path | None = None, student: str | None = None, folder: Path | None = None) -> int:
    """Hands in a checked copy of the student's notebook, and writes a receipt. Earlier submissions stay.

    It goes into the exchange if there is one; else the copy in submissions/ is the file to hand in. Cells that are
    missing or untouched are named, and it is handed in all the same. Raises CannotStart, and hands in nothing, if the
    notebook cannot be read.
    """
    from course_lib.grading.intake import take_in

    _, exchange = student_places(folder)
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
    moment = datetime.now().astimezone()
    place = None
    if exchange is not None:
        place = hand_in(exchange, name, student, moment, {f"{files.notebook}.ipynb": content})
    file = _keep(copy.parent / SUBMISSIONS, student, files, moment, content)
    receipt = Receipt(
        schema=SCHEMA,
        assignment=name,
        student=student,
        submitted=moment.isoformat(timespec="seconds"),
        file=file.name,
        sha256=submission.sha256,
        bytes=len(content),
        exchange=None if place is None else str(place),
    )
    write_whole(receipt_path(file), json.dumps(asdict(receipt), indent=2, ensure_ascii=False) + "\n")
    print("\n".join(_submitted(receipt, copy, saved, file, warnings(submission, files), guessed=guessed)))
    return 0


def _submitted(
    receipt: Receipt, copy: Path, saved: datetime, file: Path, found: list[str], *, guessed: bool
) -> Iterator[str]:
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
    yield f"  receipt             {receipt_path(file)}"
    if found:
        yield "This would cost points; you can correct it and submit again:"
        yield from (f"  - {warning}" for warning in found)
    yield "You can submit again at any time: the newest counts, the earlier ones stay."


def warnings(submission: "Submission", files: "AssignmentFiles") -> list[str]:
    """What in a submission would cost points and can be seen without running it."""
    from course_lib.grading.spec import load

    loaded = load(files)
    missing = unanswered(submission, files)
    cells = [*(task.name for task in loaded.assignment.tasks), *loaded.manual_cells]
    return [
        *submission.notes,
        *(f"The cell {name!r} is as it was handed out: an answer is missing." for name in cells if name in missing),
    ]


def unanswered(submission: "Submission", files: "AssignmentFiles") -> set[str]:
    """The cells that are there and hold no answer."""
    released = _released_texts(files)
    answers = {**submission.answers, **submission.written}
    return {name for name, text in answers.items() if untouched(text, released.get(name, ""))}


def untouched(answer: str, released: str) -> bool:
    """Whether a cell is empty or as it was released, apart from blanks."""
    return "".join(answer.split()) in ("", "".join(released.split()))


def _released_texts(files: "AssignmentFiles") -> dict[str, str]:
    cells = nbformat.reads(files.source_notebook.decode("utf-8"), as_version=4).cells
    return {cell.metadata["nbgrader"]["grade_id"]: cell.source for cell in cells if "nbgrader" in cell.metadata}


def own_copy(name: str, notebook: Path | None, folder: Path | None = None) -> tuple[Path, "AssignmentFiles"]:
    """The student's notebook, and the release that it is compared with.

    Looked for at `notebook`, in the current folder, and where `fetch` puts it. Raises CannotStart if it is nowhere.
    """
    from course_lib.grading.visible import visible_files

    release = None
    try:
        release = find_release(name, folder)
    except CannotStart:
        if notebook is None and not (default_folder(name) / FETCHED).is_dir():
            raise
    if notebook is not None:
        path = Path(notebook).expanduser().absolute()
        named = path / f"{release.notebook}.ipynb" if release else path
        found = path if path.is_file() else named if named.is_file() else only_notebook(path)
        looked = [path]
    else:
        here = [Path.cwd()] if (Path.cwd() / FETCHED).is_dir() else []
        looked = [*here, Path.cwd() / f"assignment_{name}", default_folder(name)]
        stem = release.notebook if release else "*"
        found = next((path for place in looked for path in sorted(place.glob(f"{stem}.ipynb"))), None)
    if found is None:
        raise CannotStart(
            f"There is no notebook of assignment {name} in {' or '.join(map(str, dict.fromkeys(looked)))}. "
            f"Get it with: course assign fetch {name}   or name yours: --notebook FILE"
        )
    if release is None:
        kept = only_notebook(found.parent / FETCHED)
        if kept is None:
            raise CannotStart(f"The assignment {name} as it was handed out is not to be had: fetch it again first.")
        release = Release(name=name, notebook=kept.stem, content=read_notebook(kept), origin=str(kept))
    try:
        return found, visible_files(name, release.notebook, release.content)
    except ValueError as problem:
        raise CannotStart(f"The assignment as it was handed out ({release.origin}) is damaged: {problem}") from None


def student_name(given: str | None, exchange: Exchange | None) -> str:
    """Who submits: the name given, else that of the account (on a hub whose accounts are all alike, the hub's).

    Raises CannotStart for a name that cannot stand in a path, or that the exchange would refuse.
    """
    account = _account()
    name = plain(account if given is None else given)
    if not is_plain_name(name):
        raise CannotStart(f"{given or account!r} cannot be a student's name: use letters, digits, and . _ - @")
    if exchange is not None and exchange.check_owner and name != account:
        raise CannotStart(
            f"The exchange takes submissions under the name of your account, {account!r}, and not as {name!r}. Leave "
            "out --student."
        )
    return name


def _account() -> str:
    try:
        import pwd

        name = pwd.getpwuid(os.getuid()).pw_name  # not the environment: it can say anything
    except (ImportError, KeyError):
        name = getpass.getuser()
    return os.environ.get("JUPYTERHUB_USER", name) if name == "jovyan" else name


def _keep(folder: Path, student: str, files: "AssignmentFiles", moment: datetime, content: bytes) -> Path:
    """Writes a file that is not there yet, whole or not at all."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(moment.timestamp()))
    names = [f"{student}_{files.name}_{stamp}_{files.notebook}{suffix}.ipynb" for suffix in ("", "-2", "-3", "-4")]
    file = next(folder / name for name in names if not (folder / name).exists())
    write_whole(file, content)
    return file


# ------------------------------------------------------------------------------------------------ receipts


def verify(receipt: Path, file: Path | None = None, *, folder: Path | None = None) -> int:
    """Tells whether a file is the one of a receipt; returns 1 if it is not.

    Without a `file` it is the one beside the receipt and, for an instructor, the one that was collected. Raises
    CannotStart if the receipt cannot be read or there is nothing to compare.
    """
    said = read_receipt(Path(receipt))
    if file is not None:
        found = [Path(file)]
    else:
        found = [Path(receipt).parent / said.file]
        folders, _ = student_places(folder)
        if folders is not None and is_plain_name(said.student) and is_plain_name(said.assignment):
            found += sorted(folders.submitted(said.student, said.assignment).glob("*.ipynb"))
        found = [path for path in found if path.exists()]
    if not found:
        raise CannotStart(
            f"The file {said.file} does not lie beside the receipt {receipt}. Put the two into one folder, then verify "
            "again."
        )
    print(f"Receipt: assignment {said.assignment}, {said.student}, {said.submitted}, {said.bytes:,} bytes.")
    same = []
    for path in found:
        content = read_small(path, FILE_BYTES)
        same.append(content is not None and hashlib.sha256(content).hexdigest() == said.sha256)
        print(f"  {'the same' if same[-1] else 'ANOTHER FILE'}: {path}")
    if not all(same):
        print("A file that was opened and saved again is another file. Compare the one that was handed in.")
    return 0 if all(same) else 1
