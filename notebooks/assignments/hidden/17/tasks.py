"""Assignment 17, Long sequences, old roots: what the grader asks of each task; tasks.md lists the known mistakes."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_17.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw


def uniform(draw: Draw, low: float, high: float, *shape: int) -> Tensor:
    return low + (high - low) * torch.rand(*shape, generator=draw.generator)


def heads(draw: Draw, *, short: bool = True, chunks: int | None = None, quick: bool = False) -> tuple:
    """Queries, keys and values, a decay for each head, and chunks that are full or, if `short`, less so at the end."""
    B, H, K, V = draw.sizes(4)
    size, chunks = draw.integers(3, 6, 1).item(), chunks or draw.integers(3, 5, 1).item()
    T = size * chunks - (draw.integers(1, size, 1).item() if short else 0)
    if quick:
        size = T = draw.integers(110, 130, 1).item()
    decay = uniform(draw, 0.2, 0.3, H) if quick else uniform(draw, 0.5, 0.95, H)
    return draw(B, H, T, K), draw(B, H, T, K), draw(B, H, T, V), decay, size


RETENTION = replace(
    SHOWN["retention"],
    cases=(
        Case("chunks of the same size", lambda draw: heads(draw, short=False), 7),
        Case("the last chunk is shorter", heads, 3),
        Case("texts shorter than a chunk", lambda draw: heads(draw, chunks=1), 2),
        Case("decays that forget quickly", lambda draw: heads(draw, quick=True), 3),
    ),
)


def rewritten(draw: Draw, *, full: bool = False, **more: Any) -> tuple:
    """As `heads`, with writing strengths and keys of about length 1; if `full`, keys of length 1, strengths 0 and 1."""
    q, k, v, _, size = heads(draw, **more)
    beta = uniform(draw, 0.2, 1.0, *k.shape[:3])
    if full:
        return q, k / k.norm(dim=-1, keepdim=True), v, (beta > 0.5).float(), size
    return q, k / k.shape[-1] ** 0.5, v, beta, size


DELTA_RULE = replace(
    SHOWN["delta_rule"],
    cases=(
        Case("chunks of the same size", lambda draw: rewritten(draw, short=False), 7),
        Case("the last chunk is shorter", rewritten, 3),
        Case("texts shorter than a chunk", lambda draw: rewritten(draw, chunks=1), 2),
        Case("writing strengths of zero and one", lambda draw: rewritten(draw, full=True), 3),
    ),
)


def routed(draw: Draw, *, k: int | None = None, room: bool = False) -> tuple[Tensor, int]:
    """Gates of tokens that choose k experts each, or any number from 0 on, and too little room, or enough."""
    (N,), E = draw.sizes(1, low=7, high=14), draw.integers(4, 7, 1).item()
    chances = (draw(N, E) + torch.linspace(1.5, 0, E)).softmax(dim=1)
    least = chances.sort(dim=1, descending=True).values
    many = draw.integers(0, E, N) if k is None else torch.full((N,), k)
    chosen = chances >= least.gather(1, (many - 1).clamp(min=0)[:, None])
    gates = chances * (chosen & (many > 0)[:, None])
    gates = gates / gates.sum(dim=1, keepdim=True).clamp(min=1e-9)
    most = int((gates > 0).sum(dim=0).max())
    return gates, N + 1 if room else max(1, most - draw.integers(2, 4, 1).item())


DISPATCH = replace(
    SHOWN["dispatch"],
    cases=(
        Case("two experts for each token", lambda draw: routed(draw, k=2), 6, tolerance=1e-6),
        Case("three experts for each token", lambda draw: routed(draw, k=3), 3, tolerance=1e-6),
        Case("any number of experts for a token", routed, 3, tolerance=1e-6),
        Case("room for all", lambda draw: routed(draw, k=2, room=True), 2, tolerance=1e-6),
    ),
)


def cached(draw: Draw, *, short: bool = False, no_sinks: bool = False) -> tuple:
    """A query, and keys and values of which some have left the cache; in a short text none has."""
    H, D, V = draw.sizes(3)
    window, sinks = draw.integers(3, 7, 1).item(), 0 if no_sinks else draw.integers(2, 5, 1).item()
    T = window + draw.integers(1 - window // 2, sinks, 1).item() if short else window + sinks + 3
    T += 0 if short else draw.integers(0, 5, 1).item()
    return 2 * draw(H, D), draw(H, T, D), draw(H, T, V), uniform(draw, 0.1, 0.6, H), window, sinks


STREAMING_ATTENTION = replace(
    SHOWN["streaming_attention"],
    cases=(
        Case("texts longer than the cache", cached, 8),
        Case("texts that fit into the cache", lambda draw: cached(draw, short=True), 3),
        Case("no sinks", lambda draw: cached(draw, no_sinks=True), 2),
    ),
)


def streamed(draw: Draw, *, short: bool = False, no_heavy: bool = False) -> tuple:
    """Queries, keys and values of a text of which some tokens leave the cache; in a short text none does."""
    H, D, V = draw.sizes(3)
    heavy, recent = 0 if no_heavy else draw.integers(2, 5, 1).item(), draw.integers(2, 5, 1).item()
    T = heavy + recent + (0 if short else draw.integers(9, 14, 1).item())
    return draw(H, T, D), 2 * draw(H, T, D), draw(H, T, V), heavy, recent


HEAVY_HITTERS = replace(
    SHOWN["heavy_hitters"],
    cases=(
        Case("texts longer than the cache", streamed, 8),
        Case("texts that fit into the cache", lambda draw: streamed(draw, short=True), 3),
        Case("no heavy hitters", lambda draw: streamed(draw, no_heavy=True), 2),
    ),
)


def layers(draw: Draw, *, more_hidden: bool = False, lift: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """The parameters of a machine with few visible and more hidden units, or the other way round."""
    few, more = draw.integers(2, 5, 1).item(), draw.integers(6, 9, 1).item()
    H, V = (more, few) if more_hidden else (few, more)
    return lift * draw(H, V), lift * draw(V), lift * draw(H)


LOG_PARTITION = replace(
    SHOWN["log_partition"],
    cases=(
        Case("more visible than hidden units", layers, 6),
        Case("more hidden than visible units", lambda draw: layers(draw, more_hidden=True), 3),
        Case("large weights", lambda draw: layers(draw, lift=100.0), 2),
    ),
)


def images(draw: Draw, **more: Any) -> tuple[Tensor, ...]:
    """Images of zeros and ones, and a machine as `layers` has them."""
    (B,), (W, b, c) = draw.sizes(1), layers(draw, **more)
    return draw.integers(0, 2, B, len(b)), W, b, c


PSEUDO_LOG_LIKELIHOOD = replace(
    SHOWN["pseudo_log_likelihood"],
    cases=(
        Case("more visible than hidden units", images, 6),
        Case("more hidden than visible units", lambda draw: images(draw, more_hidden=True), 3),
        Case("large weights", lambda draw: images(draw, lift=100.0), 2),
    ),
)

ASSIGNMENT = Assignment(
    "17",
    notebook="long_sequences",
    title="Long sequences, old roots",
    tasks=(
        RETENTION,
        DELTA_RULE,
        DISPATCH,
        STREAMING_ATTENTION,
        HEAVY_HITTERS,
        LOG_PARTITION,
        PSEUDO_LOG_LIKELIHOOD,
        SHOWN["train"],
    ),
)
