"""Lesson 05, Attention: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.classroom.widgets import heat_map
from course_lib.data.checkpoints import by_seed
from course_lib.data.translation import SentencePair
from course_lib.functional.metrics import alignment_error_rate
from course_lib.lessons.lesson_05 import figures
from course_lib.lessons.lesson_05.neighbours import TrainedReader, look
from course_lib.tasks.claims import above, below
from course_lib.training.translation import TranslationScores
from course_lib.viz.style import PALETTE

BUCKETS = ("1 to 7", "8 to 11", "12 to 15", "16 to 19", "20 to 30")  # English words, as the cards name them


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
        claims={"yours": above(scores.bleu, 90), "grows": gap[-1] > max(50, gap[0] + 40)},
        came=without[:, -1].mean(),
        values={"fixed": without[:, -1].mean(), "longer": longer},
    )


def alignment(weights: Float[Tensor, "T_q T_k"], pair: SentencePair, aer: float, pairs, *, predicted=None) -> Result:
    rings = {(j, i) for i, j in pair.alignment}
    best, diagonal = reference_points(pairs)
    table = heat_map(
        weights, pair.french, pair.english, label="French word (row) attends to English word (column)", marks=rings
    )
    return Result(
        table + LEGEND,
        claims={"error rate": below(aer, 0.15), "reference points": (above(diagonal / aer, 2), above(aer - best, 0))},
    )


LEGEND = (
    '<p style="margin:0.2em 0">The darker a square, the larger the weight. '
    f'<span style="border:2px solid {PALETTE["vermilion"]};border-radius:50%;padding:0 0.55em"></span> '
    "a ring marks a gold link, from the grammar.</p>"
)
WIDTHS = (4, 16, 64, 192, 1024)  # d_k; the lesson's translators have 192
VARIANTS = {  # of the translator: name in the figure -> name in the card
    "divided": "scaled",
    "small steps": "small steps",
    "small start": "small start",
    "not divided": "no root",
}


def root(card: Mapping, *, predicted=None) -> Result:
    norms = {divided: [query_gradients(d, divided=divided) for d in WIDTHS] for divided in (True, False)}
    gradient = {
        divided: [tuple(np.quantile(row, (0.1, 0.5, 0.9)).tolist()) for row in rows] for divided, rows in norms.items()
    }
    matrix = {divided: [gradient_at_matrix(d, divided=divided) for d in WIDTHS] for divided in (True, False)}
    medians = {divided: [row[1] for row in rows] for divided, rows in gradient.items()}
    largest = {"largest": share_of_largest(norms[False][3]), "divided_largest": share_of_largest(norms[True][3])}
    ratios = np.array(matrix[True]) / np.array(matrix[False])  # of the same batch, by width
    bleu = {name: by_seed(card, f"BLEU, {variant}") for name, variant in VARIANTS.items()}
    means = {name: float(np.mean(scores)) for name, scores in bleu.items()}
    return Result(
        figures.root(WIDTHS, gradient, matrix, bleu, predicted),
        claims={
            "gradient": (
                above(medians[True][-1] / medians[False][-1], 100),
                below(medians[True][3] / medians[False][3], 5),
                below(ratios[1:].max(), 0.5),
            ),
            "trainings": above(min(bleu["divided"]) - max(bleu["not divided"]), 5),
            "parts": (
                above(min(bleu["small steps"]) - max(bleu["not divided"]), 1),
                above(min(bleu["divided"]) - max(bleu["small steps"] + bleu["small start"]), 1),
            ),
        },
        came=means["not divided"],
        values={name.replace(" ", "_"): score for name, score in means.items()}
        | {f"times_{d}": float(1 / np.median(ratios[WIDTHS.index(d)])) for d in (192, 1024)}
        | {name: 100 * share for name, share in largest.items()},
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
        claims={
            "mistakes": (below(np.mean(wrong[2]) / np.mean(wrong[1]), 0.5), below(max(wrong[2]) / min(wrong[1]), 1))
        },
        came=float(np.mean(wrong[2])),
    )


def cost(lengths: Sequence[int], operations: Mapping[str, Sequence[float]], d: int, *, predicted=None) -> Result:
    attention, gru, _, _ = (np.array(values, dtype=float) for values in operations.values())
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


def query_gradients(d: int, *, divided: bool, keys: int = 16, draws: int = 1000) -> Float[np.ndarray, " draws"]:
    """The norm of a loss's gradient with respect to each of many q, for entries of variance 1.

    The loss is the product of the attention's output with a random vector.
    """
    generator = torch.Generator().manual_seed(0)
    q, k, v, r = (torch.randn(draws, n, m, generator=generator) for n, m in ((1, d), (keys, d), (keys, 8), (1, 8)))
    q.requires_grad_()
    scores = q @ k.mT / (d**0.5 if divided else 1.0)
    ((scores.softmax(dim=-1) @ v) * r).sum().backward()
    return q.grad.squeeze(1).norm(dim=1).numpy()


def share_of_largest(norms: Float[np.ndarray, " draws"], fraction: float = 0.05) -> float:
    """The share, from 0 to 1, of the largest gradients in the sum of all squares."""
    squares = np.sort(norms.astype(float) ** 2)
    return float(squares[-round(fraction * len(squares)) :].sum() / squares.sum())


def gradient_at_matrix(
    d: int, *, divided: bool, keys: int = 16, queries: int = 400, batches: int = 5
) -> Float[np.ndarray, " batches"]:
    """The norm of the mean loss's gradient with respect to W in q = W^T s, for a batch of queries; as above."""
    generator, norms = torch.Generator().manual_seed(0), []
    for _ in range(batches):
        s, k, v, r = (
            torch.randn(queries, n, m, generator=generator) for n, m in ((1, d), (keys, d), (keys, 8), (1, 8))
        )
        W = (torch.randn(d, d, generator=generator) / d**0.5).requires_grad_()
        scores = (s @ W) @ k.mT / (d**0.5 if divided else 1.0)
        (((scores.softmax(dim=-1) @ v) * r).sum() / queries).backward()
        norms.append(W.grad.norm().item())
    return np.array(norms)


RESULTS = {
    function.__name__: function
    for function in (mechanism, decoders, bottleneck, alignment, root, positions, heads, cost)
}
