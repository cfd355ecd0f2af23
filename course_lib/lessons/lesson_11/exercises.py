"""Lesson 11, Vision Transformer: its exercises; each formula has a knob for every mistake that learners make."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward
from course_lib.tasks import Case, Draw, Task, gradients, mistakes

# patchify and back ------------------------------------------------------------------------------------------

CUTS = {
    ("rows", "pixels"): "b c (h p) (w q) -> b (h w) (p q c)",
    ("columns", "pixels"): "b c (h p) (w q) -> b (w h) (p q c)",
    ("rows", "turned"): "b c (h p) (w q) -> b (h w) (q p c)",
    ("rows", "channels"): "b c (h p) (w q) -> b (h w) (c p q)",
    ("columns", "turned"): "b c (h p) (w q) -> b (w h) (q p c)",
    ("columns", "channels"): "b c (h p) (w q) -> b (w h) (c p q)",
    ("rows", "scattered"): "b c (p h) (q w) -> b (h w) (p q c)",
    ("columns", "scattered"): "b c (p h) (q w) -> b (w h) (p q c)",
}


def patchify(image: Tensor, patch_size: int, *, order: str = "rows", inside: str = "pixels") -> Tensor:
    """The pixels of each patch, row by row."""
    if inside in ("reshaped", "channel alone"):
        flat = image if inside == "reshaped" else image.permute(0, 2, 3, 1)
        return flat.reshape(len(image), -1, patch_size**2 * image.shape[1])
    return rearrange(image, CUTS[order, inside], p=patch_size, q=patch_size)


def unpatchify(
    patches: Tensor, patch_size: int, height: int, width: int, *, order: str = "rows", inside: str = "pixels"
) -> Tensor:
    """The image of these patches."""
    if inside == "reshaped":
        return patches.reshape(len(patches), -1, height, width)
    if inside == "channel alone":
        pixels = patches.reshape(len(patches), height * width, -1)
        return pixels.mT.reshape(len(patches), -1, height, width)
    back = " -> ".join(reversed(CUTS[order, inside].split(" -> ")))
    rows, columns = height // patch_size, width // patch_size
    return rearrange(patches, back, p=patch_size, q=patch_size, h=rows, w=columns)


def picture(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int]:
    """Pictures of drawn sizes, and the side of their patches."""
    B, C, rows, columns = draw.sizes(4, 2, 6)
    p = draw.integers(2, 5, 1).item() if draw.same is None else 3
    return draw(B, channels or C, rows * p, columns * p), p


def pieces(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int, int, int]:
    """Patches, their side, and the size of the picture that they come from."""
    image, p = picture(draw, channels=channels)
    return patchify(image, p), p, *image.shape[-2:]


LAYOUT = mistakes(r"""
patches column by column: order='columns'
    The second patch is taken to stand below the first, not to its right.
    > Patches are counted as words are read: along the first row of the picture, then along the next.
rows and columns within a patch exchanged: inside='turned'
    Each patch lies on its side: its pixels are counted down its columns.
    > Within a patch, too, the row counts slowest, then the column: p before q.
channels not together: inside='channels'
    A patch has all of its first channel, then all of its second.
    > The numbers of one pixel stay side by side: the channel counts fastest, behind row and column.
pixels from all over the picture: inside='scattered'
    A patch holds pixels that do not lie side by side, but one from here and one from there.
    > Height becomes (h, p), h patches of p rows each, in this order: `reshape(B, C, h, p, w, q)`.
reshape alone: inside='reshaped'
    Everything was cut in the order in which it lies in memory: whole rows, not squares.
    > Between two reshapes the axes have to change places: `permute`.
only the channel moved: inside='channel alone'
    The channel changed its place, and squares did not become rows of the picture, or rows squares.
    > Two axes have to change places as well: p, a row within a patch, and w, the column of the patch.
""")

PATCHIFY = Task(
    name="patchify",
    title="Cut a picture into patches",
    asks="image, patch_size",
    reference=patchify,
    cases=(
        Case("the patches of a picture in colour, row by row", picture),
        Case("pictures in grey", lambda draw: picture(draw, channels=1), knobs=("order",)),
    ),
    mistakes=LAYOUT,
    also=(gradients,),
    forbids=("patchify",),
    minutes=6,
    text="`image` is `(B, C, H, W)`; H and W are multiples of `patch_size`, p for short. Return `(B, N, p p C)`: the N "
    "patches row by row, and of each patch all numbers: its pixels row by row, the C channels of a pixel side by side.",
    hints=(
        "Which of the four axes are cut, and into what? Write down six axes, then the three that are wanted.",
        "`reshape(B, C, H // p, p, W // p, p)`. In which order must these six stand before they are joined?",
        "`permute(0, 2, 4, 3, 5, 1)`: picture; row and column of the patch; row, column and channel within it.",
    ),
    solution="""
def my_patchify(image, patch_size):
    B, C, H, W = image.shape
    p = patch_size
    x = image.reshape(B, C, H // p, p, W // p, p)
    x = x.permute(0, 2, 4, 3, 5, 1)
    return x.reshape(B, -1, p * p * C)
""",
)

UNPATCHIFY = Task(
    name="unpatchify",
    title="And back",
    asks="patches, patch_size, height, width",
    reference=unpatchify,
    cases=(
        Case("the picture in colour", pieces),
        Case("pictures in grey", lambda draw: pieces(draw, channels=1), knobs=("order",)),
    ),
    mistakes=LAYOUT,
    also=(gradients,),
    forbids=("unpatchify",),
    minutes=4,
    text="Put the picture together again: `patches` of shape `(B, N, p p C)`, as they were cut above, become "
    "`(B, C, height, width)`.",
    hints=(
        "Undo your steps one by one, the last one first.",
        "First `reshape` to six axes: the rows and columns of patches, then row, column and channel within a patch.",
        "`permute(0, 5, 1, 3, 2, 4)` brings the channel to the front, and pairs what makes a row of the picture (h, "
        "p) and a column (w, q).",
    ),
    solution="""
def my_unpatchify(patches, patch_size, height, width):
    p, B = patch_size, len(patches)
    x = patches.reshape(B, height // p, width // p, p, p, -1)
    x = x.permute(0, 5, 1, 3, 2, 4)
    return x.reshape(B, -1, height, width)
""",
)

# tokens -----------------------------------------------------------------------------------------------------


def tokens(
    patches: Tensor,
    cls_token: Tensor,
    pos_embed: Tensor,
    *,
    place: str = "first",
    positions: str = "all",
    join: str = "token",
) -> Tensor:
    """[class; patches] + positions."""
    token, first, others = cls_token.expand(len(patches), -1, -1), pos_embed[:, :1], pos_embed[:, 1:]
    if join != "token":
        return patches + (token if join == "added" else 0) + others
    added = {
        "all": pos_embed,
        "none": 0 * pos_embed,
        "patches only": torch.cat([0 * first, others], dim=1),
        "off by one": torch.cat([0 * first, pos_embed[:, :-1]], dim=1),
    }[positions]
    return torch.cat([token, patches] if place == "first" else [patches, token], dim=1) + added


def embedded(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Embedded patches, a class token, and positions for all of them."""
    B, N, D = draw.sizes(3)
    return draw(B, N, D), draw(1, 1, D), draw(1, N + 1, D)


TOKENS = Task(
    name="tokens",
    title="Class token and positions",
    asks="patches, cls_token, pos_embed",
    reference=tokens,
    cases=(Case("the class token, then the patches, each with its position", embedded),),
    mistakes=mistakes(r"""
class token at the end: place='last'
    The class token stands behind the patches.
    > It comes first, and the first of the positions is its own.
class token left out: join='none'
    The patches are there, and no class token.
    > One more token in front: `torch.cat` along the axis of the tokens.
class token added to the patches: join='added'
    The class token was added to every patch.
    > It is a token of its own: N patches become N + 1 tokens.
positions left out: positions='none'
    No position was added: where a patch stood is lost.
    > Add `pos_embed` at the end; it has a row for each of the N + 1 tokens.
class token without its position: positions='patches only'
    The first of the positions is not used.
    > In eq. (1) the positions are added to all N + 1 tokens.
positions off by one: positions='off by one'
    The first patch got the position that belongs to the class token.
    > Row 0 of `pos_embed` is the class token's. Join first, then add.
"""),
    also=(gradients,),
    minutes=5,
    text="Eq. (1) of the paper: $z_0 = [x_{\\text{class}};\\, x^1 E;\\, \\dots;\\, x^N E] + E_{\\text{pos}}$. "
    "`patches` `(B, N, D)` are embedded already; `cls_token` `(1, 1, D)` and `pos_embed` `(1, N + 1, D)` are the same "
    "for all pictures. Return `(B, N + 1, D)`.",
    hints=(
        "How many tokens come out, and which of the N + 1 positions belongs to which?",
        "There is one class token and B pictures: `expand` repeats it along the axis of the pictures.",
        "`torch.cat([cls_token.expand(B, -1, -1), patches], dim=1)`, then add `pos_embed`.",
    ),
    solution="""
def my_tokens(patches, cls_token, pos_embed):
    first = cls_token.expand(len(patches), -1, -1)
    return torch.cat([first, patches], dim=1) + pos_embed
""",
)

# attention_distance -----------------------------------------------------------------------------------------


def attention_distance(
    weights: Tensor,
    height: int,
    width: int,
    patch_size: float,
    *,
    token: str = "left out",
    length: str = "euclid",
    unit: str = "pixels",
    grid: str = "rows",
    over: str = "mean",
) -> Tensor:
    """How far a head looks, on average over the patches that look, in pixels."""
    n = torch.arange(height * width)
    place = torch.stack([n // width, n % width] if grid == "rows" else [n % height, n // height], dim=1)
    apart = (place[:, None] - place).abs().to(weights.dtype)
    distance = {
        "euclid": apart.square().sum(-1).sqrt(),
        "steps": apart.sum(-1),
        "index": (n[:, None] - n).abs().to(weights.dtype),
    }[length]
    distance = distance * (patch_size if unit == "pixels" else 1)
    w = weights[..., 1:, 1:]
    w = {"left out": w / w.sum(-1, keepdim=True), "not made up for": w, "softmax": w.softmax(-1)}[token]
    w = w.mT / w.mT.sum(-1, keepdim=True) if token == "left out" and over == "columns" else w
    found = (w * distance).mean(-1) if over == "mean of all" else (w * distance).sum(-1)
    return found.sum(-1) if over == "sum" else found.mean(-1)


def maps(draw: Draw, *, front: int = 1) -> tuple[Tensor, int, int, int]:
    """Attention between a class token and the patches of a grid, each row a distribution."""
    *axes, height, width = draw.sizes(front + 2, 2, 6)
    T = height * width + 1
    return (2 * draw(*axes, T, T)).softmax(-1), height, width, draw.integers(2, 17, 1).item()


ATTENTION_DISTANCE = Task(
    name="attention_distance",
    title="How far does a head look?",
    asks="weights, height, width, patch_size",
    reference=attention_distance,
    cases=(
        Case("the mean distance of what a patch looks at, in pixels", maps),
        Case("pictures, blocks and heads in front", lambda draw: maps(draw, front=3)),
    ),
    mistakes=mistakes(r"""
shares do not sum to one: token='not made up for'
    What a patch gives to the class token is missing from its average, which is too small.
    > Behind `weights[..., 1:, 1:]` divide each row by its sum: then the patches' shares sum to one again.
another softmax: token='softmax'
    The shares went through a softmax, which makes them nearly equal.
    > They are shares already: divide each row by its sum.
steps in place of a straight line: length='steps'
    Rows and columns were added up, as a taxi drives.
    > As the crow flies: the root of the sum of the two squares.
distance in the list of patches: length='index'
    Two patches count as far apart as their numbers: those of neighbouring rows seem far away.
    > Patch n stands in row n // width and column n % width: work out both first.
patches counted down the columns: grid='columns'
    Height and width are mixed up: the patches were placed column by column.
    > Row by row: patch n stands in row n // width and column n % width.
in patches, not in pixels: unit='patches'
    The distance is counted in patches.
    > One step on the grid is `patch_size` pixels.
summed over the patches that look: over='sum'
    The distances of all queries were added up.
    > The sum runs over the keys, the last axis; over the queries take the mean.
averaged over what is looked at: over='mean of all'
    Over the keys the mean was taken, so that the shares count once more for less.
    > `(w * distance).sum(-1)`: the shares are the weights of an average already.
columns in place of rows: over='columns'
    It was measured from where a patch is looked at: columns were scaled to sum to one.
    > A row is what one patch looks at: the keys are the last axis.
"""),
    minutes=7,
    text="For each patch $q$, the distance to what it looks at is $\\sum_k w_{qk}\\,|q - k|$, in pixels between the "
    "centres of the patches; the head's distance is the mean of that over $q$. `weights` is `(..., T, T)`: a class "
    "token first, then `height * width` patches row by row. The class token has no place: leave out its row and its "
    "column, and scale each row that is left so that it sums to one. Return one number for each head: shape `(...)`.",
    hints=(
        "On a grid of 2 x 3 patches: in which row and column is patch 4? How far is it from patch 0?",
        "`row = n // width`, `column = n % width` for all n at once; the differences of all pairs by broadcasting.",
        "`w = weights[..., 1:, 1:]`, divided by `w.sum(-1, keepdim=True)`; then `(w * distance).sum(-1).mean(-1)`.",
    ),
    solution="""
def my_attention_distance(weights, height, width, patch_size):
    n = torch.arange(height * width)
    place = torch.stack([n // width, n % width], dim=1).float() * patch_size
    distance = (place[:, None] - place).norm(dim=-1)
    w = weights[..., 1:, 1:]
    w = w / w.sum(dim=-1, keepdim=True)
    return (w * distance).sum(dim=-1).mean(dim=-1)
""",
)

# fit_positions ----------------------------------------------------------------------------------------------


def fit_positions(
    table: Tensor,
    grid: tuple[int, int],
    new_grid: tuple[int, int],
    *,
    first: str = "kept",
    way: str = "bicubic",
    corners: bool = False,
    picture: str = "right",
    size: str = "height, width",
) -> Tensor:
    """The class token's position as it is, and those of the patches resized as a picture of D channels."""
    token, rest = table[:, :1], table[:, 1:]
    (h, w), D = grid, table.shape[-1]
    if way == "a line":
        line = F.interpolate(rest.mT, new_grid[0] * new_grid[1], mode="linear", align_corners=corners).mT
        return torch.cat([token, line], dim=1)
    image = (rest if picture in ("reshaped", "reshaped there") else rest.mT).reshape(1, D, h, w)
    target = tuple(new_grid if size == "height, width" else new_grid[::-1])
    new = F.interpolate(image, target, mode=way, **({} if way == "nearest" else {"align_corners": corners}))
    new = new.reshape(1, -1, D) if picture in ("reshaped", "reshaped back") else new.flatten(2).mT
    return torch.cat([token, new], dim=1) if first == "kept" else new


def table_and_grids(draw: Draw, *, same: bool = False) -> tuple[Tensor, tuple[int, int], tuple[int, int]]:
    """Positions of a grid, and two sizes."""
    h, w, D, more, wider = draw.sizes(5, 2, 7)
    return draw(1, 1 + h * w, D), (h, w), (h, w) if same else (h + more, w + wider)


FIT_POSITIONS = Task(
    name="fit_positions",
    title="Positions for a larger picture",
    asks="table, grid, new_grid",
    reference=fit_positions,
    cases=(
        Case("the positions of another grid, the class token's as it was", table_and_grids),
        Case("nothing changes where the grid is the same", lambda draw: table_and_grids(draw, same=True)),
    ),
    mistakes=mistakes(r"""
class token's position lost: first='lost'
    There are only positions of patches.
    > Put the class token's position in front again: `torch.cat([first, new], dim=1)`.
interpolated along the list: way='a line'
    The positions were stretched as a list, as if the last patch of a row stood beside the first of the next.
    > They are a picture of h x w places with D channels: give them two axes first.
another interpolation: way='nearest' | 'bilinear'
    The interpolation is not bicubic.
    > `mode="bicubic"`, as the released code does it; the default of `interpolate` is the nearest neighbour.
corners aligned: corners=True
    The corners of the two grids were laid on each other.
    > `align_corners=False`: a patch is a square, and its position belongs to its centre.
channels and places mixed up: picture='reshaped' | 'reshaped there' | 'reshaped back'
    A reshape alone has mixed up the D numbers of a position with its places.
    > There: places row by row, then the channel to the front, `reshape(1, h, w, D).permute(0, 3, 1, 2)`. Back: its
    reverse, `flatten(2).transpose(1, 2)`.
height and width exchanged: size='width, height'
    The new grid has its height and width exchanged.
    > `new_grid` is (height, width), as `interpolate` wants it.
"""),
    also=(gradients,),
    minutes=6,
    text="A larger picture has more patches, and no learned positions for them. `table` is `(1, 1 + h w, D)`, the "
    "class token's position first; `grid` is `(h, w)` and `new_grid` the new height and width in patches. Return "
    "`(1, 1 + h' w', D)`: the class token's position unchanged, the others as a picture of D channels, resized by "
    '`torch.nn.functional.interpolate` with `mode="bicubic", align_corners=False`.',
    hints=(
        "Part the class token's position from the rest. In which shape does `interpolate` want a picture?",
        "`rest.reshape(1, h, w, D).permute(0, 3, 1, 2)` is a picture `(1, D, h, w)`.",
        "Resize it with `size=new_grid`; then the way back, `flatten(2).transpose(1, 2)`, and `torch.cat`.",
    ),
    solution="""
def my_fit_positions(table, grid, new_grid):
    first, rest = table[:, :1], table[:, 1:]
    picture = rest.reshape(1, *grid, -1).permute(0, 3, 1, 2)
    new = torch.nn.functional.interpolate(
        picture, size=new_grid, mode="bicubic", align_corners=False
    )
    return torch.cat([first, new.flatten(2).transpose(1, 2)], dim=1)
""",
)

# mixer_block ------------------------------------------------------------------------------------------------

Layer = Callable[[Tensor], Tensor]


def mixer_block(
    x: Tensor,
    norm1: Layer,
    token_mlp: Layer,
    norm2: Layer,
    channel_mlp: Layer,
    *,
    axis: str = "turned",
    back: bool = True,
    norm: str = "before",
    path: str = "x",
    order: str = "in turn",
) -> Tensor:
    """x + token_mlp over the places of norm1(x), then the sum + channel_mlp of norm2 of it."""

    def across(h: Tensor) -> Tensor:
        if axis == "reshaped":
            return token_mlp(h.reshape(len(h), h.shape[2], h.shape[1])).reshape(h.shape)
        mixed = token_mlp(h if axis == "none" else h.mT)
        return mixed.mT if back and axis == "turned" else mixed

    begin = x
    for turn, (normed, layer) in enumerate([(norm1, across), (norm2, channel_mlp)]):
        normed = norm1 if norm == "first twice" else normed
        h = begin if order == "beside" else x
        x = (x if path == "x" else 0.0) + layer(h if norm in ("none", f"not {turn + 1}") else normed(h))
    return x


def drawn(module: nn.Module, draw: Draw) -> nn.Module:
    """The module with drawn weights, which need no gradient."""
    for weight in module.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    return module.requires_grad_(False)


def four_parts(draw: Draw) -> tuple[Tensor, nn.Module, nn.Module, nn.Module, nn.Module]:
    """Patches of drawn sizes, and the four parts of a block for them."""
    B, N, D = draw.sizes(3)
    norm1, norm2 = (drawn(nn.LayerNorm(D), draw) for _ in range(2))
    mlps = [drawn(FeedForward(size, 3 * size, activation="gelu_tanh"), draw) for size in (N, D)]
    return 3 * draw(B, N, D), norm1, mlps[0], norm2, mlps[1]


MIXER_BLOCK = Task(
    name="mixer_block",
    title="A block without attention",
    asks="x, norm1, token_mlp, norm2, channel_mlp",
    reference=mixer_block,
    cases=(Case("first across the places, then across the channels, each added to x", four_parts),),
    mistakes=mistakes(r"""
patches do not mix: axis='none'
    `token_mlp` worked along the channels of each patch: no patch heard of another.
    > It takes the N numbers that one channel has at all places: they have to stand in the last axis.
reshape in place of a transpose: axis='reshaped'
    The two axes were exchanged by a reshape, which mixes places and channels.
    > `transpose(1, 2)` exchanges axes; `reshape` only cuts the list of numbers elsewhere.
not turned back: back=False
    What `token_mlp` gave was added with its axes still exchanged.
    > Back to `(B, N, D)` before it is added: `transpose(1, 2)` once more.
norm left out: norm='none' | 'not 1' | 'not 2'
    An MLP gets x as it is.
    > Each of the two MLPs gets a normalised input, and each has a norm of its own.
one norm for both: norm='first twice'
    `norm1` stands before both MLPs.
    > `norm2` belongs to `channel_mlp`.
path around the MLPs missing: path='none'
    The outputs of the MLPs replace x.
    > What an MLP says is *added* to x.
both MLPs side by side: order='beside'
    `channel_mlp` does not see what the first MLP has added.
    > One after the other: the second MLP gets the norm of the first sum.
"""),
    also=(gradients,),
    minutes=7,
    stretch=True,
    text="MLP-Mixer, eq. (1): $U = X + \\text{token\\_mlp}(\\text{norm}_1(X)^\\top)^\\top$, then "
    "$Y = U + \\text{channel\\_mlp}(\\text{norm}_2(U))$. `x` is `(B, N, D)`, N patches of D channels; the four parts "
    "are given as functions that work along the last axis. Return `(B, N, D)`.",
    hints=(
        "Two lines, one for each MLP. Along which axis does `token_mlp` have to work, and which is the last?",
        "The norm works on the channels of a patch: first the norm, then turn. What has to happen before it is added?",
        "`x = x + token_mlp(norm1(x).transpose(1, 2)).transpose(1, 2)`; the second line needs no turning.",
    ),
    solution="""
def my_mixer_block(x, norm1, token_mlp, norm2, channel_mlp):
    columns = norm1(x).transpose(1, 2)
    x = x + token_mlp(columns).transpose(1, 2)
    return x + channel_mlp(norm2(x))
""",
)

TASKS = {task.name: task for task in (PATCHIFY, UNPATCHIFY, TOKENS, ATTENTION_DISTANCE, FIT_POSITIONS, MIXER_BLOCK)}
