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
from tests.grading.courses import NAME, NOTEBOOK
from tests.grading.unreleased import SOLVED, answer, unreleased_course

pytestmark = pytest.mark.needs("mount_namespace")

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
        """Runs a command as this account; its exit code, and what it printed."""
        number, home = NUMBERS[account], self.folder / account
        become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--no-new-privs"]
        steps = [*prepare(self.folder / "passwd"), f"cd {quoted(cwd or home)}", "umask 022"]
        script = "\n".join([*steps, f'exec {shlex.join(become)} "$@"'])
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(home), "COURSE_HOME": f"{home}/.course",
            "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COURSE_EXCHANGE": str(self.folder / "exchange"),
        }  # fmt: skip
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-euc", script, "sh", *map(str, command)],
            env=environment | dict(env), capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def course(self, account, *commands, expect=0):
        """Runs `course` with each of these arguments, in one process: to start one takes seconds."""
        code, said = self.run(account, sys.executable, "-c", IN_ONE_PROCESS, *commands)
        assert code == expect, said
        return said


IN_ONE_PROCESS = """
import shlex, sys
from course_lib import cli
for line in sys.argv[1:]:
    sys.argv = ["course", *shlex.split(line)]
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise
"""


def prepare(passwd):
    """Shell commands: names for the accounts, and a way to this Python, which may lie in a home of root's alone."""
    needed = {ROOT, Path(sys.prefix), Path(sys.base_prefix), Path(sysconfig.get_path("purelib"))}
    hidden = {place: closed for place in needed if (closed := first_closed(place)) is not None}
    yield f"mount --bind {quoted(passwd)} /etc/passwd"
    for number, place in enumerate(hidden):
        yield f"hold{number}=$(mktemp -d); mount --bind {quoted(place)} $hold{number}"
    for closed in set(hidden.values()):
        yield f"mount -t tmpfs -o mode=755 tmpfs {quoted(closed)}"
    for number, place in enumerate(hidden):
        yield f"mkdir -p {quoted(place)}; mount --move $hold{number} {quoted(place)}; rmdir $hold{number}"


def quoted(path):
    return shlex.quote(str(path))


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
    said = accounts.course("prof", f"assign release {NAME} --folder {quoted(root)}")
    assert "In the exchange, for `course assign fetch" in said
    return root


@pytest.fixture(scope="module")
def handed_in(accounts, course):
    """What each student has handed in: the folders in the exchange, from the receipts."""
    places = {}
    for student in ("ada", "bob"):
        accounts.course(student, f"assign fetch {NAME} --to mine")
        answer(accounts.folder / student / "mine" / FILE, **(SOLVED if student == "ada" else {"why": "I do not know."}))
        said = accounts.course(student, f"assign submit {NAME} --notebook mine")
        assert "submitted." in said
        (receipt,) = (accounts.folder / student / "mine" / "submissions").glob("*.receipt.json")
        places[student] = Path(read_receipt(receipt).exchange)
    return places


@pytest.fixture(scope="module")
def graded(accounts, course, handed_in):
    """What the instructor reads on collecting and grading; without a sandbox, which is not what is tried here."""
    at = f"--folder {quoted(course)}"
    grade = f"grade {NAME} {at} --workers 1 --trusted-students"
    said = accounts.course("prof", f"assign collect {NAME} {at}", grade, f"assign feedback {NAME} {at}")
    code, released = accounts.run("prof", sys.executable, "-m", "nbgrader", "release_feedback", NAME, cwd=course)
    assert code == 0, released
    return said


def shell(accounts, account, script, **names):
    """What a shell says to a script of this account; `names` become its variables."""
    return accounts.run(account, "sh", "-c", script, env={name: str(value) for name, value in names.items()})


def test_what_lies_in_the_exchange_is_what_its_student_handed_in(accounts, handed_in):
    for student, place in handed_in.items():
        assert place.name.startswith(f"{student}+{NAME}+") and place.stat().st_uid == NUMBERS[student]
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


PRIVATE = ["hidden", "source", "gradebook.db", "submitted", "feedback", "instructor.key", "verdicts"]


@pytest.mark.parametrize("what", PRIVATE)
def test_a_student_can_read_nothing_in_the_course_directory(accounts, course, graded, what):
    assert (course / what).exists()
    code, said = shell(accounts, "ada", 'ls -R "$what" || cat "$what"', what=course / what)
    assert code != 0 and re.search(NO, said), said


def test_to_a_student_a_closed_course_directory_is_as_good_as_none(accounts, course):
    command = [sys.executable, "-m", "course_lib.cli", "assign"]
    code, said = accounts.run("bob", *command, "list", env={"COURSE_ASSIGNMENTS": str(course)})
    assert code == 0 and re.search(rf"^  {NAME}  ", said, re.MULTILINE), said
    code, said = accounts.run("bob", *command, "collect", NAME, env={"COURSE_ASSIGNMENTS": str(course)})
    assert code == 1 and f"The course directory {course} is closed to your account." in said


def test_the_instructor_collects_and_grades_each_under_the_right_name(graded):
    assert "2 new, 0 newer than before" in graded and "refused" not in graded
    rows = {line.split()[0]: line for line in graded.splitlines() if line.startswith(("ada ", "bob "))}
    assert sorted(rows) == ["ada", "bob"]
    assert re.search(r"│ +3 │ +2 │", rows["ada"]) and re.search(r"│ +0 │ +0 │", rows["bob"])


def test_each_student_gets_the_own_feedback_and_nobody_elses(accounts, course, graded, handed_in):
    for student in ("ada", "bob"):
        (receipt,) = (accounts.folder / student / "mine" / "submissions").glob("*.receipt.json")
        results = f"assign results {NAME} --notebook mine"
        assert "the same" in accounts.course(student, results, f"assign verify {quoted(receipt)}")
        (page,) = (accounts.folder / student / "mine" / "feedback").glob("*.html")
        assert page.read_bytes() == (course / "feedback" / student / NAME / PAGE).read_bytes()
    place = handed_in["ada"].parents[1] / "feedback"
    code, said = shell(accounts, "bob", 'ls "$place"', place=place)
    assert code != 0 and re.search(NO, said)


def test_a_submission_under_another_name_is_refused_on_the_way_in_and_on_the_way_out(
    accounts, course, graded, handed_in
):
    said = accounts.course("bob", f"assign submit {NAME} --notebook mine --student ada", expect=1)
    assert "under the name of your account, 'bob'" in said
    forged = handed_in["bob"].parent / f"ada+{NAME}+2030-01-01 12:00:00.000000 UTC+forged"
    code, said = shell(accounts, "bob", 'mkdir "$forged" && cp "mine/$FILE" "$forged"', forged=forged, FILE=FILE)
    assert code == 0, said
    said = accounts.course("prof", f"assign collect {NAME} --folder {quoted(course)}")
    assert "says that it is by ada, but belongs to bob; refused" in said
    assert (course / "submitted" / "ada" / NAME / FILE).read_bytes() == (handed_in["ada"] / FILE).read_bytes()
