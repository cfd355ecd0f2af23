"""Lesson 02, Representation learning: its exercises; each formula has a knob for every mistake that learners make."""

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, gradients, keeps_type, mistakes

# cosine_matrix ----------------------------------------------------------------------------------------------


def cosine_matrix(
    a: Tensor, b: Tensor, *, unit: str = "both", axis: int = -1, square: bool = False, turned: bool = False
) -> Tensor:
    """The cosine of the angle between each row of a and each row of b."""

    def scaled(x: Tensor, wanted: bool) -> Tensor:
        if unit == "whole":
            return x / x.norm()
        if not wanted:
            return x
        length = x.square().sum(dim=axis, keepdim=True)
        return x / (length if square else length.sqrt())

    found = scaled(a, unit in ("both", "a")) @ scaled(b, unit in ("both", "b")).T
    return found.T if turned else found


def two_sets(draw: Draw) -> tuple[Tensor, Tensor]:
    """Rows of unequal length, so that no scaling can be missed."""
    n, m, d = draw.sizes(3, low=3)
    return draw(n, d) * (1 + draw.sizes(1)[0]), 3 * draw(m, d)


COSINE_MATRIX = Task(
    name="cosine_matrix",
    title="How alike is each pair?",
    asks="a, b",
    reference=cosine_matrix,
    cases=(
        Case("each row of a with each row of b", two_sets),
        Case("a set with itself has ones on the diagonal", lambda draw: (two_sets(draw)[0],) * 2),
    ),
    mistakes=mistakes(r"""
not divided by the lengths: unit='neither'
    The products are not divided by the lengths of the vectors.
    > The cosine is $a \cdot b / (|a| |b|)$: divide each row by its length first.
only one of the two divided: unit='a' | 'b'
    Only one of the two sets was divided by its lengths.
    > Both `a` and `b`.
length of the whole matrix: unit='whole'
    Each set was divided by a single number, the length of all of it.
    > Each *row* has a length of its own: `norm(dim=1, keepdim=True)`.
columns scaled: axis=0
    The columns were divided by their lengths, not the rows.
    > A vector is a row here: the length is the root of the sum over `dim=1`.
squared length: square=True
    The rows were divided by the *square* of their length.
    > $|a|$ is the root of the sum of squares.
transposed: turned=True
    Row and column are exchanged.
    > Entry (i, j) is row i of `a` with row j of `b`: `a @ b.T`.
"""),
    also=(keeps_type, gradients),
    example=((([[3.0, 4.0], [0.0, 2.0]], [[0.0, 5.0], [1.0, 0.0]]), [[0.8, 0.6], [1.0, 0.0]]),),
    minutes=4,
    text="`a` has n rows and `b` has m rows, all of d numbers: shapes `(n, d)` and `(m, d)`. Return the `(n, m)` "
    "matrix of cosines: entry (i, j) is the cosine of the angle between row i of `a` and row j of `b`.",
    hints=(
        "What is left of a product of two vectors if both have length 1?",
        "Divide each row by its length, then one matrix product does the rest.",
        "`a / a.norm(dim=1, keepdim=True)`: the `keepdim` keeps the lengths in a column.",
    ),
    solution="""
def my_cosine_matrix(a, b):
    a = a / a.norm(dim=1, keepdim=True)
    b = b / b.norm(dim=1, keepdim=True)
    return a @ b.T
""",
)

# other_view -------------------------------------------------------------------------------------------------


def other_view(count: int, *, where: str = "half away", start: int = 0) -> Tensor:
    """For each of 2 count views the row of the other view of the same image."""
    rows = torch.arange(2 * count)
    found = {
        "half away": (rows + count) % (2 * count),
        "neighbour": rows ^ 1,
        "itself": rows,
        "not round": rows + count,
        "first half only": (rows + count)[:count],
    }[where]
    return found + start


OTHER_VIEW = Task(
    name="other_view",
    title="Where is the positive?",
    asks="count",
    reference=other_view,
    cases=(Case("all first views, then all second ones", lambda draw: (int(draw.integers(3, 9, 1)),), tolerance=1e-6),),
    mistakes=mistakes(r"""
neighbours taken for pairs: where='neighbour'
    That is right if the two views of an image follow each other. Here all the first views come first.
    > Row 0 belongs to row `count`, row 1 to row `count + 1`.
itself: where='itself'
    Each view was paired with itself.
    > The positive is the *other* view of the same image.
does not come round: where='not round'
    The second half points behind the last row.
    > Take it modulo `2 * count`: row `count` belongs to row 0.
half of it: where='first half only'
    Only the first views have a partner.
    > The second ones are asked, too: `2 * count` numbers.
counted from one: start=1
    The rows were counted from 1.
    > Python counts from 0.
"""),
    example=(((3,), [3, 4, 5, 0, 1, 2]),),
    minutes=3,
    text="A batch has `2 * count` rows: the first views of all `count` images, then their second views in the same "
    "order. Return a tensor of `2 * count` whole numbers: for each row the row of the other view of the same image.",
    hints=(
        "With three images: rows 0, 1, 2 are first views, 3, 4, 5 second ones. Who belongs to 0, and who to 4?",
        "The partner is always `count` rows away, forwards or backwards.",
        "`torch.arange(2 * count)`, moved by `count`, and what falls over the end comes round (`%`, or `roll`).",
    ),
    solution="""
def my_other_view(count):
    return (torch.arange(2 * count) + count) % (2 * count)
""",
)

# nt_xent ----------------------------------------------------------------------------------------------------


def nt_xent(
    first: Tensor,
    second: Tensor,
    temperature: float,
    *,
    below: str = "all but itself",
    tau: str = "divides",
    unit: bool = True,
    asked: str = "all",
    reduce: str = "mean",
    sign: float = 1.0,
) -> Tensor:
    """Mean of -ln softmax of the positive's similarity, over all views; Chen et al. 2020, eq. (1)."""
    z, count = torch.cat([first, second]), len(first)
    z = F.normalize(z, dim=1) if unit else z
    similarity = z @ z.T
    similarity = {"divides": similarity / temperature, "multiplies": similarity * temperature, "none": similarity}[tau]
    rows = torch.arange(2 * count)
    other = (rows + count) % (2 * count)
    right = similarity[rows, other]
    itself, partner = rows[:, None] == rows, other[:, None] == rows
    side = rows < count
    hidden = {"itself, too": itself & False, "no positive": itself | partner, "across": side[:, None] == side}
    logits = similarity.masked_fill(hidden.get(below, itself), 0.0 if below == "zero" else -torch.inf)
    if below == "softmax twice":
        logits = logits.softmax(dim=1)
        right = logits[rows, other]
    losses = logits.logsumexp(dim=1) - right
    losses = losses[:count] if asked == "first views" else losses
    return sign * (losses.sum() if reduce == "sum" else losses.mean())


def pairs(draw: Draw, temperature: float | None = None) -> tuple[Tensor, Tensor, float]:
    """Two views each, alike but not equal, of unequal lengths."""
    count, width = draw.sizes(2, low=3)
    first = draw(count, width)
    lengths = 0.5 + torch.arange(count)[:, None] / count
    drawn = 0.2 + 0.1 * int(draw.integers(0, 5, 1))
    return first, lengths * (first + draw(count, width)), drawn if temperature is None else temperature


NT_XENT = Task(
    name="nt_xent",
    title="The loss",
    asks="first, second, temperature",
    reference=nt_xent,
    cases=(
        Case("mean over all views of -ln of the share that its positive has", pairs),
        Case("a high temperature", lambda draw: pairs(draw, 3.0)),
    ),
    mistakes=mistakes(r"""
compared with itself: below='itself, too' | 'zero'
    Each view is compared with itself, too, and nothing is more alike.
    > Under the line k is not i: set the diagonal to minus infinity before the softmax. A 0 there counts, as $e^0$.
temperature multiplied: tau='multiplies'
    The similarities were multiplied by the temperature.
    > Divide: a *small* temperature makes differences large.
temperature forgotten: tau='none'
    The temperature makes no difference in your loss.
    > Divide the similarities by it.
lengths left in: unit=False
    The similarities are products, not cosines.
    > Divide each row by its length first: your `my_cosine_matrix` does.
positive missing below: below='no positive'
    The positive is missing from the sum below the line.
    > Only the view itself is left out: the sum has 2B - 1 terms, the positive among them.
only views of the other kind: below='across'
    A first view is compared with second views only.
    > All 2B - 1 others are candidates: the first views of other pictures, too.
softmax twice: below='softmax twice'
    The shares went through a second softmax.
    > `cross_entropy` takes logits and has the softmax in it.
only the first views asked: asked='first views'
    Only the first views look for their partner.
    > All 2B rows do: the mean goes over both halves.
sum instead of mean: reduce='sum'
    The losses were added up.
    > Take their mean, so that the size of the batch does not matter.
sign: sign=-1.0
    The loss has the wrong sign.
    > It is *minus* the logarithm of a share: never negative.
"""),
    also=(keeps_type, gradients),
    example=((([[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]], 1.0), 0.5514),),
    minutes=8,
    text="`first` and `second` have shape `(B, P)`: row n of both are the projections of two views of image n. Return "
    "the loss above, the mean over all 2B views, as a tensor without axes. You may use the two functions that you have "
    "just written.",
    hints=(
        "Put all 2B rows into one tensor, and make one matrix of their cosines.",
        "Row i is a list of 2B logits, one class for each view; the diagonal is no candidate. What is the right class?",
        "`cross_entropy(logits, classes)` is the mean of $-\\ln$ of the right class's share.",
    ),
    solution="""
def my_nt_xent(first, second, temperature):
    z = torch.cat([first, second])
    z = z / z.norm(dim=1, keepdim=True)
    logits = z @ z.T / temperature
    itself = torch.eye(len(z), dtype=torch.bool)
    logits = logits.masked_fill(itself, -torch.inf)
    positives = (torch.arange(len(z)) + len(first)) % len(z)
    return nn.functional.cross_entropy(logits, positives)
""",
)

# knn_vote ---------------------------------------------------------------------------------------------------


def knn_vote(
    features: Tensor,
    stored: Tensor,
    labels: Tensor,
    k: int,
    *,
    unit: bool = True,
    by: str = "nearest",
    vote: str = "commonest",
    gives: str = "label",
    less: int = 0,
) -> Tensor:
    """The commonest label among the k stored rows of the largest cosine; of equally common ones the smallest."""
    if unit:
        features, stored = F.normalize(features, dim=1), F.normalize(stored, dim=1)
    similarity = features @ stored.T
    places = similarity.topk(max(1, k - less), dim=1, largest=by == "nearest").indices
    near = labels[places] if gives == "label" else places
    if vote == "nearest alone":
        return near[:, 0]
    if vote == "mean":
        return near.double().mean(dim=1).round().long()
    return torch.stack([row.bincount().argmax() for row in near])


def clouds(draw: Draw, k: int = 5) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stored rows in four directions, of very different lengths; a third of the labels are wrong, so that one
    neighbour is not to be trusted.
    """
    width, per_class = 6, 9
    centres = 4 * draw(4, width)
    labels = torch.arange(4).repeat(per_class)
    stored = centres[labels] + draw(len(labels), width)
    stored = stored * (0.2 + 3 * draw(len(labels), 1).abs())
    wrong = torch.arange(len(labels)) % 3 == 2
    asked = centres[torch.arange(12) % 4] + draw(12, width)
    return asked, stored, torch.where(wrong, (labels + 1) % 4, labels) + 3, k


KNN_VOTE = Task(
    name="knn_vote",
    title="Ask the neighbours",
    asks="features, stored, labels, k",
    reference=knn_vote,
    cases=(
        Case("the commonest label among the five most alike", clouds, tolerance=1e-6),
        Case("one neighbour decides alone", lambda draw: clouds(draw, 1), tolerance=1e-6),
    ),
    mistakes=mistakes(r"""
one neighbour asked: vote='nearest alone'
    The nearest one decides alone, whatever `k` is.
    > Take the labels of all `k`, and the one that comes most often.
mean of the labels: vote='mean'
    The labels were averaged: between a 2 and an 8 lies no 5.
    > Labels are names. Count them: `bincount`, then `argmax`.
farthest asked: by='farthest'
    The *least* similar ones were asked.
    > A large cosine means near: `topk` takes the largest.
lengths decide: unit=False
    Similarity is measured by products: long vectors win.
    > Cosine: your `my_cosine_matrix`.
places instead of labels: gives='place'
    You return which of the stored rows are near, not what they are called.
    > `labels[places]`.
one neighbour too few: less=1
    One neighbour too few was asked.
    > All `k` of them.
"""),
    example=(
        (
            (
                [[1.0, 0.0]],
                [[2.0, 0.1], [9.0, 9.0], [1.0, 0.2], [3.0, -0.9], [0.0, 4.0]],
                torch.tensor([7, 3, 4, 4, 3]),
                3,
            ),
            [4],
        ),
    ),
    minutes=6,
    text="`stored`, `(M, D)`, are the features of M pictures whose `labels`, `(M,)`, are known. For each row of "
    "`features`, `(N, D)`, find the `k` stored rows with the largest cosine, and return the label that is commonest "
    "among them: `(N,)` whole numbers. Of equally common labels take the smallest.",
    hints=(
        "Which matrix says how alike each of the N is to each of the M?",
        "`similarity.topk(k, dim=1).indices` are the places of the k largest in each row; `labels[places]` their "
        "labels.",
        "For one row of labels, `row.bincount().argmax()` is the commonest, and the smallest of equally common ones.",
    ),
    solution="""
def my_knn_vote(features, stored, labels, k):
    features = features / features.norm(dim=1, keepdim=True)
    stored = stored / stored.norm(dim=1, keepdim=True)
    places = (features @ stored.T).topk(k, dim=1).indices
    votes = labels[places]
    return torch.stack([row.bincount().argmax() for row in votes])
""",
)

# top1 -------------------------------------------------------------------------------------------------------


def top1(
    features: Tensor,
    labels: Tensor,
    weight: Tensor,
    bias: Tensor,
    *,
    biased: bool = True,
    picks: str = "largest",
    counts: str = "right",
    unit: str = "share",
) -> float:
    """Share of rows whose largest logit belongs to the right class."""
    logits = features @ weight.T + (bias if biased else 0)
    if picks == "row":
        return float((logits.argmax(dim=0) == labels[: len(weight)]).double().mean())
    chosen = logits.argmin(dim=1) if picks == "smallest" else logits.argmax(dim=1)
    right = (chosen == labels) if counts == "right" else (chosen != labels)
    share = right.double().mean()
    return float({"share": share, "percent": 100 * share, "count": right.sum()}[unit])


def a_probe(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A probe whose bias matters, right about two thirds of the rows."""
    weight, bias, features = draw(5, 8), 3 * draw(5), draw(30, 8)
    chosen = (features @ weight.T + bias).argmax(dim=1)
    wrong = torch.arange(30) % 3 == 0
    return features, torch.where(wrong, (chosen + 1) % 5, chosen), weight, bias


TOP1 = Task(
    name="top1",
    title="How good is a linear probe?",
    asks="features, labels, weight, bias",
    reference=top1,
    cases=(Case("the share of rows that it names right", a_probe, tolerance=1e-6),),
    mistakes=mistakes(r"""
bias forgotten: biased=False
    The bias is missing.
    > A logit is $w \cdot h + b$.
smallest logit chosen: picks='smallest'
    The smallest logit was chosen.
    > `argmax`.
share that is wrong: counts='wrong'
    That is the share it gets wrong.
    > Count where the chosen class *equals* the label.
largest of each column: picks='row'
    The largest logit was sought in each column.
    > A row is a picture, its columns the classes: `argmax(dim=1)`.
a count or per cent, not a share: unit='count' | 'percent'
    That is how many are right, or per cent, not which share.
    > A share lies between 0 and 1: the mean.
"""),
    example=((([[1.0, 0.0], [0.0, 1.0]], torch.tensor([0, 0]), [[2.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), 0.5),),
    minutes=3,
    text="A linear probe has the matrix `weight`, `(K, D)`, and the vector `bias`, `(K,)`. It names each row of "
    "`features`, `(N, D)`, by the class with the largest logit $W h + b$. Return the share of rows that it names as "
    "`labels`, `(N,)`, do: its *top-1 accuracy*, a plain number between 0 and 1.",
    hints=(
        "First the logits, `(N, K)`: one matrix product.",
        "`argmax(dim=1)` names the class of each row.",
        "A comparison gives `True` and `False`; `.double().mean()` of them is a share.",
    ),
    solution="""
def my_top1(features, labels, weight, bias):
    logits = features @ weight.T + bias
    return (logits.argmax(dim=1) == labels).double().mean().item()
""",
)

# spread_out -------------------------------------------------------------------------------------------------


def spread_out(
    first: Tensor,
    second: Tensor,
    *,
    unit: bool = True,
    squared: bool = True,
    itself: bool = False,
    scale: float = 2.0,
    log: bool = True,
    order: str = "alignment first",
) -> Tensor:
    """Alignment, mean |x - y|², and uniformity, ln mean exp(-2 |x - y|²); Wang & Isola 2020, section 4."""
    if unit:
        first, second = F.normalize(first, dim=1), F.normalize(second, dim=1)
    apart = (first - second).square().sum(dim=1)
    alignment = apart.mean() if squared else apart.sqrt().mean()
    distances = (first[:, None] - first).square().sum(dim=2)
    kept = torch.ones_like(distances, dtype=torch.bool)
    if not itself:
        kept = ~torch.eye(len(first), dtype=torch.bool)
    uniformity = (-scale * distances[kept]).exp().mean()
    uniformity = uniformity.log() if log else uniformity
    both = [alignment, uniformity] if order == "alignment first" else [uniformity, alignment]
    return torch.stack(both)


def some_views(draw: Draw) -> tuple[Tensor, Tensor]:
    """Views that are alike, not of length 1."""
    count, width = draw.sizes(2, low=4)
    first = 0.7 * draw(count, width) + 0.6
    return first, 1.7 * (first + 0.4 * draw(count, width))


SPREAD_OUT = Task(
    name="spread_out",
    title="Aligned, and spread out",
    asks="first, second",
    reference=spread_out,
    cases=(Case("alignment and uniformity of directions", some_views),),
    mistakes=mistakes(r"""
lengths left in: unit=False
    The vectors were compared as they are.
    > Divide each row by its length first: both measures are about points on the sphere.
distance not squared: squared=False
    The alignment is a mean distance, not a mean of *squared* distances.
    > $|x - y|^2$.
a view with itself: itself=True
    The pairs of a vector with itself are in the mean, with a distance of 0.
    > Leave out the diagonal.
factor 2 forgotten: scale=1.0
    The factor 2 in the exponent is missing.
    > $e^{-2 |x - y|^2}$.
logarithm forgotten: log=False
    The logarithm is missing: uniformity is never positive.
    > The logarithm of the mean, once, at the end.
exchanged: order='uniformity first'
    The two numbers are exchanged.
    > Alignment first.
"""),
    also=(keeps_type, gradients),
    minutes=9,
    stretch=True,
    text="Rows of `first` and `second`, `(B, P)`, are projections of two views of the same images. Divide each row by "
    "its length. **Alignment** is the mean of $|x - y|^2$ over the B positive pairs; **uniformity** is the logarithm "
    "of the mean of $e^{-2 |x - y|^2}$ over all ordered pairs of *different* rows of `first`. Return both in one "
    "tensor, `(2,)`.",
    hints=(
        "Alignment is one line; the positives stand in the same rows.",
        "`x[:, None] - x` has all differences, `(B, B, P)`. Which B of the B² pairs do not count?",
        "`kept = ~torch.eye(B, dtype=torch.bool)`, and `distances[kept]` is a list of what counts.",
    ),
    solution="""
def my_spread_out(first, second):
    x = first / first.norm(dim=1, keepdim=True)
    y = second / second.norm(dim=1, keepdim=True)
    alignment = (x - y).square().sum(dim=1).mean()
    distances = (x[:, None] - x).square().sum(dim=2)
    kept = ~torch.eye(len(x), dtype=torch.bool)
    uniformity = (-2 * distances[kept]).exp().mean().log()
    return torch.stack([alignment, uniformity])
""",
)

TASKS = {task.name: task for task in (COSINE_MATRIX, OTHER_VIEW, NT_XENT, KNN_VOTE, TOP1, SPREAD_OUT)}
