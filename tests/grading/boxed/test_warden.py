import contextlib
import ctypes
import mmap
import os
import platform
import signal
import socket
import threading
import time
from pathlib import Path

import psutil
import pytest

from course_lib.grading.boxed import warden
from course_lib.grading.boxed.limits import LOST, Limits
from course_lib.grading.boxed.warden import (
    Meter,
    Process,
    Usage,
    Warden,
    excess,
    number_in_proc,
    read_fields,
    read_processes,
)

pytestmark = pytest.mark.needs("linux")


@pytest.fixture
def start():
    """Starts a function in a process that leads a group of its own, so that all it starts can be ended."""
    leaders = []

    def begin(function):
        leader = os.fork()
        if leader == 0:
            try:
                os.setpgid(0, 0)
                function()
            finally:
                os._exit(0)
        with contextlib.suppress(OSError):  # it may have ended
            os.setpgid(leader, leader)  # whoever comes first: there is a group when it is to be ended
        leaders.append(leader)
        return leader

    yield begin
    for leader in leaders:
        try:
            os.killpg(leader, signal.SIGKILL)
            os.waitpid(leader, 0)
        except OSError:
            pass


def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def family_of(number):
    """So many generations of one process each."""

    def begin():
        for _ in range(number - 1):
            if os.fork():
                break
        signal.pause()

    return begin


def test_all_descendants_are_counted(start):
    meter = Meter(start(family_of(4)))
    wait_until(lambda: meter.read().processes == 4)


def test_memory_of_all_processes_is_added_up(start):
    def hoard():
        if os.fork() == 0:
            pass
        keep = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        keep.write(b"x" * (32 << 20))
        signal.pause()

    alone = Meter(start(signal.pause))
    two = Meter(start(hoard))
    wait_until(lambda: two.read().memory - 2 * alone.read().memory > 60 << 20)


def test_memory_of_a_process_whose_first_thread_has_ended_still_counts(start):
    end_of_this_thread = {"x86_64": 60, "aarch64": 93}[platform.machine()]

    def hoard():
        keep = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        threading.Thread(target=time.sleep, args=(60,)).start()
        keep.write(b"x" * (64 << 20))
        ctypes.CDLL(None).syscall(end_of_this_thread, 0)

    process = start(hoard)
    wait_until(lambda: read_fields(f"/proc/{process}/stat")[:1] == ["Z"])
    assert Meter(process).read().memory > 60 << 20


def test_cpu_time_of_all_processes_is_added_up(start):
    def both():
        os.fork()
        work(0.2)
        signal.pause()

    meter = Meter(start(both))
    wait_until(lambda: meter.read().cpu_seconds >= 0.38)
    assert meter.read().cpu_seconds < 1


def test_cpu_time_of_children_that_are_gone_and_that_nobody_waited_for_counts(start):
    over, say_over = os.pipe()

    def leave_it_to_a_child():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if os.fork() == 0:
            work(0.4)
            os.read(over, 1)  # until the meter has seen it
            os._exit(0)
        signal.pause()

    meter = Meter(start(leave_it_to_a_child))
    wait_until(lambda: meter.read().cpu_seconds > 0.38)
    os.write(say_over, b"!")
    wait_until(lambda: meter.read().processes == 1)
    assert meter.read().cpu_seconds > 0.38


def test_cpu_time_of_short_children_that_somebody_waited_for_counts_beside_its_own(start):
    reading, writing = os.pipe()

    def one_after_the_other():
        work(0.3)
        for _ in range(10):
            if os.fork() == 0:
                work(0.03)
                os._exit(0)
            os.wait()
        os.write(writing, b"done")
        signal.pause()

    process = start(one_after_the_other)
    os.read(reading, 4)
    assert Meter(process).read().cpu_seconds >= 0.58


def test_memory_that_comes_from_files_does_not_count(start, tmp_path):
    (tmp_path / "large").write_bytes(b"x" * (32 << 20))
    reading, writing = os.pipe()

    def read_all():
        with open(tmp_path / "large", "rb") as file:
            keep = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        os.write(writing, str(len(keep[::4096])).encode())
        signal.pause()

    alone, two = Meter(start(signal.pause)), Meter(start(read_all))
    assert os.read(reading, 10) == b"8192"
    assert two.read().memory - alone.read().memory < 16 << 20


def test_a_process_with_the_number_of_one_that_is_gone_is_another():
    first, other = 2**22 + 1, 2**22 + 2  # numbers that no process has

    def processes(start, own):
        mother = Process(parent=0, start="1", own=1.0, children=0.0)
        return {first: mother, other: Process(parent=first, start=start, own=own, children=0.0)}

    meter = Meter(first)
    assert meter.read(processes("2", 2.0)).cpu_seconds == 3.0
    assert meter.read(processes("2", 2.5)).cpu_seconds == 3.5
    assert meter.read(processes("3", 0.5)).cpu_seconds == 4.0


def test_processes_of_one_parent_are_told_apart_by_their_start(start):
    earlier = start(signal.pause)
    time.sleep(5 * warden.TICK)
    later = start(signal.pause)
    found = read_processes()
    assert found[earlier].parent == found[later].parent == os.getpid()
    assert int(found[earlier].start) < int(found[later].start)


def test_a_process_may_have_any_name(start):
    def rename():
        with open("/proc/self/comm", "w") as stream:
            stream.write(") R 1 2 (")
        os.fork()
        signal.pause()

    meter = Meter(start(rename))
    wait_until(lambda: meter.read().processes == 2)


def test_what_is_gone_uses_nothing():
    assert Meter(2**22 + 1).read() == Usage(processes=0, memory=0, cpu_seconds=0)


LIMITS = Limits(memory=100, cpu_seconds=10, processes=5)


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        (Usage(processes=5, memory=100, cpu_seconds=10), None),
        (Usage(processes=6, memory=100, cpu_seconds=10), "processes"),
        (Usage(processes=5, memory=101, cpu_seconds=10), "memory"),
        (Usage(processes=5, memory=100, cpu_seconds=10.1), "cpu"),
    ],
)
def test_a_limit_is_broken_by_more_than_it(usage, wanted):
    assert excess(usage, LIMITS) == wanted


def watched(functions, limits, in_group):
    """The judge's ends of the lifelines of processes that one warden watches, and of what asks it for another."""
    lines = [socket.socketpair() for _ in functions]
    ask, control = socket.socketpair()

    def be_warden():
        watching = Warden(control.fileno())
        for function, (ours, theirs) in zip(functions, lines, strict=True):
            ours.close()
            box = os.fork()
            if box == 0:
                control.close()
                for _, line in lines:
                    line.close()
                try:
                    function()
                finally:
                    os._exit(0)
            watching.watch(box, theirs, limits)
        while True:
            watching.wait()
            control.send(control.recv(10).upper())

    in_group(be_warden)
    for ours, theirs in lines:
        ours.settimeout(20)
        theirs.close()
    ask.settimeout(20)
    return ask, *(ours for ours, _ in lines)


def last_words(line):
    words = b""
    while part := line.recv(64):
        words += part
    return words.decode()


@pytest.mark.parametrize(
    ("function", "limits", "reason"),
    [
        (lambda: None, Limits(), "exit"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), Limits(), "exit"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), Limits(), LOST),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), Limits(memory=1 << 20), "memory"),
        (lambda: (work(0.3), os.kill(os.getpid(), signal.SIGKILL)), Limits(cpu_seconds=0.29), "cpu"),
        (lambda: work(100), Limits(cpu_seconds=0.2), "cpu"),
        (family_of(4), Limits(memory=1 << 40, processes=3), "processes"),
    ],
    ids=["end", "signal", "killed", "killed with much memory", "killed after much work", "work", "processes"],
)
def test_the_judge_learns_why_a_box_ended(start, function, limits, reason):
    _, line = watched([function], limits, start)
    assert last_words(line) == reason


def test_a_box_with_too_much_memory_is_ended(start):
    def hoard():
        keep = mmap.mmap(-1, 96 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        keep.write(b"x" * (96 << 20))
        signal.pause()

    before = warden.anonymous_memory(os.getpid())
    _, line = watched([hoard], Limits(memory=before + (48 << 20)), start)
    assert last_words(line) == "memory"


CLOSINGS = {"half": lambda line: line.shutdown(socket.SHUT_WR), "all": socket.socket.close}


@pytest.mark.parametrize("close", CLOSINGS.values(), ids=CLOSINGS)
def test_the_box_ends_when_the_judge_closes_the_lifeline(start, close):
    reading, writing = os.pipe()

    def tell_and_work():
        os.write(writing, str(os.getpid()).encode())
        work(100)

    ask, line = watched([tell_and_work], Limits(), start)
    box = int(os.read(reading, 20))
    close(line)
    if line.fileno() != -1:
        assert last_words(line) == "closed"
    wait_until(lambda: not os.path.exists(f"/proc/{box}"))
    ask.send(b"one more")  # the warden itself goes on
    assert ask.recv(10) == b"ONE MORE"


def test_the_end_of_one_box_is_none_of_another_and_requests_are_heard_meanwhile(start):
    ask, first, other, third = watched([lambda: work(100), signal.pause, lambda: None], Limits(cpu_seconds=0.2), start)
    assert last_words(third) == "exit"
    assert last_words(first) == "cpu"
    ask.send(b"one more")
    assert ask.recv(10) == b"ONE MORE"
    other.shutdown(socket.SHUT_WR)
    assert last_words(other) == "closed"


def test_boxes_are_watched_while_requests_come_without_end(start):
    ask, line = watched([lambda: work(100)], Limits(cpu_seconds=0.2), start)
    ended = threading.Event()

    def repeat(function, argument):
        with contextlib.suppress(OSError):  # in the end the warden is gone
            while not ended.is_set():
                function(argument)

    for work_of_one in ((ask.send, b"x" * 1000), (ask.recv, 1000)):
        threading.Thread(target=repeat, args=work_of_one, daemon=True).start()
    try:
        assert line.recv(10) == b"cpu"
    finally:
        ended.set()


@pytest.fixture
def always_wanted():
    """A warden in this process, of whom another box is wanted all the time: each wait looks at its boxes once."""
    reading, writing = os.pipe()
    os.write(writing, b"!")
    yield Warden(reading)
    os.close(reading)
    os.close(writing)


def end_of(process):
    """Waits until a process has ended, and leaves its exit code to its parent."""
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)


def test_boxes_are_attended_to_also_when_the_next_one_is_wanted_already(start, always_wanted):
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    box = start(lambda: None)
    always_wanted.watch(box, theirs, Limits())
    end_of(box)
    always_wanted.wait()
    assert last_words(ours) == "exit"


def test_a_box_is_ended_for_one_reason(start, always_wanted):
    """Closed by the judge, it breaks a limit for as long as it takes to die."""
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    box = start(signal.pause)
    always_wanted.watch(box, theirs, Limits(processes=0))
    ours.shutdown(socket.SHUT_WR)
    time.sleep(2 * warden.INTERVAL)  # then it looks
    always_wanted.wait()
    end_of(box)
    always_wanted.wait()
    assert last_words(ours) == "closed"


def test_a_warden_without_boxes_sleeps_and_holds_nothing_of_those_that_are_gone(start):
    wardens = []
    _, *lines = watched([lambda: None, signal.pause], Limits(), lambda run: wardens.append(start(run)))
    lines[1].shutdown(socket.SHUT_WR)
    assert [last_words(line) for line in lines] == ["exit", "closed"]
    (process,) = map(psutil.Process, wardens)

    def sleeps():
        before = process.cpu_times()[:2]
        time.sleep(0.5)
        return process.cpu_times()[:2] == before

    wait_until(sleeps)
    held = [os.readlink(path) for path in Path(f"/proc/{process.pid}/fd").iterdir()]
    assert [name for name in held if "pidfd" in name] == []


def test_a_process_is_found_by_its_descriptor(start):
    process = start(signal.pause)
    descriptor = os.pidfd_open(process)
    assert number_in_proc(descriptor) == process
    os.close(descriptor)
    with open(os.devnull) as file, pytest.raises(OSError, match="names no process"):
        number_in_proc(file.fileno())
