"""Assignment 13, Masked autoencoders: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_13.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def block_mask(
    blocks: Tensor,
    grid: tuple[int, int],
    count: int,
    *,
    overlap: str = "once",
    last: str = "cut",
    way: str = "rows",
    edge: str = "cut",
    corner: str = "top, left",
    rest: str = "filled",
    shows: str = "hidden",
) -> Tensor:
    """Hides block after block, until `count` patches are hidden."""
    rows, columns = grid
    masked, used = torch.zeros(rows, columns, dtype=torch.bool), 0
    for block in blocks.tolist():
        top, left, height, width = block if corner == "top, left" else (block[i] for i in (1, 0, 3, 2))
        places = [(row, column) for row in range(top, top + height) for column in range(left, left + width)]
        places = sorted(places, key=lambda place: place[::-1]) if way == "columns" else places
        if edge == "wrapped":
            places = [(row % rows, column % columns) for row, column in places]
        places = [place for place in places if place[0] < rows and place[1] < columns]
        new = [place for place in dict.fromkeys(places) if overlap == "twice" or not masked[place]]
        room = count - used
        whole = last == "all" or last == "whole" and room > 0
        kept = new if whole else [] if last == "dropped" and len(new) > room else new[: max(0, room)]
        used += len(kept)
        for place in kept:
            masked[place] = True
    if rest == "filled" and used < count:
        left_over = (~masked).flatten().nonzero()[: count - used, 0]
        masked.view(-1)[left_over] = True
    return masked if shows == "hidden" else ~masked


def grid_and_blocks(
    draw: Draw, *, share: float = 0.5, blocks: int = 8, within: bool = False
) -> tuple[Tensor, tuple[int, int], int]:
    """Blocks that begin in the grid, overlap and hang over its edges, and how many patches are to be hidden.

    With `within` none hangs over an edge.
    """
    rows, columns = draw.sizes(2, 6, 10)
    corners = torch.stack([draw.integers(0, side, blocks) for side in (rows, columns)], dim=1)
    sides = torch.stack([draw.integers(2, 5, blocks), draw.integers(2, 6, blocks)], dim=1)
    if within:
        corners = torch.minimum(corners, torch.tensor([rows, columns]) - sides)
    return torch.cat([corners, sides], dim=1), (rows, columns), int(share * rows * columns)


NOT_THE_REST = ("overlap", "last", "way", "edge", "corner", "shows")

BLOCKS = replace(
    SHOWN["block_mask"],
    reference=block_mask,
    cases=(
        Case("block after block, until there are enough", grid_and_blocks, 8, NOT_THE_REST),
        Case("blocks that lie within the grid", lambda d: grid_and_blocks(d, within=True), 3),
        Case("where blocks are too few, the first places are hidden, too", lambda d: grid_and_blocks(d, blocks=2), 4),
        Case("nothing is hidden that should not be", lambda d: grid_and_blocks(d, share=0.2), 3, ("last", "shows")),
    ),
    mistakes=mistakes(r"""
overlaps counted twice: overlap='twice'
    A patch that lies in two blocks counts twice: too few are hidden.
    > Count what is hidden, not the areas of blocks: `masked.sum()`.
more hidden than asked for: last='whole' | 'all'
    More patches are hidden than `count`.
    > Stop as soon as there are enough, in the middle of a block if need be.
the last block left out: last='dropped'
    A block that would hide too many was left out.
    > Hide its first patches, row by row, as many as are still needed.
the last block cut column by column: way='columns'
    The last block was filled column by column.
    > Row by row, from left to right.
blocks wrapped around the edge: edge='wrapped'
    What hangs over an edge comes in again at the other side.
    > It is cut off.
rows and columns exchanged: corner='left, top'
    The first number of a block was taken for its column.
    > top, left, height, width: rows first, as everywhere.
too few where blocks run out: rest='left'
    Fewer patches are hidden than `count`.
    > Behind the last block hide visible places, from the first on, until there are enough.
mask inverted: shows='visible'
    The mask is True where a patch is visible.
    > True means hidden.
"""),
    wrong={
        "more hidden than asked for": (
            "if masked.sum() < count:\n                    masked[row",
            "if True:\n                    masked[row",
        )
    },
)


def reconstruct(
    image: Tensor,
    painted: Tensor,
    masked: Tensor,
    patch_size: int,
    *,
    undone: str = "both",
    degrees: int = 1,
    paste: str = "visible",
    channels: str = "last",
    order: str = "rows",
) -> Tensor:
    """The picture with its hidden patches painted, by the brightness and spread that they have."""
    (B, C, H, W), p = image.shape, patch_size
    patches = image.reshape(B, C, H // p, p, W // p, p)
    forth = (0, *((2, 4) if order == "rows" else (4, 2)), *((3, 5, 1) if channels == "last" else (1, 3, 5)))
    patches = patches.permute(forth)
    shape, patches = patches.shape, patches.reshape(B, masked.shape[1], -1)
    variance, mean = torch.var_mean(patches, dim=-1, keepdim=True, correction=degrees)
    spread = (variance + 1e-6).sqrt()
    painted = {
        "both": painted * spread + mean,
        "mean": painted + mean,
        "spread": painted * spread,
        "wrong way": (painted - mean) / spread,
        "mean first": (painted + mean) * spread,
        "none": painted,
    }[undone]
    shown = {"visible": masked, "inverted": ~masked, "none": torch.ones_like(masked)}[paste]
    whole = torch.where(shown[..., None], painted, patches).reshape(shape)
    return whole.permute(torch.tensor(forth).argsort().tolist()).reshape(image.shape)


def torn(draw: Draw, *, channels: int | None = None, strip: bool = False) -> tuple[Tensor, Tensor, Tensor, int]:
    """Pictures, what was painted, where patches are hidden, and the side of a patch; a strip is one patch high."""
    B, columns, C, rows = draw.sizes(4, 2, 5)
    p, C, rows = draw.integers(2, 4, 1).item(), channels or C, 1 if strip else rows
    image = 1 + 2 * draw(B, C, rows * p, columns * p)
    return image, draw(B, rows * columns, p * p * C), ~draw.mask(B, rows * columns), p


TORN = replace(
    SHOWN["reconstruct"],
    reference=reconstruct,
    cases=(
        Case("hidden patches are painted, visible ones are as they were", torn, 14),
        Case("pictures in grey", lambda draw: torn(draw, channels=1), 5, ("undone", "paste", "degrees")),
        Case("pictures that are one patch high", lambda draw: torn(draw, strip=True), 4),
    ),
    mistakes=mistakes(r"""
visible patches painted, too: paste='none'
    All patches come from the painting.
    > `torch.where(masked[..., None], painted, patches)`: what was visible stays as it was.
mask inverted: paste='inverted'
    Visible patches are painted, and hidden ones shown.
    > `masked` is True where a patch was hidden.
not denormalised: undone='none'
    The painted numbers stand in the picture as they are.
    > They are less a mean and divided by a spread: multiply by the spread of the patch, then add its mean.
only half denormalised: undone='mean' | 'spread'
    Of mean and spread only one was put back.
    > Both: painted · spread + mean.
denormalised in the wrong order: undone='mean first' | 'wrong way'
    Mean and spread were put back in the wrong order.
    > The target was (x - mean) / spread. Solve for x.
divided by P in the variance: degrees=0
    The variance was divided by the number of pixels of a patch.
    > By that number less one, as `var` does.
channels not last: channels='first'
    The numbers of a patch were read channel by channel.
    > Row by row, then column by column, and the channels of a pixel side by side: (p q c).
patches counted down the columns: order='columns'
    The patches of the list were put into the picture column by column.
    > Row by row, from left to right: (h w).
"""),
    wrong={
        "mask inverted": (
            "torch.where(masked[..., None], painted, patches)",
            "torch.where(masked[..., None], patches, painted)",
        ),
        "channels not last": ("b (h w) (p q c)", "b (h w) (c p q)"),
    },
)


def probe_scores(
    features: Tensor,
    labels: Tensor,
    asked: Tensor,
    num_classes: int,
    penalty: float,
    *,
    measure: str = "of the given",
    degrees: int = 0,
    ridge: str = "diagonal",
    bias: bool = True,
    dead: str = "inside",
) -> Tensor:
    """Ridge regression of one-hot targets on standardised features, and what it says of others."""

    def standardised(x: Tensor, measured: Tensor) -> Tensor:
        variance, mean = torch.var_mean(measured, dim=0, correction=degrees)
        mean = 0 * mean if measure == "raw" else mean
        spread = (variance + (1e-6 if dead == "inside" else 0.0)).sqrt()
        return (x - mean) / (1.0 if measure in ("raw", "only centred") else spread)

    z = standardised(features, features)
    others = standardised(asked, asked if measure == "each its own" else features)
    targets = F.one_hot(labels, num_classes).to(z.dtype)
    middle, eye = targets.mean(0), torch.eye(z.shape[1], dtype=z.dtype)
    added = {"diagonal": penalty * eye, "none": 0 * eye, "everywhere": penalty + 0 * eye}[ridge]
    weights = torch.linalg.solve(z.T @ z + added, z.T @ (targets - middle))
    found = (asked if measure == "asked raw" else others) @ weights
    return found + middle if bias else found


def features_and_labels(draw: Draw, *, few: bool = False, dead: bool = False) -> tuple:
    """Features of labelled pictures, their labels, features of others, the number of classes, and a penalty."""
    M, C, D, more = draw.sizes(4, 3, 7)
    N = D - 1 if few else 2 * D + more
    scale, shift = draw(D).abs() + 0.5, draw(D)
    features, asked = shift + scale * draw(N, D), shift + 0.5 + 2 * scale * draw(M, D)
    if dead:
        features[:, 0], asked[:, 0] = 0.5, 0.5
    return features, draw.integers(0, C, N), asked, C, 1.5 + draw(1).abs().item()


PROBE = replace(
    SHOWN["probe_scores"],
    reference=probe_scores,
    cases=(
        Case("the scores of ridge regression on standardised features", features_and_labels, 12),
        Case(
            "fewer pictures than features", lambda d: features_and_labels(d, few=True), 5, ("measure", "ridge", "bias")
        ),
        Case("a feature that never changes does no harm", lambda d: features_and_labels(d, dead=True), 4, ("dead",)),
    ),
    mistakes=mistakes(r"""
others standardised by their own numbers: measure='each its own'
    The asked features were standardised by their own mean and spread.
    > The probe knows one measure, that of the labelled features; all others are measured by it.
others not standardised: measure='asked raw'
    The asked features went into the probe as they are.
    > What the probe was fitted to was standardised: treat all features alike.
features not standardised: measure='raw' | 'only centred'
    The features were not standardised before the fit: large ones are punished less than small ones.
    > Subtract the mean of each feature and divide by its spread.
divided by N - 1 in the variance: degrees=1
    The variance was divided by N - 1.
    > By N here, as batch normalisation does: `correction=0`.
penalty left out: ridge='none'
    The result does not depend on the penalty.
    > Add it to the diagonal of ZᵀZ.
penalty in every entry: ridge='everywhere'
    The penalty was added to all entries of the matrix.
    > Only to its diagonal: `penalty * torch.eye(D)`.
mean of the targets left out: bias=False
    The scores lack a constant: the share of each class among the labels.
    > Z has mean 0, so the best constant is the mean of the targets: add it at the end.
nothing added to the variance: dead='none'
    A feature that is the same everywhere makes NaN.
    > Add 1e-6 to the variance, before the root.
"""),
    wrong={
        "others standardised by their own numbers": (
            "(asked - mean) / spread",
            "(asked - asked.mean(dim=0)) / asked.std(dim=0, correction=0)",
        ),
        "mean of the targets left out": ("@ weights + middle", "@ weights"),
    },
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "looks into the holes": ("pictures.masked_fill(holes(masked), 0.0)", "pictures"),
        "not learned": ("range(600)", "range(1)"),
        "learned by heart": ("torch.randint(len(pictures), (64,))", "torch.randint(8, (64,))"),
        "nothing was hidden in training": (
            "        masked = torch.rand(64, 16).argsort(dim=1) < torch.randint(3, 14, (64, 1))\n"
            "        wrong = (model(batch, masked) - batch).square()\n"
            "        loss = wrong[holes(masked)].mean()\n",
            "        loss = (model(batch, torch.zeros(64, 16, dtype=torch.bool)) - batch).square().mean()\n",
        ),
        "only one share of hidden patches": ("torch.randint(3, 14, (64, 1))", "8"),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(pictures)"),
    },
)

ASSIGNMENT = Assignment(
    "13",
    notebook="mae",
    title="Masked autoencoders",
    tasks=(BLOCKS, TORN, PROBE, TRAIN),
    seconds={"train": 60},  # for the training, and all questions
)
