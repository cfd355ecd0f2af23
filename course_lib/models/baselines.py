"""What every network has to beat: the commonest class, and logistic regression on the words themselves.

A feature is a text, such as a word or "-1=le", and an example a list of the features that it has.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

Features = Sequence[str]


def bag_of_words(words: Sequence[str], *, longest: int = 1) -> list[str]:
    """The words of a sentence without their order; with `longest` n also all runs of 2 ... n words."""
    return [" ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)]


def word_windows(words: Sequence[str], *, width: int = 1) -> list[list[str]]:
    """For each word what stands up to `width` places away, with its place: "-1=la", "0=loi", "1=est"."""
    return [
        [f"{j - i}={words[j]}" for j in range(max(0, i - width), min(len(words), i + width + 1))]
        for i in range(len(words))
    ]


class MajorityClass:
    """Answers every question with the commonest label of the training examples; of equally common ones the first."""

    def fit(self, examples: Sequence[Features], labels: Sequence[Hashable]) -> "MajorityClass":
        """Counts the labels. Raises ValueError without an example, or for unequal numbers."""
        _check(examples, labels)
        self.label = Counter(labels).most_common(1)[0][0]
        return self

    def predict(self, examples: Sequence[Features]) -> list[Hashable]:
        return [self.label] * len(examples)


class LogisticRegression:
    """p(y | x) = softmax(b + sum of the rows W_f of the features f of x)_y, for any number of classes.

    Minimises sum_i -ln p(y_i | x_i) + l2 / 2 |W|^2 to convergence by L-BFGS; `l2` is the 1/C of scikit-learn. Features
    that training did not show are ignored.
    """

    def __init__(self, *, l2: float = 1.0):
        if l2 <= 0:
            raise ValueError(f"l2 must be positive, got {l2}: without it separable data have no solution")
        self.l2 = l2

    def fit(self, examples: Sequence[Features], labels: Sequence[Hashable]) -> "LogisticRegression":
        """Learns weights from nothing. Raises ValueError without an example, or for unequal numbers."""
        _check(examples, labels)
        self.classes = list(dict.fromkeys(labels))
        self._rows = {feature: i for i, feature in enumerate(dict.fromkeys(f for x in examples for f in x))}
        self.weight = torch.zeros(len(self._rows), len(self.classes), dtype=torch.float64, requires_grad=True)
        self.bias = torch.zeros(len(self.classes), dtype=torch.float64, requires_grad=True)
        inputs = self._encoded(examples)
        targets = torch.tensor([self.classes.index(label) for label in labels])
        optimizer = torch.optim.LBFGS(
            [self.weight, self.bias], max_iter=500, tolerance_grad=1e-7, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            penalty = self.l2 / 2 * self.weight.square().sum()
            value = F.cross_entropy(self._logits(inputs), targets, reduction="sum") + penalty
            value.backward()
            return value

        optimizer.step(loss)
        return self

    def probs(self, examples: Sequence[Features]) -> Float[Tensor, "N C"]:
        """p(class | example), the classes in the order of `classes`."""
        with torch.no_grad():
            return self._logits(self._encoded(examples)).softmax(dim=-1)

    def predict(self, examples: Sequence[Features]) -> list[Hashable]:
        return [self.classes[i] for i in self.probs(examples).argmax(dim=-1).tolist()]

    def _encoded(self, examples: Sequence[Features]) -> tuple[Int[Tensor, " F"], Int[Tensor, " N"]]:
        """The rows of all features one after the other, and where each example's begin."""
        known = [[self._rows[feature] for feature in example if feature in self._rows] for example in examples]
        starts = torch.tensor([0, *map(len, known)]).cumsum(0)[:-1]
        return torch.tensor([row for rows in known for row in rows], dtype=torch.long), starts

    def _logits(self, inputs: tuple[Int[Tensor, " F"], Int[Tensor, " N"]]) -> Float[Tensor, "N C"]:
        rows, starts = inputs
        return F.embedding_bag(rows, self.weight, starts, mode="sum") + self.bias


def _check(examples: Sequence[Features], labels: Sequence[Hashable]) -> None:
    if len(examples) != len(labels) or not examples:
        raise ValueError(f"need an example, and one label for each, got {len(examples)} and {len(labels)} labels")
    if any(isinstance(example, str) for example in examples):
        raise ValueError("an example is a list of features, got a plain text: use bag_of_words or word_windows")
