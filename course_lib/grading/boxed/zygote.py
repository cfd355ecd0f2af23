"""A process with torch loaded that forks boxes and watches them: `python -m boxed.zygote FD`, where FD is a socket.

Each message on it asks for a box: the limits as JSON, and four files for it: where requests come from, where replies
and printed text go, and the lifeline.
"""

import io
import json
import os
import socket
import sys
from itertools import pairwise
from typing import NoReturn

from .confine import become_first, confine, fork_first
from .limits import Limits
from .warden import Warden

MOST_FILES = 1 << 20  # descriptors


def run_zygote(descriptor: int) -> NoReturn:
    """Forks boxes until the judge closes the socket, or dies."""
    namespace = become_first()
    from .preload import preload  # after the fork above: the process that only waits needs no torch

    preload()
    control = socket.socket(fileno=descriptor)
    control.send(b"ready")
    warden = Warden(control.fileno())
    while True:
        warden.wait()
        message, descriptors, *_ = socket.recv_fds(control, 4096, 4)
        if not message:
            os._exit(0)
        *files, lifeline = descriptors
        limits = Limits(**json.loads(message))
        try:
            box = fork_first(namespace)
        except OSError as problem:  # no memory now; the judge sees the lifeline end
            print(f"no process for a box: {problem}", file=sys.stderr, flush=True)
            box = None
        if box == 0:
            become_box(limits, *files, lifeline)
        line = socket.socket(fileno=lifeline)
        if box is None:
            line.close()
        else:
            warden.watch(box, line, limits)
        for number in files:
            os.close(number)


def become_box(limits: Limits, requests: int, replies: int, log: int, lifeline: int) -> NoReturn:
    """Shuts this process in, tells the judge, and answers."""
    from .worker import serve

    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # flags and locks of the one that all share would outlive the box
        close_all_but(0, 1, 2, requests, replies, log, lifeline)
        confine(limits)
        os.write(lifeline, b"closed")
        os.close(lifeline)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    except BaseException as problem:
        print(f"a box could not be closed: {problem}", file=sys.stderr, flush=True)
        os._exit(1)
    serve(io.FileIO(requests), io.FileIO(replies, "w"), most=limits.reply_bytes)


def close_all_but(*kept: int) -> None:
    """Closes all other descriptors of this process, such as other boxes' lifelines."""
    edges = [-1, *sorted(kept), MOST_FILES]
    for below, above in pairwise(edges):
        if below + 1 < above:  # Python takes an empty range that begins at 0 for all
            os.closerange(below + 1, above)


if __name__ == "__main__":
    run_zygote(int(sys.argv[1]))
