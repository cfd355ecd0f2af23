"""What a box could leave, hold or take from others, and who is to blame: each of these was once possible."""

import threading
import time

import psutil
import pytest
import torch

from course_lib.grading import judging
from course_lib.grading.boxed.wire import MOST_HEADER
from course_lib.grading.intake import Submission
from course_lib.grading.sandbox import BoxLost
from course_lib.grading.spec import read_assignment
from course_lib.grading.subject import Subject, Talk
from course_lib.tasks.findings import OTHER_PARAMETERS, Fault
from tests.grading.courses import small_course
from tests.grading.fakes import FakeZygote

pytestmark = pytest.mark.needs("sandbox")


def run(box, source, *args, seconds=10):
    """What `f`, which the source defines, returns in the box."""
    assert box.load(source, seconds=30) is None
    return box.call("f", *args, seconds=seconds)


# Between two boxes ----------------------------------------------------------------------------------------------

LEFT = {  # in the box: what is looked at, and what is left there for the next
    "in the flags of standard input": (
        "fcntl.fcntl(0, fcntl.F_GETFL) & os.O_APPEND",
        "fcntl.fcntl(0, fcntl.F_SETFL, os.O_APPEND)",
    ),
    "in the signal of standard input": ("fcntl.fcntl(0, fcntl.F_GETSIG)", "fcntl.fcntl(0, fcntl.F_SETSIG, 37)"),
    "in the time of /dev/null": ("os.stat('/dev/null').st_mtime_ns", "os.utime('/dev/null')"),
    "in the time of /dev/random": ("os.stat('/dev/random').st_mtime_ns", "os.utime('/dev/random')"),
    "in the time of /dev/urandom": ("os.stat('/dev/urandom').st_mtime_ns", "os.utime('/dev/urandom')"),
}
LOOK = """
import fcntl, os
def f():
    seen = {look}
    try:
        {leave}
    except OSError:
        pass
    return seen
"""


@pytest.mark.parametrize("place", LEFT)
def test_the_next_box_finds_nothing_that_was_left(zygote, place):
    seen = []
    for _ in range(2):
        with zygote.box() as box:
            seen.append(run(box, LOOK.format(look=LEFT[place][0], leave=LEFT[place][1])))
    assert seen[0] == seen[1]


HOLDS = {  # of a file that other boxes read, too
    "a lock of all of it": "fcntl.flock(file, fcntl.LOCK_SH)",
    "a lock of a part": "fcntl.lockf(file, fcntl.LOCK_SH, 1, 0)",
    "a lease": "fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "a notice of changes": "fcntl.fcntl(os.open(os.path.dirname(os.__file__), 0), fcntl.F_NOTIFY, 1)",
}


@pytest.mark.parametrize("way", HOLDS)
def test_files_of_the_libraries_cannot_be_held(zygote, way):
    """A lease makes whoever opens the file wait for up to a minute, and locks tell something to other boxes."""
    source = f"""
import errno, fcntl, os
def f():
    with open(os.__file__) as file:
        try:
            {HOLDS[way]}
        except OSError as error:
            return errno.errorcode[error.errno]
"""
    with zygote.box() as box:
        assert run(box, source) == "EPERM"


def test_all_processes_of_a_box_stay_in_its_session(zygote):
    """The kernel shares the processor among sessions: with many of them a box would slow others down."""
    source = """
import os
def f():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.write(writing, str(os.getsid(0)).encode())
        os._exit(0)
    return os.getsid(0), int(os.read(reading, 9))
"""
    with zygote.box() as box:
        assert run(box, source) == (1, 1)


def test_devices_still_work(zygote):
    source = """
def f():
    with open("/dev/null", "w") as nothing, open("/dev/urandom", "rb") as chance:
        return nothing.write("x"), len(chance.read(8)), open(0).read()
"""
    with zygote.box() as box:
        assert run(box, source) == (1, 8, "")


# What comes out of a box and goes in again ---------------------------------------------------------------------------


def test_a_module_that_just_fits_through_the_wall_is_the_answers_fault_not_the_checks(zygote):
    """Its parameters can be read, but with what is asked of them they are too many to be sent back."""
    source = """
import json, torch
class Full(torch.nn.Module):
    def __init__(self, most):
        super().__init__()
        size = 36  # of what is around the names in the answer
        while size + 400 < most:
            size += self.add("x" * 199)
        self.add("y" * (most - size - 46))

    def add(self, name):
        name += str(len(self._buffers))
        self.register_buffer(name, torch.zeros(1))
        return len(json.dumps([name, {"tensor": "float32", "shape": [1]}], separators=(",", ":"))) + 1
"""
    with zygote.box() as box:
        assert box.load(source) is None
        module = Subject("Full", Talk(box=box, seed=len), label="").make("Full", MOST_HEADER)
        own = module.parameters()
        with pytest.raises(Fault) as fault:
            module.set_parameters(dict(list(own.items())[:1]))
        assert fault.value.finding.misconception == OTHER_PARAMETERS


# Others, judged at the same time ---------------------------------------------------------------------------------


def boxes(zygote):
    """The processes of all boxes."""
    return psutil.Process(zygote._process.process.pid).children(recursive=True)[3:]


def test_a_box_that_dies_of_what_others_have_taken_is_no_fault_of_its_own(zygote):
    """When the machine runs out of memory, the kernel ends a box, perhaps one that has taken little."""
    with zygote.box() as box:
        assert box.load("x = 1") is None
        (process,) = boxes(zygote)
        process.kill()  # as the kernel does
        with pytest.raises(BoxLost):
            box.call("f")


@pytest.mark.parametrize("what", ["the box", "the zygote"])
def test_what_is_lost_while_a_check_is_carried_out_costs_no_points(zygote, kept_zygote, tmp_path, monkeypatch, what):
    files = read_assignment(small_course(tmp_path), "01")
    slow = "import time\ndef double(x):\n    time.sleep(0.4)\n    return 2 * x"
    answers = {"double": slow, "halve": "def halve(x):\n    return x / factor"}
    submission = Submission(student="ada", assignment="01", sha256="0" * 64, answers=answers)
    monkeypatch.setattr(judging, "_of_this_thread", threading.local())
    monkeypatch.setattr(judging, "Zygote", kept_zygote)

    def kill():
        while not (found := boxes(zygote)):
            time.sleep(0.01)
        time.sleep(0.2)  # the function is at work
        (found[0] if what == "the box" else found[0].parent()).kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    verdict = judging.judge_one(submission, files, b"key", False)
    killer.join()
    assert (verdict["status"], [task["points"] for task in verdict["tasks"].values()]) == ("graded", [3.0, 1.0])


def test_a_submission_whose_box_was_lost_is_judged_again_in_the_same_sandbox(tmp_path, monkeypatch):
    files = read_assignment(small_course(tmp_path), "01")
    submission = Submission(student="ada", assignment="01", sha256="0" * 64)
    zygotes, verdicts = [], [BoxLost("no memory"), {"status": "graded"}]

    def judge(*_, zygote, **__):
        zygotes.append(zygote)
        verdict = verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    monkeypatch.setattr(judging, "judge", judge)
    monkeypatch.setattr(judging, "_of_this_thread", threading.local())
    monkeypatch.setattr(judging, "Zygote", lambda **_: FakeZygote())
    assert judging.judge_one(submission, files, b"key", False) == {"status": "graded"}
    assert len(zygotes) == 2 and zygotes[0] is zygotes[1]


# Careless, not hostile: what is right keeps its points ---------------------------------------------------------------

AS_IN_A_NOTEBOOK = {
    "more threads than there may be": """
torch.set_num_threads(64)
def f(x):
    return (x @ x).exp()
""",
    "compiled": """
@torch.compile
def f(x):
    return (x @ x).exp()
""",
    "a script of torch's": """
@torch.jit.script
def f(x):
    return (x @ x).exp()
""",
    "a breakpoint left behind": """
def f(x):
    breakpoint()
    return (x @ x).exp()
""",
    "a text of its own": """
import inspect
def f(x):
    return (x @ x).exp() * inspect.getsource(f).startswith("def f")
""",
}


@pytest.mark.parametrize("way", AS_IN_A_NOTEBOOK)
def test_what_works_in_a_notebook_works_in_a_box(zygote, way):
    x = torch.eye(300)
    with zygote.box() as box:
        assert torch.allclose(run(box, f"import torch\n{AS_IN_A_NOTEBOOK[way]}", x, seconds=30), x.exp())
