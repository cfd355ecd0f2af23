"""What every network has to beat: the commonest class, and logistic regression on the words themselves.

A feature is a text, such as a word or "-1=le", and an example a list of the features that it has.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

NEWTON_STEPS = 100  # at most; about ten are enough

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

    Minimises sum_i -ln p(y_i | x_i) + l2 / 2 |W|^2; `l2` is the 1/C of scikit-learn. Features that training did not
    show are ignored.
    """

    def __init__(self, *, l2: float = 1.0):
        if l2 <= 0:
            raise ValueError(f"l2 must be positive, got {l2}: without it separable data have no solution")
        self.l2 = l2

    def fit(self, examples: Sequence[Features], labels: Sequence[Hashable]) -> "LogisticRegression":
        """Learns weights from nothing. Raises ValueError without an example, or for unequal numbers."""
        _check(examples, labels)
        self.classes = list(dict.fromkeys(labels))
        self._columns = {feature: i for i, feature in enumerate(dict.fromkeys(f for x in examples for f in x))}
        counts, targets = self._counts(examples), torch.tensor([self.classes.index(label) for label in labels])
        l2 = torch.tensor([*[self.l2] * len(self._columns), 0.0], dtype=torch.float64)
        self.weight = softmax_regression(counts, targets, l2, torch.zeros(len(l2), len(self.classes)).double())
        return self

    def probs(self, examples: Sequence[Features]) -> Float[Tensor, "N C"]:
        """p(class | example), the classes in the order of `classes`."""
        return (self._counts(examples) @ self.weight).softmax(dim=-1)

    def predict(self, examples: Sequence[Features]) -> list[Hashable]:
        return [self.classes[i] for i in self.probs(examples).argmax(dim=-1).tolist()]

    def _counts(self, examples: Sequence[Features]) -> Float[Tensor, "N columns"]:
        """How often each example has each feature, as a sparse matrix; the last column, of ones, carries the bias."""
        bias = len(self._columns)
        columns = [[*(self._columns[f] for f in example if f in self._columns), bias] for example in examples]
        positions = torch.tensor([(row, column) for row, each in enumerate(columns) for column in each]).reshape(-1, 2)
        ones = torch.ones(len(positions), dtype=torch.float64)
        return torch.sparse_coo_tensor(positions.T, ones, (len(examples), bias + 1), check_invariants=True).coalesce()


def softmax_regression(
    inputs: Float[Tensor, "N F"], labels: Int[Tensor, " N"], l2: Float[Tensor, " F"], weights: Float[Tensor, "F K"]
) -> Float[Tensor, "F K"]:
    """The W with the least sum_i -ln softmax(x_i W)_label + sum_f l2_f / 2 |W_f|^2, sought from `weights` on.

    Newton's method, to convergence: Nocedal & Wright, "Numerical optimization", 2006, algorithm 7.1; each step is
    solved for by conjugate gradients.
    """
    l2, targets = l2[:, None], F.one_hot(labels, weights.shape[1]).to(weights)

    def loss(weights: Tensor) -> Tensor:
        return F.cross_entropy(inputs @ weights, labels, reduction="sum") + (l2 * weights.square()).sum() / 2

    def curved(direction: Tensor) -> Tensor:
        """The second derivative of the loss times a direction."""
        change = probs * (inputs @ direction)
        return inputs.T @ (change - probs * change.sum(dim=-1, keepdim=True)) + l2 * direction

    # of the gradient at W = 0, or of its rounding where it is zero
    enough = 1e-10 * (inputs.T @ (targets - 1 / weights.shape[1])).norm() + 1e-14 * inputs.norm()
    for _ in range(NEWTON_STEPS):
        probs = (inputs @ weights).softmax(dim=-1)
        gradient = inputs.T @ (probs - targets) + l2 * weights
        if gradient.norm() <= enough:
            break
        step = conjugate_gradients(curved, -gradient, (inputs * inputs).T @ (probs * (1 - probs)) + l2)
        now = loss(weights)
        while loss(weights + step) > now * (1 + 1e-13) + 1e-4 * (gradient * step).sum():  # 1e-13: for rounding
            step = step / 2  # too far: the loss has not fallen as its slope promised
        weights = weights + step
    return weights - weights.mean(dim=-1, keepdim=True)  # the same for all classes, a bias changes nothing


def conjugate_gradients(matrix: Callable[[Tensor], Tensor], target: Tensor, diagonal: Tensor) -> Tensor:
    """x with |target - matrix(x)| <= |target| / 100: Nocedal & Wright 2006, algorithm 5.3, with the diagonal of the
    matrix as preconditioner.
    """
    x, rest, scaled = torch.zeros_like(target), target, target / diagonal
    direction = scaled
    for _ in range(target.numel()):
        product = matrix(direction)
        old = (rest * scaled).sum()
        length = old / (direction * product).sum()
        x, rest = x + length * direction, rest - length * product
        if rest.norm() <= target.norm() / 100:
            break
        scaled = rest / diagonal
        direction = scaled + (rest * scaled).sum() / old * direction
    return x


def _check(examples: Sequence[Features], labels: Sequence[Hashable]) -> None:
    if len(examples) != len(labels) or not examples:
        raise ValueError(f"need an example, and one label for each, got {len(examples)} and {len(labels)} labels")
    if any(isinstance(example, str) for example in examples):
        raise ValueError("an example is a list of features, got a plain text: use bag_of_words or word_windows")
