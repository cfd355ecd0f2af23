"""What the walls do is tried one by one, each in a child that nothing else shuts in."""

import os
import select
import signal
import time

import pytest

PATIENCE = 60  # seconds


@pytest.fixture
def in_child():
    """Runs a function in a forked child and returns the text that it returned; one that hangs is ended.

    The end of the text is that of all processes that it leaves behind.
    """
    children = []

    def run(function, *arguments):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, str(function(*arguments)).encode())
            except BaseException as problem:
                os.write(writing, f"{type(problem).__name__}: {problem}".encode())
            finally:
                os._exit(0)
        children.append(child)
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as stream:
            return read_all(stream)

    yield run
    for child in children:
        end(child)


def read_all(stream):
    said, deadline = b"", time.monotonic() + PATIENCE
    while select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not (part := stream.read(1 << 16)):
            return said.decode()
        said += part
    pytest.fail(f"after {PATIENCE} s there is still a process that could say more than {said.decode()!r}")


def end(child, seconds=10):
    """Waits for a child, and ends it if that takes too long."""
    deadline = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
