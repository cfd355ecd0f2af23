"""Code that ends its process, refuses to end, or breaks what the judge stands on: it costs its own task only."""

import time

import pytest

from tests.grading.attacks.course import HONEST, POINTS, WRONG, Attack, by_name, points

pytestmark = pytest.mark.needs("sandbox")

# Statements that end or spoil a process. In a cell they cost the cell, in a call the call.
KILLERS = {
    "os._exit": "os._exit(0)",
    "os._exit with an error": "os._exit(1)",
    "os.abort": "os.abort()",
    "SIGKILL to itself": "os.kill(os.getpid(), 9)",
    "SIGSEGV to itself": "os.kill(os.getpid(), 11)",
    "SIGKILL to everyone": "os.kill(-1, 9); os._exit(0)",
    "SIGKILL to its group": "os.killpg(0, 9)",
    "a segmentation fault": "import ctypes; ctypes.string_at(0)",
    "faulthandler's crash": "import faulthandler; faulthandler._sigsegv()",
    "execv into another program": "os.execv('/usr/bin/true', ['true'])",
    "a broken stack": "import ctypes; ctypes.memset(id(None), 0, 4096)",
    "closing every descriptor": "os.closerange(0, 256)",
    "an exit in a thread": (
        "import threading; threading.Thread(target=os._exit, args=(0,)).start(); import time; time.sleep(1)"
    ),
    "a seccomp filter of its own that kills": (
        "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); ctypes.CDLL(None).prctl(22, 1, 0, 0, 0); os.getpid()"
    ),
}


# Signals from within do not reach the first process of a box, and filters cannot be made stricter in this way.
WITHOUT_EFFECT = {
    "SIGKILL to itself",
    "SIGSEGV to itself",
    "SIGKILL to its group",
    "faulthandler's crash",
    "a seccomp filter of its own that kills",
}


@pytest.mark.parametrize("way", KILLERS)
def test_a_cell_that_ends_its_process_costs_its_own_task_only(course, way):
    source = f'os.write(1, b"tried\\n")\n{KILLERS[way]}\n'
    verdict = course.judge(course.submit("mallory", {"softmax": source + HONEST["softmax"]}))
    kept = points(verdict)
    assert kept == POINTS | {"softmax": kept["softmax"]}
    assert "tried" in verdict["tasks"]["softmax"]["printed"]
    assert kept["softmax"] == 0 or way in WITHOUT_EFFECT


@pytest.mark.parametrize("way", KILLERS)
def test_a_call_that_ends_its_process_costs_its_own_task_only(course, way):
    source = f'def softmax(x):\n    os.write(1, b"tried\\n")\n    {KILLERS[way]}\n    return torch.zeros_like(x)\n'
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 0}
    assert "tried" in verdict["tasks"]["softmax"]["printed"]


def test_a_fork_that_answers_in_its_parent_s_place_earns_nothing(course):
    """The parent is the first process of the box: with it all others end, perhaps a moment later."""
    source = 'os.write(1, b"tried\\n")\nos.fork() and os._exit(0)\n' + WRONG["affine"]
    verdict = course.judge(course.submit("mallory", {"affine": source}))
    assert points(verdict) == POINTS | {"affine": 0}


def test_an_end_that_comes_later_costs_no_earlier_task(course):
    source = "import threading\nthreading.Timer(0.05, os._exit, (0,)).start()\n" + HONEST["attention"]
    kept = points(course.judge(course.submit("mallory", {"attention": source})))
    assert kept["softmax"] == POINTS["softmax"]


def test_points_earned_before_the_end_are_kept(course):
    source = """
calls = 0
def softmax(x):
    global calls
    calls += 1
    if calls == 2:
        os._exit(0)
    return x.softmax(dim=-1)
"""
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 1}
    assert verdict["tasks"]["softmax"]["ended"] == "exit"


ODD = [
    Attack(
        name="sys.exit in a destructor",
        source="""
class Bomb:
    def __del__(self):
        sys.exit(3)
Bomb()
bomb = Bomb()
del bomb
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="a hook at exit",
        source="""
import atexit, time
atexit.register(lambda: time.sleep(60))
atexit.register(os._exit, 0)
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="hooks for exceptions and tracing",
        source="""
import threading
sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *a: os._exit(0)
sys.settrace(lambda *a: None)
sys.setprofile(lambda *a: None)
sys.setrecursionlimit(10**9)
sys.setswitchinterval(1e-9)
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="every signal ignored",
        source="""
import signal
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="an alarm that goes off later",
        source="""
import signal
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="audit hooks that object",
        source="""
quiet = True
def hook(event, args):
    if event in ("socket.connect", "ctypes.dlopen", "marshal.loads"):
        raise RuntimeError("no")
sys.addaudithook(hook)
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="a frozen garbage collector",
        source="""
import gc
gc.disable()
gc.freeze()
gc.callbacks.append(lambda *a: None)
os.write(1, b"tried\\n")
""",
    ),
    Attack(
        name="an answer cell whose last line fails",
        source='os.write(1, b"tried\\n")\n' + HONEST["attention"] + "\n1 / 0\n",
    ),
    Attack(
        name="sys.exit at the end of the cell",
        source='os.write(1, b"tried\\n")\n' + HONEST["attention"] + "\nsys.exit()",
    ),
    Attack(
        name="a keyboard interrupt at the end of the cell",
        source='os.write(1, b"tried\\n")\n' + HONEST["attention"] + "\nraise KeyboardInterrupt",
    ),
]


@pytest.mark.parametrize("attack", **by_name(ODD))
def test_an_odd_end_of_a_right_cell_loses_no_grade(course, attack):
    source = attack.source if "def attention" in attack.source else attack.source + HONEST["attention"]
    course.attack(Attack(name=attack.name, source=source, points=2.0))


RAISERS = {
    "SystemExit": "raise SystemExit(0)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "GeneratorExit": "raise GeneratorExit",
    "BaseException": "raise BaseException",
    "StopIteration": "raise StopIteration(x)",
    "an exception group": "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [TypeError(2)])])",
    "an exception whose text never comes": "raise type('E', (Exception,), {'__str__': lambda self: self.__str__()})()",
    "an exception with a lying class": "raise type('E', (Exception,), {'__class__': property(lambda self: 1 / 0)})()",
    "an exception from a metaclass that lies": (
        "raise type('M', (type,), {'__name__': property(lambda c: 1 / 0), '__module__': 5})('E', (Exception,), {})()"
    ),
    "an exception with a name of 10 MB": "raise type('E' * 10_000_000, (Exception,), {})()",
    "an exception with an unspeakable name": (
        "raise type('\\ud800\\udfff\\x00'.replace('\\x00', '')[:1] or 'E', (Exception,), {})()"
    ),
    "an exception that raises when it is let go": (
        "raise type('E', (Exception,), {'__del__': lambda self: os._exit(0), '__reduce__': None})()"
    ),
    "a chain of 10,000 causes": (
        "error = ValueError()\n    for _ in range(10_000):\n        new = ValueError()\n        new.__cause__ = error\n"
        "        error = new\n    raise error"
    ),
    "endless recursion": "return softmax(x)",
    "endless recursion with the limit lifted": "sys.setrecursionlimit(2**31 - 1)\n    return softmax(x)",
    "a deep repr": "value = []\n    for _ in range(100_000):\n        value = [value]\n    return value",
    "a list that holds itself": "value = []\n    value.append(value)\n    return value",
    "a dictionary that holds itself": "value = {}\n    value['x'] = value\n    return value",
    "a generator that never ends": "import itertools\n    return itertools.count()",
    "a coroutine": "async def f(): pass\n    return f()",
    "itself": "return softmax",
    "an integer of 10,000 digits": "return 10**10_000",
    "an integer of 10,000,000 bits": "return 1 << 10_000_000",
    "a list of a million": "return [0] * 1_000_000",
    "a text of 100 MB": "return 'x' * 100_000_000",
    "bytes": "return b'x' * 100",
    "text with lone surrogates": "return '\\ud800' * 10",
    "a dictionary with odd keys": "return {1: x, None: x, (1, 2): x, '\\ud800': x, x: x}",
    "a JSON bomb": "value = 'ha'\n    for _ in range(40):\n        value = [value] * 10\n    return value",
    "a wide JSON bomb": (
        "value = x\n    for _ in range(12):\n        value = {str(i): value for i in range(20)}\n    return value"
    ),
    "a hundred thousand tensors": "return [torch.zeros(1) for _ in range(100_000)]",
    "a tensor of 200 MB": "return torch.zeros(50_000_000)",
    "a tensor with sixty axes": "return torch.zeros([1] * 60)",
    "nothing": "return None",
}


@pytest.mark.parametrize("way", RAISERS)
def test_whatever_a_call_raises_or_returns_it_is_a_wrong_answer_and_no_more(course, way):
    source = f'def softmax(x):\n    os.write(1, b"tried\\n")\n    {RAISERS[way]}\n'
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 0}
    assert "tried" in verdict["tasks"]["softmax"]["printed"]
    assert all(check["findings"] for check in verdict["tasks"]["softmax"]["checks"])
    assert verdict["status"] == "graded"  # an answer is wrong; nobody needs to look after it


LOOPS = {
    "a busy loop": "while True: pass",
    "a loop that ignores SIGINT and SIGTERM": (
        "import signal\n    [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 10, 12, 13, 14, 15, 24)]\n"
        "    while True: pass"
    ),
    "a loop that catches everything": (
        "while True:\n        try:\n            while True: pass\n        except BaseException: pass"
    ),
    "a long sleep": "import time; time.sleep(3600)",
    "a wait for a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a wait for input": "sys.stdin.read(); import select; select.select([], [], [])",
    "a wait for a child that sleeps": "os.fork() or __import__('time').sleep(3600); os.wait()",
    "one long step in C": "sum(range(10**12))",
    "a regular expression that explodes": "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
    "SIGSTOP to itself": "os.kill(os.getpid(), 19); import time; time.sleep(3600)",
    "SIGSTOP to its parent": "os.kill(os.getppid(), 19); import time; time.sleep(3600)",
    "SIGSTOP to everyone": "import time; os.fork() or time.sleep(60); os.kill(-1, 19); time.sleep(3600)",
    "a destructor that loops": (
        "class Slow:\n        def __del__(self):\n            while True: pass\n    slow = Slow(); del slow"
    ),
    "a descriptor that never answers": (
        "class Slow(torch.Tensor):\n        @property\n        def shape(self):\n            while True: pass\n"
        "        def __getattribute__(self, name):\n            while True: pass\n"
        "    return torch.zeros(3, 5).as_subclass(Slow)"
    ),
    "a child that goes on": "os.fork() and os._exit(0)\n    while True: pass",
}


@pytest.mark.parametrize("way", LOOPS)
def test_a_call_that_never_returns_is_ended_in_time(course, way):
    source = f'def loop():\n    os.write(1, b"tried\\n")\n    {LOOPS[way]}\n'
    source += HONEST["affine"].replace("return x * self.weight", "return loop() or x * self.weight")
    start = time.monotonic()
    verdict = course.judge(course.submit("mallory", {"affine": source}))
    assert time.monotonic() - start < 10
    assert points(verdict) == POINTS | {"affine": 0}
    assert "tried" in verdict["tasks"]["affine"]["printed"]
    assert verdict["tasks"]["affine"]["ended"] in ("time", "cpu", "exit")


@pytest.mark.parametrize("way", ["a busy loop", "a long sleep", "SIGSTOP to everyone"])
def test_a_cell_that_never_ends_costs_its_own_task_only(course, way, monkeypatch):
    monkeypatch.setattr("course_lib.grading.judge.LOAD_SECONDS", 1)
    loop = f'def loop():\n    os.write(1, b"tried\\n")\n    {LOOPS[way]}\nloop()\n'
    verdict = course.judge(course.submit("mallory", {"softmax": loop + HONEST["softmax"]}))
    assert points(verdict) == POINTS | {"softmax": 0}
    assert "tried" in verdict["tasks"]["softmax"]["printed"]
    assert verdict["tasks"]["softmax"]["ended"] == "time"


def test_an_honest_submission_after_all_this_has_its_full_points(course):
    assert points(course.judge(course.submit("alice"))) == POINTS
