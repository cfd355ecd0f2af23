"""Lesson 06, The Transformer: what its exercises are tried with; their text and their mistakes are in tasks.md."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import Case, Draw, Finding, Task, gradients
from course_lib.tasks.core import Probe
from course_lib.tasks.markdown import read_tasks

Layer = Callable[[Tensor], Tensor]


def sublayers(draw: Draw, *, count: int) -> tuple[Tensor, list[Layer], list[Layer]]:
    """Words, so many sublayers, and as many layer norms, with drawn weights."""
    B, T, D = draw.sizes(3)
    maps = [draw(D, D) / D**0.5 for _ in range(count)]
    gains = [(draw(D), draw(D)) for _ in range(count)]
    return (
        draw(B, T, D),
        [lambda h, W=W: torch.tanh(h @ W) for W in maps],
        [lambda h, gain=gain: F.layer_norm(h, h.shape[-1:], *gain) for gain in gains],
    )


def gradients_of_block(task: Task, probe: Probe) -> list[Finding]:
    """As for all tasks; torch's error about a change in place is told as what it is."""
    try:
        return gradients.run(task, probe)
    except RuntimeError as error:
        if "inplace operation" not in str(error):
            raise
        return [task.finding("x changed in place")]


def early(draw: Draw) -> tuple[int, int, int]:
    """One of the first steps, a width, and the length of the warm-up."""
    dim, warmup = draw.sizes(2, 10, 60)
    return draw.integers(1, 3, 1).item(), dim, warmup


def late(draw: Draw) -> tuple[int, int, int]:
    """The same for a step behind the warm-up."""
    step, dim, warmup = early(draw)
    return step + draw.integers(1, 4, 1).item() * warmup, dim, warmup


def sentences(draw: Draw, *, large: float = 1.0) -> tuple[Tensor, Tensor, float, Tensor]:
    """Scores, targets, a smoothing, and which words are real: the first ones of each row, a different number."""
    B, T, V = draw.sizes(3, 3)
    lengths = draw.integers(1, T, B)
    lengths[0], lengths[1] = 1, T - 1
    smoothing = (1 + draw.integers(0, 8, 1).item()) / 20
    return large * draw(B, T, V), draw.integers(0, V, B, T), smoothing, torch.arange(T) < lengths[:, None]


def beams(draw: Draw, *, over: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """Beams of the same length, of which some have ended before, and what each may write next."""
    N, V = draw.sizes(2, 4)
    ended = draw(N) > 0
    ended[0], ended[-1] = False, True
    ended &= over
    written = draw.integers(4, 10, 1).item()
    lengths = torch.where(ended, draw.integers(1, written, N), written)
    log_probs = (2 * draw(N, V)).log_softmax(dim=-1)
    totals = -0.5 * (lengths + 1) ** 0.8 * (1 + 0.2 * draw(N)).abs() - 0.2 * draw(N).abs()
    return totals, lengths, ended, log_probs, 0.5 + draw.integers(0, 9, 1).item() / 10


def first(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor, float]:
    """The first step: all beams are alike, so that only one of them counts, and it has words enough for all."""
    _, lengths, ended, log_probs, penalty = beams(draw, over=False)
    N = min(log_probs.shape)  # of fewer words than beams some would be picked at -inf, in any order
    totals = torch.full((N,), -math.inf)
    totals[0] = 0.0
    return totals, 0 * lengths[:N], ended[:N], log_probs[:1].repeat(N, 1), penalty


def pieces(draw: Draw, *, letters: str) -> tuple[list[list[str]], list[int]]:
    """Words of these letters, and how often each occurs; the commonest pair stands alone at the top."""
    words = [[letters[i] for i in draw.integers(0, len(letters), n)] for n in draw.sizes(5, 3, 8)]
    return words, (1 + draw.integers(0, 9, 5)).tolist()


CASES = {
    "block": (
        Case("two sublayers, as in an encoder", lambda draw: sublayers(draw, count=2)),
        Case("three sublayers, as in a decoder", lambda draw: sublayers(draw, count=3)),
    ),
    "schedule": (
        Case("it rises in a straight line during the warm-up", early, tolerance=1e-6),
        Case("it falls with the root of the step behind it", late, tolerance=1e-6),
    ),
    "smoothed_loss": (
        Case("smoothed targets, the mean over the real words", sentences, tolerance=1e-5),
        Case("large scores do no harm", lambda draw: sentences(draw, large=1e3), tolerance=1e-5),
    ),
    "beam_step": (
        Case("the best of all continuations, whatever beam they come from", lambda draw: beams(draw, over=False)),
        Case("a beam that has ended waits, and competes by its own length", beams),
        Case("at the first step only one beam counts", first),
    ),
    "bpe_merge": (
        Case("the commonest pair is joined", lambda draw: pieces(draw, letters="abcd")),
        Case("runs of one letter are joined from the left", lambda draw: pieces(draw, letters="ab")),
        Case("of several commonest pairs the one met first", lambda draw: (pieces(draw, letters="abcde")[0], [1] * 5)),
    ),
}
GRADIENTS = replace(gradients, detects=(*gradients.detects, "x changed in place"), run=gradients_of_block)
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, block={"also": (GRADIENTS,)})
