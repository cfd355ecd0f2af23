"""Lesson 17, Long sequences and old roots: what its assignment's check cells ask; the tables are in hidden/17."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import OTHER_PARAMETERS, STOPPED, CheckFailed, general, unexplained

# what an answer costs -----------------------------------------------------------------------------------------

TOKENS, CHUNK, MANY_TOKENS = 2_048, 128, 30_000  # the table of all pairs of many tokens does not fit into the memory
FEW, MORE, FAR_TOO_MANY = 3, 16, 40  # units of two layers; of the last ones, no memory holds all states
SOME_PIXELS, MANY_PIXELS = 1_000, 30_000  # of an image; a table of all pairs of many pixels does not fit, either
CALLS = 1_500  # of torch: more than an answer needs that computes chunks, or all states or pixels at once

ALL_PAIRS = Finding(
    "a table of all pairs",
    "The answer computes a table of all pairs of positions, so its cost grows with the square of the length.",
    "Compute the products of queries and keys within a chunk alone. Earlier chunks are known through the state.",
)
ONE_POSITION = Finding(
    "one position at a time",
    "The answer goes through the positions one by one, so nothing is computed in parallel.",
    "Loop over the chunks. The positions of a chunk are computed together, with matrix products.",
)
LARGER_LAYER = Finding(
    "sums over the larger layer",
    "The answer enumerates the states of the larger layer, so its cost doubles with each unit of that layer.",
    "Compare the lengths of b and c. If there are fewer visible units, sum over their states, with the transposed W.",
)

ALL_FLIPPED = Finding(
    "a table of all flipped images",
    "The answer computes each flipped image as a whole, so its cost grows with the square of the number of pixels.",
    "A flipped pixel changes the input of each hidden unit by one weight. Compute the inputs from v once, and add it.",
)
ONE_PIXEL = Finding(
    "one pixel at a time",
    "The answer goes through the pixels one by one, so nothing is computed in parallel.",
    "The inputs of the hidden units for all flipped pixels are one tensor with an axis for the pixels.",
)


class _Watch(TorchFunctionMode):
    """Counts what torch is asked for, and the numbers of the largest result; stops whoever asks for far too much."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.largest = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        if self.calls > 20 * CALLS:
            raise RuntimeError("too many operations")
        result = function(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            self.largest = max(self.largest, one.numel() if isinstance(one, Tensor) else 0)
        return result


def watched(probe: Probe, *args: Any, shape: Sequence[int] | None = None) -> tuple[Tensor | None, _Watch]:
    """The result for these arguments, or None if the answer was stopped, and what it asked of torch.

    Of an answer behind a grader's wall nothing is seen: what it costs is known there from its memory alone.
    """
    watch = _Watch()

    def function(*args: Any) -> Any:
        with watch:
            return probe._function(*args)

    try:
        return Probe(function, asks=probe.asks).tensor(*args, shape=shape), watch
    except CheckFailed:
        if watch.calls <= CALLS:
            raise
        return None, watch


def _retained(draw: Draw, length: int) -> tuple[tuple[Tensor, ...], Tensor]:
    """A text for `retention`, and what its last query reads, in a sum over all keys."""
    q, k, v, decay = *(draw(1, 1, length, 2) for _ in range(3)), torch.tensor([0.99])
    weights = decay ** torch.arange(length - 1, -1, -1) * (k @ q[:, :, -1:].mT)[..., 0]
    return (q, k, v, decay), weights[..., None, :] @ v


def _corrected(draw: Draw, length: int) -> tuple[tuple[Tensor, ...], Tensor]:
    """A text for `delta_rule`, and what its last query reads: keys of length 1 overwrite all but the last values."""
    q, k, v = (draw(1, 1, length, 2) for _ in range(3))
    k, beta, S = F.normalize(k, dim=-1), 0.5 + draw(1, 1, length).sigmoid() / 2, torch.zeros(2, 2)
    for t in range(length - 300, length):
        S = S + beta[0, 0, t] * torch.outer(k[0, 0, t], v[0, 0, t] - k[0, 0, t] @ S)
    return (q, k, v, beta), q[:, :, -1:] @ S


def _long_texts(ask: Callable[[Draw, int], tuple[tuple[Tensor, ...], Tensor]], probe: Probe) -> list[Finding]:
    """The outputs of long texts: first it is counted what they cost, then there are as many tokens as memory allows."""
    for length in (TOKENS, MANY_TOKENS):
        given, right = ask(probe.draw, length)
        shape = given[0].shape
        if length == TOKENS:
            found, watch = watched(probe, *given, CHUNK, shape=shape)
            if watch.largest >= length**2 / 2:
                return [ALL_PAIRS]
            if watch.calls > CALLS:
                return [ONE_POSITION]
        else:
            try:
                found = probe.tensor(*given, CHUNK, shape=shape)
            except CheckFailed as fault:
                return [ALL_PAIRS if fault.finding.misconception == STOPPED else fault.finding]
        if not torch.allclose(found[:, :, -1:], right, atol=1e-3, rtol=1e-3):
            return [unexplained(found[:, :, -1:], right)]
    return []


def _large_layers(probe: Probe) -> list[Finding]:
    """The partition function of machines of which one layer is large; first it is counted what the answer costs."""
    for many in (MORE, FAR_TOO_MANY):
        for H, V in ((FEW, many), (many, FEW)):
            W, b, c = probe.draw(H, V), probe.draw(V), probe.draw(H)
            if many == MORE:
                found, watch = watched(probe, W, b, c)
                if watch.largest >= 2**many / 2 or watch.calls > CALLS:
                    return [LARGER_LAYER]
            else:
                try:
                    found = probe.tensor(W, b, c)
                except CheckFailed as fault:
                    return [LARGER_LAYER if fault.finding.misconception == STOPPED else fault.finding]
            right = log_z(W, b, c)
            if found.numel() != 1 or not torch.allclose(found.flatten()[0], right, atol=1e-3, rtol=1e-4):
                return [unexplained(found.flatten()[:1], right[None])]
    return []


def _large_images(probe: Probe) -> list[Finding]:
    """The pseudo-likelihood of large images whose pixels have all the same weights; first it is counted what it costs.

    So the free energy depends on the number of ones alone, and there are two kinds of pixels: ones and zeros.
    """
    for V in (SOME_PIXELS, MANY_PIXELS):
        w, c = probe.draw(FEW) / math.sqrt(V), probe.draw(FEW)
        v, W, b = probe.draw.integers(0, 2, 1, V), w[:, None].repeat(1, V), torch.full((V,), 0.01)
        if V == SOME_PIXELS:
            found, watch = watched(probe, v, W, b, c, shape=(1,))
            if watch.largest >= V**2 / 2:
                return [ALL_FLIPPED]
            if watch.calls > CALLS:
                return [ONE_PIXEL]
        else:
            try:
                found = probe.tensor(v, W, b, c, shape=(1,))
            except CheckFailed as fault:
                return [ALL_FLIPPED if fault.finding.misconception == STOPPED else fault.finding]
        ones = v.sum()
        numbers = ones + torch.arange(-1, 2)[:, None].double()
        fewer, same, more = (0.01 * numbers + F.softplus(c + numbers * w).sum(dim=1, keepdim=True)).flatten()
        right = ones * F.logsigmoid(same - fewer) + (V - ones) * F.logsigmoid(same - more)
        if not torch.allclose(found.double(), right, rtol=1e-3):
            return [unexplained(found, right[None].float())]
    return []


TOO_COSTLY = (ALL_PAIRS.misconception, ONE_POSITION.misconception)
LONG_TEXTS = Check(name="long texts", points=3, run=partial(_long_texts, _retained), detects=TOO_COSTLY)
LONG_CORRECTED = Check(name="long texts", points=3, run=partial(_long_texts, _corrected), detects=TOO_COSTLY)
LARGE_LAYERS = Check(name="large layers", points=2, run=_large_layers, detects=(LARGER_LAYER.misconception,))
LARGE_IMAGES = Check(
    name="large images", points=2, run=_large_images, detects=(ALL_FLIPPED.misconception, ONE_PIXEL.misconception)
)

# bars, drawn anew for each training ---------------------------------------------------------------------------

PIXELS, HIDDEN, KNOWN, NEW = 16, 12, 1_000, 4_000


def states(count: int) -> Tensor:
    """All states of so many units, (2^count, count), in zeros and ones."""
    return (torch.arange(2**count)[:, None] >> torch.arange(count) & 1).float()


class Bars:
    """Images of 4 x 4 pixels with rows and columns of ones: which of them there are is drawn for each image."""

    flip = 0.03

    def __init__(self, generator: Generator):
        self.random = generator
        self.order = torch.randperm(PIXELS, generator=generator)
        self.probs = 0.15 + 0.3 * torch.rand(8, generator=generator)

    def draw(self, bars: Tensor) -> Tensor:
        """The images (count, 16) without noise of the bars (count, 8): four rows, then four columns."""
        return (bars[:, :4, None] | bars[:, None, 4:]).flatten(1)[:, self.order]

    def images(self, count: int) -> Tensor:
        """Images (count, 16) of zeros and ones, whose pixels come in an unknown order, with some noise."""
        bars = torch.rand(count, 8, generator=self.random) < self.probs
        noise = torch.rand(count, PIXELS, generator=self.random) < self.flip
        return (self.draw(bars) ^ noise).float()

    def log_prob(self, v: Tensor) -> Tensor:
        """The exact logarithm of the probability of each image (count, 16): a sum over all choices of bars."""
        bars = states(8)
        means = torch.where(self.draw(bars.bool()), 1 - self.flip, self.flip)
        prior = bars @ self.probs.log() + (1 - bars) @ (1 - self.probs).log()
        return (prior + v @ means.log().T + (1 - v) @ (1 - means).log().T).logsumexp(dim=1)


def log_z(W: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """ln Z of a restricted Boltzmann machine: a sum over the states of its smaller layer."""
    if len(b) < len(c):
        W, b, c = W.T, c, b
    h = states(len(c)).to(W.dtype)
    return (h @ c + F.softplus(h @ W + b).sum(dim=1)).logsumexp(dim=0)


def log_likelihood(v: Tensor, W: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """The logarithm of the probability of each image (count, V) under the machine."""
    return v @ b + F.softplus(v @ W.T + c).sum(dim=1) - log_z(W, b, c)


def independent(known: Tensor, new: Tensor) -> float:
    """The mean log-likelihood of new images where each pixel has the frequency of the known ones, independently."""
    p = (known.sum(dim=0) + 0.5) / (len(known) + 1)
    return (new @ p.log() + (1 - new) @ (1 - p).log()).mean().item()


NOT_JOINED = Finding(
    "pixels nearly independent",
    "The machine is hardly better than pixels that are independent of each other.",
    "Is the sign of the gradient right? Do the weights between the layers grow, or does the training end before?",
)
NOT_LEARNED = Finding(
    "not learned",
    "The machine is better than independent pixels, and still far from the true distribution.",
    "Measure the exact likelihood during the training. Does it still rise? Try more steps, other hidden units, "
    "another learning rate, or another estimate of the gradient.",
)
FEW_UNITS = Finding(
    "too few hidden units",
    "The machine has so few hidden units that it cannot represent all rows and columns.",
    "Up to 12 are allowed. In a good machine, some of the units stand for single bars.",
)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """How many nats per new image are missing to the true distribution, by the machine and by independent pixels."""

    missing: float
    independent: float
    hidden: int


def machine(model: ModuleProbe) -> tuple[Tensor, Tensor, Tensor]:
    """The parameters W, b and c of a machine; a CheckFailed if they are others, or too many."""
    own = model.parameters()
    if {"W", "b", "c"} - own.keys():
        raise CheckFailed(general(OTHER_PARAMETERS, f"The module needs W, b and c; it has {', '.join(own) or 'none'}."))
    W, b, c = (own[name].double() for name in ("W", "b", "c"))
    if W.dim() != 2 or not 1 <= len(W) <= HIDDEN or W.shape[1] != PIXELS or b.shape != (PIXELS,) or len(c) != len(W):
        seen = f"W, b and c have the shapes {tuple(W.shape)}, {tuple(b.shape)} and {tuple(c.shape)}."
        raise CheckFailed(general(OTHER_PARAMETERS, f"{seen} Needed are (H, 16), (16,) and (H,), with H up to 12."))
    return W, b, c


def measured(bars: Bars, known: Tensor, W: Tensor, b: Tensor, c: Tensor) -> Trained:
    """What a machine of these parameters misses in new images; it was trained with the known ones."""
    new = bars.images(NEW)
    best = bars.log_prob(new).mean().item()
    gap = best - log_likelihood(new.double(), W, b, c).mean().item()
    gap = gap if math.isfinite(gap) else math.inf
    return Trained(missing=gap, independent=best - independent(known, new), hidden=len(c))


def _trained(probe: Probe) -> Trained:
    bars = Bars(probe.draw.generator)
    known = bars.images(KNOWN)
    return measured(bars, known, *machine(probe.make("train", known)))


def why(trained: Trained) -> Finding:
    """What is said of a machine that misses too much."""
    if trained.hidden < 8:
        return FEW_UNITS
    return NOT_JOINED if trained.missing > 0.7 * trained.independent else NOT_LEARNED


def likelihood(name: str, points: float, *, below: float) -> Check:
    """The new images miss less than this, in nats per image."""

    def run(probe: Probe) -> list[Finding]:
        trained = probe.once("trained", _trained)
        return [] if trained.missing < below else [why(trained)]

    told = (NOT_JOINED, NOT_LEARNED, FEW_UNITS)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), OTHER_PARAMETERS))


# the examples -----------------------------------------------------------------------------------------------

DECAYED = (
    ([[[[1.0], [2.0], [1.0]]]], [[[[1.0], [1.0], [2.0]]]], [[[[8.0], [4.0], [3.0]]]], [0.5], 2),
    [[[[8.0], [16.0], [10.0]]]],
)
CORRECTED = (
    (
        [[[[1.0], [2.0], [3.0]]]],
        [[[[1.0], [1.0], [2.0]]]],
        [[[[8.0], [6.0], [2.0]]]],
        [[[0.5, 0.5, 0.25]]],
        2,
    ),
    [[[[4.0], [10.0], [3.0]]]],
)
BUFFERS = (([[0.7, 0.3], [0.6, 0.4], [0.2, 0.8]], 2), [[0, 1], [1, -1], [-1, 0]])
KEPT = (
    ([[0.0]], [[[3.0], [1.0], [4.0], [1.0], [5.0]]], [[[7.0], [9.0], [9.0], [14.0], [21.0]]], [math.log(2)], 2, 1),
    [[17.0]],
)
HEAVY = (
    (
        [[[1.0], [1.0], [1.0], [1.0]]],
        [[[0.0], [math.log(3)], [0.0], [math.log(2)]]],
        [[[4.0], [8.0], [2.0], [1.0]]],
        1,
        1,
    ),
    [[[4.0], [7.0], [6.0], [2.0]]],
)
SUMMED = (([[math.log(2)]], [math.log(3)], [math.log(5)]), math.log(39))
CONDITIONAL = (
    (
        torch.tensor([[1, 0], [0, 0]]),
        [[-math.log(3), math.log(3)]],
        [math.log(3), math.log(2)],
        [math.log(3)],
    ),
    [math.log(3 / 25), math.log(1 / 15)],
)

SHOWN = (
    Task(
        "retention",
        "Chunk by chunk",
        asks="q, k, v, decay, size",
        also=(keeps_type, gradients),
        checks=(LONG_TEXTS,),
        example=(DECAYED,),
    ),
    Task(
        "delta_rule",
        "The delta rule, chunk by chunk",
        asks="q, k, v, beta, size",
        also=(keeps_type, gradients),
        checks=(LONG_CORRECTED,),
        example=(CORRECTED,),
    ),
    Task("dispatch", "Experts with little room", asks="gates, capacity", example=(BUFFERS,)),
    Task(
        "streaming_attention",
        "A cache that never grows",
        asks="q, keys, values, slopes, window, sinks",
        also=(keeps_type, gradients),
        example=(KEPT,),
    ),
    Task(
        "heavy_hitters",
        "A cache of heavy hitters",
        asks="q, k, v, heavy, recent",
        also=(keeps_type, gradients),
        example=(HEAVY,),
    ),
    Task(
        "log_partition",
        "An exact partition function",
        asks="W, b, c",
        also=(keeps_type, gradients),
        checks=(LARGE_LAYERS,),
        example=(SUMMED,),
    ),
    Task(
        "pseudo_log_likelihood",
        "A likelihood without a partition function",
        asks="v, W, b, c",
        also=(keeps_type, gradients),
        checks=(LARGE_IMAGES,),
        example=(CONDITIONAL,),
    ),
    Task(
        "train",
        "A machine for bars",
        asks="images",
        seconds=TRAINING_SECONDS,
        checks=(
            likelihood("new images: less than 2 nats missing", 8, below=2.0),
            likelihood("new images: less than 1.2 nats missing", 8, below=1.2),
            likelihood("new images: less than 0.8 nats missing", 8, below=0.8),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
