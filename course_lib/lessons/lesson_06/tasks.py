"""Lesson 06, The Transformer: what its exercises are tried with; their text and their mistakes are in tasks.md."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.lessons.lesson_05.tasks import TASKS as TASKS_05
from course_lib.lessons.lesson_05.tasks import lengths as real_words
from course_lib.tasks import Case, Draw, Finding, Report, Task, TaskInput
from course_lib.tasks.findings import CHANGES_INPUT, GRADIENT_LOST
from course_lib.tasks.markdown import read_tasks


def vectors(draw: Draw) -> TaskInput:
    """Vectors with a mean of their own at each position, and their width."""
    B, T, D = draw.sizes(3, 3, 8)
    return TaskInput((draw(B, T, D) * (1 + draw(B, T, 1).abs()) + draw(B, T, 1),), build=(D,))


def nearly_constant(draw: Draw) -> TaskInput:
    """The numbers of a position hardly differ, so that the small constant counts."""
    B, T, D = draw.sizes(3, 3, 8)
    return TaskInput((2e-3 * draw(B, T, D),), build=(D,))


def vectors_for_mlp(draw: Draw) -> TaskInput:
    B, T, D, inner = draw.sizes(4, 3, 8)
    return TaskInput((3 * draw(B, T, D),), build=(D, 2 * inner))


def one_sublayer(draw: Draw, *, pre_norm: bool) -> tuple[Tensor, Callable, Callable, bool]:
    """Vectors, a norm and a sublayer with drawn weights."""
    B, T, D = draw.sizes(3, 3)
    W, gain, shift = draw(D, D) / D**0.5, draw(D), draw(D)
    return (
        draw(B, T, D),
        lambda h: nn.functional.layer_norm(h, h.shape[-1:], gain, shift),
        lambda h: torch.tanh(h @ W),
        pre_norm,
    )


def sizes_of_block(draw: Draw, pre_norm: bool) -> tuple[int, int, int, bool]:
    d, inner = draw.sizes(2, 2, 7)
    heads = draw.integers(2, 4, 1).item()
    return heads * d, heads, 2 * inner, pre_norm


def for_encoder(draw: Draw, *, pre_norm: bool = True, padded: bool = False) -> TaskInput:
    """Vectors, perhaps with a mask of real words, and the sizes of an encoder block."""
    B, T = draw.sizes(2, 4, 8)
    build = sizes_of_block(draw, pre_norm)
    x = 2 * draw(B, T, build[0])
    return TaskInput((x, real_words(draw, B, T, True)[:, None, None]) if padded else (x,), build=build)


def for_decoder(draw: Draw, *, pre_norm: bool = True, padded: bool = False) -> TaskInput:
    """Vectors, an encoder's output, perhaps a mask of its real words, and the sizes of a decoder block."""
    B, T, T_k = draw.sizes(3, 4, 8)
    build = sizes_of_block(draw, pre_norm)
    given = 2 * draw(B, T, build[0]), 2 * draw(B, T_k, build[0])
    return TaskInput((*given, real_words(draw, B, T_k, True)[:, None, None]) if padded else given, build=build)


def some_pairs(draw: Draw, *, pre_norm: bool) -> TaskInput:
    """Padded source sentences, previous target words, and the sizes of a Transformer."""
    B, T, T_k, V, d = draw.sizes(5, 4, 8)
    heads = draw.integers(2, 4, 1).item()
    given = draw.integers(0, V, B, T_k), real_words(draw, B, T_k, True), draw.integers(0, V + 1, B, T)
    return TaskInput(given, build=(V, V + 1, 2 * heads * d, 2, heads, 3 * d, pre_norm))


class Counting(nn.Module):
    """A model without parameters whose next word follows from all words so far: what a decoding loop is tried on."""

    def encode(self, source: Tensor, valid: Tensor) -> Tensor:
        return (source * valid).sum(dim=1, keepdim=True)

    def decode(self, words: Tensor, context: Tensor, valid: Tensor) -> Tensor:
        weight = torch.arange(1, words.shape[1] + 1)
        state = (context + (weight * (words + 1)).cumsum(dim=1)) % 31 % 5
        return -(torch.arange(5) - state[..., None]).abs() / 2.0

    def forward(self, source: Tensor, valid: Tensor, target: Tensor) -> Tensor:
        return self.decode(target, self.encode(source, valid), valid)


def to_be_written(draw: Draw, *, most: int = 40) -> tuple:
    """A model, sentences, the start and end symbols, and how many words may be written."""
    B, T = draw.sizes(2, 4, 7)
    return Counting(), draw.integers(0, 31, B + 2, T), real_words(draw, B + 2, T, True), 1, 2, most


def early(draw: Draw) -> tuple[int, float, int]:
    """One of the first steps, a highest learning rate, and the length of the warm-up."""
    warmup = draw.integers(10, 60, 1).item()
    return draw.integers(1, warmup // 2, 1).item(), draw.integers(1, 50, 1).item() / 1000, warmup


def late(draw: Draw) -> tuple[int, float, int]:
    """The same for a step after the warm-up."""
    step, peak, warmup = early(draw)
    return step + draw.integers(1, 4, 1).item() * warmup, peak, warmup


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
    "layernorm": (
        Case("each position by itself", vectors),
        Case("numbers that hardly differ", nearly_constant, tolerance=1e-3),
    ),
    "mlp": (Case("two layers with a ReLU between them", vectors_for_mlp),),
    "residual": (
        Case("pre-norm", lambda draw: one_sublayer(draw, pre_norm=True)),
        Case("post-norm", lambda draw: one_sublayer(draw, pre_norm=False)),
    ),
    "encoder_block": (
        Case("pre-norm", for_encoder),
        Case("post-norm", lambda draw: for_encoder(draw, pre_norm=False)),
        Case("padding is hidden", lambda draw: for_encoder(draw, padded=True)),
    ),
    "decoder_block": (
        Case("pre-norm", for_decoder),
        Case("post-norm", lambda draw: for_decoder(draw, pre_norm=False)),
        Case("padding of the context is hidden", lambda draw: for_decoder(draw, padded=True)),
    ),
    "transformer": (
        Case("pre-norm", lambda draw: some_pairs(draw, pre_norm=True), tolerance=1e-3),
        Case("post-norm", lambda draw: some_pairs(draw, pre_norm=False), tolerance=1e-3),
    ),
    "greedy": (
        Case("rows that end at different steps", to_be_written),
        Case("at most so many words", lambda draw: to_be_written(draw, most=2)),
    ),
    "schedule": (
        Case("it rises in a straight line during the warm-up", early, tolerance=1e-6),
        Case("it falls with the square root of the step afterwards", late, tolerance=1e-6),
    ),
    "smoothed_loss": (
        Case("smoothed targets, the mean over the real words", sentences, tolerance=1e-5),
        Case("large logits do no harm", lambda draw: sentences(draw, large=1e3), tolerance=1e-5),
    ),
    "beam_step": (
        Case("the best of all continuations, whatever beam they come from", lambda draw: beams(draw, over=False)),
        Case("a beam that has ended competes by its own length", beams),
        Case("at the first step only one beam counts", first),
    ),
    "bpe_merge": (
        Case("the most frequent pair is joined", lambda draw: pieces(draw, letters="abcd")),
        Case("runs of one letter are joined from the left", lambda draw: pieces(draw, letters="ab")),
        Case("among equals the pair that occurs first", lambda draw: (pieces(draw, letters="abcde")[0], [1] * 5)),
    ),
}


def part(name: str) -> Callable[..., nn.Module]:
    """What a learner's module takes if she has no such part of her own: that of the solution."""
    return lambda *sizes: TASKS[name].module(*sizes)


def residual(*given: Any) -> Tensor:
    """What a learner's blocks take if she has no function of her own."""
    return TASKS["residual"].reference(*given)


PARTS = {
    "MultiHeadAttention": TASKS_05["multi_head"].module,
    "positions": TASKS_05["positions"].reference,
    "residual": residual,
    "LayerNorm": part("layernorm"),
    "MLP": part("mlp"),
    "EncoderBlock": part("encoder_block"),
    "DecoderBlock": part("decoder_block"),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS)


class Sublayer(Task):
    """A task where a copy that is overwritten is refused, too, so the general hint to copy first would mislead."""

    def run(self, function: Any) -> Report:
        report = super().run(function)
        return replace(report, findings=[self._hinted(finding) for finding in report.findings])

    @staticmethod
    def _hinted(finding: Finding) -> Finding:
        lost_in_place = finding.misconception == GRADIENT_LOST and "inplace" in finding.message
        if finding.misconception != CHANGES_INPUT and not lost_in_place:
            return finding
        return replace(
            finding,
            hint="Write no `x += ...`, not even on a copy: the norm needs the old numbers for its gradient. "
            "The `+` of a sum makes a new tensor.",
        )


TASKS["residual"] = Sublayer(**{one.name: getattr(TASKS["residual"], one.name) for one in fields(Task)})
