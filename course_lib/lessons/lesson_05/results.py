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


def diagram(*, bet=None) -> Result:
    english = "the european economic area exists".split()
    french = "la zone économique européenne existe".split()
    ideal = np.eye(5)
    ideal[1:4] = ideal[1:4][::-1]
    return Result(
        figures.bottleneck(english, french, ideal),
        alt="Two networks that translate. Left: all words of the English sentence flow into one vector c, and all "
        "French words come out of it. Right: each French word has its own arrow from the English word that it means, "
        "and the arrows of european, economic and area cross.",
    )


def mechanism(words: Sequence[str], q: Tensor, K: Tensor, V: Tensor, *, bet=None) -> Result:
    scores = K @ q / len(q) ** 0.5
    return Result(
        figures.mechanism(words, q, K, scores, scores.softmax(dim=0), V),
        alt="The query (2, 1, 0, 0) asks three keys, of european, economic and area. Their scores 1, 2 and 0 become "
        "the weights 0.245, 0.665 and 0.090, and the values, weighted so, add up to the output (2.84, 1.16).",
    )


def decoders(*, bet=None) -> Result:
    return Result(
        figures.decoders(),
        alt="Two decoders, three states each. Bahdanau: each state looks, and what it sees goes into the next state: a "
        "loop. Luong: the states follow one another without waiting, and each looks afterwards.",
    )


def bottleneck(scores: TranslationScores, attention: Mapping, fixed: Mapping, *, bet=None) -> Result:
    with_attention, without = by_length(attention, ", scaled"), by_length(fixed)
    longer = by_length(fixed, ", four times the steps")[:, -1].mean()
    gap = with_attention.min(axis=0) - without.max(axis=0)
    return Result(
        figures.lengths(BUCKETS, without, with_attention, [bucket.bleu.score for bucket in scores.by_length], bet),
        alt="BLEU against the number of words in the sentence. Attention stays near the top at all lengths, your run "
        "with it; the fixed vector begins above 75 and falls below 25 on the longest sentences.",
        claims=(
            ("your run reaches 90 BLEU", above(scores.bleu, 90)),
            (
                "on 20 words and more the worst seed with attention is over 50 BLEU ahead of the best without",
                gap[-1] > 50,
            ),
            ("the advantage grows with the sentence, by over 40 BLEU", gap[-1] > gap[0] + 40),
        ),
        came=without[:, -1].mean(),
        outcome="The fixed vector does not fail everywhere: on the shortest sentences it does passably. It fails *as "
        "the sentence grows*: what it has to hold grows, and it does not. That shape is what a bottleneck looks like. "
        f"(It goes on learning: four times the steps bring it to {longer:.0f} BLEU on the longest, by its card.)",
    )


def alignment(weights: Float[Tensor, "T_q T_k"], pair: SentencePair, aer: float, pairs, *, bet=None) -> Result:
    rings = {(j, i) for i, j in pair.alignment}
    best, diagonal = reference_points(pairs)
    return Result(
        heat_map(weights, pair.french, pair.english, label="French word (row) looks at English word", marks=rings),
        alt="A map of the famous sentence: a row for each French word, a column for each English one, the gold links "
        "as rings. Most bright squares lie on a ring, also where zone économique européenne runs against the diagonal.",
        claims=(
            ("over the whole test the alignment error rate is below 0.15", below(aer, 0.15)),
            ("a diagonal guess has over twice as much; one right link for each word would have the least",
             above(diagonal / aer, 2), above(aer - best, 0)),
        ),
        outcome="The rings are gold links, and the model was shown none of them. It was trained on sentences alone: "
        "knowing where to look helps to predict the next word, so it learned to.",
    )  # fmt: skip


def root(card: Mapping, *, bet=None) -> Result:
    widths = [4, 16, 64, 256, 1024]
    gradient = {divided: [gradient_through_softmax(d, divided=divided) for d in widths] for divided in (True, False)}
    names = {True: "scaled", False: "no root"}
    steps, bleu, aer = (
        {divided: [seed["test"][f"{score}, {name}"] for seed in card["seeds"]] for divided, name in names.items()}
        for score in ("steps", "BLEU", "AER")
    )
    return Result(
        figures.root(widths, gradient, steps, bleu, bet),
        alt="Three panels. Undivided, the gradient through a softmax over random scores falls by powers of ten as the "
        "width grows; divided, it stays. In three trainings each the translator without the root needs more steps to a "
        "loss of 0.5, and ends with a lower BLEU.",
        claims=(
            ("at width 1,024 dividing keeps over 1,000 times the gradient at a typical query's scores (median)",
             above(gradient[True][-1] / gradient[False][-1], 1e3)),
            ("each training without the root is slower and ends worse than each with it",
             max(steps[True]) < min(steps[False]) and max(bleu[False]) < min(bleu[True])),
        ),
        came=float(np.mean(bleu[False])),
        outcome="A saturated softmax passes hardly any gradient to its scores, from which alone $W^Q$ and $W^K$ learn "
        "(at the queries dividing takes a factor of $\\sqrt{d_k}$ off again, so that less is gained there than the "
        "left panel shows); the values, read with whatever weights there are, keep theirs. A few queries, whose two "
        "best keys fit equally well, keep it: so the translator without the "
        f"root learns where to look all the same, but slowly. Its links say so: AER {min(aer[False]):.2f} to "
        f"{max(aer[False]):.2f} without the root, {min(aer[True]):.2f} to {max(aer[True]):.2f} with it.",
    )  # fmt: skip


def positions(codes: Float[Tensor, "N D"], *, bet=None) -> Result:
    unit = codes / codes.norm(dim=1, keepdim=True)
    similar = unit @ unit.T
    return Result(
        figures.positions(codes),
        alt="Left: the codes of 64 positions, fast waves in the first numbers, slow ones in the last. Right: their "
        "similarity, a bright diagonal that fades to both sides, the same at every position.",
        claims=(
            ("similarity depends on the distance alone",
             torch.allclose(similar[:40, :40], similar[20:60, 20:60], atol=1e-4)),
        ),
    )  # fmt: skip


def heads(readers: Mapping[int, Sequence[TrainedReader]], words: Sequence[str], *, bet=None) -> Result:
    wrong = {number: [100 * (1 - run.test) for run in runs] for number, runs in readers.items()}
    return Result(
        figures.heads(words, look(readers[2][0].model, words), wrong, bet),
        alt="Left: the width split between two heads, each with a softmax of its own, joined again. Middle: where the "
        "two trained heads look, one a step to the left of the diagonal, the other a step to the right. Right: one "
        "head has over 10 % of the neighbours wrong with every seed, two heads under 1 %.",
        claims=(
            ("two heads make under a tenth of one head's mistakes, every seed",
             below(max(wrong[2]) / min(wrong[1]), 0.1)),
        ),
        came=float(np.mean(wrong[2])),
        outcome="One softmax makes *one* average: what stood left and what stood right is mixed. Where only one order "
        "makes a sentence, the grammar tells them apart, and one head gets by. Two heads make two averages, at the "
        "same cost; where one strays, the read-out can undo it. In the Transformer's paper too many heads hurt again.",
    )  # fmt: skip


def cost(lengths: Sequence[int], operations: Mapping[str, Sequence[float]], d: int, *, bet=None) -> Result:
    attention, gru, _ = (np.array(values, dtype=float) for values in operations.values())
    crossing = float(lengths[-1] * gru[-1] / attention[-1])  # n at which a line of slope 2 meets one of slope 1
    return Result(
        figures.cost(lengths, operations, d, crossing),
        alt="Left: what reaches what in one layer: a convolution a band with shared weights, a fully connected layer "
        "everything with its own weights, self-attention everything by content, local attention a band by content. "
        "Right: operations against length on logarithmic axes; self-attention is twice as steep as recurrence and "
        "local attention, and crosses recurrence at three times the width.",
        claims=(("the counted lines cross at n = 3d", below(abs(crossing / d - 3), 0.05)),),
        outcome="The table's terms cross at $n = d$, these lines at $3d$. A GRU multiplies each of its $n$ vectors by "
        "six $d \\times d$ matrices, $6nd^2$; attention, bare, multiplies twice, $QK^\\top$ and the average, $2n^2d$. "
        "With its four maps it costs $2n^2d + 4nd^2$, and that crosses $6nd^2$ at $n = d$ again. Factors shift a "
        "crossing, never a slope.",
    )


def by_length(card: Mapping, contestant: str = "") -> Float[np.ndarray, "seeds buckets"]:
    """Test BLEU of a card's seeds by length of the sentence."""
    return np.array([[seed["test"][f"BLEU, {b} words{contestant}"] for b in BUCKETS] for seed in card["seeds"]])


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
