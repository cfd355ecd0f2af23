"""A whole class at once, hostile and broken submissions among it: everyone gets their own points, and nobody else's."""

import contextlib
import hashlib
import io
import json
import os
import threading
from dataclasses import dataclass, field

import psutil
import pytest

from course_lib.grading import judging, pools
from course_lib.grading.batch import grade
from course_lib.grading.export import export
from course_lib.grading.feedback import feedback
from course_lib.grading.folders import Folders
from course_lib.grading.gradebook import Score, scores
from tests.grading.attacks.course import descendants, left_behind
from tests.grading.courses import NAME, NOTEBOOK, make_course, submit

pytestmark = pytest.mark.needs("sandbox")

ADD = "def add(a, b):\n    return a + b\n"
HONEST = {"add": ADD, "double": "def double(x):\n    return 2 * x\n", "why": "Because."}
FULL = {"add": 3.0, "double": 2.0}
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>[link](javascript:alert(3)) {{7*7}} [bold red]"

# What stands before the right function in a student's cell for `add`, or in its place, and the points that it earns.
CELLS = {
    "ends its process": ("import os; os._exit(0)\n", 0),
    "forks without end": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n", 0),
    "eats all memory": ("hoard = []\nwhile True: hoard.append(bytearray(200 << 20))\n", 0),
    "prints without end": ("import os\nfor _ in range(300): os.write(1, b'x' * (1 << 20))\n", 3),
    "leaves a daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork() or time.sleep(600)\n    os._exit(0)\n",
        3,
    ),
    "kills everyone it can": (
        "import os\nfor pid in [-1, *range(2, 400)]:\n    try: os.kill(pid, 9)\n    except OSError: pass\n",
        3,
    ),
    "looks for the gradebook": (
        "import os\nfor folder, _, files in os.walk('/'):\n"
        "    if {'gradebook.db', 'instructor.key'} & set(files) and 'nbgrader/tests' not in folder: os._exit(0)\n",
        3,
    ),
    "forges replies": (
        "import os\nfor pipe in range(3, 20):\n    try: os.write(pipe, b'x' * 99)\n    except OSError: pass\n",
        0,
    ),
    "carries inputs out": (
        "def add(a, b):\n    code = str(int(abs(float(a[0, 0])) * 1e6) + 10**7)\n    print('CODE', code)\n"
        "    raise type('E' + code, (ValueError,), {})(code)\n",
        0,
    ),
    "stops with markup": (f"print({MARKUP!r})\ndef add(a, b):\n    raise Exception({MARKUP!r})\n", 0),
}

NAMES = {
    "spaces": " ada  lovelace ",
    "other letters": "Ωμέγα 李 😀",
    "an option": "-rf",
    "a request for help": "--help",
    "a home": "~root",
    "shell characters": "$(touch evil);`id`|&'\"",
    "SQL": "Robert'); DROP TABLE student;--",
    "markup": "<b onmouseover=alert(1)>[bold red]x[unclosed",
    "a formula": "=HYPERLINK(0)",
    "format characters": "%2e%2e%2fetc %s %d {0} {student}",
    "the assignment's name": NAME,
}
REFUSED = {
    "a newline": "two\nlines",
    "an escape": "\x1b[2Jcleared",
    "letters that turn around": "\u202eada",
    "too many letters": "x" * 200,
    "few letters of many bytes": "😀" * 62,
    "bytes that are no text": os.fsdecode(b"\xff\xfe"),
}
TIMES = {
    "words": "tomorrow",
    "no such day": "9999-99-99 99:99:99 UTC",
    "the first year": "0001-01-01 00:00:00 UTC",
    "another time zone": "0001-01-01 00:00:00 +2359",
    "zeros": "\0" * 100,
    "a million digits": "1" * 1_000_000,
}
BROKEN = ("cut off", "a link to another's", "a pipe", "500 megabytes", "a folder")


@dataclass(kw_only=True)
class Graded:
    """A class after one run of the grader."""

    folders: Folders
    printed: str = ""
    code: int = -1
    files: dict[str, str] = field(default_factory=dict)  # hashes of what was submitted, before
    processes: set[int] = field(default_factory=set)  # those that the grader left behind

    def scores(self) -> dict[str, Score]:
        return {score.student: score for score in scores(self.folders.gradebook, NAME)}

    def verdict(self, student):
        return json.loads(self.folders.verdict(student, NAME).read_text())

    def points(self, student):
        points = self.scores()[student].points
        assert {name: task["points"] for name, task in self.verdict(student)["tasks"].items()} == {
            name: points[f"check-{name}"] for name in FULL
        }
        return {name: points[f"check-{name}"] for name in FULL}


def notebook_of(folders, student):
    return folders.submitted(student, NAME) / f"{NOTEBOOK}.ipynb"


def hashes(folders):
    """Of all submitted files that can be read."""
    files = [path for path in folders.root.rglob("submitted/*/*/*") if path.is_file() and path.stat().st_size < 1 << 22]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def make_class(folders):
    submit(folders, "alice", **HONEST)
    submit(folders, "zoe", **HONEST | {"double": "def double(x):\n    return x\n", "why": MARKUP})
    for student, (source, _) in CELLS.items():
        submit(folders, student, **HONEST | {"add": source if "def add(" in source else source + ADD})
    for name in [*NAMES.values(), *REFUSED.values()]:
        submit(folders, name, **HONEST)
    for kind, text in TIMES.items():
        submit(folders, f"time: {kind}", when=text, **HONEST)
    submit(folders, "time: a pipe", when=None, **HONEST)
    os.mkfifo(folders.submitted("time: a pipe", NAME) / "timestamp.txt")
    for student in BROKEN:
        submit(folders, student, **HONEST)
        path = notebook_of(folders, student)
        if student == "cut off":
            path.write_bytes(path.read_bytes()[:200])
        elif student == "500 megabytes":
            os.truncate(path, 500 << 20)
        else:
            path.unlink()
            if student == "a link to another's":
                path.symlink_to(notebook_of(folders, "alice"))
            elif student == "a pipe":
                os.mkfifo(path)
            else:
                path.mkdir()
    (folders.root / ".grading.lock").write_text("999999")  # of a grader that died


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The class after one run of the grader."""
    graded = Graded(folders=make_course(tmp_path_factory.mktemp("class") / "course"))
    make_class(graded.folders)
    graded.files = hashes(graded.folders)
    before = set(descendants())
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        graded.code = grade(NAME, folder=graded.folders.root, workers=2)
    graded.printed = printed.getvalue()
    graded.processes = left_behind(before, expected=is_helper)
    return graded


def is_helper(pid):
    """Python keeps two processes for the next pool: children of this one, which have no children left."""
    try:
        process = psutil.Process(pid)
        names = {"multiprocessing.forkserver", "multiprocessing.resource_tracker"}
        return process.ppid() == os.getpid() and bool(names & set(" ".join(process.cmdline()).split()))
    except psutil.Error:
        return True  # it has just ended


def test_the_batch_goes_on_to_its_end(graded):
    assert graded.code == 0
    everyone = {"alice", "zoe", *CELLS, *NAMES.values(), *(f"time: {kind}" for kind in TIMES), "time: a pipe", *BROKEN}
    assert set(graded.scores()) == everyone


def test_the_honest_get_what_they_earned(graded):
    assert graded.points("alice") == FULL
    assert graded.points("zoe") == FULL | {"double": 0}


@pytest.mark.parametrize("student", CELLS)
def test_a_hostile_cell_costs_its_own_points_only(graded, student):
    assert graded.points(student) == FULL | {"add": CELLS[student][1]}


@pytest.mark.parametrize("kind", NAMES)
def test_an_odd_name_is_a_name(graded, kind):
    assert graded.points(NAMES[kind]) == FULL


@pytest.mark.parametrize("kind", REFUSED)
def test_a_name_that_could_mislead_is_refused_and_said(graded, kind):
    assert REFUSED[kind] not in graded.scores()
    assert graded.printed.count("Not graded: ") == len(REFUSED)
    assert REFUSED[kind].isprintable() or REFUSED[kind] not in graded.printed


@pytest.mark.parametrize("kind", [*TIMES, "a pipe"])
def test_a_time_that_is_none_costs_no_points(graded, kind):
    assert graded.points(f"time: {kind}") == FULL


@pytest.mark.parametrize("student", BROKEN)
def test_a_broken_file_is_nothing_and_needs_attention(graded, student):
    assert graded.points(student) == dict.fromkeys(FULL, 0.0)
    assert graded.verdict(student)["status"] == "needs attention"


def test_no_submitted_file_was_touched(graded):
    assert graded.files == hashes(graded.folders)


def test_nothing_was_written_outside_of_the_course(graded):
    assert [path.name for path in graded.folders.root.parent.iterdir()] == ["course"]
    assert not [path for path in graded.folders.root.rglob("*") if path.name in ("evil", "evil;`id`|&'\"")]


def test_no_process_was_left_behind(graded):
    assert graded.processes == set()


def test_a_terminal_is_not_steered(graded):
    assert not {character for character in graded.printed if not character.isprintable()} - {"\n"}


def test_graded_again_nothing_is_judged_and_all_stays(graded, capsys):
    before = {student: (score.points, score.submitted) for student, score in graded.scores().items()}
    assert grade(NAME, folder=graded.folders.root, workers=1) == 0
    assert "0 graded now" in capsys.readouterr().out
    assert {student: (score.points, score.submitted) for student, score in graded.scores().items()} == before


def test_feedback_holds_no_live_markup(graded, capsys):
    assert feedback(NAME, folder=graded.folders.root) == 0
    capsys.readouterr()
    pages = {path.parts[-3]: path.read_text() for path in graded.folders.root.rglob("feedback/*/*/*.html")}
    assert set(pages) == set(graded.scores())
    for page in pages.values():
        assert "<script" not in page
        assert "<img src=x" not in page
        assert "<b onmouseover" not in page
        assert 'href="javascript' not in page


def test_what_a_hostile_cell_printed_and_raised_is_not_in_its_feedback(graded):
    """Hidden inputs that it carried out so far stay with the instructor."""
    student = "carries inputs out"
    printed = graded.verdict(student)["tasks"]["add"]["printed"].split()
    codes = [code for code in printed if code.isdecimal()]
    assert codes
    feedback(NAME, folder=graded.folders.root, student=student)
    page = (graded.folders.feedback(student, NAME) / f"{NOTEBOOK}.html").read_text()
    notebook = (graded.folders.autograded(student, NAME) / f"{NOTEBOOK}.ipynb").read_text()
    assert "With" in page or "stopped" in page
    for code in codes:
        assert code not in page
        assert code not in notebook


def test_an_export_holds_no_formula(graded, capsys):
    assert export(NAME, folder=graded.folders.root, layout="plain") == 0
    capsys.readouterr()
    tables = list((graded.folders.root / "exports").rglob("*.csv"))
    assert tables
    for table in tables:
        assert not [cell for cell in table.read_text().replace("\n", ",").split(",") if cell.strip('"').startswith("=")]


def test_a_submission_replaced_while_it_is_graded_is_judged_as_it_was_read(tmp_path, monkeypatch, capsys):
    """The verdict, the graded notebook and the hash are those of one file; the next run judges the other."""
    folders = make_course(tmp_path / "course")
    submit(folders, "mallory", **HONEST | {"double": "def double(x):\n    return x\n"})
    path = notebook_of(folders, "mallory")
    first = path.read_bytes()
    true_judge = judging.judge

    def judge_slowly(*args, **kwargs):
        submit(folders, "mallory", **HONEST)
        return true_judge(*args, **kwargs)

    monkeypatch.setattr(judging, "judge", judge_slowly)
    monkeypatch.setattr(judging, "_of_this_thread", threading.local())
    monkeypatch.setattr(pools, "Processes", InThisProcess)
    assert grade(NAME, folder=folders.root) == 0
    graded = Graded(folders=folders)
    assert graded.points("mallory") == FULL | {"double": 0}
    assert graded.verdict("mallory")["submission"] == hashlib.sha256(first).hexdigest()
    cells = json.loads((folders.autograded("mallory", NAME) / f"{NOTEBOOK}.ipynb").read_text())["cells"]
    assert "return x\n" in "".join("".join(cell["source"]) for cell in cells)
    monkeypatch.setattr(judging, "judge", true_judge)
    assert grade(NAME, folder=folders.root) == 0
    judging._drop_zygote(False)
    assert graded.points("mallory") == FULL
    capsys.readouterr()


class InThisProcess(pools.Pool):
    """Judges at once, in this process."""

    width, deadly, retries = 1, (), False

    def __init__(self, workers, *, hidden):
        pass

    def prepare(self, *, trusted):
        """It is ready."""

    def restart(self):
        """No worker of it can die alone."""

    def submit(self, function, *arguments):
        from concurrent.futures import Future

        future = Future()
        future.set_result(function(*arguments))
        return future

    def close(self):
        """The sandbox is kept for the next run."""
