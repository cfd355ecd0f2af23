"""Builds the walls of one box around nothing, and says by the socket that it could: `python -m boxed.trial FD`."""

import os
import socket
import sys

from .confine import become_first, confine, fork_first
from .limits import Limits


def main(descriptor: int) -> None:
    """Raises OSError where the system denies a wall."""
    child = fork_first(become_first())
    if child == 0:
        try:
            confine(Limits())
        except BaseException as problem:
            print(problem, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        socket.socket(fileno=descriptor).send(b"ready")


if __name__ == "__main__":
    main(int(sys.argv[1]))
