"""Assignment 11, Vision Transformer: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_11.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def overlapping(
    image: Tensor,
    patch_size: int,
    stride: int,
    padding: int,
    *,
    framed: bool = True,
    step: str = "stride",
    edge: str = "inside",
    order: str = "rows",
    inside: str = "row, column, channel",
) -> Tensor:
    """The numbers of each window that lies within the padded picture, row by row."""
    p, step = patch_size, patch_size if step == "patch" else stride
    image = F.pad(image, (padding if framed else 0,) * 4)
    lengths = image.shape[-2:]
    if edge == "short":
        image = image[..., : lengths[0] - 1, : lengths[1] - 1]
    if edge == "over":
        more = [(-(-length // step) - 1) * step + p - length for length in lengths]
        image = F.pad(image, (0, max(more[1], 0), 0, max(more[0], 0)))
    windows = image.unfold(2, p, step).unfold(3, p, step)  # B C h w p q
    axes = {"row, column, channel": (4, 5, 1), "channel, row, column": (1, 4, 5), "column, row, channel": (5, 4, 1)}
    windows = windows.permute(0, *((2, 3) if order == "rows" else (3, 2)), *axes[inside])
    return windows.reshape(len(image), -1, p * p * image.shape[1])


def windows(draw: Draw, *, left: bool = False, apart: bool = False) -> tuple[Tensor, int, int, int]:
    """Pictures, the side of a patch, how far it moves, and a frame; with `left`, pixels are left over at two edges."""
    B, C, rows, columns = draw.sizes(4, 2, 5)
    p = draw.integers(3, 6, 1).item()
    step, frame = (p, 0) if apart else (draw.integers(2, p, 1).item(), draw.integers(2, 4, 1).item())
    sides = [(count - 1) * step + p + left - 2 * frame for count in (rows + 1, columns + 1)]
    return draw(B, C, *sides), p, step, frame


OVERLAPPING = replace(
    SHOWN["overlapping_patches"],
    reference=overlapping,
    cases=(
        Case("patches that overlap, of a picture with a frame of zeros", windows, 7),
        Case(
            "what is left over at an edge belongs to no patch",
            lambda draw: windows(draw, left=True),
            4,
            ("framed", "edge", "step"),
        ),
        Case(
            "without overlap or frame they are the patches of the lesson",
            lambda draw: windows(draw, apart=True),
            2,
            ("order", "inside"),
        ),
    ),
    mistakes=mistakes(r"""
frame left out: framed=False
    The result is that of a picture without its frame of zeros.
    > `F.pad(image, (padding,) * 4)` puts zeros on all four sides.
stride ignored: step='patch'
    The patches lie side by side: `stride` makes no difference.
    > Each patch begins `stride` pixels behind the one before.
last patch missing: edge='short'
    A row and a column of patches are missing where the last patch ends exactly at the edge.
    > There are (length - p) // stride + 1 of them: a `range` of starts ends at `length - p + 1`.
patches hang over the edge: edge='over'
    There are patches that reach beyond the frame.
    > A patch belongs to the result only if all of it lies inside.
patches counted down the columns: order='columns'
    The patches stand column by column.
    > Row by row, from left to right.
channels not last: inside='channel, row, column'
    The numbers of a patch stand channel by channel, as `F.unfold` gives them.
    > Row by row, then column by column, and the channels of a pixel side by side: (p q c).
patches turned: inside='column, row, channel'
    Within a patch, rows and columns are exchanged.
    > Row by row: (p q c).
"""),
    wrong={
        "frame left out": ("F.pad(image, (padding,) * 4)", "image"),
        "channels not last": ('"b (c p q) n -> b n (p q c)"', '"b (c p q) n -> b n (c p q)"'),
    },
)


def add_positions(
    patches: Tensor,
    height: int,
    width: int,
    *,
    halves: str = "column, row",
    waves: str = "in halves",
    pace: str = "4i/D",
    order: str = "rows",
) -> Tensor:
    """To each patch sin and cos of its column, then of its row."""
    dim = patches.shape[-1]
    i = torch.arange(dim // 4, dtype=torch.float64)
    frequency = 10_000 ** -(i / dim * {"4i/D": 4, "2i/D": 2, "i/D": 1, "-4i/D": -4}[pace])
    n = torch.arange(height * width, dtype=torch.float64)
    places = [n % width, n.div(width, rounding_mode="floor")]
    if order == "columns":
        places = [n.div(height, rounding_mode="floor"), n % height]
    places = {"column, row": places, "row, column": places[::-1], "number": [n, n]}[halves]
    codes = []
    for place in places:
        angle = place[:, None] * frequency
        pair = [angle.sin(), angle.cos()]
        codes.append(torch.stack(pair, dim=-1).flatten(1) if waves == "by turns" else torch.cat(pair, dim=1))
    return patches + torch.cat(codes, dim=1).to(patches.dtype)


def patches_of_a_grid(draw: Draw, *, row: bool = False, quarter: int | None = None) -> tuple[Tensor, int, int]:
    """Embedded patches of some pictures, and the height and width of their grid."""
    B, height, width, frequencies = draw.sizes(4, 2, 9)
    height = 1 if row else height
    return draw(B, height * width, 4 * (quarter or frequencies)), height, width


POSITIONS = replace(
    SHOWN["add_positions"],
    reference=add_positions,
    cases=(
        Case("the code of the column, then that of the row, patch by patch", patches_of_a_grid, 7, tolerance=1e-3),
        Case(
            "a single row of patches",
            lambda draw: patches_of_a_grid(draw, row=True),
            3,
            ("halves",),
            tolerance=1e-3,
        ),
        Case("a single frequency", lambda draw: patches_of_a_grid(draw, quarter=1), 2, tolerance=1e-3),
    ),
    mistakes=mistakes(r"""
row before column: halves='row, column'
    The row's code stands before the column's.
    > The column comes first here, as in the released code of masked autoencoders.
number of the patch encoded: halves='number'
    Both halves hold the number of the patch in the list.
    > Patch n stands in column n % width and row n // width: each half encodes one of them.
patches counted down the columns: order='columns'
    The patches stand column by column.
    > Row by row: the column changes from one patch to the next.
sines and cosines by turns: waves='by turns'
    Sines and cosines alternate.
    > In each half first all sines, then all cosines.
wrong exponent: pace='2i/D' | 'i/D'
    The frequencies fall at another pace.
    > Each half has D/4 frequencies, 10000 to the power of -i / (D/4).
frequencies grow instead of fall: pace='-4i/D'
    The frequencies grow with i.
    > Divide by the power of 10000.
"""),
    wrong={
        "row before column": ("[columns, rows]", "[rows, columns]"),
        "sines and cosines by turns": (
            "torch.cat([angle.sin(), angle.cos()], dim=1)",
            "torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)",
        ),
    },
)


def rollout_map(
    weights: Tensor,
    height: int,
    width: int,
    *,
    skip: bool = True,
    order: str = "left",
    heads: str = "mean",
    blocks: str = "product",
    read: str = "row",
    scaled: bool = True,
) -> Tensor:
    """How much of each patch has reached the class token, as a map that sums to one."""
    mixed = {"mean": weights.mean(2), "max": weights.amax(2), "first": weights[:, :, 0]}[heads]
    mixed = (mixed + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2 if skip else mixed
    rolled, *later = mixed.unbind(1) if blocks != "last" else mixed[:, -1:].unbind(1)
    for block in later:
        rolled = rolled + block if blocks == "sum" else block @ rolled if order == "left" else rolled @ block
    found = (rolled if read == "row" else rolled.mT)[:, 0, 1:]
    found = found / found.sum(-1, keepdim=True) if scaled else found
    return found.reshape(-1, height, width)


def attention_maps(draw: Draw, *, blocks: int | None = None, heads: int | None = None) -> tuple[Tensor, int, int]:
    """Attention of some blocks and heads, each row a distribution."""
    B, L, H, height, width = draw.sizes(5, 2, 6)
    T = height * width + 1
    return (2 * draw(B, blocks or L, heads or H, T, T)).softmax(-1), height, width


ROLLOUT = replace(
    SHOWN["rollout_map"],
    reference=rollout_map,
    cases=(
        Case("what reached the class token through all blocks, as a map", attention_maps, 11, tolerance=1e-5),
        Case(
            "a single block",
            lambda draw: attention_maps(draw, blocks=1),
            4,
            ("read", "scaled"),
            tolerance=1e-5,
        ),
        Case("a single head", lambda draw: attention_maps(draw, heads=1), 3, tolerance=1e-5),
    ),
    mistakes=mistakes(r"""
path around the attention left out: skip=False
    The matrices of attention were multiplied as they are.
    > Half of what a token is goes around the attention: (W + I) / 2.
blocks in the wrong order: order='right'
    The first block stands on the left.
    > A later block reads what the earlier ones wrote: its matrix stands on the left of the product.
blocks added: blocks='sum'
    The matrices of the blocks were added.
    > What a block reads went through the blocks before it: multiply.
only the last block: blocks='last'
    Only the last block counts.
    > What it looks at are no longer patches but mixtures: go through all blocks.
not the mean over the heads: heads='max' | 'first'
    The heads were not averaged.
    > `weights.mean(dim=2)`, before anything else.
column in place of row: read='column'
    The map says how much of the class token reached each patch.
    > Row i belongs to the token that looks: row 0 is what reached the class token.
does not sum to one: scaled=False
    The patches of a map do not sum to one: what the class token has of itself is missing.
    > Leave out the class token, then divide by the sum of the patches.
"""),
    wrong={
        "blocks in the wrong order": ("rolled = block @ rolled", "rolled = rolled @ block"),
        "does not sum to one": ("found / found.sum(dim=-1, keepdim=True)", "found"),
    },
)


def keep_tokens(
    tokens: Tensor,
    attention: Tensor,
    count: int,
    *,
    most: bool = True,
    order: str = "place",
    heads: str = "mean",
    rest: str = "weighted",
    each: bool = True,
) -> Tensor:
    """The class token, the patches that it looks at most, and the others in one."""
    a = attention.mean(1) if heads == "mean" else attention.amax(1) if heads == "max" else attention[:, 0]
    looks = (a if each else a[:1].expand_as(a))[:, 1:]
    ranked = looks.argsort(dim=1, descending=most) + 1
    kept, others = ranked[:, :count], ranked[:, count:]
    kept = kept.sort(dim=1).values if order == "place" else kept

    def taken(places: Tensor) -> Tensor:
        return tokens.gather(1, places[..., None].expand(-1, -1, tokens.shape[-1]))

    shares = torch.ones_like(others, dtype=a.dtype) if rest == "mean" else a.gather(1, others)
    shares = shares if rest == "as they are" else shares / shares.sum(1, keepdim=True)
    return torch.cat([tokens[:, :1], taken(kept), shares[:, None] @ taken(others)], dim=1)


def looked_at(
    draw: Draw, *, heads: int | None = None, drops: int | None = None, keeps: int | None = None
) -> tuple[Tensor, Tensor, int]:
    """Tokens, how much the class token looks at each in each head, and how many patches stay."""
    B, H, D, N, more = draw.sizes(5, 2, 7)
    N = N + more
    return draw(B, N + 1, D), (2 * draw(B, heads or H, N + 1)).softmax(-1), keeps or N - (drops or more)


KEEP = replace(
    SHOWN["keep_tokens"],
    reference=keep_tokens,
    cases=(
        Case("the class token, the patches it looks at most, the others in one", looked_at, 8),
        Case("a single head", lambda draw: looked_at(draw, heads=1), 4, ("most", "rest")),
        Case("a single patch stays", lambda draw: looked_at(draw, keeps=1), 3),
        Case("a single patch is left over", lambda draw: looked_at(draw, drops=1), 3, ("most", "heads")),
    ),
    mistakes=mistakes(r"""
the least looked at stay: most=False
    The patches that the class token looks at least were kept.
    > `topk` takes the largest.
kept in order of attention: order='attention'
    The kept patches are sorted by attention.
    > In the order in which they came: sort their places.
one head decides: heads='first' | 'max'
    The heads were not averaged.
    > The mean over the heads: `attention.mean(dim=1)`.
plain mean of the others: rest='mean'
    The others were averaged without weights.
    > Weigh each by the attention that it gets.
weights do not sum to one: rest='as they are'
    The others were added with their attention as it is.
    > Divide by the sum of their attention: a weighted mean.
one choice for all pictures: each=False
    In every picture the same places were kept.
    > Each picture has an attention of its own: `gather` along the tokens.
"""),
    wrong={
        "kept in order of attention": (".indices.sort(dim=1).values", ".indices"),
        "plain mean of the others": ("shares = looks.masked_fill(keep, 0.0)", "shares = 1.0 - keep.to(looks.dtype)"),
    },
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned": ("range(400)", "range(1)"),
        "learned by heart": ("torch.randint(len(pictures), (64,))", "torch.randint(60, (64,))"),
        "places left out": (" + self.positions", " + 0 * self.positions"),
        "only whole pictures": ("cut(pictures[some]) * seen", "cut(pictures[some])"),
        "stopped with an error": ("torch.manual_seed(0)", "torch.manual_seed(labels)"),
    },
)

ASSIGNMENT = Assignment(
    "11",
    notebook="vit",
    title="Vision Transformer",
    tasks=(OVERLAPPING, POSITIONS, ROLLOUT, KEEP, TRAIN),
    seconds={"train": 60},  # for the training, and all questions
)
