"""How good are features? Freeze them, and ask how well a simple classifier does with few labels.

Alain & Bengio, "Understanding intermediate layers using linear classifier probes", 2016, arXiv 1610.01644.
Wu et al., "Unsupervised feature learning via non-parametric instance discrimination", CVPR 2018, arXiv 1805.01978
(nearest neighbours). Every probe is fitted to convergence: the same features and labels give the same probe.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.models.baselines import softmax_regression
from course_lib.training.vision import normalised

STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # of the L2 penalty, for `tuned_probe` to choose from
SCALES = ("each", "all")  # what becomes 1: the spread of each feature, or the mean spread of all of them
NEIGHBOURS = (1, 3, 5, 10)  # for `tuned_neighbours`


class Labelled(NamedTuple):
    """Features and their labels, to fit a probe or to score it."""

    features: Float[Tensor, "N D"]
    labels: Int[Tensor, " N"]


class Probe(ABC):
    """A classifier of features: what linear and nearest-neighbour probes have in common."""

    @abstractmethod
    def predict(self, features: Float[Tensor, "N D"]) -> Int[Tensor, " N"]:
        """The class of each row."""

    def accuracy(self, features: Float[Tensor, "N D"], labels: Int[Tensor, " N"]) -> float:
        """Share of the labels that are predicted right, from 0 to 1."""
        return (self.predict(features) == labels).double().mean().item()


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProbe(Probe):
    """p(class | x) = softmax(W x + b): W and b are for features as they come, the standardisation is part of them."""

    weight: Float[Tensor, "K D"]
    bias: Float[Tensor, " K"]
    classes: Int[Tensor, " K"]  # those that training showed, in rising order
    l2: float
    scale: str

    def logits(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "N K"]:
        return features.double() @ self.weight.T + self.bias

    def predict(self, features: Float[Tensor, "N D"]) -> Int[Tensor, " N"]:
        return self.classes[self.logits(features).argmax(dim=-1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourProbe(Probe):
    """The commonest label among the k stored examples whose features point most nearly the same way."""

    directions: Float[Tensor, "M D"]  # unit vectors
    labels: Int[Tensor, " M"]
    k: int

    def predict(self, features: Float[Tensor, "N D"]) -> Int[Tensor, " N"]:
        """Of equally common labels the smallest."""
        nearest = (F.normalize(features.double(), dim=-1) @ self.directions.T).topk(self.k, dim=-1).indices
        classes, number = self.labels.unique(return_inverse=True)
        return classes[F.one_hot(number[nearest], len(classes)).sum(dim=1).argmax(dim=-1)]


def logistic_regression(
    features: Float[Tensor, "N D"], labels: Int[Tensor, " N"], *, l2: float = 1.0, scale: str = "each"
) -> LinearProbe:
    """Minimises sum_i -ln p(label_i | x_i) + l2 / 2 |W|^2, where W looks at standardised features (mean 0, spread 1).

    `l2` is the 1/C of scikit-learn; the bias is free. `scale="all"` divides all features by the same number, so that
    those which vary little, such as pixels at the border, stay small. In double precision, to convergence.
    Raises ValueError without two classes, for features that are not finite, another `scale`, or if `l2` is not
    positive.
    """
    return _fit(_check(features, labels), (l2,), scale)[0]


def nearest_neighbours(features: Float[Tensor, "N D"], labels: Int[Tensor, " N"], *, k: int = 5) -> NeighbourProbe:
    """k nearest neighbours by the cosine of the angle between features. Raises ValueError unless 1 <= k <= N."""
    _check(features, labels)
    if not 1 <= k <= len(features):
        raise ValueError(f"k must be from 1 to the number of examples, {len(features)}, got {k}")
    return NeighbourProbe(directions=F.normalize(features.double(), dim=-1), labels=labels, k=k)


def tuned_probe(
    train: Labelled,
    validation: Labelled,
    *,
    strengths: Sequence[float] = STRENGTHS,
    scales: Sequence[str] = SCALES,
) -> LinearProbe:
    """The logistic regression, of those with `strengths` and `scales`, that does best on `validation`.

    Of equally good ones the first scale and the strongest penalty.
    """
    _check(*train)
    probes = [probe for scale in scales for probe in _fit(train, sorted(strengths, reverse=True), scale)]
    return max(probes, key=lambda probe: probe.accuracy(*validation))


def tuned_neighbours(
    train: Labelled, validation: Labelled, *, neighbours: Sequence[int] = NEIGHBOURS
) -> NeighbourProbe:
    """The k of `neighbours`, as far as there are so many examples, that does best on `validation`."""
    probes = [nearest_neighbours(*train, k=k) for k in sorted(neighbours) if k <= len(train.labels)]
    return max(probes, key=lambda probe: probe.accuracy(*validation))


def label_draw(labels: Int[Tensor, " N"], per_class: int, *, seed: int) -> Int[Tensor, " M"]:
    """Indices of `per_class` examples of each class, drawn without replacement: M = classes times per_class.

    With one seed a larger draw contains the smaller ones. Raises ValueError if a class has too few examples.
    """
    drawn = []
    for name in labels.unique().tolist():
        members = (labels == name).nonzero().flatten()
        if not 1 <= per_class <= len(members):
            raise ValueError(f"class {name} has {len(members)} examples: {per_class} of them cannot be drawn")
        order = np.random.default_rng([seed, name]).permutation(len(members))[:per_class]
        drawn.append(members[torch.from_numpy(order)])
    return torch.cat(drawn)


def few_label_accuracies(
    train: Labelled,
    validation: Labelled,
    test: Labelled,
    *,
    per_class: int,
    draws: int = 5,
    tuned: Callable[[Labelled, Labelled], Probe] = tuned_probe,
) -> list[float]:
    """Accuracy on `test`, for each draw of `per_class` labels out of `train`, of the probe tuned on `validation`."""
    accuracies = []
    for draw in range(draws):
        chosen = label_draw(train.labels, per_class, seed=draw)
        probe = tuned(Labelled(train.features[chosen], train.labels[chosen]), validation)
        accuracies.append(probe.accuracy(*test))
    return accuracies


@torch.no_grad()
def features_of(
    model: nn.Module,
    pixels: Float[Tensor, "N C H W"],
    *,
    encode: Callable[[Tensor], Tensor] | None = None,
    batch_size: int = 500,
) -> Float[Tensor, "N D"]:
    """What `encode` (the model itself, if not given) makes of pixels from 0 to 1, in evaluation mode, flattened."""
    was_training = model.training
    model.eval()
    try:
        return torch.cat([(encode or model)(normalised(model, part)).flatten(1) for part in pixels.split(batch_size)])
    finally:
        model.train(was_training)


def _fit(train: Labelled, strengths: Sequence[float], scale: str) -> list[LinearProbe]:
    """One probe for each strength, each begun from the one before.

    With a penalty W is a sum of training examples: it is sought among their principal axes, at most N of them.
    """
    if min(strengths) <= 0:
        raise ValueError(f"l2 must be positive, got {min(strengths)}: without it separable data have no solution")
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    features, (classes, targets) = train.features.double(), train.labels.unique(return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"a probe needs examples of two classes or more, got {classes.tolist()}")
    mean, spread = features.mean(dim=0), features.std(dim=0, correction=0)
    varies = spread > 1e-6 * features.abs().amax(dim=0)  # less is rounding: such a feature gets no weight
    if scale == "all":
        spread = spread.square().mean().sqrt().expand_as(spread)
    spread = torch.where(varies, spread, torch.inf)
    left, sizes, axes = torch.linalg.svd((features - mean) / spread, full_matrices=False)
    inputs = torch.cat([left * sizes, torch.ones_like(left[:, :1])], dim=1)  # the last one carries the bias
    penalised = F.pad(torch.ones_like(sizes), (0, 1))
    weights, probes = inputs.new_zeros(inputs.shape[1], len(classes)), []
    for l2 in strengths:
        weights = softmax_regression(inputs, targets, l2 * penalised, weights)
        weight = weights[:-1].T @ axes / spread
        probes.append(LinearProbe(weight=weight, bias=weights[-1] - weight @ mean, classes=classes, l2=l2, scale=scale))
    return probes


def _check(features: Tensor, labels: Tensor) -> Labelled:
    if len(features) != len(labels) or not len(labels):
        raise ValueError(
            f"a probe needs an example, and one label for each, got {len(features)} examples and {len(labels)} labels"
        )
    if not features.isfinite().all():
        raise ValueError("features must be finite: some are NaN or infinite")
    return Labelled(features, labels)
