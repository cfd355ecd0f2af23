"""Lesson 05, Attention: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.classroom.widgets import heat_map
from course_lib.data.translation import SentencePair
from course_lib.functional.metrics import alignment_error_rate
from course_lib.lessons.lesson_05 import figures
from course_lib.lessons.lesson_05.neighbours import TrainedReader, look
from course_lib.tasks.claims import above, below
from course_lib.training.translation import TranslationScores

BUCKETS = ("1 to 7", "8 to 11", "12 to 15", "16 to 19", "20 to 30")  # English words, as the cards name them


def diagram(*, predicted=None) -> Result:
    english = "the european economic area exists".split()
    french = "la zone économique européenne existe".split()
    ideal = np.eye(5)
    ideal[1:4] = ideal[1:4][::-1]
    return Result(figures.bottleneck(english, french, ideal))


def mechanism(words: Sequence[str], q: Tensor, K: Tensor, V: Tensor, *, predicted=None) -> Result:
    scores = K @ q / len(q) ** 0.5
    return Result(figures.mechanism(words, q, K, scores, scores.softmax(dim=0), V))


def decoders(*, predicted=None) -> Result:
    return Result(figures.decoders())


def bottleneck(scores: TranslationScores, attention: Mapping, fixed: Mapping, *, predicted=None) -> Result:
    with_attention, without = by_length(attention, ", scaled"), by_length(fixed)
    longer = by_length(fixed, ", four times the steps")[:, -1].mean()
    gap = with_attention.min(axis=0) - without.max(axis=0)
    return Result(
        figures.lengths(
            BUCKETS, without, with_attention, [bucket.bleu.score for bucket in scores.by_length], predicted
        ),
        claims={"yours": above(scores.bleu, 90), "long sentences": gap[-1] > 50, "grows": gap[-1] > gap[0] + 40},
        came=without[:, -1].mean(),
        values={"longer": longer},
    )


def alignment(weights: Float[Tensor, "T_q T_k"], pair: SentencePair, aer: float, pairs, *, predicted=None) -> Result:
    rings = {(j, i) for i, j in pair.alignment}
    best, diagonal = reference_points(pairs)
    return Result(
        heat_map(weights, pair.french, pair.english, label="French word (row) looks at English word", marks=rings),
        claims={"error rate": below(aer, 0.15), "reference points": (above(diagonal / aer, 2), above(aer - best, 0))},
    )


def root(card: Mapping, *, predicted=None) -> Result:
    widths = [4, 16, 64, 256, 1024]
    gradient = {divided: [gradient_through_softmax(d, divided=divided) for d in widths] for divided in (True, False)}
    names = {True: "scaled", False: "no root"}
    steps, bleu, aer = (
        {divided: [seed["test"][f"{score}, {name}"] for seed in card["seeds"]] for divided, name in names.items()}
        for score in ("steps", "BLEU", "AER")
    )
    return Result(
        figures.root(widths, gradient, steps, bleu, predicted),
        claims={
            "gradient": above(gradient[True][-1] / gradient[False][-1], 1e3),
            "trainings": max(steps[True]) < min(steps[False]) and max(bleu[False]) < min(bleu[True]),
        },
        came=float(np.mean(bleu[False])),
        values={
            "lowest_without": min(aer[False]),
            "highest_without": max(aer[False]),
            "lowest_with": min(aer[True]),
            "highest_with": max(aer[True]),
        },
    )


def positions(codes: Float[Tensor, "N D"], *, predicted=None) -> Result:
    unit = codes / codes.norm(dim=1, keepdim=True)
    similar = unit @ unit.T
    return Result(
        figures.positions(codes),
        claims={"distance": torch.allclose(similar[:40, :40], similar[20:60, 20:60], atol=1e-4)},
    )


def heads(readers: Mapping[int, Sequence[TrainedReader]], words: Sequence[str], *, predicted=None) -> Result:
    wrong = {number: [100 * (1 - run.test) for run in runs] for number, runs in readers.items()}
    return Result(
        figures.heads(words, look(readers[2][0].model, words), wrong, predicted),
        claims={"mistakes": below(max(wrong[2]) / min(wrong[1]), 0.1)},
        came=float(np.mean(wrong[2])),
    )


def cost(lengths: Sequence[int], operations: Mapping[str, Sequence[float]], d: int, *, predicted=None) -> Result:
    attention, gru, _ = (np.array(values, dtype=float) for values in operations.values())
    crossing = float(lengths[-1] * gru[-1] / attention[-1])  # n at which a line of slope 2 meets one of slope 1
    return Result(
        figures.cost(lengths, operations, d, crossing), claims={"crossing": below(abs(crossing / d - 3), 0.05)}
    )


def by_length(card: Mapping, variant: str = "") -> Float[np.ndarray, "seeds buckets"]:
    """Test BLEU of a card's seeds by length of the sentence."""
    return np.array([[seed["test"][f"BLEU, {b} words{variant}"] for b in BUCKETS] for seed in card["seeds"]])


def reference_points(pairs: Sequence[SentencePair]) -> tuple[float, float]:
    """The alignment error rates of one right link for each French word, and of a diagonal."""
    gold = [pair.alignment for pair in pairs]
    one_each = [{(min(i for i, k in links if k == j), j) for _, j in links} for links in gold]
    slopes = [(len(pair.english) - 1) / (len(pair.french) - 1) for pair in pairs]
    diagonal = [
        {(round(j * slope), j) for j in range(len(pair.french))} for pair, slope in zip(pairs, slopes, strict=True)
    ]
    return alignment_error_rate(one_each, gold), alignment_error_rate(diagonal, gold)


def gradient_through_softmax(d: int, *, divided: bool, keys: int = 16, draws: int = 1000) -> float:
    """Median norm of the softmax's Jacobian for q.k of independent entries of variance 1."""
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(draws, 1, d, generator=generator), torch.randn(draws, keys, d, generator=generator)
    scores = (q @ k.mT).squeeze(1) / (d**0.5 if divided else 1.0)
    a = scores.softmax(dim=-1)
    return (torch.diag_embed(a) - a[:, :, None] * a[:, None, :]).norm(dim=(1, 2)).median().item()


RESULTS = {
    function.__name__: function
    for function in (diagram, mechanism, decoders, bottleneck, alignment, root, positions, heads, cost)
}
