"""How good predictions are: BLEU and alignment error for translations, perplexity for texts, GLUE's scores for labels.

Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002. Och & Ney, "A systematic
comparison of various statistical alignment models", Computational Linguistics 29(1), 2003. Wang et al., "GLUE", ICLR
2019, arXiv 1804.07461, table 1: accuracy, F1, the Matthews correlation (Matthews 1975, Biochimica et Biophysica Acta
405, 442), Pearson's and Spearman's correlation.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
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
    return given if given and not isinstance(given[0], str) else [given]  # type: ignore[list-item]


def _check_corpus(hypotheses: Sequence, references: Sequence) -> None:
    if len(hypotheses) != len(references) or not hypotheses:
        raise ValueError(
            f"need as many references as hypotheses, and at least one, got {len(references)} and {len(hypotheses)}"
        )
    if any(isinstance(sentence, str) for sentence in (*hypotheses, *references)):
        raise ValueError("sentences must be lists of tokens, got a plain string: split it into words first")


Labels = Sequence | np.ndarray | Tensor  # one whole number or word per example
Values = Sequence | np.ndarray | Tensor  # one number per example


def perplexity(nats: float, num_tokens: int) -> float:
    """exp(nats / num_tokens): among how many equally likely tokens the model hesitates, on average.

    `nats` is the negative log-likelihood summed over all tokens. It depends on how the text was cut into tokens:
    compare only models that share a tokenizer. Raises ValueError without a token or for negative nats.
    """
    return math.exp(_per("num_tokens", nats, num_tokens))


def bits_per_byte(nats: float, num_bytes: int) -> float:
    """nats / (num_bytes ln 2): the code length of the text per byte, whatever its tokens.

    `nats` is the negative log-likelihood summed over all tokens, `num_bytes` the length of the same text in UTF-8.
    Raises ValueError without a byte or for negative nats.
    """
    return _per("num_bytes", nats, num_bytes) / math.log(2)


def accuracy(predicted: Labels, true: Labels) -> float:
    """The share of examples, from 0 to 1, whose label is predicted. Raises ValueError for unequal or no labels."""
    predicted, true = _labels(predicted, true)
    return float((predicted == true).mean())


def f1_per_class(predicted: Labels, true: Labels) -> dict[int | str, float]:
    """F1 = 2 TP / (2 TP + FP + FN) of each class that was predicted or true, in the order of the labels.

    It is the harmonic mean of precision and recall. Raises ValueError for unequal or no labels.
    """
    predicted, true = _labels(predicted, true)
    classes, confusion = _confusion(predicted, true)
    f1 = 2 * confusion.diagonal() / (confusion.sum(axis=0) + confusion.sum(axis=1))
    return dict(zip(classes.tolist(), f1.tolist(), strict=True))


def f1_score(predicted: Labels, true: Labels, *, average: str = "binary", positive: int | str = 1) -> float:
    """F1, see `f1_per_class`: of the class `positive` ("binary"), the mean over classes ("macro"), or of all pooled.

    "micro" adds up TP, FP and FN of all classes, which for one label per example is the accuracy. A positive class that
    is neither predicted nor true has F1 = 0. Raises ValueError for another average, for unequal or no labels, and
    for "binary" labels of more than two classes, or of two that do not include `positive`.
    """
    if average not in ("binary", "macro", "micro"):
        raise ValueError(f"average must be 'binary', 'macro' or 'micro', got {average!r}")
    if average == "micro":
        return accuracy(predicted, true)
    scores = f1_per_class(predicted, true)
    if average == "macro":
        return sum(scores.values()) / len(scores)
    if len(scores) > 2 or (len(scores) == 2 and positive not in scores):
        raise ValueError(f"a binary F1 needs the class {positive!r} and one other, got {list(scores)}: name `positive`")
    return scores.get(positive, 0.0)


def matthews_correlation(predicted: Labels, true: Labels) -> float:
    """The correlation of predicted and true classes, from -1 to 1 (Gorodkin 2004, eq. 8, for any number of classes).

    For two classes (TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN)). It is 0 if all predictions, or all true
    labels, are one class. Raises ValueError for unequal or no labels.
    """
    predicted, true = _labels(predicted, true)
    _, confusion = _confusion(predicted, true)
    guessed, actual, total = confusion.sum(axis=0), confusion.sum(axis=1), confusion.sum()
    covariance = confusion.trace() * total - guessed @ actual
    spread = math.sqrt(total**2 - guessed @ guessed) * math.sqrt(total**2 - actual @ actual)
    return float(covariance / spread) if spread else 0.0


def pearson_correlation(first: Values, second: Values) -> float:
    """cov(x, y) / (std(x) std(y)), from -1 to 1.

    Raises ValueError for unequal lengths, fewer than two values, values that are not finite, and constant values, whose
    correlation is undefined.
    """
    x, y = _values(first, second)
    x, y = (values / abs(values).max() for values in (x - x.mean(), y - y.mean()))  # tiny ones do not underflow
    cosine = (x / np.linalg.norm(x)) @ (y / np.linalg.norm(y))
    return float(np.clip(cosine, -1, 1))


def spearman_correlation(first: Values, second: Values) -> float:
    """Pearson's correlation of the ranks, equal values sharing their mean rank; raises ValueError as that does."""
    x, y = _values(first, second)
    return pearson_correlation(_ranks(x), _ranks(y))


def _per(name: str, nats: float, number: int) -> float:
    if number < 1 or nats < 0:
        raise ValueError(f"need nats >= 0 and {name} >= 1, got nats={nats} and {name}={number}")
    return nats / number


def _labels(predicted: Labels, true: Labels) -> tuple[np.ndarray, np.ndarray]:
    predicted, true = np.asarray(predicted), np.asarray(true)
    if predicted.shape != true.shape or predicted.ndim != 1 or not len(true):
        raise ValueError(
            f"need one predicted and one true label per example, and an example, got shapes {predicted.shape} "
            f"and {true.shape}"
        )
    if predicted.dtype.kind not in "biuU" or (predicted.dtype.kind == "U") != (true.dtype.kind == "U"):
        raise ValueError(f"labels are whole numbers or words, all of a kind, got {predicted.dtype} and {true.dtype}")
    return predicted, true


def _confusion(predicted: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and how often class i (row) was predicted as class j (column)."""
    classes, ids = np.unique(np.concatenate([true, predicted]), return_inverse=True)
    rows, columns = ids[: len(true)], ids[len(true) :]
    counts = np.bincount(rows * len(classes) + columns, minlength=len(classes) ** 2)
    return classes, counts.reshape(len(classes), len(classes))


def _values(first: Values, second: Values) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise ValueError(f"need two equally long rows of at least two numbers, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("values must be finite: leave out the examples with NaN or infinity")
    if (x == x[0]).all() or (y == y[0]).all():
        raise ValueError(f"a correlation with constant values is undefined, got only {x[0]} or only {y[0]}")
    return x, y


def _ranks(values: np.ndarray) -> np.ndarray:
    _, ids, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return ((last - counts + 1 + last) / 2)[ids]
