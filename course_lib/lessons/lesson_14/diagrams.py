"""Lesson 14: FCN, SegNet and U-Net for the icon scenes, images of 64 x 64 pixels.

All three are drawn as a U with the finest resolution at the top: the contracting path at the left, the expanding path
at the right, and between them what one hands over to the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from course_lib.lessons.lesson_14 import icon_recipes
from course_lib.viz.architecture import COLOURS
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, box
from course_lib.viz.style import GREY, figure

SIZE, CLASSES = 64, len(icon_recipes.CLASSES)  # pixels a side; background and categories
WIDTHS = (16, 32, 64, 128)
WIDE, TALL, STEP = 12.2, 6.0, 0.58  # inches; STEP: from one row of the drawing to the next
LEFT, MIDDLE, RIGHT, OUT = 1.55, 4.5, 7.15, 11.3  # middles of the columns
SCORES, SUMS = 6.1, 10.35  # likewise, of an FCN
BOX, HIGH, SMALLER = 2.95, 0.285, 2.1  # widths and height of boxes
PLUS = 0.14  # radius of a sum
DOWN, UP = OTHER, THIRD  # colours of pooling and of what takes it back
KINDS = {
    "block": COLOURS["convolution"],
    "pool": "#F6D5C4",
    "up": COLOURS["mlp"],
    "head": COLOURS["head"],
}


class Node(NamedTuple):
    """A box of a column; "input" has no frame, "plus" is a circle."""

    row: float  # from the top
    kind: str
    text: str
    shape: str = ""  # of what leaves it

    @property
    def half(self) -> float:
        return PLUS if self.kind == "plus" else HIGH / 2


def shape(channels: int, level: int) -> str:
    """That of a feature map, level 0 being the finest."""
    return f"(B, {channels}, {SIZE >> level}, {SIZE >> level})"


def convs(channels: int) -> str:
    return f"two 3 × 3 conv → {channels}"


def fcn() -> tuple[Figure, str]:
    """FCN-8s: class scores at three resolutions; the sum of the coarser ones grows, and the finer ones are added."""
    rows = (2, 5, 8, 10)
    drawing = _Drawing({LEFT: "encoder", SCORES: "class scores", SUMS: "bilinear upsampling"})
    drawing.contracting(rows, pools=(3.5, 6.5, 9))
    right = [Node(9, "up", "upsample × 2", shape(CLASSES, 2))]
    right += [Node(8, "plus", "+", shape(CLASSES, 2)), Node(6.5, "up", "upsample × 2", shape(CLASSES, 1))]
    right += [Node(5, "plus", "+", shape(CLASSES, 1)), Node(3.5, "up", "upsample × 2", shape(CLASSES, 0))]
    drawing.column(SUMS, [*right, Node(2, "input", "logits")])
    for level in (1, 2, 3):
        row = rows[level]
        drawing.node(SCORES, Node(row, "head", f"1 × 1 conv → {CLASSES}"), SMALLER)
        drawing.across(row, LEFT + BOX / 2, SCORES - SMALLER / 2, shape(WIDTHS[level], level))
        if level < 3:
            drawing.across(row, SCORES + SMALLER / 2, SUMS - PLUS, shape(CLASSES, level))
    drawing.corner(SCORES + SMALLER / 2, SUMS, 10, 9, shape(CLASSES, 3))
    return drawing.fig, (
        f"FCN is drawn as a U. {_encoder()} 1 x 1 convolutions turn the three coarser feature maps into scores of "
        f"{CLASSES} classes. The coarsest scores, {shape(CLASSES, 3)}, are upsampled by 2, and the scores of that "
        f"resolution are added. The sum, {shape(CLASSES, 2)}, is upsampled and added to in the same way, which gives "
        f"{shape(CLASSES, 1)}. A last upsampling gives the logits, {shape(CLASSES, 0)}."
    )


def segnet() -> tuple[Figure, str]:
    """SegNet: the decoder gets the positions of the maxima, and nothing else but the coarsest feature map."""
    rows = (2, 4, 6, 8)
    drawing = _Drawing({LEFT: "encoder", MIDDLE: "positions of the maxima", RIGHT: "decoder"})
    drawing.contracting(rows, pools=tuple(row + 1 for row in rows))
    finer, right = (WIDTHS[0], *WIDTHS), []
    for level in (3, 2, 1, 0):
        right.append(Node(rows[level] + 1, "up", "unpool 2 × 2", shape(WIDTHS[level], level)))
        right.append(Node(rows[level], "block", convs(finer[level]), shape(finer[level], level) if level else ""))
        handed = shape(WIDTHS[level], level + 1)
        drawing.across(rows[level] + 1, LEFT + BOX / 2, RIGHT - BOX / 2, handed, UP, dashed=True)
    drawing.column(RIGHT, right)
    drawing.corner(LEFT, RIGHT, 10, 9, shape(WIDTHS[-1], 4), start=9 + HIGH / 2 / STEP)
    drawing.head(2)
    return drawing.fig, (
        f"SegNet is drawn as a U. {_encoder(', and after the last one,')} The decoder begins with the coarsest feature "
        f"map, {shape(WIDTHS[-1], 4)}. Four times, unpooling doubles height and width, and two 3 x 3 convolutions "
        f"follow. Dashed arrows hand the positions of the maxima from each pooling to the unpooling of the same "
        f"resolution; no features are copied. A 1 x 1 convolution turns {shape(WIDTHS[0], 0)} into the logits, "
        f"{shape(CLASSES, 0)}."
    )


def unet() -> tuple[Figure, str]:
    """U-Net: the encoder's feature maps are copied and concatenated with the decoder's."""
    rows = (2, 5, 8)
    drawing = _Drawing({LEFT: "contracting path", MIDDLE: "skip connections", RIGHT: "expanding path"})
    drawing.contracting(rows, pools=(3.5, 6.5, 9))
    right = []
    for level in (2, 1, 0):
        width, row = WIDTHS[level], rows[level]
        right.append(Node(row + 1, "up", f"transposed conv → {width}", shape(width, level)))
        right.append(Node(row, "cat", f"{width}", shape(2 * width, level)))
        right.append(Node(row - 1, "block", convs(width), shape(width, level) if level else ""))
        drawing.across(row, LEFT + BOX / 2, RIGHT - BOX / 2, shape(width, level), HERO)
    drawing.column(RIGHT, right)
    drawing.node(MIDDLE, Node(10, "block", convs(WIDTHS[3])))
    drawing.corner(LEFT, MIDDLE - BOX / 2, 9 + HIGH / 2 / STEP, 10, shape(WIDTHS[2], 3), first_down=True)
    drawing.corner(MIDDLE + BOX / 2, RIGHT, 10, 9, shape(WIDTHS[3], 3))
    drawing.text(MIDDLE, 9.35, "bottleneck", weight="bold", ha="center", color="black")
    drawing.head(1)
    return drawing.fig, (
        f"U-Net is drawn as a U. {_encoder()} The contracting path is the left column, the coarsest block is the "
        f"bottleneck below, and the expanding path is the right column. In it, a transposed convolution doubles height "
        f"and width and halves the channels. A horizontal arrow brings a copy of the contracting path's feature map of "
        f"the same resolution, and the two are concatenated. Two 3 x 3 convolutions halve the channels again. After "
        f"concatenation the shapes are {shape(128, 2)}, {shape(64, 1)} and {shape(32, 0)}. A 1 x 1 convolution at the "
        f"top right turns {shape(WIDTHS[0], 0)} into the logits, {shape(CLASSES, 0)}."
    )


def _encoder(also: str = "") -> str:
    """The contracting path in words."""
    widths = f"{', '.join(map(str, WIDTHS[:-1]))} and {WIDTHS[-1]}"
    coarsest = SIZE >> (len(WIDTHS) - 1)
    return (
        f"Images of shape {shape(3, 0)} pass four blocks of two 3 x 3 convolutions with {widths} channels. Between the "
        f"blocks{also} max pooling halves height and width, so the blocks work at {SIZE} x {SIZE} to "
        f"{coarsest} x {coarsest} pixels."
    )


class _Drawing:
    """Nodes in columns on a sheet whose rows are counted from the top, and the arrows between them."""

    def __init__(self, titles: dict[float, str]) -> None:
        self.fig, self.axes = figure(WIDE, TALL, layout=None)
        self.fig.subplots_adjust(0, 0, 1, 1)
        bare(self.axes, (0, WIDE), (0, TALL))
        for x, title in titles.items():
            self.axes.text(x, TALL - 0.16, title, ha="center", va="center", weight="bold")

    def contracting(self, rows: Sequence[float], pools: Sequence[float]) -> None:
        """The left column: the image, blocks in these rows, and max pooling below them."""
        nodes = [Node(1, "input", "images", shape(3, 0))]
        for level, (row, width) in enumerate(zip(rows, WIDTHS, strict=False)):
            last = level == len(rows) - 1
            nodes.append(Node(row, "block", convs(width), shape(width, level)))
            if level < len(pools):
                nodes.append(Node(pools[level], "pool", "max pool 2 × 2", "" if last else shape(width, level + 1)))
        self.column(LEFT, nodes)

    def column(self, x: float, nodes: Sequence[Node]) -> None:
        """Nodes and the arrows from each to the next, the shape beside each arrow."""
        for node, after in zip(nodes, [*nodes[1:], None], strict=True):
            self.node(x, node)
            if after is not None:
                side = 1 if after.row > node.row else -1  # downwards
                start, end = self.y(node.row) - side * node.half, self.y(after.row) + side * after.half
                colour = {"pool": DOWN, "up": UP}.get(node.kind, GREY)
                arrow(self.axes, (x, start), (x, end), colour, width=1.8, shrinkA=0, shrinkB=0)
                self.axes.text(x + 0.13, (start + end) / 2, node.shape, va="center", color=GREY)

    def node(self, x: float, node: Node, width: float = BOX) -> None:
        y = self.y(node.row)
        if node.kind == "plus":
            self.axes.add_patch(Circle((x, y), PLUS, facecolor="white", edgecolor=GREY, zorder=3))
            self.axes.text(x, y - 0.01, "+", ha="center", va="center", zorder=4)
        elif node.kind == "input":
            self.axes.text(x, y, node.text, ha="center", va="center")
        elif node.kind == "cat":  # two parts side by side
            for side, kind, text in ((-1, "block", f"concat: {node.text}"), (1, "up", node.text)):
                corner = (min(x, x + side * width / 2), y - HIGH / 2)
                part = Rectangle(corner, width / 2, HIGH, facecolor=KINDS[kind], edgecolor=GREY, zorder=3)
                self.axes.add_patch(part)
                self.axes.text(x + side * width / 4, y, text, ha="center", va="center", zorder=4)
        else:
            style = {"ink": "black", "edge": GREY}
            box(self.axes, x, y, node.text, KINDS[node.kind], width=width, height=HIGH, **style)

    def across(
        self, row: float, start: float, end: float, text: str = "", colour: str = GREY, *, dashed: bool = False
    ) -> None:
        """A horizontal arrow with a text above."""
        style = {"shrinkA": 0, "shrinkB": 0} | ({"linestyle": (0, (4, 2))} if dashed else {})
        arrow(self.axes, (start, self.y(row)), (end, self.y(row)), colour, width=1.8, **style)
        self.text((start + end) / 2 + 0.15 * (colour != GREY), row, text, ha="center", va="bottom", color=colour)

    def corner(
        self,
        x: float,
        to_x: float,
        row: float,
        to_row: float,
        text: str,
        *,
        start: float | None = None,
        first_down: bool = False,
    ) -> None:
        """An arrow round a corner: across and up; or down and across; or from the row `start` down, across and up."""
        across = self.y(to_row if first_down else row)
        points = [(x, self.y(row if start is None else start)), (x, across), (to_x, across)]
        end = (to_x, self.y(to_row) - (0 if first_down else HIGH / 2))
        colour = DOWN if first_down or start is not None else GREY
        line = [points[0], points[1]] if first_down else points
        self.axes.plot(*zip(*line, strict=True), color=colour, linewidth=1.8, linestyle="-", zorder=1)
        arrow(self.axes, line[-1], end, colour, width=1.8, shrinkA=0, shrinkB=0)
        if first_down:
            self.text(x + 0.13, (row + to_row) / 2 - 0.08, text)
        elif start is not None:
            self.text((x + to_x) / 2, row, text, ha="center", va="bottom")
        else:
            self.text(to_x + 0.13, (row + to_row) / 2 + 0.15, text)

    def head(self, row: float) -> None:
        """At the right of the finest block: the 1 x 1 convolution, and the logits below."""
        width = 1.5
        self.across(row, RIGHT + BOX / 2, OUT - width / 2, shape(WIDTHS[0], 0))
        self.node(OUT, Node(row, "head", "1 × 1 conv"), width)
        start = self.y(row) - HIGH / 2
        arrow(self.axes, (OUT, start), (OUT, start - 0.35), width=1.8, shrinkA=0, shrinkB=0)
        self.axes.text(OUT, start - 0.38, "logits", ha="center", va="top")
        self.axes.text(OUT, start - 0.68, shape(CLASSES, 0), ha="center", va="top", color=GREY)

    def text(self, x: float, row: float, text: str, **style) -> None:
        lift = 0.04 if style.get("va") == "bottom" else 0
        style = {"ha": "left", "va": "center", "color": GREY} | style
        self.axes.text(x, self.y(row) + lift, text, **style)

    def y(self, row: float) -> float:
        return TALL + 0.03 - row * STEP


DIAGRAMS = {"fcn": fcn, "segnet": segnet, "unet": unet}
