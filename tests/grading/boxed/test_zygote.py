"""The zygote alone, in a child that no bubblewrap shuts in: what it does where a process cannot be had."""

import contextlib
import os
import socket

import psutil
import pytest

from course_lib.grading.boxed import preload, zygote
from course_lib.grading.boxed.limits import Limits
from course_lib.grading.sandbox import Box, WalledBody
from course_lib.grading.sandbox_process import Borrowed

pytestmark = pytest.mark.needs("sandbox")


@pytest.fixture
def start():
    """start(fork_first): a zygote with this in place of its own, as the judge asks it."""
    children = []

    def begin(fork_first):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(20)
        child = os.fork()
        if child == 0:
            ours.close()
            preload.preload = lambda: None  # torch is here already
            zygote.fork_first = fork_first
            try:
                zygote.run_zygote(theirs.fileno())
            finally:
                os._exit(1)
        children.append(child)
        theirs.close()
        assert ours.recv(64) == b"ready"
        ours.settimeout(None)
        return Borrowed(ours)

    yield begin
    for child in children:
        for process in (*psutil.Process(child).children(recursive=True), psutil.Process(child)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        os.waitpid(child, 0)


def test_where_no_process_can_be_had_now_the_judge_is_told_and_the_zygote_goes_on(start, capfd):
    refused, whole = [], zygote.fork_first

    def full_at_first(namespace):
        if len(refused) < 2:
            refused.append(namespace)
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return whole(namespace)

    asked = start(full_at_first)
    for _ in range(2):
        with pytest.raises(OSError, match="the box could not be closed"):
            WalledBody(asked, Limits())
        assert asked.alive()
    assert capfd.readouterr().err == 2 * "no process for a box: [Errno 11] Resource temporarily unavailable\n"
    with Box(WalledBody(asked, Limits())) as box:
        assert box.load("def f(): return 1") is None
        assert box.call("f") == 1
    asked.end()


def test_a_zygote_ends_when_the_judge_lets_go_of_it(start):
    asked = start(zygote.fork_first)
    box = Box(WalledBody(asked, Limits()))
    asked.end()
    assert box._body.lifeline.recv(64) == b""  # nobody holds the other end any more
