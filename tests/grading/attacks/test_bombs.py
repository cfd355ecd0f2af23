"""Code that eats memory, processes, threads, descriptors, disk or the judge's patience."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from course_lib.grading.sandbox import Limits, StudentError
from tests.grading.attacks.course import HONEST, POINTS, points, printed

pytestmark = pytest.mark.needs("sandbox")

ROOT = Path(__file__).parents[3]

# Each bomb eats until it is stopped, and says how far it came.
BOMBS = {
    "memory in large pieces": "hoard = []\nwhile True:\n    hoard.append(bytearray(100 << 20))",
    "memory in small pieces": "hoard = []\nwhile True:\n    hoard.append([0] * 100_000)",
    "memory of tensors": "hoard = []\nwhile True:\n    hoard.append(torch.ones(10_000_000))",
    "one huge tensor": "torch.zeros(1 << 38)",
    "one huge text": "'x' * (1 << 40)",
    "a power of a power": "10 ** 10 ** 10 ** 10",
    "memory mapped and touched": (
        "import mmap\nhoard = []\nwhile True:\n    hoard.append(mmap.mmap(-1, 64 << 20))\n"
        "    hoard[-1].write(b'x' * (64 << 20))"
    ),
    "memory spread over processes": (
        "import time\nfor _ in range(12):\n    if os.fork() == 0:\n        hoard = bytearray(600 << 20)\n"
        "        hoard[::4096] = b'x' * len(hoard[::4096])\n        time.sleep(60)\ntime.sleep(1.5)"
    ),
    "an anonymous file in memory": (
        "file = os.memfd_create('hoard')\nwhile True:\n    os.write(file, b'x' * (1 << 20))"
    ),
    "a fork bomb": "while True:\n    os.fork()",
    "a fork bomb that never gives up": "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "a chain of forks that die": "while True:\n    if os.fork():\n        os._exit(0)",
    "threads": (
        "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    ),
    "file descriptors": "hoard = []\nwhile True:\n    hoard.append(os.open('/dev/null', os.O_RDONLY))",
    "pipes filled to the brim": (
        "hoard = []\nwhile True:\n    r, w = os.pipe()\n    os.set_blocking(w, False)\n"
        "    hoard.append(os.write(w, b'x' * 65536))"
    ),
    "sockets that pass descriptors on": (
        "import socket\na, b = socket.socketpair()\na.setblocking(False)\n"
        "while True:\n    socket.send_fds(a, [b'x'], [a.fileno()])"
    ),
    "one large file": (
        "with open('/tmp/hoard', 'wb') as file:\n    while True:\n"
        "        file.write(b'x' * (1 << 20))\n        file.flush()"
    ),
    "many small files": "i = 0\nwhile True:\n    i += 1\n    open(f'/tmp/{i}', 'w').write('x' * 4096)",
    "many empty files": "i = 0\nwhile i < 200_000:\n    i += 1\n    open(f'/tmp/{i}', 'w').close()\nraise OSError",
    "a file with a large hole": "os.truncate(os.open('/tmp/hole', os.O_RDWR | os.O_CREAT), 1 << 50)",
    "a file in shared memory": (
        "with open('/dev/shm/hoard', 'wb') as file:\n    while True:\n"
        "        file.write(b'x' * (1 << 20))\n        file.flush()"
    ),
    "folders in folders": "while True:\n    os.mkdir('d')\n    os.chdir('d')",
    "output without end": "while True:\n    os.write(1, b'x' * 65536)",
    "two gigabytes of output": "for _ in range(2000):\n    os.write(1, b'x' * (1 << 20))",
    "errors without end": "while True:\n    os.write(2, b'x' * 65536)",
    "a compressed bomb": (
        "import zlib\ndata = zlib.compress(b'0' * (1 << 26))\nhoard = []\n"
        "while True:\n    hoard.append(zlib.decompress(data))"
    ),
    "a limit raised": (
        "import resource\nfor kind in range(16):\n    try:\n        resource.setrlimit(kind, (-1, -1))\n"
        "    except (ValueError, OSError):\n        pass\nhoard = []\n"
        "while True:\n    hoard.append(bytearray(100 << 20))"
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_in_a_call_hurts_nobody_else(course, bomb):
    """The bomb goes off in a thread's worth of Python, errors end it, and the call answers zeros or not at all."""
    body = "\n".join("        " + line for line in BOMBS[bomb].splitlines())
    source = HONEST["affine"].replace("return x * self.weight", "bomb()\n        return 0 * x * self.weight")
    source += f"""
def bomb():
    os.write(1, b"tried\\n")
    try:
{body}
    except BaseException as error:
        os.write(1, ("stopped: " + type(error).__name__ + "\\n").encode())
    else:
        os.write(1, b"through\\n")
"""
    free = shutil.disk_usage("/dev/shm").free, shutil.disk_usage(course.folder).free
    start = time.monotonic()
    verdict = course.judge(course.submit("mallory", {"affine": source}))
    assert time.monotonic() - start < 12
    assert points(verdict) == POINTS | {"affine": 0}
    task = verdict["tasks"]["affine"]
    assert "tried" in task["printed"]
    assert "through" not in task["printed"] or bomb in THROUGH
    assert bomb not in REFUSED or "stopped: OSError" in task["printed"] or "stopped: BlockingIOError" in task["printed"]
    assert task["ended"] == ENDED.get(bomb, task["ended"])
    assert len(task["printed"]) <= 2000
    assert shutil.disk_usage("/dev/shm").free > free[0] - (32 << 20)
    assert shutil.disk_usage(course.folder).free > free[1] - (512 << 20)  # others write on this disk, too


# What the kernel refuses, so that the code can go on; anything else may end the box.
REFUSED = {
    "file descriptors",
    "pipes filled to the brim",
    "one large file",
    "many small files",
    "many empty files",
    "a file with a large hole",
    "a file in shared memory",
}
ENDED = {"memory spread over processes": "memory"}  # what no limit of a single process could see
THROUGH = {"two gigabytes of output", "memory spread over processes"}  # harmless, or ended by a watchdog


@pytest.mark.parametrize("amount", ["cpu", "processes"])
def test_what_all_processes_of_a_box_use_is_added_up(course, amount):
    limits = Limits(cpu_seconds=0.5) if amount == "cpu" else Limits(processes=8)
    work = "while True: pass" if amount == "cpu" else "__import__('time').sleep(60)"
    count = 4 if amount == "cpu" else 30
    source = f"import os\ndef spread():\n    for _ in range({count}):\n        if os.fork() == 0:\n            {work}\n"
    with course.zygote.box(limits) as box:
        assert box.load(source + "    __import__('time').sleep(60)\n") is None
        with pytest.raises(StudentError) as error:
            box.call("spread", seconds=15)
        if amount == "cpu":
            assert box.ended == "cpu"
        else:
            assert error.value.kind == "BlockingIOError" or box.ended == "processes"


def test_a_bomb_in_a_cell_costs_its_own_task_only(course):
    source = BOMBS["memory in large pieces"] + "\n" + HONEST["softmax"]
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 0}


def test_a_fork_bomb_in_a_cell_costs_its_own_task_only(course):
    source = "import time\n" + BOMBS["a fork bomb that never gives up"] + "\n" + HONEST["softmax"]
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS | {"softmax": 0}


DAEMON = """
import signal, time
def away(depth):
    if os.fork() == 0:
        os.setsid()
        for number in (1, 2, 3, 13, 15, 17):
            signal.signal(number, signal.SIG_IGN)
        if depth:
            away(depth - 1)
        else:
            os.closerange(0, 3) if {close} else None
            while True:
                time.sleep(0.05)
        os._exit(0)
away({depth})
os.write(1, b"tried\\n")
"""


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("close", [False, True], ids=["with the log open", "with the log closed"])
def test_a_daemon_dies_with_its_box(course, depth, close):
    """TinyCourse.judge sees to it that no process is left; the answer keeps its points."""
    source = DAEMON.format(depth=depth, close=close) + HONEST["softmax"]
    verdict = course.judge(course.submit("mallory", {"softmax": source}))
    assert points(verdict) == POINTS
    assert "tried" in printed(verdict)


def test_a_daemon_that_keeps_the_log_open_does_not_keep_the_judge(course):
    start = time.monotonic()
    course.judge(course.submit("mallory", {"softmax": DAEMON.format(depth=1, close=False) + HONEST["softmax"]}))
    assert time.monotonic() - start < 8


# A box that wants to outlive everything: it takes back that it dies with its parent, and leaves its group.
SURVIVOR = """
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
for number in (1, 2, 13, 15, 17):
    signal.signal(number, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        while True:
            time.sleep(0.05)
"""
JUDGE = f"""
from course_lib.grading.sandbox import Zygote
zygote = Zygote()
box = zygote.box()
assert box.load({SURVIVOR!r}) is None
print("ready", flush=True)
import time
time.sleep(600)
"""


def test_no_process_of_a_box_outlives_a_judge_that_is_killed():
    judge = subprocess.Popen([sys.executable, "-c", JUDGE], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert judge.stdout.readline() == "ready\n"
        family = psutil.Process(judge.pid).children(recursive=True)
        assert len(family) >= 5  # the zygote, the warden, the box and its daemons
    finally:
        judge.kill()
        judge.wait()
        judge.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []


def test_no_descriptor_stays_open_in_the_judge(course):
    def count():
        return len(os.listdir("/proc/self/fd"))

    sources = ["os._exit(0)", "def softmax(x):\n    os._exit(0)\n", DAEMON.format(depth=1, close=False)]
    course.judge(course.submit("mallory", {"softmax": sources[0]}))
    before = count()
    for source in sources:
        course.judge(course.submit("mallory", {"softmax": source}))
    end = time.monotonic() + 3
    while count() > before and time.monotonic() < end:
        time.sleep(0.02)
    assert count() <= before
