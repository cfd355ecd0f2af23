"""How good are predictions: perplexity, bits per byte, accuracy, F1, Matthews and rank correlation.

The GLUE benchmark (Wang et al. 2019, ICLR, arXiv 1804.07461, table 1) scores its tasks by accuracy, F1, the Matthews
correlation (Matthews 1975, Biochimica et Biophysica Acta 405, 442), and Pearson's and Spearman's correlation.
"""

import math
from collections.abc import Sequence

import numpy as np
from torch import Tensor

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
