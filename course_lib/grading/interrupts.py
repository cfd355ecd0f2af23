"""Ctrl-C while libraries are imported."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ctrl_c_held() -> Iterator[None]:
    """Ctrl-C counts at the end of this: an import that it breaks off may swallow it, or end the process in C++.

    Raises KeyboardInterrupt then. Where Ctrl-C is ignored, or means something else already, and outside of the main
    thread, nothing changes.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt
