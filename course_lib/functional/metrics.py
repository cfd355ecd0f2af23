"""How good is a translation, and how good an alignment: BLEU, exact match, alignment error rate.

Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002.
Och & Ney, "A systematic comparison of various statistical alignment models", Computational Linguistics 29(1), 2003.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

Tokens = Sequence[str]
Link = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Bleu:
    """A BLEU score and what it is made of; `score` and `precisions` are in percent, lengths in tokens."""

    score: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int


@dataclass(frozen=True, kw_only=True)
class LengthBucket:
    """BLEU of the `count` sentences whose length lies in [low, high)."""

    low: float
    high: float
    count: int
    bleu: Bleu


def corpus_bleu(
    hypotheses: Sequence[Tokens],
    references: Sequence[Tokens] | Sequence[Sequence[Tokens]],
    *,
    max_order: int = 4,
    smoothing: str = "none",
) -> Bleu:
    """BLEU = BP exp(1/N sum_n log p_n), BP = min(1, exp(1 - r/c)), Papineni et al. 2002, section 2.3.

    p_n is the clipped n-gram precision over the whole corpus, c the length of the hypotheses and r that of the
    references. A sentence has one reference or a list of them; of several, the one closest in length counts for r.
    Without smoothing BLEU is 0 as soon as one p_n is 0; "exp" replaces the k-th such p_n by 1 / (2^k total_n)
    (Chen & Cherry 2014, method 3).
    Raises ValueError for untokenised strings, differing numbers of sentences, or an unknown smoothing.
    """
    _check_corpus(hypotheses, references)
    if smoothing not in ("none", "exp"):
        raise ValueError(f"smoothing must be 'none' or 'exp', got {smoothing!r}")
    matches, totals = [0] * max_order, [0] * max_order
    hypothesis_length = reference_length = 0
    for hypothesis, given in zip(hypotheses, references, strict=True):
        candidates = _as_list_of_references(given)
        hypothesis_length += len(hypothesis)
        reference_length += min((abs(len(r) - len(hypothesis)), len(r)) for r in candidates)[1]
        for n in range(1, max_order + 1):
            counts = _ngrams(hypothesis, n)
            allowed: Counter = Counter()
            for reference in candidates:
                allowed |= _ngrams(reference, n)
            matches[n - 1] += (counts & allowed).total()
            totals[n - 1] += counts.total()
    precisions = _precisions(matches, totals, smoothing)
    penalty = _brevity_penalty(hypothesis_length, reference_length)
    score = 0.0
    if min(precisions) > 0:
        score = 100 * penalty * math.exp(sum(math.log(p) for p in precisions) / max_order)
    return Bleu(
        score=score,
        precisions=tuple(100 * p for p in precisions),
        brevity_penalty=penalty,
        hypothesis_length=hypothesis_length,
        reference_length=reference_length,
    )


def bleu_by_length(
    hypotheses: Sequence[Tokens],
    references: Sequence[Tokens] | Sequence[Sequence[Tokens]],
    lengths: Sequence[int],
    edges: Sequence[float],
) -> list[LengthBucket]:
    """Corpus BLEU of the sentences in each bucket [edges[i], edges[i+1]) of `lengths`; empty buckets are left out.

    Raises ValueError if the edges do not rise or there is not one length per sentence.
    """
    _check_corpus(hypotheses, references)
    if len(lengths) != len(hypotheses):
        raise ValueError(f"need one length per sentence, got {len(lengths)} for {len(hypotheses)} sentences")
    if len(edges) < 2 or any(low >= high for low, high in itertools.pairwise(edges)):
        raise ValueError(f"edges must be at least two rising numbers, got {list(edges)}")
    buckets = []
    for low, high in itertools.pairwise(edges):
        inside = [i for i, length in enumerate(lengths) if low <= length < high]
        if inside:
            bleu = corpus_bleu([hypotheses[i] for i in inside], [references[i] for i in inside])
            buckets.append(LengthBucket(low=low, high=high, count=len(inside), bleu=bleu))
    return buckets


def exact_match(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """The share of hypotheses, from 0 to 1, that equal their reference token by token.

    Raises ValueError for untokenised strings or differing numbers of sentences.
    """
    _check_corpus(hypotheses, references)
    return sum(list(h) == list(r) for h, r in zip(hypotheses, references, strict=True)) / len(hypotheses)


def alignment_error_rate(
    predicted: Sequence[Iterable[Link]],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]] | None = None,
) -> float:
    """AER(S, P; A) = 1 - (|A & S| + |A & P|) / (|A| + |S|), Och & Ney 2003, section 5, over all sentences.

    Each sentence is a set of links (source word, target word). A, S and P are the predicted, the sure and the possible
    ones; sure links are always possible, and without `possible` P = S. From 0 (perfect) to 1.
    Raises ValueError if the numbers of sentences differ, or there is not a single link.
    """
    possible = sure if possible is None else possible
    if not len(predicted) == len(sure) == len(possible):
        raise ValueError(
            "need the same sentences three times, "
            f"got {len(predicted)} predicted, {len(sure)} sure, {len(possible)} possible"
        )
    agreed = size = 0
    for predicted_links, sure_links, possible_links in zip(predicted, sure, possible, strict=True):
        a, s = set(predicted_links), set(sure_links)
        p = s | set(possible_links)
        agreed += len(a & s) + len(a & p)
        size += len(a) + len(s)
    if size == 0:
        raise ValueError("neither a predicted nor a sure link in any sentence: the alignment error rate is undefined")
    return 1 - agreed / size


def argmax_alignment(weights: Float[Tensor, "T_q T_k"]) -> set[Link]:
    """Links each target word (row) to the source word (column) that it attends to most: {(source, target)}."""
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist())}


def _ngrams(tokens: Tokens, n: int) -> Counter:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _precisions(matches: list[int], totals: list[int], smoothing: str) -> list[float]:
    precisions, halvings = [], 0
    for match, total in zip(matches, totals, strict=True):
        if match == 0 and total > 0 and smoothing == "exp" and any(matches):
            halvings += 1
            precisions.append(1 / (2**halvings * total))
        else:
            precisions.append(match / total if total else 0.0)
    return precisions


def _brevity_penalty(hypothesis_length: int, reference_length: int) -> float:
    if hypothesis_length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / hypothesis_length) if hypothesis_length else 0.0


def _as_list_of_references(given: Tokens | Sequence[Tokens]) -> Sequence[Tokens]:
    return given if given and not isinstance(given[0], str) else [given]


def _check_corpus(hypotheses: Sequence, references: Sequence) -> None:
    if len(hypotheses) != len(references) or not hypotheses:
        raise ValueError(
            f"need as many references as hypotheses, and at least one, got {len(references)} and {len(hypotheses)}"
        )
    if any(isinstance(sentence, str) for sentence in (*hypotheses, *references)):
        raise ValueError("sentences must be lists of tokens, got a plain string: split it into words first")
