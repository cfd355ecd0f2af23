"""An exchange among accounts that do not trust each other, set up as docs/grading.md says: an instructor, two students.

Only root can become other accounts. Each command runs in a mount namespace of its own, with an /etc/passwd that names
them; no account is made on this machine.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from course_lib.grading.receipts import read_receipt
from tests.grading.small_course import NAME, NOTEBOOK
from tests.grading.unreleased import SOLVED, answer, unreleased_course

pytestmark = pytest.mark.needs("linux")

ROOT = Path(__file__).parents[2]
FILE, PAGE = f"{NOTEBOOK}.ipynb", f"{NOTEBOOK}.html"
NUMBERS = {"prof": 61001, "ada": 61002, "bob": 61003}
NO = "Permission denied|Operation not permitted"


class Accounts:
    """Three accounts with homes below one folder; the homes can be read by all, as on many machines."""

    def __init__(self, folder):
        self.folder = folder
        lines = [f"{name}:x:{number}:{number}::{folder / name}:/bin/sh\n" for name, number in NUMBERS.items()]
        (folder / "passwd").write_text(Path("/etc/passwd").read_text() + "".join(lines))
        for name, number in NUMBERS.items():
            (folder / name).mkdir(mode=0o755)
            os.chown(folder / name, number, number)

    def run(self, account, *command, cwd=None, env=()):
        """Runs a command as this account; what it printed, after its exit code."""
        number, home = NUMBERS[account], self.folder / account
        become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--no-new-privs"]
        script = f'{prepare(self.folder / "passwd")}\ncd {shlex.quote(str(cwd or home))}\numask 022\nexec {shlex.join(become)} "$@"'
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home), "COURSE_HOME": f"{home}/.course",
            "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COURSE_EXCHANGE": str(self.folder / "exchange"),
        }  # fmt: skip
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-euc", script, "sh", *map(str, command)],
            env=environment | dict(env), capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def course(self, account, *command, expect=0, **more):
        code, said = self.run(account, sys.executable, "-m", "course_lib.cli", *command, **more)
        assert code == expect, said
        return said


def prepare(passwd):
    """A shell script: names for the accounts, and a way to this Python, which may lie in a home that is root's alone."""
    needed = {ROOT, Path(sys.prefix), Path(sys.base_prefix), Path(sysconfig.get_path("purelib"))}
    hidden = {place: closed for place in needed if (closed := first_closed(place)) is not None}
    lines = [f"mount --bind {shlex.quote(str(passwd))} /etc/passwd"]
    lines += [
        f"hold{number}=$(mktemp -d); mount --bind {shlex.quote(str(place))} $hold{number}"
        for number, place in enumerate(hidden)
    ]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(closed))}" for closed in set(hidden.values())]
    lines += [
        f"mkdir -p {shlex.quote(str(place))}; mount --move $hold{number} {shlex.quote(str(place))}; rmdir $hold{number}"
        for number, place in enumerate(hidden)
    ]
    return "\n".join(lines)


def first_closed(place):
    """The uppermost folder above `place` that only its owner can pass; None if all can."""
    return next((above for above in reversed(place.parents) if not above.stat().st_mode & 0o001), None)


@pytest.fixture(scope="module")
def accounts():
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"]).returncode != 0:
        pytest.skip("only root, with the right to mount, can become other accounts")
    folder = Path(tempfile.mkdtemp(prefix="course-accounts-"))  # pytest's own folders are closed to other accounts
    folder.chmod(0o755)
    yield Accounts(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def course(accounts):
    """The instructor's course directory, with what grading.md tells to set up: an exchange, and nobody else inside."""
    exchange = accounts.folder / "exchange"
    exchange.mkdir(mode=0o755)
    root = accounts.folder / "prof" / "class"
    unreleased_course(root, settings=f"\nc.Exchange.root = {str(exchange)!r}\n")
    for path in (exchange, root, *root.rglob("*")):
        os.chown(path, NUMBERS["prof"], NUMBERS["prof"])
    root.chmod(0o700)
    said = accounts.course("prof", "assign", "release", NAME, "--folder", root)
    assert "In the exchange, for `course assign fetch" in said
    return root


@pytest.fixture(scope="module")
def handed_in(accounts, course):
    """What each student has handed in: the folders in the exchange, from the receipts."""
    places = {}
    for student in ("ada", "bob"):
        accounts.course(student, "assign", "fetch", NAME, "--to", "mine")
        answer(accounts.folder / student / "mine" / FILE, **(SOLVED if student == "ada" else {"why": "I do not know."}))
        said = accounts.course(student, "assign", "submit", NAME, "--notebook", "mine")
        assert "submitted." in said
        (receipt,) = (accounts.folder / student / "mine" / "submissions").glob("*.receipt.json")
        places[student] = Path(read_receipt(receipt).exchange)
    return places


@pytest.fixture(scope="module")
def returned(accounts, course, handed_in):
    """Collected, graded, and feedback put into the exchange; without a sandbox, which is not what is tried here."""
    collected = accounts.course("prof", "assign", "collect", NAME, "--folder", course)
    assert "2 submissions" in collected and "note" not in collected
    accounts.course("prof", "grade", NAME, "--folder", course, "--workers", "1", "--trusted-students")
    accounts.course("prof", "assign", "feedback", NAME, "--folder", course)
    code, said = accounts.run("prof", sys.executable, "-m", "nbgrader", "release_feedback", NAME, cwd=course)
    assert code == 0, said
    return course


def shell(accounts, account, script, **names):
    """What a shell says to a script of this account; `names` become its variables."""
    return accounts.run(account, "sh", "-c", script, env={name: str(value) for name, value in names.items()})


def test_a_student_has_a_receipt_for_what_lies_in_the_exchange(accounts, handed_in):
    for student, place in handed_in.items():
        (receipt,) = (accounts.folder / student / "mine" / "submissions").glob("*.receipt.json")
        assert place.name.startswith(f"{student}+{NAME}+") and place.stat().st_uid == NUMBERS[student]
        assert "the same" in accounts.course(student, "assign", "verify", receipt)
        assert (place / FILE).read_bytes() == (accounts.folder / student / "mine" / FILE).read_bytes()


def test_who_has_submitted_can_be_seen_by_the_instructor_alone(accounts, handed_in):
    inbound = handed_in["ada"].parent
    code, said = shell(accounts, "bob", 'ls "$inbound"', inbound=inbound)
    assert code != 0 and re.search(NO, said)
    code, said = shell(accounts, "prof", 'ls "$inbound"', inbound=inbound)
    assert code == 0 and handed_in["ada"].name in said


@pytest.mark.parametrize(
    "attempt",
    [
        'cat "$theirs/$FILE"',
        'ls "$theirs"',
        'cat "$theirs/submission_secret.txt"',
        'echo mine > "$theirs/$FILE"',
        'rm "$theirs/$FILE"',
        'mv "$theirs" "$theirs-moved"',
        'mv "$theirs" "$HOME"',
        'ln -s "$HOME" "$theirs/link"',
        'chmod 777 "$theirs"',
    ],
)
def test_a_student_who_knows_the_name_of_anothers_submission_can_do_nothing_with_it(accounts, handed_in, attempt):
    before = (handed_in["ada"] / FILE).read_bytes()
    code, said = shell(accounts, "bob", attempt, theirs=handed_in["ada"], FILE=FILE)
    assert code != 0 and re.search(NO, said), said
    assert (handed_in["ada"] / FILE).read_bytes() == before


@pytest.mark.parametrize(
    "attempt",
    [
        'echo mine > "$course/outbound/$NAME/$FILE"',
        'rm -r "$course/outbound/$NAME"',
        'mv "$course/outbound" "$course/old"',
        'mv "$course" "$course-moved"',
        'mkdir "$course/feedback"',
        'rmdir "$course/inbound"',
        'mkdir "$(dirname "$course")/another-course"',
    ],
)
def test_a_student_cannot_change_what_others_fetch_nor_the_exchange(accounts, handed_in, attempt):
    place = handed_in["ada"].parents[1]
    code, said = shell(accounts, "bob", attempt, course=place, NAME=NAME, FILE=FILE)
    assert code != 0 and re.search(NO, said), said
    assert (place / "outbound" / NAME / FILE).exists()


@pytest.mark.parametrize(
    "what", ["hidden", "source", "gradebook.db", "submitted", "feedback", "instructor.key", "exports"]
)
def test_a_student_can_read_nothing_in_the_course_directory(accounts, returned, what):
    code, said = shell(accounts, "ada", 'ls -R "$what" || cat "$what"', what=returned / what)
    assert code != 0 and re.search(NO, said), said


def test_the_instructor_collects_and_grades_each_under_the_right_name(accounts, returned):
    said = accounts.course("prof", "grade", NAME, "--folder", returned, "--workers", "1", "--trusted-students")
    rows = {line.split()[0]: line for line in said.splitlines() if line.startswith(("ada", "bob"))}
    assert sorted(rows) == ["ada", "bob"] and "0 graded now, 2 graded before" in said
    assert re.search(r"│ +3 │ +2 │", rows["ada"]) and re.search(r"│ +0 │ +0 │", rows["bob"])


def test_a_submission_under_another_name_is_refused_on_the_way_in_and_on_the_way_out(accounts, returned, handed_in):
    command = ("assign", "submit", NAME, "--notebook", "mine", "--student", "ada")
    assert "under the name of your account, 'bob'" in accounts.course("bob", *command, expect=1)
    forged = handed_in["bob"].parent / f"ada+{NAME}+2030-01-01 12:00:00.000000 UTC+forged"
    code, said = shell(accounts, "bob", 'mkdir "$forged" && cp "mine/$FILE" "$forged"', forged=forged, FILE=FILE)
    assert code == 0, said
    said = accounts.course("prof", "assign", "collect", NAME, "--folder", returned)
    assert "says that it is by ada, but belongs to bob; refused" in said
    assert (returned / "submitted" / "ada" / NAME / FILE).read_bytes() == (handed_in["ada"] / FILE).read_bytes()


def test_each_student_gets_the_own_feedback_and_nobody_elses(accounts, returned, handed_in):
    for student in ("ada", "bob"):
        accounts.course(student, "assign", "results", NAME, "--notebook", "mine")
        (page,) = (accounts.folder / student / "mine" / "feedback").glob("*.html")
        assert page.read_bytes() == (returned / "feedback" / student / NAME / PAGE).read_bytes()
    place = handed_in["ada"].parents[1] / "feedback"
    code, said = shell(accounts, "bob", 'ls "$place"', place=place)
    assert code != 0 and re.search(NO, said)
