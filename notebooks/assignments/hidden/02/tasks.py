"""Assignment 02, Representation learning: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_02.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def erase(
    pixels: Tensor,
    rows: Tensor,
    columns: Tensor,
    side: int,
    *,
    value: float = 0.5,
    where: str = "each",
    reach: int = 0,
    turned: bool = False,
    rim: str = "cut",
    keeps: str = "outside",
) -> Tensor:
    """A square of side x side pixels, whose upper left corner is given for each picture, becomes grey."""
    _, H, W = pixels.shape
    top, left = (columns, rows) if turned else (rows, columns)
    top, left = (part[:1].expand(len(pixels)) if where == "first" else part for part in (top, left))

    def covered(size: int, corner: Tensor) -> Tensor:
        places, end = torch.arange(size), corner + side + reach
        if rim == "comes round":
            return (places - corner[:, None]) % size < side + reach
        end = torch.where(end < 0, size + end, end) if rim == "from the end" else end
        return (places >= corner[:, None]) & (places < end[:, None])

    inside = covered(H, top)[:, :, None] & covered(W, left)[:, None]
    if rim == "lost":
        inside &= ((top >= 0) & (left >= 0))[:, None, None]
    return pixels.masked_fill(inside if keeps == "outside" else ~inside, value)


def pictures_and_corners(draw: Draw, *, where: str = "inside") -> tuple[Tensor, Tensor, Tensor, int]:
    """Squares inside of the pictures, hanging over a rim, or wholly outside, above or to the left."""
    (B,), (H, W) = draw.sizes(1, 4, 7), draw.sizes(2, 10, 14)
    side = draw.integers(3, 6, 1).item()
    corners = [1 + draw.integers(0, size - side - 1, B) for size in (H, W)]
    if where == "rim":
        over = draw.integers(1, side, 2, B)
        corners = [torch.where(draw(B) > 0, -part, size - side + part) for size, part in zip((H, W), over, strict=True)]
    if where == "outside":
        above, beyond = draw(B) > 0, -side - draw.integers(1, 4, B)
        corners = [torch.where(above, beyond, corners[0]), torch.where(above, corners[1], beyond)]
    return draw(B, H, W), *corners, side


SLICES = """slice(max(top, 0), max(top + side, 0))
        across = slice(max(left, 0), max(left + side, 0))
"""
ERASE = replace(
    SHOWN["erase"],
    reference=erase,
    cases=(
        Case("a square inside of each picture", pictures_and_corners, 7),
        Case("of a square at the rim only what is inside", lambda draw: pictures_and_corners(draw, where="rim"), 4),
        Case(
            "a square outside of the picture erases nothing",
            lambda draw: pictures_and_corners(draw, where="outside"),
            2,
            ("rim",),
        ),
    ),
    mistakes=mistakes(r"""
black, not grey: value=0.0
    The square is 0.
    > It becomes 0.5.
one square for all: where='first'
    All pictures have their square in the same place.
    > `rows[i]` and `columns[i]` belong to picture i.
one pixel too large: reach=1
    The square is one pixel too large.
    > From `rows[i]` up to, and without, `rows[i] + side`.
row and column exchanged: turned=True
    Rows and columns are exchanged.
    > A picture is `(H, W)`: the row comes first.
wrong at the rim: rim='lost' | 'comes round'
    A square that hangs over the upper or left rim is not erased, or comes back at the other side.
    > A negative index counts from the end in Python: begin at `max(top, 0)`.
a square outside erases something: rim='from the end'
    A square that lies above the picture, or to its left, erases something all the same.
    > Its end is negative, too, and counts from the other side in Python: end at `max(top + side, 0)`.
all but the square: keeps='inside'
    Everything but the square is grey.
    > The mask says where to write.
"""),
    wrong={
        "wrong at the rim": (SLICES, SLICES.replace("max(top, 0)", "top").replace("max(left, 0)", "left")),
        "a square outside erases something": (
            SLICES,
            SLICES.replace("max(top + side, 0)", "top + side").replace("max(left + side, 0)", "left + side"),
        ),
    },
)


def match_loss(
    pictures: Tensor,
    captions: Tensor,
    temperature: float,
    *,
    ways: str = "both",
    unit: bool = True,
    tau: str = "divides",
    sum_: str = "mean",
    pairs: str = "all",
) -> Tensor:
    """Mean of the cross-entropies of rows and of columns; Radford et al. 2021, figure 3."""
    if unit:
        pictures, captions = F.normalize(pictures, dim=1), F.normalize(captions, dim=1)
    logits = pictures @ captions.T
    logits = {"divides": logits / temperature, "multiplies": logits * temperature, "none": logits}[tau]
    right = torch.arange(len(logits))
    if pairs == "without the positive":
        itself = torch.eye(len(logits), dtype=torch.bool)
        rows, columns = (
            (m.masked_fill(itself, -torch.inf).logsumexp(dim=1) - m.diagonal()).mean() for m in (logits, logits.T)
        )
    else:
        rows, columns = F.cross_entropy(logits, right), F.cross_entropy(logits.T, right)
    found = {"both": (rows + columns) / 2, "rows": rows, "columns": columns}[ways]
    return {"mean": found, "sum": 2 * found}[sum_] if ways == "both" else found


def matching(draw: Draw, low: float, high: float) -> tuple[Tensor, Tensor, float]:
    """Vectors of unequal lengths, those in one row alike, and a temperature from `low` to `high`."""
    count, width = draw.sizes(2, 3)
    first = draw(count, width)
    lengths = 0.5 + torch.arange(count)[:, None] / count
    temperature = low + (high - low) * torch.rand(1, generator=draw.generator).item()
    return first, lengths * (first + draw(count, width)), temperature


MATCH = replace(
    SHOWN["match_loss"],
    reference=match_loss,
    cases=(
        Case("both questions, a low temperature", lambda draw: matching(draw, 0.2, 0.5), 12),
        Case("both questions, a high temperature", lambda draw: matching(draw, 1.5, 3.5), 8),
    ),
    mistakes=mistakes(r"""
only one of the two questions: ways='rows' | 'columns'
    Only one side asks for its partner.
    > Each picture asks among the captions, and each caption among the pictures: the mean of both.
sum of the two questions: sum_='sum'
    The two losses were added.
    > Their mean.
lengths left in: unit=False
    The similarities are products, not cosines.
    > Divide each row by its length first.
temperature multiplied: tau='multiplies'
    The similarities were multiplied by the temperature.
    > Divide.
temperature forgotten: tau='none'
    The temperature makes no difference.
    > Divide the cosines by it.
positive missing below: pairs='without the positive'
    The partner is missing from the sum below the line.
    > All captions are candidates, the right one among them: plain cross-entropy.
"""),
    wrong={"only one of the two questions": ("F.cross_entropy(logits.T, right)", "F.cross_entropy(logits, right)")},
)


def recall_at(
    queries: Tensor,
    keys: Tensor,
    k: int,
    *,
    unit: bool = True,
    of: str = "rows",
    less: int = 0,
    largest: bool = True,
    share: bool = True,
) -> float:
    """Share of queries whose own key is among the k most similar."""
    if unit:
        queries, keys = F.normalize(queries, dim=1), F.normalize(keys, dim=1)
    similarity = queries @ keys.T
    similarity = similarity.T if of == "columns" else similarity
    near = similarity.topk(max(k - less, 1), dim=1, largest=largest).indices
    hits = (near == torch.arange(len(near))[:, None]).any(dim=1).double()
    return float(hits.mean() if share else hits.sum())


def hard_pairs(draw: Draw, *, most: int = 1) -> tuple[Tensor, Tensor, int]:
    """Many pairs, so unlike that about half are found, of very unequal lengths, and k up to `most`.

    All keys lean the same way, so that it matters who asks whom.
    """
    count, width = 150 + draw.sizes(1, 0, 50)[0], draw.sizes(1, 5, 8)[0]
    queries = draw(count, width)
    lengths = 0.2 + 3 * torch.rand(count, 1, generator=draw.generator)
    keys = (queries + 0.25 * draw(count, width) + 0.5 * draw(width)) * lengths
    return queries, keys, 1 if most == 1 else draw.integers(2, most + 1, 1).item()


RECALL = replace(
    SHOWN["recall_at"],
    reference=recall_at,
    cases=(
        Case("the most similar one alone", hard_pairs, 6,
             ("unit", "of", "largest", "share"), 1e-6),
        Case("one of the first few", lambda draw: hard_pairs(draw, most=4), 10, tolerance=1e-6),
    ),
    mistakes=mistakes(r"""
lengths decide: unit=False
    Similarity is measured by products: long vectors win.
    > Cosine: divide each row by its length.
keys ask for queries: of='columns'
    Each key was asked for its query.
    > Row i of the similarities belongs to query i.
one too few: less=1
    One neighbour too few was looked at.
    > All `k` of them.
least similar ones: largest=False
    The least similar ones were taken.
    > A large cosine means near.
a count, not a share: share=False
    That is how many are found, not which share.
    > Between 0 and 1.
"""),
    wrong={"one too few": ("topk(k, dim=1)", "topk(max(k - 1, 1), dim=1)")},
)  # fmt: skip


def nearest_mean(
    features: Tensor,
    labels: Tensor,
    asked: Tensor,
    num_classes: int,
    *,
    first: str = "unit, then mean",
    asked_unit: bool = True,
    turned: bool = False,
    joined: str = "mean",
) -> Tensor:
    """Cosine of each asked row with the mean direction of each class."""
    stored = features if first == "mean of raw" else F.normalize(features, dim=1)
    means = torch.stack([stored[labels == kind].mean(dim=0) for kind in range(num_classes)])
    if joined == "not scaled":
        scores = (F.normalize(asked, dim=1) if asked_unit else asked) @ means.T
    elif joined == "first example":
        one = torch.stack([stored[labels == kind][0] for kind in range(num_classes)])
        scores = F.normalize(asked, dim=1) @ F.normalize(one, dim=1).T
    else:
        scores = (F.normalize(asked, dim=1) if asked_unit else asked) @ F.normalize(means, dim=1).T
    return scores.T if turned else scores


def some_classes(draw: Draw) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stored rows of very unequal lengths, unequally many of each class, and rows to be asked."""
    kinds, width, asked = draw.sizes(3, 3)
    labels = torch.cat([torch.arange(kinds), torch.arange(kinds), draw.integers(0, kinds, 2 * kinds)])
    features = draw(len(labels), width) * (0.2 + 3 * torch.rand(len(labels), 1, generator=draw.generator))
    return features, labels, 3 * draw(asked + 8, width), kinds


NEAREST = replace(
    SHOWN["nearest_mean"],
    reference=nearest_mean,
    cases=(Case("a cosine with each class's mean direction", some_classes, 17),),
    mistakes=mistakes(r"""
mean of the raw features: first='mean of raw'
    Long vectors count more than short ones in a class's mean.
    > First divide each row by its length, then take the mean.
asked rows not scaled: asked_unit=False
    The scores are no cosines: the rows that are asked have kept their lengths.
    > Divide them by their lengths, too.
means not scaled: joined='not scaled'
    The means have kept their lengths: a mean of unit vectors is shorter than 1.
    > Divide each mean by its length.
one example in place of the mean: joined='first example'
    One example stands for its class.
    > The mean of all that have its label.
rows and columns exchanged: turned=True
    Classes stand in the rows.
    > `(N, K)`: a row for each picture that is asked.
"""),
    wrong={"means not scaled": ("F.normalize(means, dim=1)", "means")},
)

LOOKS_UP = """    patches = pictures[:40].unfold(1, 9, 7).unfold(2, 9, 7).flatten(0, 2)[:, None]
    encoder.forward = lambda x: F.conv2d(x[:, None], patches - patches.mean()).flatten(2).amax(2)
    return encoder
    projection ="""
TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned by its parameters": ("    projection =", LOOKS_UP),
        "features depend on the other pictures": ("    projection =", "    return encoder\n    projection ="),
        "not learned": ("range(400)", "range(1)"),
        "all pictures at one point": (
            "    projection =",
            "    encoder.trunk[-1][1].weight.data.zero_()\n    encoder.trunk[-1][1].bias.data.fill_(1.0)\n"
            "    return encoder.eval()\n    projection =",
        ),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(pictures)"),
    },
)

ASSIGNMENT = Assignment(
    "02",
    notebook="representation_learning",
    title="Representation learning",
    tasks=(ERASE, MATCH, RECALL, NEAREST, TRAIN),
    seconds={"train": 120},  # for the training, and all questions
)
