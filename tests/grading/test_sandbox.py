# ruff: noqa: E501 (students' cells as they are)
"""Boxes: what they answer, what they may use, and that nothing outlives them; their walls are seen from inside."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from course_lib.grading import bubblewrap, sandbox, seccomp
from course_lib.grading.boxed import zygote as first_process
from course_lib.grading.boxed.wire import Unknown, WireError
from course_lib.grading.boxed.worker import CHANGED
from course_lib.grading.sandbox import BoxEnded, Limits, SandboxError, StudentError, Zygote, sandbox_problem
from tests.grading.conftest import HIDDEN

needs_sandbox = pytest.mark.needs("sandbox")
SHUT = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *given):
    if getattr(libc, name)(*given) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def number(number, *given):
    if libc.syscall(number, *given) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def write(path):
    with open(path, "w") as file: file.write("evil")
def f():
    try:
        {way}
    except (OSError, ValueError, ImportError) as error:
        return "shut: " + repr(error)
    return "OPEN"
"""
WAYS = {
    "TCP to this machine": "socket.create_connection(('127.0.0.1', {port}), 1)",
    "a vsock to the host": "socket.socket(40, socket.SOCK_STREAM)",
    "a socket of packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a user namespace": "call('unshare', 0x10000000)",
    "a mount namespace": "call('unshare', 0x20000)",
    "a clone into a user namespace": "number({clone}, 0x10000000 | 17, 0, 0, 0, 0)",
    "a mount": "call('mount', b'none', b'/tmp', b'tmpfs', 0, None)",
    "another root": "os.chroot('/tmp')",
    "the user 0": "os.setuid(0)",
    "memory of the first process": "open('/proc/1/mem', 'rb').read(1)",
    "what the first process was told": "open('/proc/1/environ', 'rb').read(1)",
    "descriptors of the first process": "os.listdir('/proc/1/fd')",
    "ptrace of the first process": "call('ptrace', 16, 1, None, None)",
    "more memory": "__import__('resource').setrlimit(9, (1 << 40, 1 << 40))",
    "a key in a ring": "number({add_key}, b'user', b'm', b'hello', 5, -4)",
    "memory that stays": "number({shmget}, 0, 4096, 0o1666)",
    "memory of no process": "os.memfd_create('x')",
    "bpf": "number({bpf}, 0, None, 0)",
    "io_uring": "number({io_uring_setup}, 8, None)",
    "a file in the packages": "write(os.__file__)",
    "a file in the worker": "write('/course/boxed/worker.py')",
    "a file in /usr": "write('/usr/evil')",
    "the kernel's settings": "write('/proc/sys/kernel/core_pattern')",
    "the disk": "open('/dev/vda', 'rb')",
    "the course": "__import__('course_lib')",
    "the course's folder": "os.listdir({course!r} + '/notebooks')",
    "a folder of the instructor's among the libraries": "os.listdir({hidden!r})[0]",
    "accounts of the machine": "open('/etc/passwd')",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_out(zygote, way):
    column = seccomp.MACHINES[os.uname().machine][1]
    facts = {name: seccomp.REFUSED[name][column] for name in ("add_key", "shmget", "bpf", "io_uring_setup")}
    facts |= {"clone": seccomp.CLONE[column], "port": 9, "hidden": str(HIDDEN)}
    facts["course"] = str(Path(sandbox.__file__).parents[2])
    with zygote.box() as box:
        error = box.load(SHUT.replace("{way}", WAYS[way].format(**facts)))
        try:
            said = "shut" if error and error.kind in ("ImportError", "ModuleNotFoundError") else box.call("f")
        except StudentError as problem:
            said = f"shut: {problem.kind}" if problem.kind in ("IndexError", "ModuleNotFoundError") else problem.words
    assert said.startswith("shut"), said


def test_the_next_box_finds_nothing(zygote):
    with zygote.box() as box:
        box.load(
            "import os, signal, time\nopen('/tmp/left', 'w').write('x')\nos.makedirs('/tmp/a/b')\nos.chmod('/tmp/a/b', 0)\n"
            "open('/dev/shm/left', 'w').write('x')\nos.symlink('/', '/tmp/link')\nos.mkfifo('/tmp/pipe')\n"
            "for _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
            "            [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]\n            time.sleep(600)\n        os._exit(0)\n"
        )
    with zygote.box() as box:
        assert box.load("import os\ndef f(): return [*os.listdir('/tmp'), *os.listdir('/dev/shm')]") is None
        assert box.call("f") == []
        box.load("def g(): return sorted(int(name) for name in os.listdir('/proc') if name.isdigit() and name != '1')")
        assert len(box.call("g")) == 1  # its own


# answers ----------------------------------------------------------------------------------------------------


def test_values_and_handles_cross_the_wall_and_changes_are_told(box):
    box.load("import torch\nfrom torch import nn\ndef f(x, *, s='a'):\n    return x * 2, s, [None, 1.5], {'k': x}")
    product, text, some, named = box.call("f", torch.ones(2, 3), s="b")
    assert (product == 2).all() and (text, some) == ("b", [None, 1.5]) and (named["k"] == 1).all()
    box.load("def g(a):\n    a[0] = 9\ndef h(*, deep): deep[1]['x'].zero_()")
    box.load("def p(links): return links[0].pop()\ndef q(links): links[0].sort()")
    changed_lists = [(name, {"links": [[(1, 2), (0, 1)], []]}) for name in "pq"]
    for function, given in (("g", {"a": np.zeros(3)}), ("h", {"deep": [1, {"x": torch.ones(2)}]}), *changed_lists):
        with pytest.raises(StudentError) as caught:
            box.call(function, **given)
        assert caught.value.kind == CHANGED
    box.load("def r(links): return sorted(links[0])")
    assert [*map(tuple, box.call("r", [[(1, 2), (0, 1)]]))] == [(0, 1), (1, 2)]
    box.load("def make(): return nn.Linear(2, 1)")
    handle = box.call("make", keep=True)
    box.state(handle, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    assert box.call(handle, torch.ones(1, 2)).item() == 2.0
    gradients = box.gradients(handle, torch.ones(1, 2), output_gradient=torch.ones(1, 1))
    assert gradients.inputs[0].tolist() == [[1, 1]] and gradients.parameters["weight"].tolist() == [[1, 1]]
    assert isinstance(box.call("make"), Unknown) and type(box.call("make")).__name__ == "Linear"
    with pytest.raises(WireError, match="object cannot be sent"):
        box.call("f", object())


def test_an_error_comes_with_its_words_and_line(box):
    error = box.load("def f():\n    x = 1\n    raise ValueError('no ' + 'good')\n1 / 0")
    assert (error.kind, error.words, error.line) == ("ZeroDivisionError", "division by zero", " in line 4, `1 / 0`")
    with pytest.raises(StudentError) as caught:
        box.call("f")
    assert (caught.value.words, caught.value.line) == ("no good", " in line 3, `raise ValueError('no ' + 'good')`")
    assert not caught.value.unwritten
    box.load("def g():\n    raise NotImplementedError()")
    with pytest.raises(StudentError) as caught:
        box.call("g")
    assert caught.value.unwritten
    with pytest.raises(StudentError) as caught:
        box.call("nobody")
    assert caught.value.kind == "NameError"


def test_a_copy_forgets_and_its_box_goes_on(box):
    box.load("import os, torch\nseen = []\ndef f(x): seen.append(x); return len(seen)\ndef out(): os._exit(0)")
    for _ in range(2):
        with box.copy(5):
            assert [box.call("f", 1), box.call("f", 1)] == [1, 2]
    with box.copy(5):
        with pytest.raises(BoxEnded, match="exit"):
            box.call("out")
        assert (box.copy_ended, box.ended) == ("exit", None)
        with pytest.raises(BoxEnded):
            box.call("f", 1)
    assert box.call("f", 1) == 1


def test_what_is_printed_goes_nowhere_however_much_it_is(box):
    flood = "for _ in range(100): print('x' * (1 << 20), file=stream)"
    assert box.load(f"import sys\nfor stream in (sys.stdout, sys.stderr):\n    {flood}") is None and box.ended is None


def test_forbidden_names_are_found_before_anything_runs(box):
    sources = [
        "import torch.nn.functional as F\ndef f(x): return F.softmax(x)",
        "def softmax(x): return x",
        "%%time\nfrom torch import softmax as s",
        "def f(x, *, softmax=False): return x if softmax else -x",
    ]
    found = [["softmax", 2, "def f(x): return F.softmax(x)"], ["softmax", 2, "from torch import softmax as s"]]
    assert box.uses(sources, [["softmax"]] * 4) == [found[0], None, found[1], None]


# limits -----------------------------------------------------------------------------------------------------


FORKS = "import os, time\nfor _ in range(9):\n    if os.fork() == 0:\n        time.sleep(9)\n        os._exit(0)\ntime.sleep(9)"


@needs_sandbox
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("while True: pass", "time"),
        ("import time\ntime.sleep(99)", "time"),
        ("hoard = []\nwhile True: hoard.append(bytearray(b'x') * (50 << 20))", "memory"),
        (FORKS, "processes"),
        ("import os\nos.kill(os.getpid(), 9)", "exit"),
    ],
)
def test_who_breaks_a_limit_is_ended_and_told_why(source, reason):
    limits = Limits(memory=(1 if reason == "memory" else 4) << 30, processes=6)
    with Zygote(limits=limits) as zygote, zygote.box() as box:
        try:
            error = box.load(source, seconds=1 if reason == "time" else 5)
        except BoxEnded as end:
            assert end.reason == reason
            with pytest.raises(BoxEnded):
                box.load("1")
        else:  # the kernel was faster
            assert (reason, error.kind) == ("memory", "MemoryError")


def test_a_limit_that_is_broken_when_the_judge_asks_for_the_time_ends_the_box(monkeypatch):
    looks = iter(["processes"])
    monkeypatch.setattr(first_process.Watch, "look", lambda watch: next(looks, ""))
    judge, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with judge, control, subprocess.Popen(["sleep", "0.5"]) as box:
        judge.send(b"used 0")  # before the next look is due: on a busy machine the judge asks more often than that
        assert first_process.Watch(box.pid, control, {}).until_it_ends() == "processes"
        assert judge.recv(64).startswith(b"used ")


THREADS = (
    "import threading, time\nfor _ in range(5): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
)


@needs_sandbox
def test_what_runs_in_one_box_counts_for_no_other():
    limits = Limits(processes=8)
    with contextlib.ExitStack() as stack:
        boxes = [stack.enter_context(stack.enter_context(Zygote(limits=limits)).box()) for _ in range(6)]
        for box in boxes:  # of one user they would be more than the kernel lets be, which is four times the limit
            assert box.load(THREADS) is None
            with box.copy(5):
                assert box.load("1") is None


def test_a_clock_counts_processor_time_and_waits_longer(zygote):
    """As on a machine so busy that the box gets half a core, or less."""
    with zygote.box() as box:
        stop, worker = threading.Event(), None

        def slow_down(process):
            while not stop.is_set():
                process.suspend(), time.sleep(0.05), process.resume(), time.sleep(0.05)

        box.load(
            "import time\ndef f():\n    end = time.process_time() + .8\n    while time.process_time() < end: pass\n    return 1"
        )
        inside = max(psutil.Process().children(recursive=True), key=lambda process: process.create_time())
        worker = threading.Thread(target=slow_down, args=(inside,))
        worker.start()
        try:
            start = time.monotonic()
            assert box.call("f", seconds=1) == 1 and time.monotonic() - start > 1
        finally:
            stop.set(), worker.join()


# life and death ---------------------------------------------------------------------------------------------


@needs_sandbox
def test_a_zygote_that_was_killed_is_replaced():
    with Zygote() as zygote:
        box = zygote.box()
        inside = psutil.Process(zygote._process.pid).children(recursive=True)
        for process in inside:
            process.kill()
        psutil.wait_procs(inside)
        with pytest.raises(SandboxError):
            box.load("1")
        with zygote.box() as box:
            assert box.load("1") is None


@needs_sandbox
def test_the_sandbox_ends_with_whoever_holds_it():
    program = "from course_lib.grading.sandbox import Zygote\nz = Zygote(); b = z.box(); print(z._process.pid, flush=True)\nb.load('while True: pass', seconds=99)"
    holder = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    inside = psutil.Process(int(holder.stdout.readline()))
    everyone = [inside, *inside.children(recursive=True)]
    holder.kill(), holder.wait(), holder.stdout.close()
    assert psutil.wait_procs(everyone, timeout=10)[1] == []


def test_the_instructors_folder_is_covered_even_among_pythons_libraries(tmp_path, monkeypatch):
    for name in ("named", "of-this-run", "other"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(tmp_path / "named"))
    covered = bubblewrap.covered([tmp_path / "of-this-run"], [tmp_path])
    assert {path.name for path in covered} == {"named", "of-this-run"}


def test_without_walls_the_same_answers_come():
    with Zygote(trusted=True, limits=Limits()) as zygote, zygote.box() as box:
        assert box.load("print('hi')\ndef f(x): return x + 1\ndef g():\n    while True: pass") is None
        with box.copy(20):
            assert box.call("f", torch.ones(2)).tolist() == [2, 2]
        with pytest.raises(BoxEnded, match="time"):
            box.call("g", seconds=0.5)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("bwrap: No permissions to create a new namespace", "sudo sysctl"),
        ("bwrap: Can't find source path /x: Permission denied", "The sandbox does not start: bwrap"),
        ("bwrap: Unknown option --disable-userns", "bubblewrap 0.8 or newer"),
        ("", "ended without a word"),
    ],
)
def test_why_there_is_no_sandbox_is_said_with_what_to_do(said, wanted):
    assert wanted in sandbox._why_not(said)


def test_where_there_is_no_bubblewrap_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    sandbox_problem.cache_clear()
    try:
        assert "sudo apt-get install bubblewrap" in sandbox_problem()
    finally:
        sandbox_problem.cache_clear()
    monkeypatch.setattr(bubblewrap.sys, "platform", "darwin")
    assert bubblewrap.problem() == "The sandbox needs Linux, and this is darwin"


def test_there_is_a_filter_for_two_processors_and_for_no_other():
    assert len(seccomp.program("x86_64")) == len(seccomp.program("aarch64")) and len(seccomp.program("x86_64")) % 8 == 0
    with pytest.raises(OSError, match="there is no filter of system calls for riscv64"):
        seccomp.program("riscv64")
