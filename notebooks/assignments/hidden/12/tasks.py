"""Assignment 12, Swin: the tables of its tasks, from which come checks, findings and proof.

A case's name is read by students: it says what is expected, and nothing of the inputs that it is tried with.
"""

from dataclasses import replace

import torch
from einops import rearrange
from torch import Tensor

from course_lib.grading.spec import Assignment
from course_lib.lessons.lesson_12.assignment import ASSIGNMENT as SHOWN
from course_lib.tasks import Case, Draw, mistakes


def reach(
    place: Tensor,
    height: int,
    width: int,
    size: int,
    shift: int,
    blocks: int,
    *,
    order: str = "backwards",
    first: str = "plain",
    shifted: str = "every second",
    cut: str = "shift",
    ends: str = "apart",
    more: int = 0,
    numbers: str = "row, column",
) -> Tensor:
    """True where a patch of the input can change what `blocks` blocks say of one place."""

    def along(length: int, own: int) -> Tensor:
        begin = {"shift": shift, "rest": size - shift}[cut]
        moved = (torch.arange(length) - begin) % length if ends == "together" else torch.arange(length) - begin
        windows = {False: torch.arange(length) // size, True: moved.div(size, rounding_mode="floor")}
        kinds = {"every second": lambda number: number % 2 == (first == "plain"), "none": lambda _: False}
        moves = [kinds.get(shifted, lambda _: True)(number) for number in range(blocks + more)]
        seen = torch.arange(length) == own
        for move in moves[::-1] if order == "backwards" else moves:
            seen = torch.isin(windows[move], windows[move][seen])
        return seen

    row, column = place.tolist() if numbers == "row, column" else place.flip(0).tolist()
    return along(height, row)[:, None] & along(width, column)


def blocks_and_place(draw: Draw, *, blocks: tuple[int, ...], far: bool = False) -> tuple:
    """A map of some windows, so many blocks, and a place in it; with `far`, a shift of more than half a window."""
    rows, columns = draw.sizes(2, 4, 6)
    size = draw.integers(3, 6, 1).item()
    place = torch.cat([draw.integers(1, count * size, 1) for count in (rows, columns)])
    shift = draw.integers(1, (size + 1) // 2, 1).item()
    number = blocks[draw.integers(0, len(blocks), 1).item()]
    return place, rows * size, columns * size, size, size - shift if far else shift, number


def at_the_edge(draw: Draw) -> tuple:
    """A place in the last row, seen through an odd number of blocks or an even one."""
    place, height, *others = blocks_and_place(draw, blocks=(2, 3))
    return torch.tensor([height - 1, place[1]]), height, *others


REACH = replace(
    SHOWN["reach"],
    reference=reach,
    cases=(
        Case("through an odd number of blocks", lambda draw: blocks_and_place(draw, blocks=(3,)), 6),
        Case("through an even number of blocks", lambda draw: blocks_and_place(draw, blocks=(2, 4)), 5),
        Case("through a single block", lambda draw: blocks_and_place(draw, blocks=(1,)), 3),
        Case(
            "with a shift of more than half a window", lambda draw: blocks_and_place(draw, blocks=(2, 3), far=True), 3
        ),
        Case("from the edge of the map", at_the_edge, 3),
    ),
    mistakes=mistakes(r"""
from the first block to the last: order='forwards'
    The map shows whom the place reaches, not who reaches it: the blocks were gone through from the first to the last.
    > What the last block says of a place depends on one window, and that on windows of the block before.
begun with a shifted block: first='shifted'
    The first block is taken for a shifted one.
    > Blocks count from 0: those with an even number do not shift.
no block shifts: shifted='none'
    The reach stays one window, however many blocks there are.
    > In every second block the windows lie elsewhere, so that what was apart meets.
every block shifts: shifted='all'
    All blocks have the same windows.
    > Only every second block shifts: 1, 3, 5 and so on.
cut on the other side: cut='rest'
    The shifted windows begin at another place.
    > The map moves up and to the left by `shift`: the first `shift` rows are a piece of their own.
far ends of the map meet: ends='together'
    A patch is reached from the other end of the map.
    > The mask keeps apart what was apart: the first `shift` rows and the last `size - shift` are pieces of their own.
one block too few: more=-1
    One block is missing.
    > With no block a place sees itself alone, with one its window.
one block too many: more=1
    One block too many was gone through.
    > With no block a place sees itself alone, with one its window.
rows and columns exchanged: numbers='column, row'
    The first number of `place` was taken for its column.
    > Rows first, as everywhere.
"""),
    wrong={
        "from the first block to the last": ("reversed(range(blocks))", "range(blocks)"),
        "no block shifts": ("block % 2", "0"),
        "one block too many": ("range(blocks)", "range(max(blocks, 2))"),
        "cut on the other side": ("moved = shift if", "moved = min(shift, size - shift) if"),
    },
)


def continuous_bias(
    W1: Tensor,
    b1: Tensor,
    W2: Tensor,
    size: int,
    *,
    offset: str = "query - key",
    spacing: str = "log",
    axes: str = "rows first",
    bend: str = "relu",
    added: bool = True,
    heads: str = "in front",
) -> Tensor:
    """What a small network says of the log-spaced offset of each query and key."""
    place = torch.arange(size**2)
    steps = torch.stack([part[:, None] - part for part in (place // size, place % size)], dim=-1).to(W1.dtype)
    steps = steps if offset == "query - key" else -steps
    steps = steps if axes == "rows first" else steps.flip(-1)
    logs = steps.abs().log1p()
    steps = {
        "log": steps.sign() * logs,
        "as it is": steps,
        "without a sign": logs,
        "base 2": steps.sign() * logs / torch.tensor(2.0, dtype=W1.dtype).log(),
    }[spacing]
    hidden = steps @ W1.T + (b1 if added else 0)
    hidden = {"relu": hidden.relu(), "none": hidden, "tanh": hidden.tanh()}[bend]
    bias = hidden @ W2.T
    return bias.permute(2, 0, 1) if heads == "in front" else bias


def size_and_network(draw: Draw, *, large: bool = False, bias: bool = True) -> tuple[Tensor, Tensor, Tensor, int]:
    """A network of drawn sizes, and the side of a window."""
    heads, hidden, M = draw.sizes(3, 3, 7)  # a side of 2 would not tell an offset from a logarithm of base 2
    return draw(hidden, 2), draw(hidden) * bias, draw(heads, hidden), M + 6 if large else M


BIAS = replace(
    SHOWN["continuous_bias"],
    reference=continuous_bias,
    cases=(
        Case("what the network says of each offset", size_and_network, 10),
        Case("a larger window", lambda draw: size_and_network(draw, large=True), 4),
        Case("a first map whose biases are all 0", lambda draw: size_and_network(draw, bias=False), 4),
    ),
    mistakes=mistakes(r"""
key minus query: offset='key - query'
    The offsets have the wrong sign.
    > Query minus key: `row[:, None] - row`, with the query in front.
offsets as they are: spacing='as it is'
    The offsets go into the network without a logarithm.
    > sign(x) log(1 + |x|): a step from 1 to 2 counts more than one from 9 to 10.
sign lost: spacing='without a sign'
    Offsets in opposite directions get the same bias.
    > The logarithm is taken of 1 + |x|, and the sign comes back in front: `x.sign() * x.abs().log1p()`.
logarithm of another base: spacing='base 2'
    The logarithms are too large by one factor.
    > `log` is the natural one here.
rows and columns exchanged: axes='columns first'
    The network gets the step to the side first.
    > First the offset in rows, then that in columns.
nothing between the two maps: bend='none'
    The network is linear: a step back gives the opposite of a step ahead.
    > A ReLU stands between the two maps.
another function than ReLU: bend='tanh'
    Another function than ReLU stands between the two maps.
    > `torch.relu`.
bias of the first map forgotten: added=False
    `b1` has no influence.
    > W1 x + b1, then the ReLU.
heads behind the places: heads='behind'
    The axis of the heads is the last one.
    > In front, as scores have it: `permute(2, 0, 1)`.
"""),
    wrong={
        "sign lost": ("steps.sign() * steps.abs().log1p()", "steps.abs().log1p()"),
        "heads behind the places": (".permute(2, 0, 1)", ""),
    },
)


def unmerge(
    x: Tensor,
    weight: Tensor,
    height: int,
    width: int,
    *,
    order: str = "n m d",
    way: str = "2 x 2",
    crop: str = "end",
    matrix: str = "as given",
) -> Tensor:
    """Each patch as 2 x 2 patches of half the width, without what was added before they were merged."""
    y = x @ (weight.T if matrix == "as given" else weight.reshape(weight.shape[::-1]))
    h, w = x.shape[1:3]
    if way == "as it lies":
        y = y.reshape(len(x), 2 * h, 2 * w, -1)
    elif way == "copies":
        y = y[..., : y.shape[-1] // 4].repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)
    else:
        to = "b (h m) (w n) d" if way == "2 x 2" else "b (m h) (n w) d"
        y = rearrange(y, f"b h w ({order}) -> {to}", m=2, n=2)
    if crop == "none":
        return y
    if crop == "both":
        odd = max(height % 2, width % 2)
        return y[:, : 2 * h - odd, : 2 * w - odd]
    return y[:, :height, :width] if crop == "end" else y[:, -height:, -width:]


def merged(draw: Draw, *, odd: str = "none") -> tuple[Tensor, Tensor, int, int]:
    """A merged map, a matrix, and the size that the map had before, of which no side is odd, both are, or one."""
    B, h, w, half = draw.sizes(4, 2, 6)
    row = draw.integers(0, 2, 1).item()
    height, width = {"none": (0, 0), "both": (1, 1), "one": (row, 1 - row)}[odd]
    return draw(B, h, w, 2 * half), draw(4 * half, 2 * half), 2 * h - height, 2 * w - width


UNMERGE = replace(
    SHOWN["unmerge"],
    reference=unmerge,
    cases=(
        Case("each patch becomes 2 x 2, of half the width", merged, 8),
        Case("what was added to an odd map is cut off", lambda draw: merged(draw, odd="both"), 4, ("crop",)),
        Case("only one side is odd", lambda draw: merged(draw, odd="one"), 4, ("crop",)),
    ),
    mistakes=mistakes(r"""
laid out row by row: order='m n d'
    The second quarter went above right.
    > The order of merging: above left, below left, above right, below right.
numbers of the four alternate: order='d n m' | 'd m n'
    The four patches take every fourth number.
    > The first D/2 numbers are the patch above left, the next D/2 that below left, and so on.
laid out by a reshape alone: way='as it lies'
    What belongs into a square lies in a row.
    > First name the axes: (B, h, w, 2, 2, D/2). Then move each 2 behind the axis that it belongs to, and join.
laid out in quarters: way='quarters'
    The four patches of a place lie in the four quarters of the map.
    > They stay together: in `(h m)` the place comes first, then which of its rows.
one patch copied four times: way='copies'
    The four patches of a place are the same.
    > The map gives 2D numbers for each place: D/2 for each of its four patches.
not cropped: crop='none'
    The zeros that once filled an odd map were kept.
    > `[:, :height, :width]`.
cropped at the beginning: crop='beginning'
    The first row or column was cut off.
    > Zeros were added behind the end: cut off the end.
both sides cropped: crop='both'
    A row and a column were cut off, where only one of the two was too much.
    > Each side for itself: `[:, :height, :width]`.
matrix reshaped in place of transposed: matrix='reshaped'
    The matrix was not transposed, only reshaped.
    > Rows of `weight` are outputs: `x @ weight.T`.
"""),
    wrong={
        "not cropped": ("[:, :height, :width]", ""),
        "both sides cropped": (
            "return fine[:, :height, :width]",
            "odd = max(height % 2, width % 2)\n    return fine[:, :fine.shape[1] - odd, :fine.shape[2] - odd]",
        ),
        "laid out row by row": ("(n m d)", "(m n d)"),
    },
)

TRAIN = replace(
    SHOWN["train"],
    wrong={
        "not learned": ("range(300)", "range(1)"),
        "a rule of one's own": (
            "def train(",
            "def train(*given):\n    return Rule()\n\n\nclass Rule(nn.Module):\n    def forward(self, boards):\n"
            "        edged = F.pad(boards, (1, 1, 1, 1))\n"
            "        near = edged[:, :-2, 1:-1] + edged[:, 2:, 1:-1] + edged[:, 1:-1, :-2] + edged[:, 1:-1, 2:]\n"
            "        return torch.stack([near == 0, near > 0], dim=-1).float()\n\n\ndef longer(",
        ),
        "a ready-made function": (
            "self.head = nn.Linear(32, 2)",
            "self.head, self.near = nn.Linear(32, 2), nn.Conv2d(2, 2, 3)",
        ),
        "windows never meet": ("Block(32, shift=2)", "Block(32, shift=0)"),
        "the edges touch": ("!= region[:, None, :]", "!= region[:, :, None]"),
        "only one size of board": ("self.colours(boards)", "self.colours(boards) + torch.zeros(12, 12, 32)"),
        "numbers of different types meet": ("    optimizer =", "    model(boards.float())\n    optimizer ="),
    },
)

ASSIGNMENT = Assignment(
    "12",
    notebook="swin",
    title="Swin",
    tasks=(REACH, BIAS, UNMERGE, TRAIN),
    seconds={"train": 60},  # for the training, and all questions
)
