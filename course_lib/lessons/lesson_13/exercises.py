"""Lesson 13, Masked autoencoders: its exercises; each formula has a knob for every mistake that learners make."""

import math

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw, Finding, Task, gradients, mistakes

# random_mask ------------------------------------------------------------------------------------------------


def random_mask(
    noise: Tensor,
    ratio: float,
    *,
    count: str = "down",
    keeps: str = "smallest",
    order: str = "noise",
    back: str = "inverse",
    hidden: str = "by restore",
    each: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Places of the visible patches, the way back from the shuffled list, and True where a patch is hidden."""
    N = noise.shape[1]
    K = {"down": int(N * (1 - ratio)), "up": math.ceil(N * (1 - ratio)), "the others": int(N * ratio)}[count]
    noise = noise if each else noise[:1].expand_as(noise)
    shuffle = noise.argsort(dim=1, descending=keeps == "largest")
    inverse, place = shuffle.argsort(dim=1), torch.arange(N).expand_as(shuffle)
    masked = {"by restore": inverse, "by shuffle": shuffle, "shuffled": place}.get(hidden, inverse) >= K
    keep = shuffle[:, :K].sort(dim=1).values if order == "place" else shuffle[:, :K]
    restore = {"inverse": inverse, "shuffle": shuffle, "none": place}[back]
    return keep, restore, ~masked if hidden == "visible" else masked


def noise_and_ratio(draw: Draw) -> tuple[Tensor, float]:
    """A number for each patch, and a ratio that leaves no whole number of them."""
    B, rows, columns = draw.sizes(3, 3, 5)
    keep = draw.integers(2, rows * columns // 2 - 1, 1).item()
    return draw(B, rows * columns), 1 - (keep + 0.6) / (rows * columns)


OTHER_MASK = Finding(
    "other patches, another way back, or another mask",
    "`keep`, `restore` and `masked` are not all what they should be.",
    "Take four patches with the noise 0.7, 0.1, 0.9, 0.4, and write down all three by hand.",
)
RANDOM_MASK = Task(
    name="random_mask",
    title="Hide patches, and find them again",
    asks="noise, ratio",
    reference=random_mask,
    cases=(
        Case("the smallest noise stays, and the way back is known", noise_and_ratio, otherwise=OTHER_MASK),
        Case("three quarters hidden", lambda draw: (noise_and_ratio(draw)[0], 0.75), otherwise=OTHER_MASK),
        Case("a ratio of 0 hides nothing", lambda draw: (noise_and_ratio(draw)[0], 0.0), otherwise=OTHER_MASK),
    ),
    mistakes=mistakes(r"""
shuffled, not restored: back='shuffle'; hidden='by restore' | 'by shuffle'
    `restore` is the permutation that shuffles, not the one that undoes it.
    > The inverse of a permutation is its own `argsort`: `shuffle.argsort(dim=1)`.
no way back: back='none'
    `restore` counts 0, 1, 2 and so on, as if nothing had been shuffled.
    > For each patch: where does it lie in the list of visible, then hidden ones?
mask in the order of the shuffled list: hidden='shuffled' | 'by shuffle'
    `masked` does not belong to the places of the picture.
    > A patch is hidden if it lies at K or behind in the shuffled list, and `restore` says where it lies.
mask inverted: hidden='visible'
    `masked` is True where a patch is visible.
    > True means hidden.
the largest noise stays: keeps='largest'
    The patches with the largest noise stay visible.
    > Those with the smallest: `argsort` sorts upwards.
hidden and visible share exchanged: count='the others'
    As many patches stay visible as should be hidden.
    > `ratio` is the share that is hidden: N (1 - ratio) stay.
rounded up: count='up'
    One patch too many stays visible where N (1 - ratio) is no whole number.
    > Cut it off: `int(N * (1 - ratio))`.
visible patches sorted by place: order='place'
    `keep` is sorted, and `restore` belongs to the order of the noise.
    > Leave `keep` in the order of the noise: it is the beginning of the shuffled list.
one mask for all pictures: each=False
    All pictures have the same patches hidden.
    > Each row of `noise` belongs to a picture of its own.
"""),
    minutes=9,
    text="`noise` has a number for each of N patches, shape `(B, N)`; `ratio` is the share to hide. Keep "
    "$K$ = `int(N * (1 - ratio))` patches of each picture, those with the **smallest** noise, and "
    "return three tensors.\n\n`keep`, `(B, K)`: the places of the visible patches, the smallest noise first.\n\n"
    "`restore`, `(B, N)`: for each place, where its patch lies in the list of all patches sorted by noise.\n\n"
    "`masked`, `(B, N)`, a tensor of truth values: `True` where a patch is hidden.",
    hints=(
        "By hand: the noise is 0.7, 0.1, 0.9, 0.4. In which order do the four patches come, and where is patch 0 then?",
        "`shuffle = noise.argsort(dim=1)` lists the places in the order of their noise; `keep` is its beginning.",
        "The inverse of a permutation is its `argsort`: `restore = shuffle.argsort(dim=1)`. A patch is hidden if it "
        "lies at K or behind: `restore >= K`.",
    ),
    solution="""
def my_random_mask(noise, ratio):
    K = int(noise.shape[1] * (1 - ratio))
    shuffle = noise.argsort(dim=1)
    restore = shuffle.argsort(dim=1)
    return shuffle[:, :K], restore, restore >= K
""",
)

# restore_order ----------------------------------------------------------------------------------------------


def restore_order(
    visible: Tensor,
    mask_token: Tensor,
    restore: Tensor,
    *,
    fill: str = "token",
    first: str = "visible",
    by: str = "restore",
    each: bool = True,
) -> Tensor:
    """All places in order: what was seen there, or the mask token."""
    (B, N), (K, D) = restore.shape, visible.shape[1:]
    unknown = (mask_token if fill == "token" else 0 * mask_token).expand(B, N - K, D)
    tokens = torch.cat([visible, unknown] if first == "visible" else [unknown, visible], dim=1)
    places = restore if each else restore[:1].expand(B, N)
    places = {"restore": places, "nothing": torch.arange(N).expand(B, N), "its inverse": places.argsort(dim=1)}[by]
    return tokens.gather(1, places[..., None].expand(B, N, D))


def seen_and_places(draw: Draw, *, hidden: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Features of visible patches, the mask token, and a permutation for each picture."""
    B, K, D, more = draw.sizes(4, 2, 6)
    more = more if hidden is None else hidden
    return draw(B, K, D), draw(1, 1, D), draw(B, K + more).argsort(dim=1)


RESTORE_ORDER = Task(
    name="restore_order",
    title="Back into order",
    asks="visible, mask_token, restore",
    reference=restore_order,
    cases=(
        Case("each place gets what was seen there, or the mask token", seen_and_places),
        Case("without hidden patches only the order changes", lambda draw: seen_and_places(draw, hidden=0)),
    ),
    mistakes=mistakes(r"""
left in shuffled order: by='nothing'
    The visible patches stand first, and all mask tokens behind them.
    > `restore` says for each place where in that list to look.
the wrong permutation: by='its inverse'
    The list was permuted the wrong way round.
    > Place i gets entry `restore[i]` of the list, as `gather` with `restore` reads it. `scatter` with `restore`, or
    `gather` with its inverse, does the opposite.
mask tokens in front: first='mask tokens'
    The mask tokens stand before the visible patches in the list.
    > First what is visible, then what is hidden: so `restore` counts.
zeros in place of the mask token: fill='zeros'
    Hidden places hold zeros.
    > There the mask token stands, a vector that is learned; the same for each hidden place.
one order for all pictures: each=False
    The order of the first picture was used for all.
    > Each row of `restore` belongs to a picture of its own: `gather` along dim=1.
"""),
    also=(gradients,),
    minutes=6,
    text="The encoder has seen K of N patches: `visible`, `(B, K, D)`, in the order of `keep`. Put them back to their "
    "places, and the `mask_token`, `(1, 1, D)`, to all others: the result is `(B, N, D)`. `restore`, `(B, N)`, is that "
    "of the exercise above: where each patch lies in the list of visible, then hidden ones.",
    hints=(
        "Make the whole list first, N entries long. What stands in it behind the visible patches, and how often?",
        "`mask_token.expand(B, N - K, D)` repeats it; `torch.cat([visible, ...], dim=1)` is the list.",
        "`tokens.gather(1, index)` with an index as large as the result: `restore[..., None].expand(-1, -1, D)`.",
    ),
    solution="""
def my_restore_order(visible, mask_token, restore):
    (B, K, D), N = visible.shape, restore.shape[1]
    hidden = mask_token.expand(B, N - K, D)
    tokens = torch.cat([visible, hidden], dim=1)
    places = restore[..., None].expand(B, N, D)
    return tokens.gather(1, places)
""",
)

# hidden_loss ------------------------------------------------------------------------------------------------


def hidden_loss(
    painted: Tensor,
    target: Tensor,
    masked: Tensor,
    *,
    over: str = "hidden",
    error: str = "squared",
    pixels: str = "mean",
    mean: str = "of all",
) -> Tensor:
    """The mean squared error of the hidden patches."""
    difference = painted - target
    errors = difference.abs() if error == "absolute" else difference.square()
    errors = errors.mean(-1) if pixels == "mean" else errors.sum(-1)
    counted = {"hidden": masked, "visible": ~masked, "all": torch.ones_like(masked)}[over]
    total, count = (errors * counted).sum(1), counted.sum(1)
    if mean == "picture by picture":
        return (total / count).mean()
    return total.sum() / {"of all": count.sum(), "over all places": masked.numel(), "none": 1}[mean]


def painting(draw: Draw, *, wild: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """What was painted, what was asked for, and where; `wild` makes what is painted at visible places large."""
    B, N, P = draw.sizes(3, 3, 7)
    masked = ~draw.mask(B, N)
    painted = draw(B, N, P)
    return torch.where(masked[..., None], painted, wild * painted), draw(B, N, P), masked


HIDDEN_LOSS = Task(
    name="hidden_loss",
    title="Only what was hidden counts",
    asks="painted, target, masked",
    reference=hidden_loss,
    cases=(
        Case("the mean squared error over all hidden patches", painting),
        Case("what is painted at visible places does not matter", lambda draw: painting(draw, wild=100.0)),
    ),
    mistakes=mistakes(r"""
visible patches count, too: over='all'
    The error of all patches enters the loss.
    > Only hidden ones count: multiply the error of each patch by `masked`, or pick them with `[masked]`.
mask inverted: over='visible'
    The error of the visible patches is counted, and that of the hidden ones is not.
    > `masked` is True where a patch is hidden.
divided by all places: mean='over all places'
    The sum of the hidden patches' errors is divided by the number of all patches.
    > Divide by as many as were counted: `masked.sum()`.
sum in place of the mean: mean='none'
    The errors of the hidden patches are added up.
    > Divide by their number, `masked.sum()`.
pixels added up: pixels='sum'
    Within a patch the errors of the pixels are added up.
    > Take their mean: `mean(dim=-1)`.
mean picture by picture: mean='picture by picture'
    A mean was taken for each picture first: patches of a picture with few hidden ones weigh more.
    > Add up over the whole batch, and divide once.
no square: error='absolute'
    The differences enter without a square.
    > Squared error: `(painted - target).square()`.
"""),
    also=(gradients,),
    minutes=5,
    text="`painted` and `target` are `(B, N, P)`: for each of N patches P numbers. `masked`, `(B, N)`, is `True` "
    "where a patch was hidden. Return **one number**: the mean squared error over the pixels of all hidden patches of "
    "the batch. A picture may have more of them than another.",
    hints=(
        "First one error for each patch, whether hidden or not. Which shape does it have?",
        "`(painted - target).square().mean(dim=-1)` is `(B, N)`. The visible ones must fall out of sum and count.",
        "Multiply it by `masked`, add up, and divide by `masked.sum()`.",
    ),
    solution="""
def my_hidden_loss(painted, target, masked):
    error = (painted - target).square().mean(dim=-1)
    return (error * masked).sum() / masked.sum()
""",
)

# normalised_target ------------------------------------------------------------------------------------------


def normalised_target(
    patches: Tensor, *, over: str = "patch", degrees: int = 1, divisor: str = "spread", centred: bool = True
) -> Tensor:
    """Each patch less its mean, over sqrt(variance + 1e-6)."""
    axis = {"patch": -1, "picture": (1, 2), "pixel": 1, "batch": 0}[over]
    variance, mean = torch.var_mean(patches, dim=axis, keepdim=True, correction=degrees)
    spread = {
        "spread": (variance + 1e-6).sqrt(),
        "nothing added": variance.sqrt(),
        "added behind": variance.sqrt() + 1e-6,
        "variance": variance + 1e-6,
    }[divisor]
    return (patches - mean if centred else patches) / spread


def flat_patches(draw: Draw) -> tuple[Tensor]:
    """Patches of one grey, and others that are nearly so."""
    B, N, P = draw.sizes(3, 3, 7)
    patches = 1e-3 * draw(B, N, P)
    patches[:, ::2] = 0.5
    return (patches,)


FLAT = Finding(
    "flat patches come out too large",
    "A patch of one grey should give zeros, and one that is nearly so small numbers.",
    "1e-6 is added to the variance, before the root is taken.",
)
NORMALISED_TARGET = Task(
    name="normalised_target",
    title="Each patch by its own measure",
    asks="patches",
    reference=normalised_target,
    cases=(
        Case("mean 0 and spread 1 in each patch", lambda draw: (2 + 3 * draw(*draw.sizes(3, 3, 7)),)),
        Case("a patch of one grey gives zeros", flat_patches, otherwise=FLAT),
    ),
    mistakes=mistakes(r"""
statistics of the whole picture: over='picture'
    Mean and spread were taken over all patches of a picture.
    > Each patch by itself: over the last axis only, `dim=-1`, with `keepdim=True`.
statistics of each pixel over the patches: over='pixel' | 'batch'
    Mean and spread were taken over the patches or over the pictures, for each pixel by itself.
    > It is the numbers within a patch that are compared: `dim=-1`.
divided by P in the variance: degrees=0
    The variance was divided by P, the number of pixels of a patch.
    > By P - 1 here, as `var` does unless told otherwise.
divided by the variance: divisor='variance'
    The patches were divided by their variance.
    > By its root.
mean left in: centred=False
    The patches were divided, but their mean was not taken away.
    > Subtract the mean of each patch first: its brightness need not be guessed then.
nothing added to the variance: divisor='nothing added'
    A patch of one grey gives NaN: it is 0/0.
    > Add 1e-6 to the variance, before the root.
added behind the root: divisor='added behind'
    1e-6 was added to the root: what is nearly flat comes out as large as everything else.
    > Add it to the variance, and take the root then.
"""),
    also=(gradients,),
    minutes=5,
    text="Make the target from `patches`, `(B, N, P)`: of each patch $x$ it is $(x - \\mu) \\,/\\, \\sqrt{\\sigma^2 + "
    "10^{-6}}$, with mean and variance of the P numbers of **that patch**. The variance is divided by $P - 1$, torch's "
    "own way and that of the paper's released code.",
    hints=(
        "How many means are there: one, B, B N, or B N P? Which axis do they run along?",
        "`patches.mean(dim=-1, keepdim=True)` keeps the axis, so that the subtraction fits; `var` alike.",
        "`(patches - mean) / (variance + 1e-6).sqrt()`.",
    ),
    solution="""
def my_normalised_target(patches):
    mean = patches.mean(dim=-1, keepdim=True)
    variance = patches.var(dim=-1, keepdim=True)
    return (patches - mean) / (variance + 1e-6).sqrt()
""",
)

# encoder_cost -----------------------------------------------------------------------------------------------


def encoder_cost(
    num_patches: int,
    ratio: float,
    dim: int,
    depth: int,
    mlp_dim: int,
    *,
    sees: str = "visible",
    maps: int = 4,
    products: int = 2,
    layers: int = 2,
    blocks: str = "all",
    unit: int = 2,
) -> float:
    """Operations of the matrix products of all blocks for the visible patches of one picture."""
    visible = int(num_patches * (1 - ratio))
    T = {"visible": visible, "all": num_patches, "hidden": num_patches - visible}[sees]
    block = maps * T * dim**2 + products * T**2 * dim + layers * T * dim * mlp_dim
    return float(unit * (depth if blocks == "all" else 1) * block)


def sizes_and_ratio(draw: Draw, *, ratio: float | None = None) -> tuple[int, float, int, int, int]:
    """The sizes of an encoder, and a share of hidden patches."""
    rows, columns, width, depth, wider = draw.sizes(5, 3, 9)
    N = rows * columns
    drawn = 1 - (draw.integers(2, N // 2, 1).item() + 0.5) / N
    return N, drawn if ratio is None else ratio, 4 * width, depth, 4 * (width + wider)


ENCODER_COST = Task(
    name="encoder_cost",
    title="What a ratio saves",
    asks="num_patches, ratio, dim, depth, mlp_dim",
    reference=encoder_cost,
    cases=(
        Case("matrix products of the visible patches, in all blocks", sizes_and_ratio),
        Case("with nothing hidden the cost of a plain ViT", lambda draw: sizes_and_ratio(draw, ratio=0.0)),
    ),
    mistakes=mistakes(r"""
hidden patches counted: sees='all'
    The ratio makes no difference.
    > The encoder sees $K = \lfloor N (1 - \text{ratio}) \rfloor$ patches and no other.
the hidden ones counted, not the visible: sees='hidden'
    The cost is that of the hidden patches.
    > The encoder sees those that are *not* hidden.
output map of attention forgotten: maps=3
    Attention has three maps here.
    > Queries, keys, values, and the output: four maps of d x d.
one product of attention forgotten: products=1
    Attention has one product of K x K in your count.
    > Two: queries with keys, and weights with values.
products of attention forgotten: products=0
    Nothing in your count grows with the square of the number of patches.
    > Queries with keys, and weights with values: K · K · d multiplications each.
one layer of the MLP forgotten: layers=1
    The MLP has one layer in your count.
    > Two: from `dim` to `mlp_dim`, and back.
one block only: blocks='one'
    Your count is that of a single block.
    > There are `depth` of them.
multiply-adds counted as one: unit=1
    The result is half of what it should be.
    > A multiplication and an addition are two operations.
"""),
    minutes=7,
    stretch=True,
    text="Count the operations of **all matrix products** in the encoder's blocks for one picture, as a `float`; a "
    "multiplication with its addition counts as two. The encoder sees $K = \\lfloor N (1 - \\text{ratio}) \\rfloor$ "
    "patches. Each of `depth` blocks has four maps of width `dim` (queries, keys, values, output), the two products of "
    "attention, in all heads together, and two layers, from `dim` to `mlp_dim` and back. Nothing else is counted.",
    hints=(
        "A product of an (a, b) and a (b, c) matrix: how many multiplications is that, and how many additions?",
        "One map of K patches is K · d · d multiplications. Which two products grow with K²?",
        "A block, with d for `dim` and m for `mlp_dim`: 4 K d² for the maps, 2 K² d for attention, 2 K d m for the two "
        "layers; twice that, for each block.",
    ),
    solution="""
def my_encoder_cost(num_patches, ratio, dim, depth, mlp_dim):
    K = int(num_patches * (1 - ratio))
    maps = 4 * K * dim**2
    attention = 2 * K**2 * dim
    feed_forward = 2 * K * dim * mlp_dim
    return float(2 * depth * (maps + attention + feed_forward))
""",
)

TASKS = {task.name: task for task in (RANDOM_MASK, RESTORE_ORDER, HIDDEN_LOSS, NORMALISED_TARGET, ENCODER_COST)}
