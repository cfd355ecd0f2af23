"""Lesson 12, Swin: the tables of its exercises; each formula has a knob for every mistake that learners make."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from course_lib.tasks import Case, Draw, Task, gradients, mistakes

# in_windows -------------------------------------------------------------------------------------------------


def in_windows(
    x: Tensor,
    size: int,
    work: Callable[[Tensor], Tensor],
    *,
    cut: str = "in blocks",
    back: str = "in blocks",
    windows: str = "b i j",
    places: str = "m n",
    calls: str = "one",
) -> Tensor:
    """The map after `work` on its windows."""
    B, H, W, D = x.shape
    axes = {"b": B, "i": H // size, "j": W // size, "m": size, "n": size}
    there, here = f"({windows}) ({places}) d", "b (i m) (j n) d"
    pieces = rearrange(x, f"{here} -> {there}", m=size, n=size) if cut == "in blocks" else x.reshape(-1, size**2, D)
    if calls == "for each place":
        done = torch.stack([work(some) for some in pieces.unflatten(0, (B, -1)).unbind(1)], dim=1).flatten(0, 1)
    else:
        at_once = {"one": len(pieces), "for each window": 1, "for each picture": len(pieces) // B}[calls]
        done = torch.cat([work(some) for some in pieces.split(at_once)])
    if back == "columns":
        there = there.replace("i j", "j i")
    return done.reshape(x.shape) if back == "as it lies" else rearrange(done, f"{there} -> {here}", **axes)


def stir(windows: Tensor) -> Tensor:
    """Work that differs from window to window and from place to place.

    Raises ValueError unless it gets windows with their places.
    """
    if windows.dim() != 3:
        raise ValueError(f"work takes windows of shape (B nW, M2, D), but got one of shape {tuple(windows.shape)}")
    number = torch.arange(1, len(windows) + 1)[:, None, None]
    return number * windows.cumsum(dim=1)


def map_and_size(draw: Draw) -> tuple[Tensor, int, Callable]:
    """A map that is some windows high and others wide."""
    B, rows, columns, D = draw.sizes(4, 2, 5)
    size = draw.integers(2, 4, 1).item() if draw.same is None else 2
    return draw(B, rows * size, columns * size, D), size, stir


IN_WINDOWS = Task(
    name="in_windows",
    title="Cut into windows, and put back",
    asks="x, size, work",
    reference=in_windows,
    cases=(
        Case("the work is done window by window, and each place comes back to where it was", map_and_size),
        Case("a map that is one window", lambda draw: (draw(3, 2, 2, 4), 2, stir)),
    ),
    mistakes=mistakes(r"""
cut by a reshape alone: cut='as it lies'; back='as it lies' | 'in blocks'
    The windows hold pieces of rows: places that lie side by side in memory, not in a square.
    > First give each axis a name: `(B, H/M, M, W/M, M, D)`. Which two must change places before anything is joined?
put back by a reshape alone: back='as it lies'
    The windows were cut well, but put back row after row, as they lie in memory.
    > Undo the cut step by step: apart into `(B, H/M, W/M, M, M, D)`, exchange the same two axes again, then join.
windows put back down the columns: back='columns'
    The windows were put back column by column.
    > They were cut row by row: `H // size` rows of `W // size` windows each.
windows counted down the columns: windows='b j i'
    The second window lies below the first.
    > Row by row: the second window lies to the right of the first.
pictures behind the windows: windows='i j b'
    The first windows of all pictures come first, then the second ones.
    > All windows of the first picture come first: the axis of the batch stays in front when axes are joined.
work called several times: calls='for each window' | 'for each picture' | 'for each place'
    `work` was called several times, with some of the windows each time.
    > Give it all windows at once, those of all pictures: `(B nW, M2, D)`.
places turned within a window: places='n m'
    Within a window the places were listed column by column.
    > Row by row: in `(B, H/M, W/M, M, M, D)` the row within a window stands before the column.
"""),
    also=(gradients,),
    minutes=7,
    text="`x` is a map, `(B, H, W, D)`, a whole number of windows of `size` x `size` places high and wide. Cut it into "
    "windows, give them all at once to the function `work`, and put what it returns back into a map of the old shape. "
    "`work` takes `(B nW, M2, D)` and returns the same shape: all windows of the first picture, row by row, then those "
    "of the second; the `M2 = size * size` places of a window row by row, too.",
    hints=(
        "A window's rows do not lie side by side in memory. Write down which axes there are before anything is joined.",
        "`x.reshape(B, H // size, size, W // size, size, D)`: rows of windows, rows within, columns of windows, "
        "columns within. Windows come first, places second: which two axes change places?",
        "`.transpose(2, 3)`, then `.reshape(-1, size * size, D)`. The way back takes the same steps in reverse order.",
    ),
    solution="""
def my_in_windows(x, size, work):
    B, H, W, D = x.shape
    rows, columns = H // size, W // size
    x = x.reshape(B, rows, size, columns, size, D).transpose(2, 3)
    done = work(x.reshape(-1, size * size, D))
    done = done.reshape(B, rows, columns, size, size, D)
    return done.transpose(2, 3).reshape(B, H, W, D)
""",
)

# shift_mask -------------------------------------------------------------------------------------------------


def shift_mask(
    height: int,
    width: int,
    size: int,
    shift: int,
    *,
    border: str = "shift",
    end: str = "far",
    axes: str = "both",
    cut: str = "in blocks",
    gives: str = "visible",
) -> Tensor:
    """True where two places of a window of the shifted map were neighbours before the shift."""
    moved = {"shift": shift, "rest": size - shift if shift else 0, "none": 0, "half": size // 2}[border]

    def came_around(length: int) -> Tensor:
        place = torch.arange(length)
        return (place >= length - moved if end == "far" else place < moved).int()

    down, across = came_around(height)[:, None], came_around(width)
    region = {"both": 2 * down + across, "added": down + across}.get(axes)
    if axes == "distance":  # each place's own number; what they say is made of it below
        region = torch.arange(height * width).view(height, width)
    elif region is None:
        region = (down if axes == "rows" else across).expand(height, width)
    if cut != "as it lies":
        windows = "(i j)" if cut == "in blocks" else "(j i)"
        region = rearrange(region, f"(i m) (j n) -> {windows} (m n)", m=size, n=size)
    region = region.reshape(-1, size**2)
    together = region[:, :, None] == region[:, None, :]
    if axes == "distance":
        rows, columns = (region // width + shift) % height, (region % width + shift) % width
        apart = [(part[:, :, None] - part[:, None, :]).abs() for part in (rows, columns)]
        together = (apart[0] < size) & (apart[1] < size)
    return together if gives == "visible" else ~together


def sizes_and_shift(draw: Draw, *, shift: int | None = None) -> tuple[int, int, int, int]:
    """A map of some windows, and a shift that is not half a window."""
    rows, columns, size = draw.sizes(3, 2, 5)
    size = max(size, 3) if draw.same is None else 4
    return rows * size, columns * size, size, 1 + (size > 4 and draw(1).item() > 0) if shift is None else shift


def one_window_high(draw: Draw) -> tuple[int, int, int, int]:
    """Sizes with which the rows that came around share their window with all others."""
    _, width, size, shift = sizes_and_shift(draw)
    return size, width, size, shift


SHIFT_MASK = Task(
    name="shift_mask",
    title="Who may look at whom after the shift",
    asks="height, width, size, shift",
    reference=shift_mask,
    cases=(
        Case("places of a window attend to each other where they were neighbours before", sizes_and_shift),
        Case("without a shift everyone in a window may attend", lambda draw: sizes_and_shift(draw, shift=0)),
        Case("a map that is one window high", one_window_high),
    ),
    mistakes=mistakes(r"""
judged by the distance: axes='distance'
    Two places may attend where their old rows and columns differ by less than `size`.
    > In a map that is one window high all rows do, and yet some of them came around: number the regions.
no mask at all: border='none'
    All pairs may attend, though in the last windows the far ends of the map meet.
    > After the shift the last `shift` rows are those that were at the top. Who was their neighbour?
mask inverted: gives='hidden'
    The mask is True where two places may *not* attend.
    > True means: may attend.
cut at the other end: end='near'
    The rows and columns that came around are looked for at the beginning of the map.
    > The map moves up and to the left: what leaves at the top comes in at the bottom.
border in another place: border='rest'
    The border between neighbours and strangers lies at another place than `shift` before the end.
    > Of the last window the last `shift` rows came around, and the `size - shift` before them did not.
only one direction: axes='rows' | 'columns'
    Only rows, or only columns, are told apart.
    > Both come around: those from the top, those from the left, and in the corner both.
two regions with one number: axes='added'
    In the corner window two regions that never touched have the same number.
    > There are four regions: `2 * down + across` numbers them 0 to 3; a plain sum gives two of them a 1.
regions cut by a reshape alone: cut='as it lies'
    The regions are right, but cut into pieces of rows, not into windows.
    > Cut the map of regions as you cut a map of features: exchange two axes before you join.
windows counted down the columns: cut='columns'
    The mask of a window stands at the place of another one.
    > Windows count row by row: the second lies to the right of the first.
half a window in place of the shift: border='half'
    The border lies in the middle of the last window, wherever the map was cut.
    > `shift` is not always half of `size`.
"""),
    minutes=8,
    text="Before windows are cut, the map moves up and to the left by `shift` places, and what leaves comes in at the "
    "other end. So strangers meet in the last windows. Return a boolean tensor `(nW, M2, M2)`: for each window, and "
    "each query and key in it, `True` where the two were in one piece of the map **before** it came around. Windows "
    "and their places count row by row. `shift` is from 0 to below `size`, not always half of it.",
    hints=(
        "Number the places of the shifted map by the region that they come from. Two places may attend if their "
        "numbers are equal. Nine pieces, but how many of them meet in one window?",
        "`down = torch.arange(height) >= height - shift` marks the rows that came around; the columns alike. Make one "
        "number for each place from both, cut the map of numbers into windows, and compare.",
        "`region = 2 * down[:, None] + across`, cut to `(nW, M2)`; then `region[:, :, None] == region[:, None, :]`.",
    ),
    solution="""
def my_shift_mask(height, width, size, shift):
    down = (torch.arange(height) >= height - shift).int()
    across = (torch.arange(width) >= width - shift).int()
    region = 2 * down[:, None] + across
    region = region.reshape(height // size, size, width // size, size)
    region = region.transpose(1, 2).reshape(-1, size * size)
    return region[:, :, None] == region[:, None, :]
""",
)

# position_index ---------------------------------------------------------------------------------------------


def position_index(
    size: int, *, which: str = "query - key", start: str = "0", row: str = "2M - 1", first: str = "rows"
) -> Tensor:
    """The row of the bias table for each query and key."""
    place = torch.arange(size**2)
    offsets = [part[:, None] - part for part in (place // size, place % size)]
    offsets = [{"query - key": step, "key - query": -step, "distance": step.abs()}[which] for step in offsets]
    offsets = [step + (size - 1 if start == "0" else 0) for step in offsets]
    down, across = offsets if first == "rows" else offsets[::-1]
    return {"2M - 1": 2 * size - 1, "M": size, "2M": 2 * size, "none": 1}[row] * down + across


POSITION_INDEX = Task(
    name="position_index",
    title="One number for each offset",
    asks="size",
    reference=position_index,
    cases=(Case("a row of the table for each offset", lambda draw: tuple(draw.sizes(1, 3, 7))),),
    mistakes=mistakes(r"""
key minus query: which='key - query'
    The offsets have the wrong sign: they lead from the query to the key.
    > Query minus key: `row[:, None] - row` has the query in front.
directions lost: which='distance'
    Left and right, or above and below, get the same number.
    > The offset has a sign: it counts from -(M - 1) to M - 1, 2M - 1 values in each direction.
offsets below 0: start='-(M - 1)'
    The numbers do not begin at 0: with a sign, a table would be read from its end.
    > Add M - 1 to each of the two offsets, so that they count from 0 to 2M - 2.
different offsets share a number: row='M' | 'none'
    Two offsets that differ get the same number.
    > There are 2M - 1 offsets in a row of the table: that is what a step down has to be multiplied by.
rows of the table too long: row='2M'
    Some numbers are never used, and the largest is too large.
    > From -(M - 1) to M - 1 there are 2M - 1 whole numbers, 0 among them.
rows and columns exchanged: first='columns'
    The step to the side was multiplied, not the step down.
    > down · (2M - 1) + across.
"""),
    minutes=5,
    text="Swin learns a number for each **offset** in a window of `size` x `size` places, M x M for short. Query and "
    "key differ by $-(M - 1)$ to $M - 1$ rows and as many columns, so the table has $(2M - 1)^2$ rows. Return a tensor "
    "of whole numbers, `(M2, M2)`: which row of the table belongs to query $i$ and key $j$. The offset is query minus "
    "key; the first row is for the offset $(-(M - 1), -(M - 1))$, and the column's offset changes fastest.",
    hints=(
        "Place $i$ of a window lies in row $i$ // M and in column $i$ % M. What is its offset from place $j$?",
        "`down = row[:, None] - row` is a square of all offsets. Make it begin at 0, and the columns alike.",
        "Both offsets then count from 0 to 2M - 2: like the digits of a number, `down * (2 * size - 1) + across`.",
    ),
    solution="""
def my_position_index(size):
    place = torch.arange(size * size)
    row, column = place // size, place % size
    down = row[:, None] - row + size - 1
    across = column[:, None] - column + size - 1
    return down * (2 * size - 1) + across
""",
)

# patch_merging ----------------------------------------------------------------------------------------------


def patch_merging(
    x: Tensor, *, four: str = "2 x 2", joined: str = "n m d", odd: str = "behind", by: str = "side by side"
) -> Tensor:
    """Each 2 x 2 places as one of four times the width."""
    H, W = x.shape[1:3]
    if odd == "dropped":
        x = x[:, : H - H % 2, : W - W % 2]
    else:
        x = F.pad(x, (0, 0, 0, W % 2, 0, H % 2) if odd == "behind" else (0, 0, W % 2, 0, H % 2, 0))
    if four == "as it lies":
        return x.reshape(len(x), x.shape[1] // 2, x.shape[2] // 2, -1)
    apart = "b (h m) (w n) d" if four == "2 x 2" else "b (m h) (n w) d"
    if by == "mean":
        return rearrange(x, f"{apart} -> b h w (m n) d", m=2, n=2).mean(3)
    return rearrange(x, f"{apart} -> b h w ({joined})", m=2, n=2)


def some_map(draw: Draw, *, odd: tuple[int, int] = (0, 0)) -> tuple[Tensor]:
    """A map of which rows and columns are even or odd."""
    B, rows, columns, D = draw.sizes(4, 2, 5)
    return (draw(B, 2 * rows - odd[0], 2 * columns - odd[1], D),)


PATCH_MERGING = Task(
    name="patch_merging",
    title="Four patches become one",
    asks="x",
    reference=patch_merging,
    cases=(
        Case("four neighbours side by side, column by column", some_map),
        Case("an odd map gets zeros at its end", lambda draw: some_map(draw, odd=(1, 1))),
        Case("an odd number of rows, an even one of columns", lambda draw: some_map(draw, odd=(1, 0))),
        Case("an even number of rows, an odd one of columns", lambda draw: some_map(draw, odd=(0, 1))),
    ),
    mistakes=mistakes(r"""
joined row by row: joined='m n d'
    The four are joined row by row: above left, above right, below left, below right.
    > Column by column here, as in the released code: above left, below left, above right, below right.
numbers of the four alternate: joined='d n m' | 'd m n'
    The numbers of the four patches alternate.
    > First all numbers of one patch, then all of the next: `torch.cat` along the last axis.
four in a row joined: four='as it lies'
    Patches that lie in one row were joined.
    > Two of them lie below the other two: `x[:, 1::2]` are every second row.
quarters of the map joined: four='quarters'
    The four come from the four quarters of the map.
    > Neighbours are joined: `x[:, 0::2, 0::2]`, `x[:, 1::2, 0::2]` and so on.
mean of the four: by='mean'
    The four were averaged.
    > They stand side by side, D numbers each: nothing is lost here; a learned map will shrink them.
last row or column dropped: odd='dropped'
    The last row or column of an odd map is missing.
    > Add zeros behind it: `pad(x, (0, 0, 0, W % 2, 0, H % 2))` counts from the last axis.
zeros in front: odd='in front'
    An odd map got its zeros above or on the left.
    > Behind the end: below, and on the right.
"""),
    also=(gradients,),
    minutes=4,
    text="Between two stages each 2 x 2 patches become one. `x` is `(B, H, W, D)`; return `(B, H/2, W/2, 4 D)`: the "
    "four neighbours side by side, in this order: above left, below left, above right, below right. If H or W is odd, "
    "add a row or a column of zeros at the end first, with "
    "`torch.nn.functional.pad`. (The norm, and the map from 4D to 2D, follow in the model.)",
    hints=(
        "All patches above left are every second row and every second column. How do you write the other three?",
        "`x[:, 0::2, 0::2]` is above left, `x[:, 1::2, 0::2]` below left. `torch.cat` joins them, along which axis?",
        "`torch.nn.functional.pad` takes its numbers from the last axis on: (0, 0) for D, (0, W % 2) for the columns, "
        "then those for the rows.",
    ),
    solution="""
def my_patch_merging(x):
    H, W = x.shape[1:3]
    x = torch.nn.functional.pad(x, (0, 0, 0, W % 2, 0, H % 2))
    left, right = x[:, :, 0::2], x[:, :, 1::2]
    four = [left[:, 0::2], left[:, 1::2], right[:, 0::2], right[:, 1::2]]
    return torch.cat(four, dim=-1)
""",
)

# attention_cost ---------------------------------------------------------------------------------------------


def attention_cost(
    height: int,
    width: int,
    dim: int,
    window: int | None = None,
    *,
    maps: int = 4,
    products: int = 2,
    unit: int = 1,
    places: str = "padded",
    seen: str = "area",
) -> float:
    """Multiply-adds of attention on a map, in windows if there are some."""
    size = window or 1
    if places == "padded":
        height, width = height + -height % size, width + -width % size
    elif places == "whole windows":
        height, width = height - height % size, width - width % size
    N = height * width
    keys = N if window is None or seen == "all" else window if seen == "side" else window**2
    return float(unit * (maps * N * dim**2 + products * N * keys * dim))


def sizes_of_map(draw: Draw, *, whole: bool = True) -> tuple[int, int, int, int]:
    """The sides of a map, its width, and the side of a window."""
    rows, columns, size, dim = draw.sizes(4, 2, 7)
    ragged = 0 if whole else draw.integers(1, size, 1).item()
    return rows * size - ragged, columns * size, 8 * dim, size


ATTENTION_COST = Task(
    name="attention_cost",
    title="What windows save",
    asks="height, width, dim, window=None",
    reference=attention_cost,
    cases=(
        Case("with windows, equation (2) of the paper", sizes_of_map),
        Case("without windows, equation (1)", lambda draw: sizes_of_map(draw)[:3]),
        Case("a map that is no whole number of windows is padded", lambda draw: sizes_of_map(draw, whole=False)),
    ),
    mistakes=mistakes(r"""
windows make no difference: seen='all'
    With windows the result is that of attention to all places.
    > A query meets the M · M keys of its window, however large the map is.
side of a window taken for its area: seen='side'
    A query meets `window` keys in your count.
    > A window of side M has M² places.
output map forgotten: maps=3
    There are three maps in your count.
    > Queries, keys, values, and the output: four maps of C x C for each place.
products of attention forgotten: products=0
    The result does not depend on how many keys a query meets.
    > Queries with keys, and weights with values: C multiply-adds for each pair, twice.
one product of attention: products=1
    Attention has one product in your count.
    > Two: queries with keys, and weights with values.
multiply-adds counted as two: unit=2
    The result is twice as large as the paper's.
    > The paper counts a multiplication and its addition as one.
padding not counted: places='as given'
    The places that are added to fill the last windows are not counted.
    > They pass through the four maps, and are queries and keys, like all others: `height + -height % window`.
what fills no window left out: places='whole windows'
    The rows or columns that fill no whole window were left out.
    > They need a window, too: round up, not down.
"""),
    minutes=6,
    stretch=True,
    text="Count the multiply-adds of attention on a map of `height` x `width` places of `dim` numbers, as a `float`. "
    "Each place passes through four maps of C x C; then each query meets keys twice, for its scores and for its "
    "output, C multiply-adds a pair each time. Without a `window` it meets all places, with one only those of its "
    "window of `window` x `window`. A map that is no whole number of windows is padded first.",
    hints=(
        "How many places are there, and how many keys does each of them meet? The cost is places times something.",
        "The maps cost 4 N C² and the pairs 2 N K C, where K is the number of keys: N, or the area of a window.",
        "Padding: `height += -height % window` is the next multiple of the window, and nothing if it is one already.",
    ),
    solution="""
def my_attention_cost(height, width, dim, window=None):
    if window is not None:
        height += -height % window
        width += -width % window
    places = height * width
    keys = places if window is None else window * window
    return float(4 * places * dim**2 + 2 * places * keys * dim)
""",
)

TASKS = {task.name: task for task in (IN_WINDOWS, SHIFT_MASK, POSITION_INDEX, PATCH_MERGING, ATTENTION_COST)}
