import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

import course_lib
from course_lib.grading import bubblewrap, sandbox
from course_lib.grading.boxed.worker import OWN_ERROR, TOO_LARGE
from course_lib.grading.sandbox import BoxEnded, Handle, Limits, SandboxError, StudentError, Zygote, sandbox_problem

pytestmark = pytest.mark.needs("sandbox")

HELPERS = """
import os, stat
def is_pipe(number):
    try: return stat.S_ISFIFO(os.fstat(number).st_mode)
    except OSError: return False
"""
FORGE = """
import sys, torch
frame = sys._getframe()
while frame:
    worker = frame.f_locals.get("self")
    if hasattr(worker, "answer"):
        type(worker).answer = lambda self, request: {reply}
    frame = frame.f_back
"""


def run(box, source, **options):
    """Runs a function `f` that the source defines."""
    assert box.load(source) is None
    return box.call("f", **options)


def expect_end(box, reason, source, seconds=20, **options):
    with pytest.raises(BoxEnded) as ended:
        run(box, source, seconds=seconds, **options)
    assert ended.value.reason == box.ended == reason


def inside(zygote):
    """Bubblewrap's own process, the one that waits for the zygote, the zygote, and all processes of boxes."""
    return psutil.Process(zygote._process.process.pid).children(recursive=True)


def processes(zygote):
    """The processes of all boxes."""
    return [process for process in inside(zygote)[3:] if is_alive(process)]


def is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class TestCalls:
    def test_tensors_go_in_and_come_out(self, box):
        box.load("def f(x, *, scale): return [scale * x, x.sum().item(), None]")
        doubled, total, nothing = box.call("f", torch.ones(2, 3), scale=2)
        assert torch.equal(doubled, torch.full((2, 3), 2.0)) and total == 6.0 and nothing is None

    def test_what_a_function_overwrites_is_overwritten_here(self, box):
        box.load("def f(a, b, c):\n    a += 1\n    b[0] = 9\n    c.resize_(3)")
        a, b, c, untouched = torch.zeros(2), np.zeros(2), torch.zeros(2), torch.zeros(2)
        view = a[:]
        box.call("f", a, b, c=c)
        assert a.tolist() == view.tolist() == [1, 1] and b.tolist() == [9, 0] and c.shape == (3,)
        assert untouched.tolist() == [0, 0]

    def test_a_module_stays_and_is_trained_there(self, box):
        box.load(
            "import torch\nfrom torch import nn\n"
            "def train(model, x, y, steps):\n"
            "    optimizer = torch.optim.Adam(model.parameters(), 0.1)\n"
            "    for _ in range(steps):\n"
            "        optimizer.zero_grad(); loss = (model(x) - y).square().mean(); loss.backward(); optimizer.step()\n"
            "    return loss.item()"
        )
        box.load("Linear = nn.Linear")
        model = box.call("Linear", 2, 1, keep=True)
        assert isinstance(model, Handle)
        x = torch.randn(32, 2)
        y = x @ torch.tensor([[1.0], [-2.0]]) + 3
        assert box.call("train", model, x, y, 200, seconds=30) < 1e-2
        torch.testing.assert_close(box.call(model, x), y, atol=0.3, rtol=0.1)
        box.set_parameters(model, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
        assert box.call(model, torch.ones(1, 2), method="forward").item() == 2
        gradients = box.gradients(model, torch.tensor([[3.0, 4.0]]), output_gradient=torch.ones(1, 1))
        assert gradients.inputs[0].tolist() == [[1, 1]] and gradients.parameters["weight"].tolist() == [[3, 4]]
        assert box.parameters(model)["bias"].tolist() == [0]

    def test_an_error_comes_back_as_its_kind_only(self, box):
        box.load("def f(x): raise ValueError(f'the hidden input is {x}')")
        with pytest.raises(StudentError) as error:
            box.call("f", 42)
        assert error.value.kind == "ValueError" and "42" not in str(error.value)
        assert box.load("1 +") == "SyntaxError"
        assert box.ended is None

    def test_a_result_that_fails_while_it_is_sent_is_an_error_and_not_the_end(self, box):
        box.load("class Result(list):\n    def __iter__(self): raise LookupError")
        with pytest.raises(StudentError) as error:
            box.call("Result")
        assert error.value.kind == "LookupError" and box.ended is None

    def test_an_answer_that_is_too_large_is_an_error(self, zygote):
        with zygote.box(Limits(reply_bytes=1000)) as box:
            box.load("import torch\ndef f(n): return torch.zeros(n, dtype=torch.uint8)")
            assert len(box.call("f", 1000)) == 1000
            with pytest.raises(StudentError) as error:
                box.call("f", 1001)
            assert error.value.kind == TOO_LARGE

    def test_what_was_printed_is_kept_up_to_a_limit(self, zygote):
        with zygote.box(Limits(log_bytes=1000)) as box:
            box.load("import sys\nprint('out')\nprint('error', file=sys.stderr)\nfor _ in range(10**5): print('more')")
        assert len(box.log) == 1000 and box.log.startswith(b"out\nerror\nmore\n")

    def test_nobody_types_an_answer(self, box):
        assert box.load("input()") == "EOFError"

    def test_what_goes_through_a_stream_of_the_students_own_is_kept(self, zygote):
        with zygote.box() as box:
            box.load("import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint('through a buffer')")
            assert box.ended is None
        assert box.log == b"through a buffer\n"

    @pytest.mark.parametrize("stream", ["None", "open('/tmp/closed', 'w')", "Broken()"])
    def test_a_stream_that_is_broken_costs_nothing(self, box, stream):
        assert box.load("class Broken:\n    def flush(self): raise SystemExit") is None
        assert box.load(f"import sys\nsys.stdout = sys.stderr = {stream}\nif sys.stdout: sys.stdout.close()") in (
            None,
            "AttributeError",  # there is no close
        )
        assert run(box, "def f(): return 1") == 1

    def test_each_box_starts_from_the_same_seeds(self, zygote):
        source = (
            "import random, numpy, torch\ndef f(): return random.random(), numpy.random.rand(), torch.rand(1).item()"
        )
        wanted = (
            random.Random(0).random(),
            np.random.RandomState(0).rand(),
            torch.rand(1, generator=torch.Generator().manual_seed(0)).item(),
        )
        for _ in range(2):
            with zygote.box() as box:
                assert tuple(map(float, run(box, source))) == wanted

    def test_hashes_are_the_same_in_each_grading(self, box):
        assert run(box, "import sys\ndef f(): return sys.flags.hash_randomization") == 0

    def test_a_box_knows_nothing_of_another(self, zygote):
        with zygote.box() as one, zygote.box() as other:
            one.load("import builtins\nbuiltins.secret = 1\nopen('/tmp/secret', 'w').write('1')")
            assert run(other, "import os\ndef f(): return hasattr(__builtins__, 'secret'), os.listdir('/tmp')") == (
                False,
                [],
            )


class TestWalls:
    """What a student's code cannot reach; each wall is also tried alone, in tests/grading/boxed."""

    @pytest.mark.parametrize("kind", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_ALG", "AF_VSOCK"])
    def test_no_sockets(self, box, kind):
        source = f"import socket\ndef f(): socket.socket(socket.{kind}, socket.SOCK_DGRAM)"
        with pytest.raises(StudentError) as error:
            run(box, source)
        assert error.value.kind == "PermissionError"

    def test_no_network_even_without_the_filter(self, zygote, box):
        """The namespace of the network holds nothing but a loopback that is down."""
        namespace = os.readlink("/proc/self/ns/net")
        of_boxes = {os.readlink(f"/proc/{process.pid}/ns/net") for process in processes(zygote)}
        assert box.ended is None and of_boxes and namespace not in of_boxes

    @pytest.mark.parametrize(
        "call",
        [
            "unshare(0x10000000)",
            "setns(0, 0)",
            "mount(b'none', b'/tmp', b'tmpfs', 0, None)",
            "umount2(b'/tmp', 2)",
            "chroot(b'/tmp')",
            "ptrace(0, 0, 0, 0)",
            "personality(0xffffffff)",
            "memfd_create(b'x', 0)",
            "syscall(250, 0, 0)",
            "shmget(0, 4096, 0o1600)",
        ],
    )
    def test_no_dangerous_calls(self, box, call):
        source = (
            "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            f"def f(): return libc.{call}, errno.errorcode.get(ctypes.get_errno())"
        )
        assert run(box, source) == (-1, "EPERM")

    def test_nothing_is_writable_but_tmp(self, box):
        source = """
import os
def f():
    found = []
    for folder, folders, files in os.walk("/"):
        if os.access(folder, os.W_OK):
            found.append(folder)
        if folder.count("/") >= 5:
            folders.clear()
    return sorted(found)
"""
        assert run(box, source, seconds=20) == ["/dev/shm", "/tmp"]

    def test_only_the_libraries_are_there(self, box):
        top = set(run(box, "import os\ndef f(): return os.listdir('/')"))
        ours = Path(course_lib.__file__).parents[1]
        assert not top & {"home", "root", "var", "run", "mnt", "srv"} - {sys.prefix.split("/")[1], *bases()}
        assert run(box, f"def f(): return os.path.exists({str(ours / 'notebooks')!r})") is False
        assert run(box, f"def f(): return os.path.exists({str(ours / 'course_lib')!r})") is False

    def test_the_course_cannot_be_imported(self, box):
        assert box.load("import course_lib") == "ModuleNotFoundError"

    def test_a_hidden_folder_among_the_libraries_is_empty(self, box):
        folder = str(bubblewrap.inside(Path(pytest.__file__).parent))
        assert run(box, f"import os\ndef f(): return os.listdir({folder!r})") == []

    def test_the_environment_is_not_the_judges(self, zygote, monkeypatch):
        monkeypatch.setenv("COURSE_SECRET", "42")
        with zygote.box() as box:
            names = run(box, "import os\ndef f(): return sorted(os.environ)")
            assert psutil.Process(zygote._process.process.pid).environ() == {}
        assert "COURSE_SECRET" not in names and not {"COURSE_HOME", "SSH_AUTH_SOCK", "OLDPWD"} & set(names)

    def test_a_box_is_alone_and_nobody(self, box):
        source = """
import os
def f():
    return os.getpid(), os.getppid(), os.getsid(0), os.getuid() > 0, os.geteuid() > 0, os.listdir("/proc")
"""
        assert run(box, source) == (1, 0, 1, True, True, [])
        assert run(box, "import os\ndef f(): return os.uname().nodename") == "box"

    def test_a_box_has_no_privileges(self, box):
        source = """
import ctypes
def f():
    libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[1] * 6)
    bounding = [number for number in range(64) if libc.prctl(23, number, 0, 0, 0) == 1]
    return libc.capget(header, sets), list(sets), bounding, libc.prctl(39, 0, 0, 0, 0)
"""
        # capget(2): effective, permitted, inheritable; prctl(2): the bounding set; no_new_privs
        assert run(box, source) == (0, [0] * 6, [], 1)

    def test_a_box_goes_first_when_the_machine_runs_out_of_memory(self, zygote, box):
        wait_for(lambda: len(processes(zygote)) == 1)
        (inner,) = processes(zygote)
        assert box.ended is None and Path(f"/proc/{inner.pid}/oom_score_adj").read_text().strip() == "1000"

    def test_a_box_holds_its_pipes_and_nothing_else(self, box):
        source = HELPERS + "def f(): return [(n, is_pipe(n)) for n in range(128) if is_open(n)]\n"
        source += "def is_open(n):\n    try: os.fstat(n); return True\n    except OSError: return False"
        numbers = run(box, source)
        assert numbers[0] == (0, False) and [pipe for _, pipe in numbers[1:]] == [True] * 4

    def test_devices_are_harmless(self, box):
        assert set(run(box, "import os\ndef f(): return os.listdir('/dev')")) == {"null", "random", "urandom", "shm"}

    def test_threads_and_processes_are_few(self, zygote):
        source = """
import threading, time
def f():
    count = 0
    try:
        while True:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    except RuntimeError:
        return count
"""
        with zygote.box(Limits(processes=8)) as one, zygote.box(Limits(processes=8)) as other:
            assert run(one, source) == run(other, source) == 7  # each box counts for itself

    def test_torch_may_use_threads_within_the_limits(self, box):
        source = """
import torch
def f():
    torch.set_num_threads(4)
    return (torch.ones(300, 300) @ torch.ones(300, 300)).sum()
"""
        assert run(box, source, seconds=20).item() == 300**3


def bases():
    return {Path(path).parts[1] for path in (sys.base_prefix, sys.prefix, Path(sys.executable).resolve())}


class TestEnds:
    def test_wall_time(self, box):
        start = time.monotonic()
        expect_end(box, "time", "import time\ndef f(): time.sleep(60)", seconds=0.3)
        assert time.monotonic() - start < 10
        for again in (lambda: box.load("x = 1"), lambda: box.call("f"), lambda: box.parameters(Handle(0))):
            with pytest.raises(BoxEnded) as ended:
                again()
            assert ended.value.reason == "time"

    def test_signals_are_of_no_use(self, box):
        source = """
import signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
def f():
    while True:
        try: time.sleep(60)
        except BaseException: pass
"""
        expect_end(box, "time", source, seconds=0.3)

    def test_exit(self, box):
        expect_end(box, "exit", "import os\ndef f(): os._exit(0)")

    def test_a_crash(self, box):
        expect_end(box, "exit", "import ctypes\ndef f(): ctypes.string_at(0)")

    def test_a_box_that_kills_all_it_can_kills_nothing(self, box):
        assert run(box, "import os\ndef f():\n    os.kill(os.getpid(), 9)\n    return 'alive'") == "alive"

    def test_exit_at_load(self, box):
        with pytest.raises(BoxEnded) as ended:
            box.load("import os; os._exit(0)")
        assert ended.value.reason == "exit"

    def test_cpu_time_of_all_processes_together(self, zygote):
        source = """
import os, time
def f():
    if os.fork() == 0 or os.fork() == 0:
        while True:
            pass
    time.sleep(60)
"""
        with zygote.box(Limits(cpu_seconds=0.5)) as box:
            expect_end(box, "cpu", source)

    def test_memory_of_all_processes_together(self, zygote):
        source = """
import os, time
def f():
    for _ in range(4):
        if os.fork() == 0:
            keep = b"x" * (100 << 20)
            time.sleep(60)
    time.sleep(60)
"""
        with zygote.box(Limits(memory=1200 << 20)) as box:  # none of them comes near this
            expect_end(box, "memory", source)

    def test_a_large_allocation_is_an_error_and_not_the_end(self, zygote):
        with zygote.box(Limits(memory=1 << 30)) as box:
            with pytest.raises(StudentError) as error:
                run(box, "def f(): return len(bytearray(2 << 30))")
            assert error.value.kind == "MemoryError" and box.ended is None

    @pytest.mark.parametrize(
        "noise",
        [
            "b'\\xff' * 100",
            "b'\\x00' * 8",
            "struct.pack('<II', 4, 0) + b'null'",
            "struct.pack('<II', 2, 0) + b'[]'",
            "struct.pack('<II', 1 << 31, 1 << 31)",
            "struct.pack('<II', 20, 0) + b'[' * 20",
            "struct.pack('<II', 11, 0) + b'{\"handle\":1}'[:11]",
            'struct.pack(\'<II\', 29, 0) + b\'{"dict":[["value",1],["more",1]]}\'[:29]',
        ],
    )
    def test_bytes_that_mean_nothing(self, box, noise):
        source = HELPERS + "import struct, time\ndef f():\n    for n in range(3, 10):\n        if is_pipe(n):\n"
        source += f"            try: os.write(n, {noise})\n            except OSError: pass\n    time.sleep(60)"
        expect_end(box, "protocol", source)

    @pytest.mark.parametrize("changed", ["{0: torch.ones(2)}", "{'x': 1}", "{7: torch.ones(1)}", "{-1: torch.ones(1)}"])
    def test_changes_that_cannot_be(self, box, changed):
        box.load(FORGE.format(reply=f"{{'value': None, 'changed': {changed}}}"))
        x = torch.zeros(1, dtype=torch.int64)
        with pytest.raises(BoxEnded) as ended:
            box.call("f", x)
        assert ended.value.reason == "protocol" and x.tolist() == [0]

    def test_a_box_that_does_not_listen(self, box):
        """A request larger than a pipe holds, to a box that reads no more."""
        assert box.load("import threading, time\ndef f(x): time.sleep(60)") is None
        source = HELPERS + "import time\ntime.sleep(60)"
        start = time.monotonic()
        with pytest.raises(BoxEnded):
            box.load(source + "#" * (1 << 20), seconds=0.3)
        assert time.monotonic() - start < 10

    def test_a_box_that_closes_its_pipes(self, box, monkeypatch):
        monkeypatch.setattr(sandbox, "GRACE", 0.2)
        expect_end(box, "protocol", "import os, time\ndef f():\n    os.closerange(3, 128)\n    time.sleep(60)")

    def test_daemons_end_with_their_box(self, zygote):
        wait_for(lambda: not processes(zygote))
        box = zygote.box()
        source = """
import os, signal, time
def f():
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 128)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
            os._exit(0)
    time.sleep(0.2)
"""
        run(box, source)
        assert len(processes(zygote)) == 4  # the box, three daemons
        box.close()
        assert not processes(zygote) and box.ended == "closed"

    def test_all_boxes_end_with_their_zygote_and_that_is_no_fault_of_theirs(self, zygote):
        with zygote.box() as box, zygote.box() as other:
            box.load("import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)")
            everything = inside(zygote)
            assert len(everything) == 6
            everything[2].kill()
            assert psutil.wait_procs(everything, timeout=20)[1] == []
            for lost in (box, other):
                with pytest.raises(SandboxError, match="all its boxes"):
                    lost.load("x = 1")

    def test_a_closed_box_says_so(self, zygote):
        box = zygote.box()
        box.close()
        box.close()
        with pytest.raises(BoxEnded):
            box.call("f")

    def test_boxes_leave_nothing_behind(self, zygote):
        def used():
            wait_for(lambda: not processes(zygote))
            return len(os.listdir("/proc/self/fd")), threading.active_count()

        with zygote.box() as box:
            box.load("x = 1")
        before = used()
        for _ in range(5):
            with zygote.box() as box:
                box.load("x = 1")
        with zygote.box() as box, pytest.raises(BoxEnded):
            box.load("import os; os._exit(1)")
        assert used() == before


class TestJudgeDies:
    JUDGE = """
import sys, time
from course_lib.grading.sandbox import Zygote, SandboxProcess
zygote = Zygote()
box = zygote.box()
box.load("import os, signal, time\\nif os.fork() == 0:\\n    os.setsid()\\n    time.sleep(600)")
print(zygote._process.process.pid, flush=True)
time.sleep(600)
"""

    def test_all_ends_with_the_judge(self):
        judge = subprocess.Popen([sys.executable, "-c", self.JUDGE], stdout=subprocess.PIPE, text=True)
        try:
            sandbox_process = psutil.Process(int(judge.stdout.readline()))
            everything = [sandbox_process, *sandbox_process.children(recursive=True)]
            assert len(everything) >= 6
            judge.send_signal(signal.SIGKILL)
            assert psutil.wait_procs(everything, timeout=20)[1] == []
        finally:
            judge.kill()
            judge.wait()
            judge.stdout.close()

    def test_a_fork_of_the_judge_does_not_keep_a_box_alive(self, zygote):
        wait_for(lambda: not processes(zygote))
        box = zygote.box()
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        try:
            box._body.lifeline.close()  # as if the judge had died
            wait_for(lambda: not processes(zygote))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


class TestZygote:
    def test_where_a_wall_cannot_be_built_there_is_no_box(self, zygote):
        with pytest.raises(SandboxError, match="makes no box"):
            zygote.box(Limits(disk=-1))  # no such file system
        with zygote.box() as box:
            assert run(box, "def f(): return 1") == 1

    def test_a_zygote_that_was_killed_is_replaced_and_the_new_one_hides_the_same_folders(self, zygote):
        before, everything = zygote._process, inside(zygote)
        everything[0].kill()
        psutil.wait_procs(everything, timeout=20)
        with zygote.box() as box:
            assert zygote._process is not before
            folder = str(bubblewrap.inside(Path(pytest.__file__).parent))
            assert run(box, f"import os\ndef f(): return os.listdir({folder!r})") == []

    def test_a_box_that_cannot_be_made_is_tried_again_a_few_times(self, zygote, monkeypatch):
        tried, whole = [], sandbox.WalledBody

        def failing(process, limits):
            tried.append(process)
            if len(tried) < sandbox.ATTEMPTS:
                raise OSError("not now")
            return whole(process, limits)

        monkeypatch.setattr(sandbox, "WalledBody", failing)
        with zygote.box() as box:
            assert run(box, "def f(): return 1") == 1
        assert tried == [zygote._process] * sandbox.ATTEMPTS  # which was alive, and stayed
        monkeypatch.setattr(sandbox, "ATTEMPTS", sandbox.ATTEMPTS + 2)
        tried.clear()
        with zygote.box():
            assert len(tried) == sandbox.ATTEMPTS

    def test_what_cannot_be_made_in_the_end_is_said(self, zygote, monkeypatch):
        def failing(process, limits):
            raise OSError("not now")

        monkeypatch.setattr(sandbox, "WalledBody", failing)
        monkeypatch.setattr(zygote._process, "complaint", lambda: "")
        with pytest.raises(SandboxError, match="^The sandbox makes no box: not now$"):
            zygote.box()

    def test_a_closed_zygote_makes_no_box(self, zygote):
        other = object.__new__(Zygote)
        other.__dict__ = {**zygote.__dict__, "_process": None, "_lock": threading.Lock()}
        with pytest.raises(SandboxError, match="closed"):
            other.box()


class TestProblems:
    @pytest.fixture
    def problem(self):
        return sandbox_problem.__wrapped__

    def test_there_is_none_here(self, problem):
        assert problem() is None

    def test_another_system(self, problem, monkeypatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        assert problem() == "The sandbox needs Linux, and this is darwin."

    def test_no_bubblewrap(self, problem, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert problem() == "There is no bubblewrap here; install bubblewrap: sudo apt-get install bubblewrap"

    @pytest.mark.parametrize(
        ("said", "wanted"),
        [
            ("bwrap: No permissions to create new namespace, likely because ...", "allow user namespaces: sudo sysctl"),
            ("bwrap: setting up uid map: Permission denied", "allow user namespaces: sudo sysctl"),
            ("unshare: Operation not permitted", "allow user namespaces: sudo sysctl"),
            ("bwrap: Can't find source path /lib: Permission denied", "The sandbox does not start: bwrap: Can't find"),
            ("bwrap: Unknown option --perms", "The sandbox does not start: bwrap: Unknown option --perms"),
        ],
    )
    def test_what_bubblewrap_says(self, problem, monkeypatch, tmp_path, said, wanted):
        fake = tmp_path / "bwrap"
        fake.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(shutil, "which", lambda name: str(fake) if name == "bwrap" else "/usr/bin/setpriv")
        assert wanted in problem() and said in problem()

    def test_a_wall_that_cannot_be_built_is_told(self, problem, monkeypatch):
        whole = sandbox.bubblewrap.command

        def without_shared_memory(*arguments, **options):
            command = whole(*arguments, **options)
            at = command.index("/dev/shm")
            return command[: at - 3] + command[at + 1 :]

        monkeypatch.setattr(sandbox.bubblewrap, "command", without_shared_memory)
        assert "mount: No such file or directory" in problem()

    def test_a_zygote_refuses_with_the_sentence(self, monkeypatch):
        monkeypatch.setattr(sandbox, "sandbox_problem", lambda: "There is no bubblewrap here; install it")
        with pytest.raises(SandboxError, match="install it"):
            Zygote()


class TestTrusted:
    """The same worker without walls."""

    def test_it_answers_as_a_box_does_and_ends_with_what_it_started(self):
        with Zygote(trusted=True) as zygote, zygote.box(Limits(open_files=77)) as box:
            assert run(box, "import resource\ndef f(): return resource.getrlimit(resource.RLIMIT_NOFILE)") == (77, 77)
            box.load("import torch, subprocess, sys, time\nprint('hello')\ndef f(x): x += 1; return x * 2")
            x = torch.ones(2)
            assert box.call("f", x).tolist() == [4, 4] and x.tolist() == [2, 2]
            box.load("def start(): return subprocess.Popen(['sleep', '600'], start_new_session=True).pid")
            child = psutil.Process(box.call("start"))
            assert box.load("raise ValueError") == "ValueError"
            assert box.load("input()") == "EOFError"  # it does not read what the judge asks
            with pytest.raises(BoxEnded) as ended:
                box.load("while True: pass", seconds=0.3)
            assert ended.value.reason == "time"
        assert box.log == b"hello\n"
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE

    def test_it_needs_no_sandbox(self, monkeypatch):
        monkeypatch.setattr(sandbox, "sandbox_problem", lambda: "none here")
        Zygote(trusted=True).close()


def test_kinds_of_errors_are_a_closed_list(box):
    """A forged kind could carry hidden inputs to whoever reads the report."""
    box.load(FORGE.format(reply="{'error': 'the hidden input is 42'}"))
    with pytest.raises(StudentError) as error:
        box.call("f")
    assert error.value.kind == OWN_ERROR
