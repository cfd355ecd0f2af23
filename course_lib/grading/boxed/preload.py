"""What all boxes share: loaded, and rehearsed once, in the process that they are forked from."""

import gc
import importlib
import platform
import sys
import types
from pathlib import Path
from typing import Any

import einops
import einops.layers.torch
import torch

from . import kernel
from .syscalls import filter_program
from .wire import pack, receive
from .worker import Box, settle

REHEARSAL = """
import math

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn


def weigh(queries: Tensor, keys: Tensor, values: Tensor, *, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    scores = rearrange(queries, "b n d -> b n d") @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ values, torch.softmax(scores, dim=-1)


class Network(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.embedding, self.inner, self.outer = nn.Embedding(5, width), nn.Linear(width, width), nn.Linear(width, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embedding(tokens)
        hidden, _ = weigh(hidden, hidden, self.inner(hidden))
        return self.outer(F.dropout(F.relu(hidden), 0.0) + torch.zeros(len(tokens), 1, 8))


def train(tokens: Tensor, targets: Tensor, *, steps: int = 8) -> nn.Module:
    torch.manual_seed(0)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        chosen = torch.randint(0, len(tokens), (2,), generator=generator)
        loss = nn.functional.cross_entropy(model(tokens[chosen]).flatten(0, 1), targets[chosen].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()
"""


COMPILER = "torch._dynamo"
HUGE_PAGE = 2 << 20  # bytes


class CompilerLater(types.ModuleType):
    """Stands where torch's compiler would, until somebody compiles.

    Optimizers import it, which takes as long as torch itself, to tell it where its work has to stop; without it there
    is nobody to tell.
    """

    def graph_break(self) -> None:
        """Tells nobody."""

    def disable(self, function: Any = None, recursive: bool = True, **_: Any) -> Any:
        """The function, or a decorator that returns it: as long as nothing is compiled, it is not compiled."""
        return self.disable if function is None else function

    def __getattr__(self, name: str) -> Any:
        """Puts the compiler in its place, and gives what is wanted of it, even the path to a part of it."""
        del sys.modules[COMPILER], torch._dynamo  # where the compiler looks for itself while it is imported
        return getattr(importlib.import_module(COMPILER), name)


def preload() -> None:
    """Runs once what boxes run, so that none of them pays for what is loaded, bound and cached on first use."""
    torch.set_num_threads(1)  # before anything makes threads, which would not survive the fork
    torch._dynamo = sys.modules[COMPILER] = CompilerLater(COMPILER)
    filter_program(platform.machine())
    before = sys.modules["__main__"]
    rehearse()
    sys.modules["__main__"] = before
    settle()
    gc.collect()
    gather_pages()
    gc.freeze()  # a collection in a box would copy the pages that it shares with us


def gather_pages() -> None:
    """Puts this process's memory into huge pages, where the kernel can: few pages are forked in less time."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights != "rw-p" or (name and name[0].startswith("/")):  # shared with others, or of a file
            continue
        start, end = (int(edge, 16) for edge in area.split("-"))
        for page in range(-(-start // HUGE_PAGE) * HUGE_PAGE, end - HUGE_PAGE + 1, HUGE_PAGE):
            try:
                kernel.collapse(page, HUGE_PAGE)
            except OSError:  # an older kernel, no memory in one piece, or pages of another size
                pass


def rehearse() -> None:
    """Asks a box of our own, without walls, what a judge asks."""
    box = Box()
    ask(box, operation="load", source=REHEARSAL)
    tensor, tokens = torch.randn(2, 3, 8), torch.randint(0, 5, (4, 3))
    module = ask(box, operation="call", target="Network", method=None, keep=True, args=[], kwargs={})
    trained = ask(box, operation="call", target="train", method=None, keep=True, args=[tokens, tokens], kwargs={})
    values = ask(box, operation="parameters", handle=module)
    for _ in range(8):  # from then on Python has adapted its code to what it runs
        ask(box, operation="set_parameters", handle=trained, values=values)
        ask(box, operation="call", target=trained, method=None, keep=False, args=[tokens], kwargs={})
        given = {"target": "weigh", "args": [tensor, tensor, tensor], "kwargs": {"mask": torch.ones(3, 3).bool()}}
        ask(box, operation="call", method=None, keep=False, **given)
        ask(box, operation="gradients", target=module, args=[tokens], kwargs={}, output_gradient=torch.ones(4, 3, 5))
    einops.layers.torch.Rearrange("a b -> b a")(torch.ones(1, 2))


def ask(box: Box, **request: Any) -> Any:
    """The value of the box's answer, by way of the wire."""
    reply = carried(box.answer(carried(request)))
    if "error" in reply:
        raise RuntimeError(f"the rehearsal of boxes stopped: {reply['error']}")
    return reply["value"]


def carried(value: Any) -> Any:
    """What arrives of a value on the other side of the wire."""
    rest = memoryview(pack(value))

    def read(count: int) -> bytes:
        nonlocal rest
        data, rest = rest[:count], rest[count:]
        return bytes(data)

    return receive(read)
