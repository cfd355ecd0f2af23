"""One line of progress, in a terminal or a notebook, and nothing where nobody looks.

A long-running function asks `start(title)` for a display and calls `update` as often as it likes: at most ten
updates a second are drawn. `use` registers how a display is made; without it, a line is drawn on stderr if
that is a terminal. With the environment variable COURSE_PROGRESS=off nothing is ever drawn.
"""

import html
import math
import os
import shutil
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

SECONDS_BETWEEN_UPDATES = 0.1


@runtime_checkable
class Progress(Protocol):
    """What a long-running function tells a display.

    A display that also has `stopped` can end a training: after the step in which it becomes True.
    """

    def update(self, done: int | float, total: int | float, **details: float | str) -> None:
        """`done` of `total` steps are done; `details` such as loss=1.25 are shown beside them."""

    def close(self) -> None:
        """The work has ended: the display clears its line."""


DisplayFactory = Callable[[str], Progress]

_registered: DisplayFactory | None = None
_in_this_thread = threading.local()


def use(display_factory: DisplayFactory | None) -> None:
    """From now on `start(title)` calls `display_factory(title)`; None goes back to the terminal's line."""
    global _registered
    _registered = display_factory


@contextmanager
def using(display_factory: DisplayFactory) -> Iterator[None]:
    """Like `use`, inside a `with` block, for this thread only, and whatever COURSE_PROGRESS says.

    It serves those who gather the progress of others, and then draw it or not.
    """
    before = getattr(_in_this_thread, "factory", None)
    _in_this_thread.factory = display_factory
    try:
        yield
    finally:
        _in_this_thread.factory = before


def start(title: str) -> Progress:
    """The display for a piece of work called `title`."""
    gatherer = getattr(_in_this_thread, "factory", None)
    if gatherer is not None:
        return gatherer(title)
    if os.environ.get("COURSE_PROGRESS", "").lower() == "off":
        return Silent(title)
    if _registered is not None:
        return _registered(title)
    if sys.stderr is not None and sys.stderr.isatty():
        return TerminalLine(title, sys.stderr)
    return Silent(title)


class Silent:
    """Draws nothing, and nobody stops it."""

    stopped = False

    def __init__(self, title: str = ""):
        self.title = title

    def update(self, done: int | float, total: int | float, **details: float | str) -> None:
        pass

    def close(self) -> None:
        pass


class Line(ABC):
    """A line of progress: subclasses say how to `draw(done, total, text)` it and how to clear it, `close()`."""

    def __init__(self, title: str):
        self.title = title
        self.started = time.monotonic()
        self.first_done: float | None = None
        self.last_drawn = float("-inf")

    def update(self, done: int | float, total: int | float, **details: float | str) -> None:
        now = time.monotonic()
        if self.first_done is None:
            self.first_done = done  # a resumed run does not start at 0
        if now - self.last_drawn >= SECONDS_BETWEEN_UPDATES:
            self.last_drawn = now
            self.draw(done, total, self.text(done, total, now, details))

    @abstractmethod
    def draw(self, done: int | float, total: int | float, text: str) -> None: ...

    def text(self, done: int | float, total: int | float, now: float, details: dict[str, float | str]) -> str:
        parts = [f"{math.floor(done)}/{total}"]
        parts += [f"{name} {_short(value)}" for name, value in details.items()]
        progress_made = done - self.first_done
        if progress_made > 0:
            seconds_left = (now - self.started) * (total - done) / progress_made
            parts.append(f"{_duration(seconds_left)} left")
        return " · ".join(parts)


class TerminalLine(Line):
    """Redraws one line of a terminal and wipes it at the end."""

    def __init__(self, title: str, stream: Any):
        super().__init__(title)
        self.stream = stream
        self.drawn = 0  # characters to wipe

    def draw(self, done: int | float, total: int | float, text: str) -> None:
        columns = shutil.get_terminal_size().columns - 1  # a full line would make the terminal scroll
        line = f"{self.title} · {text}"[:columns]
        self.stream.write("\r" + line.ljust(min(self.drawn, columns)))
        self.stream.flush()
        self.drawn = len(line)

    def close(self) -> None:
        if self.drawn:
            self.stream.write("\r" + " " * self.drawn + "\r")
            self.stream.flush()
            self.drawn = 0


class NotebookLine(Line):
    """A bar with its text as HTML, handed to `write`, which shows it in place of what it showed before.

    At the end `write("")` clears it, so that nothing stays in the stored notebook.
    """

    def __init__(self, title: str, write: Callable[[str], None]):
        super().__init__(title)
        self.write = write

    def draw(self, done: int | float, total: int | float, text: str) -> None:
        title = html.escape(self.title)
        self.write(
            f'<progress value="{done:g}" max="{total:g}" aria-label="{title}"></progress> {title} · {html.escape(text)}'
        )

    def close(self) -> None:
        if self.last_drawn >= self.started:
            self.write("")


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
