import itertools
import os
import sys
import threading
import time

import pytest

from course_lib.grading.boxed.limits import Limits
from course_lib.grading.boxed.wire import WireError, pack, receive
from course_lib.grading.boxed.worker import reader, writer
from course_lib.grading.lines import PolledLine, ThreadedLine

KINDS = [pytest.param(PolledLine, marks=pytest.mark.needs("linux")), ThreadedLine]
LARGE = "x" * (1 << 20)  # more than a pipe holds


def replaced(descriptor):
    """Closes a descriptor, and gives another in its place."""
    os.close(descriptor)
    return os.open(os.devnull, os.O_WRONLY)


def waiting(pipe):
    """The number of bytes in a pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


class Far:
    """The box's end of a line, served by a thread."""

    def __init__(self, kind, limits):
        (self.requests, requests), (replies, self.replies), (log, self.log) = os.pipe(), os.pipe(), os.pipe()
        self.line = kind(*(os.fdopen(*one, 0) for one in ((requests, "wb"), (replies, "rb"), (log, "rb"))), limits)
        self.threads, self.once = [], threading.Lock()

    def serve(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def echo(self, times=1, printed=b""):
        """Answers each question with itself, after having printed."""
        with os.fdopen(os.dup(self.requests), "rb", 0) as requests, os.fdopen(os.dup(self.replies), "wb", 0) as replies:
            read, write = reader(requests), writer(replies)
            for _ in range(times):
                question = receive(read)
                self.print(printed)
                write(pack(question))

    def print(self, data):
        with os.fdopen(os.dup(self.log), "wb", 0) as log:
            writer(log)(data)

    def die(self):
        with self.once:
            for number in self.ends():
                os.close(number)
            self.requests = self.replies = self.log = None

    def ends(self):
        return [number for number in (self.requests, self.replies, self.log) if number is not None]

    def end(self):
        self.die()
        self.line.close()
        for thread in self.threads:
            thread.join(timeout=10)


@pytest.fixture(params=KINDS)
def far(request):
    made = Far(request.param, Limits(log_bytes=1000, reply_bytes=4 << 20))
    yield made
    made.end()


def test_each_question_has_its_answer(far):
    far.serve(far.echo, 3)
    for question in (1, [2.5, "three"], LARGE):
        assert far.line.ask(pack(question), seconds=10) == question


def test_a_box_that_prints_without_end_can_answer_and_the_beginning_is_kept(far):
    far.serve(far.echo, 2, LARGE.encode())
    assert far.line.ask(pack("first"), seconds=10) == "first"
    assert far.line.ask(pack(LARGE), seconds=10) == LARGE
    far.die()
    far.line.close()
    assert far.line.printed == b"x" * 1000


def test_what_was_printed_last_is_there_once_the_line_is_closed(far):
    far.print(b"one ")
    far.serve(far.echo, 1, b"two ")
    far.line.ask(pack(None), seconds=10)
    far.print(b"three")
    far.die()
    far.line.close()
    far.line.close()
    assert far.line.printed == b"one two three"


def test_nobody_waits_longer_than_allowed(far):
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        far.line.ask(pack("anybody?"), seconds=0.2)
    assert 0.2 <= time.monotonic() - start < 5


def test_nobody_waits_for_a_box_that_takes_no_questions(far):
    with pytest.raises(TimeoutError):
        far.line.ask(pack(LARGE), seconds=0.2)


@pytest.mark.needs("linux")
def test_printing_without_end_gives_no_more_time():
    (requests, asked), (replies, answered) = os.pipe(), os.pipe()
    with (
        open(asked, "wb", buffering=0) as asking,
        open(replies, "rb", buffering=0) as answers,
        open("/dev/zero", "rb", buffering=0) as log,
    ):
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            PolledLine(asking, answers, log, Limits(log_bytes=10)).ask(pack("well?"), seconds=0.3)
        assert time.monotonic() - start < 5
    os.close(requests)
    os.close(answered)


@pytest.mark.needs("linux")
@pytest.mark.parametrize("far", [PolledLine], indirect=True)
def test_an_answer_in_crumbs_gives_no_more_time(far, monkeypatch):
    import fcntl

    fcntl.fcntl(far.replies, fcntl.F_SETFL, os.O_DIRECT)  # each read gets what one write has written, no more
    fcntl.fcntl(far.replies, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.write(far.replies, pack(LARGE)[:8])
    for _ in range(200):
        os.write(far.replies, b"x")
    with monkeypatch.context() as clock, pytest.raises(TimeoutError):
        clock.setattr(time, "monotonic", itertools.count(0, 0.01).__next__)  # each look takes its time
        far.line.ask(pack("well?"), seconds=0.2)
    assert waiting(far.replies) > 100


def test_half_an_answer_is_none(far):
    frame = pack([1, 2, 3])
    far.serve(os.write, far.replies, frame[:-1])
    with pytest.raises(TimeoutError):
        far.line.ask(pack("well?"), seconds=0.2)


def test_a_box_that_is_gone_is_no_matter_of_time(far):
    far.die()
    with pytest.raises((EOFError, BrokenPipeError)):
        far.line.ask(pack("anybody?"), seconds=60)


def test_a_box_that_goes_while_it_is_asked(far):
    def listen_and_die():
        os.read(far.requests, 1 << 16)
        far.die()

    far.serve(listen_and_die)
    with pytest.raises((EOFError, BrokenPipeError)):
        far.line.ask(pack("anybody?"), seconds=60)


@pytest.mark.needs("linux")
@pytest.mark.parametrize("far", [PolledLine], indirect=True)
@pytest.mark.parametrize("way", ["an answer", "an end"])
def test_a_box_that_answers_before_it_has_heard_the_question_is_not_waited_for(far, way):
    if way == "an answer":
        os.write(far.replies, pack("yes"))
    else:
        far.replies = replaced(far.replies)
    start = time.process_time()
    with pytest.raises(EOFError):
        far.line.ask(pack(LARGE), seconds=2)
    assert time.process_time() - start < 1


def test_what_is_no_frame_is_told(far):
    os.write(far.replies, b"\xff" * 64)
    with pytest.raises(WireError):
        far.line.ask(pack("well?"), seconds=10)


def test_an_answer_larger_than_allowed_is_told(far):
    far.serve(os.write, far.replies, pack("x" * (5 << 20), most=8 << 20)[: 1 << 10])
    with pytest.raises(WireError):
        far.line.ask(pack("well?"), seconds=10)


def test_answers_that_come_together_are_taken_one_by_one(far):
    os.write(far.replies, pack("first") + pack("second"))
    assert far.line.ask(pack(1), seconds=10) == "first"
    assert far.line.ask(pack(2), seconds=10) == "second"
