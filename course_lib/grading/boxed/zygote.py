"""A process with torch loaded that forks boxes: `python -m boxed.zygote FD`, where FD is a socket.

Each message on it asks for a box: the limits as JSON, and four files for it: where requests come from, where replies
and printed text go, and the lifeline.
"""

import gc
import io
import json
import os
import signal
import socket
import sys
from typing import NoReturn

import einops
import einops.layers.torch
import torch
import torch._dynamo  # the first optimizer would import it
from torch import nn

from .confine import confine, leave_namespaces
from .limits import Limits
from .warden import watch
from .worker import serve, settle


def preload() -> None:
    """Runs once what boxes need, beside the imports above, so that none of them pays for it."""
    torch.set_num_threads(1)  # before anything makes threads, which would not survive the fork
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    einops.rearrange(model(torch.ones(1, 2)), "a b -> b a").sum().backward()
    optimizer.step()


def run_zygote(descriptor: int) -> NoReturn:
    """Forks boxes until the judge closes the socket, or dies."""
    control = socket.socket(fileno=descriptor)
    preload()
    settle()
    gc.collect()
    gc.freeze()  # a collection in a box would copy the pages that it shares with us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for wardens
    control.send(b"ready")
    while True:
        message, descriptors, *_ = socket.recv_fds(control, 4096, 4)
        if not message:
            os._exit(0)
        try:
            child = os.fork()
        except OSError as problem:  # no memory now; the judge sees the lifeline end
            print(f"no process for a box: {problem}", file=sys.stderr, flush=True)
            child = None
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            try:
                run_box(Limits(**json.loads(message)), *descriptors)
            except BaseException as problem:
                print(f"a box could not be made: {problem}", file=sys.stderr, flush=True)
            finally:
                os._exit(1)
        for number in descriptors:
            os.close(number)


def run_box(limits: Limits, requests: int, replies: int, log: int, lifeline: int) -> NoReturn:
    """Becomes the warden of a new box. Raises OSError if there cannot be one."""
    leave_namespaces()
    closed_in, closed_out = os.pipe()
    box = os.fork()
    if box == 0:
        try:
            os.close(closed_in)
            os.close(lifeline)
            confine(limits)
        except BaseException as problem:
            print(f"a box could not be closed: {problem}", file=sys.stderr, flush=True)
            os._exit(1)
        os.write(closed_out, b"closed")
        os.close(closed_out)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        serve(io.FileIO(requests), io.FileIO(replies, "w"), most=limits.reply_bytes)
    for number in (requests, replies, log, closed_out):
        os.close(number)
    with socket.socket(fileno=lifeline) as line:
        if os.read(closed_in, 16) != b"closed":
            os.waitpid(box, 0)
            os._exit(1)
        line.send(b"closed")
        watch(box, line, limits)


if __name__ == "__main__":
    run_zygote(int(sys.argv[1]))
