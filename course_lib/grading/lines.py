"""The judge's end of a box: questions go in, answers and printed text come out, nobody waits longer than allowed."""

import os
import queue
import select
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, BinaryIO

from course_lib.grading.boxed.limits import Limits
from course_lib.grading.boxed.wire import WireError, receive
from course_lib.grading.boxed.worker import reader, writer

CHUNK = 1 << 16  # bytes, what a pipe holds
END_SECONDS = 20  # at most until threads see that the box is gone


class Line(ABC):
    """Three pipes: requests to a box, its replies, and what it prints, of which the beginning is kept."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, log: BinaryIO, limits: Limits):
        self._requests, self._replies, self._log, self._limits = requests, replies, log, limits
        self._printed = bytearray()

    @property
    def printed(self) -> bytes:
        """What came so far, up to the limit; all of it once the line is closed."""
        return bytes(self._printed)

    @abstractmethod
    def ask(self, question: bytes, *, seconds: float) -> Any:
        """The value of the answer.

        Raises TimeoutError if none comes in time, EOFError or OSError if the box is gone, WireError if what comes means
        nothing.
        """

    @abstractmethod
    def close(self) -> None:
        """Reads the rest of what the box, which is gone, has printed; any number of times."""

    def _keep(self, printed: bytes) -> None:
        self._printed += printed[: self._limits.log_bytes - len(self._printed)]

    def _close_pipes(self) -> None:
        for pipe in (self._requests, self._replies, self._log):
            pipe.close()


class PolledLine(Line):
    """Asks the kernel which pipe is ready, which works for pipes everywhere but on Windows."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, log: BinaryIO, limits: Limits):
        super().__init__(requests, replies, log, limits)
        self._signs = select.poll()
        self._deadline = 0.0
        self._unread = bytearray()
        for pipe in (requests, replies, log):
            os.set_blocking(pipe.fileno(), False)
        self._signs.register(replies, select.POLLIN)
        self._signs.register(log, select.POLLIN)

    def ask(self, question: bytes, *, seconds: float) -> Any:
        self._deadline = time.monotonic() + seconds
        self._write(question)
        return receive(self._read, most=self._limits.reply_bytes)

    def close(self) -> None:
        while not self._log.closed and self._drain():
            pass
        self._close_pipes()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest := rest[self._requests.write(rest) or 0 :]:  # None if the pipe is full
            self._signs.register(self._requests, select.POLLOUT)
            try:
                self._wait_for(self._requests)
            finally:
                self._signs.unregister(self._requests)

    def _read(self, count: int) -> bytes:
        """Exactly so many bytes."""
        while len(self._unread) < count:
            self._wait_for(self._replies)
            part = self._replies.read(max(CHUNK, count - len(self._unread)))
            if not part:
                raise EOFError
            self._unread += part
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    def _wait_for(self, pipe: BinaryIO) -> None:
        """Until the pipe is ready; what is printed meanwhile is taken, so that the box never waits for us."""
        while True:
            left = self._deadline - time.monotonic()
            ready = {descriptor for descriptor, _ in self._signs.poll(max(0.0, left) * 1000)}
            if self._log.fileno() in ready and not self._drain():
                self._signs.unregister(self._log)  # closed in the box
            if left <= 0:  # even if there is more: an answer in crumbs could last for ever
                raise TimeoutError
            if pipe.fileno() in ready:
                return
            if self._replies.fileno() in ready:
                raise EOFError  # it answers, or stops doing so, and has not heard the question to its end

    def _drain(self) -> bool:
        """Takes what is there of the printed text; False if there will be no more."""
        part = self._log.read(CHUNK)
        self._keep(part or b"")
        return bool(part)


class ThreadedLine(Line):
    """Has one thread wait for each pipe that can be read."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, log: BinaryIO, limits: Limits):
        super().__init__(requests, replies, log, limits)
        self._questions: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._carry, self._drain)]
        for thread in self._threads:
            thread.start()

    def ask(self, question: bytes, *, seconds: float) -> Any:
        self._questions.put(question)
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(answer, EOFError | OSError | WireError):
            raise answer
        return answer

    def close(self) -> None:
        self._questions.put(None)
        for thread in self._threads:
            thread.join(timeout=END_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):
            self._close_pipes()

    def _carry(self) -> None:
        """Carries questions into the box and answers out."""
        read, write = reader(self._replies), writer(self._requests)
        while (question := self._questions.get()) is not None:
            try:
                write(question)
                self._answers.put(receive(read, most=self._limits.reply_bytes))
            except (EOFError, OSError, WireError) as end:
                self._answers.put(end)
                return

    def _drain(self) -> None:
        try:
            while part := self._log.read(CHUNK):
                self._keep(part)
        except OSError:
            return
