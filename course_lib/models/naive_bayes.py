"""Naive Bayes: count what each class has, and believe that nothing depends on anything else.

Maron, "Automatic indexing: an experimental inquiry", Journal of the ACM 8(3), 1961. Cavnar & Trenkle, "N-gram-based
text categorization", SDAIR 1994 (runs of letters tell languages apart).
"""

from collections import Counter
from collections.abc import Hashable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor


class NaiveBayes:
    """p(class | features) ~ p(class) prod_f p(f | class), with p(f | class) = (count + a) / (all counts + a V).

    `smoothing` is a; V is the number of different features of the training examples, one more for all unknown ones.
    """

    def __init__(self, *, smoothing: float = 1.0):
        if smoothing <= 0:
            raise ValueError(f"smoothing must be positive, got {smoothing}: what was never seen is not impossible")
        self.smoothing = smoothing

    def fit(self, examples: Sequence[Sequence[str]], labels: Sequence[Hashable]) -> "NaiveBayes":
        """Counts. Raises ValueError without an example, or for unequal numbers."""
        if len(examples) != len(labels) or not examples:
            raise ValueError(f"need an example, and one label for each, got {len(examples)} and {len(labels)} labels")
        self.classes = list(dict.fromkeys(labels))
        self._columns = {feature: i for i, feature in enumerate(dict.fromkeys(f for x in examples for f in x))}
        counts = torch.full((len(self._columns) + 1, len(self.classes)), self.smoothing, dtype=torch.float64)
        for (feature, label), count in Counter(
            (f, label) for x, label in zip(examples, labels, strict=True) for f in x
        ).items():
            counts[self._columns[feature], self.classes.index(label)] += count
        share = Counter(labels)
        self.prior = torch.tensor([share[label] / len(labels) for label in self.classes]).log().double()
        self.weight = (counts / counts.sum(dim=0)).log()
        return self

    def log_scores(self, examples: Sequence[Sequence[str]]) -> Float[Tensor, "N C"]:
        """log p(class) + sum_f log p(f | class), the classes in the order of `classes`."""
        unknown = len(self._columns)
        rows = [self.weight[[self._columns.get(f, unknown) for f in example]].sum(dim=0) for example in examples]
        return self.prior + torch.stack(rows)

    def predict(self, examples: Sequence[Sequence[str]]) -> list[Hashable]:
        return [self.classes[i] for i in self.log_scores(examples).argmax(dim=-1).tolist()]
