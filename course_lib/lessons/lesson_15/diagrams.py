"""Lesson 15: T5, the attention masks of three layouts, and the Conformer with CTC. Data flow upwards."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from course_lib.viz.architecture import COLOURS
from course_lib.viz.marks import HERO, arrow, bare, box
from course_lib.viz.style import GREY, PALETTE, figure

SHOWN = 0.78  # of its size: fewer bytes, and as large on a slide
HIGH, PLUS, SIDE = 0.38, 0.14, 0.2  # of a box; radius of a sum; how far a skip connection passes beside it: inches
LINE = {"color": GREY, "linewidth": 1.5, "linestyle": "-", "zorder": 1}
SOURCE, TARGET = ("x₁", "x₂", "x₃", "x₄"), ("y₁", "y₂", "y₃")
ENCODER, CROSS, DECODER = HERO, PALETTE["orange"], PALETTE["green"]  # which attention a cell belongs to


class Node(NamedTuple):
    """A box of a column; "input" has no frame, "plus" is a circle that adds what entered the node `skip` before it."""

    kind: str
    text: str
    shape: str = ""  # of what leaves it
    skip: int = 1
    lines: int = 1

    @property
    def half(self) -> float:
        return PLUS if self.kind == "plus" else 0.1 if self.kind == "input" else HIGH * (0.4 + 0.6 * self.lines) / 2


class Sheet:
    """Columns of nodes and the arrows between them, in inches from the lower left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.fig, self.axes = figure(SHOWN * width, SHOWN * height, layout=None)
        self.fig.subplots_adjust(0, 0, 1, 1)
        bare(self.axes, (0, width), (0, height))
        self.top = height - 0.2

    def column(
        self, x: float, title: str, nodes: Sequence[Node], width: float, *, low: float = 0.16, high: float | None = None
    ) -> list[float]:
        """Nodes from the bottom up with arrows of one length between them; the heights of their middles."""
        if title:
            self.axes.text(x, self.top, title, ha="center", va="center", weight="bold")
        high = self.top - 0.3 if high is None else high
        gap = (high - low - 2 * sum(node.half for node in nodes)) / (len(nodes) - 1)
        ys, y = [], low
        for node in nodes:
            ys.append(y + node.half)
            y += 2 * node.half + gap
        for number, node in enumerate(nodes):
            self.node(x, ys[number], node, width)
            if node.kind == "plus":
                first = number - node.skip
                below, side = ys[first] - nodes[first].half - gap / 2, x - width / 2 - SIDE
                self.axes.plot([x, side, side], [below, below, ys[number]], **LINE)
                self.arrow((side, ys[number]), (x - PLUS, ys[number]))
            if number + 1 < len(nodes):
                start = ys[number] + node.half
                self.arrow((x, start), (x, start + gap))
                self.text(x + 0.1, start + gap / 2, node.shape)
        return ys

    def node(self, x: float, y: float, node: Node, width: float) -> None:
        if node.kind == "plus":
            self.axes.add_patch(Circle((x, y), PLUS, facecolor="white", edgecolor=GREY, zorder=3))
            self.axes.text(x, y - 0.01, "+", ha="center", va="center", zorder=4)
        elif node.kind == "input":
            self.axes.text(x, y, node.text, ha="center", va="center")
        else:
            style = {"ink": "black", "edge": GREY}
            box(self.axes, x, y, node.text, COLOURS[node.kind], width=width, height=2 * node.half, **style)

    def arrow(self, start: Sequence[float], end: Sequence[float]) -> None:
        arrow(self.axes, start, end, width=1.5, shrinkA=0, shrinkB=0, mutation_scale=12)

    def text(self, x: float, y: float, text: str, ha: str = "left") -> None:
        self.axes.text(x, y, text, ha=ha, va="center", color=GREY)


def t5() -> tuple[Figure, str]:
    """Encoder and decoder, each with its position bias, and a block of the decoder opened up."""
    sheet = Sheet(12.2, 6.0)
    encoder, decoder, block, wide = 2.57, 5.1, 10.05, 1.9
    shared = [
        Node("embedding", "embedding E", "(B, S, D)"),
        Node("other", "N blocks", "(B, S, D)"),
        Node("norm", "RMSNorm"),
    ]
    source = [Node("input", "source", "(B, S)"), *shared]
    target = [Node("input", "target, shifted", "(B, T)"), *(node._replace(shape="(B, T, D)") for node in shared)]
    target += [Node("head", "head:  Eᵀ / √D", "(B, T, V)"), Node("input", "logits")]
    ys = sheet.column(decoder, "decoder", target, wide)
    sheet.column(encoder, "encoder", source, wide, high=ys[3] + HIGH / 2)
    for x, side, shape in ((encoder, -1, "(1, H, S, S)"), (decoder, 1, "(1, H, T, T)")):
        middle = x + side * (wide / 2 + 0.9)
        sheet.node(middle, ys[2], Node("embedding", "bias b"), 0.9)
        sheet.arrow((middle - side * 0.45, ys[2]), (x + side * wide / 2, ys[2]))
        sheet.text(middle, ys[2] - 0.34, shape, "center")
    bend = encoder + wide / 2 + 0.32
    sheet.axes.plot([encoder + wide / 2, bend, bend], [ys[3], ys[3], ys[2]], **LINE)
    sheet.arrow((bend, ys[2]), (decoder - wide / 2, ys[2]))
    sheet.text(bend + 0.08, (ys[2] + ys[3]) / 2, "(B, S, D)")
    parts = [Node("input", "x", "(B, T, D)")]
    for name, kind in (
        ("causal self-attention\nsoftmax(q kᵀ + b) v", "attention"),
        ("cross-attention\nsoftmax(q kᵀ) v", "attention"),
        ("feed-forward,  ReLU\nD → F → D", "mlp"),
    ):
        parts += [Node(kind, f"RMSNorm, {name}", "(B, T, D)", lines=2), Node("plus", "", "(B, T, D)")]
    sheet.column(block, "a block of the decoder", [*parts, Node("input", "")], 4.1)
    return sheet.fig, (
        "T5 has an encoder and a decoder of N blocks each. Source tokens (B, S) and target tokens (B, T) pass the same "
        "embedding E and become (B, S, D) and (B, T, D). Each stack ends with an RMSNorm. One position bias per stack, "
        "(1, H, S, S) in the encoder and (1, H, T, T) in the decoder, goes to all its blocks. The encoder's output, "
        "(B, S, D), goes to all blocks of the decoder. The head is the transposed embedding divided by the square root "
        "of D; its logits are (B, T, V). A block of the decoder has three parts, each with a skip connection around "
        "it: RMSNorm and causal self-attention with the bias added to the scores; RMSNorm and cross-attention without "
        "a bias; RMSNorm and a feed-forward network with ReLU. All its arrows carry (B, T, D). Scores are not divided "
        "by a square root. The encoder's blocks have no cross-attention and no causal mask."
    )


def layouts() -> tuple[Figure, str]:
    """Who may attend to whom in an encoder-decoder, a prefix LM and a causal LM: Raffel et al., figures 3 and 4."""
    fig, panels = figure(SHOWN * 12.2, SHOWN * 5.9, columns=3, layout=None)
    fig.subplots_adjust(0, 0, 1, 1, wspace=0)
    tokens, size = (*SOURCE, *TARGET), len(SOURCE) + len(TARGET)
    kinds = {
        "encoder-decoder": lambda q, k: (DECODER if k >= len(SOURCE) else CROSS) if q >= len(SOURCE) else ENCODER,
        "prefix LM": lambda q, k: ENCODER,
        "causal LM": lambda q, k: ENCODER,
    }
    notes = {
        "encoder-decoder": "two stacks of N blocks:\n2P parameters",
        "prefix LM": "one stack of N blocks:\nP parameters",
        "causal LM": "one stack of N blocks:\nP parameters",
    }
    for axes, (name, colour) in zip(panels, kinds.items(), strict=True):
        prefix = 0 if name == "causal LM" else len(SOURCE)
        bare(axes, (-0.85, size + 0.15), (size + 2.6, -1.9))
        axes.set_aspect("equal")
        axes.text(size / 2, -1.5, name, ha="center", va="center", fontsize=13, weight="bold")
        for q in range(size):
            for k in range(size):
                visible = k <= q or (k < prefix and q < prefix)
                face = colour(q, k) if visible else "white"
                axes.add_patch(Rectangle((k, q), 1, 1, facecolor=face, edgecolor=GREY, linewidth=1))
        for at, token in enumerate(tokens):
            weight = "bold" if at >= len(SOURCE) else "normal"
            axes.text(at + 0.5, -0.45, token, ha="center", va="center", weight=weight)
            axes.text(-0.5, at + 0.5, token, ha="center", va="center", weight=weight)
        for edge in ([0, size], 2 * [len(SOURCE)]), (2 * [len(SOURCE)], [0, size]):
            axes.plot(*edge, color="black", linewidth=2.5, linestyle="-")
        axes.text(size / 2, size + 1.85, notes[name], ha="center", va="center", color=GREY)
    for text, x, shade in (("encoder", -0.8, ENCODER), ("cross", 2.1, CROSS), ("decoder", 4.4, DECODER)):
        panels[0].add_patch(Rectangle((x, size + 0.4), 0.5, 0.5, facecolor=shade, edgecolor=GREY))
        panels[0].text(x + 0.65, size + 0.65, text, va="center")
    for axes in panels[1:]:
        axes.text(size / 2, size + 0.65, "rows: queries, columns: keys", ha="center", va="center")
    return fig, (
        "Three grids of queries (rows) and keys (columns) over four source tokens x1 to x4 and three target tokens y1 "
        "to y3. In the encoder-decoder, source tokens attend to all source tokens by the encoder's self-attention. "
        "Target tokens attend to all source tokens by cross-attention, and to the target tokens up to themselves by "
        "the decoder's self-attention. The prefix LM has the same cells, but one stack with one self-attention "
        "computes them all. In the causal LM each token attends to itself and to those before it, in the source, too. "
        "Notes below the grids: two stacks of N blocks have 2P parameters, one stack of N blocks has P."
    )


def conformer() -> tuple[Figure, str]:
    """The whole model up to CTC, one block, and the convolution module in it."""
    sheet = Sheet(12.2, 6.0)
    model = [
        Node("input", "frames", "(B, T, F)"),
        Node("convolution", "3 × 3 convolution,\nstride 2, ReLU", "(B, D, T/2, F/2)", lines=2),
        Node("convolution", "3 × 3 convolution,\nstride 2, ReLU", "(B, D, T/4, F/4)", lines=2),
        Node("other", "linear:  D · F/4 → D", "(B, T/4, D)"),
        Node("other", "N Conformer blocks", "(B, T/4, D)"),
        Node("head", "linear:  D → V", "(B, T/4, V)"),
        Node("head", "log-softmax", "(B, T/4, V)"),
        Node("input", "CTC: loss, or decoding"),
    ]
    block = [Node("input", "x")]
    for text, kind in (
        ("½ feed-forward  D → 4D → D", "mlp"),
        ("relative self-attention", "attention"),
        ("convolution module", "convolution"),
        ("½ feed-forward  D → 4D → D", "mlp"),
    ):
        block += [Node(kind, f"LayerNorm, {text}"), Node("plus", "")]
    block += [Node("norm", "LayerNorm"), Node("input", "")]
    module = [
        Node("input", "after LayerNorm", "(B, T/4, D)"),
        Node("convolution", "pointwise:  D → 2D", "(B, T/4, 2D)"),
        Node("other", "GLU:  a · sigmoid(b)", "(B, T/4, D)"),
        Node("convolution", "depthwise, k frames", "(B, T/4, D)"),
        Node("norm", "BatchNorm", "(B, T/4, D)"),
        Node("other", "Swish:  x · sigmoid(x)", "(B, T/4, D)"),
        Node("convolution", "pointwise:  D → D", "(B, T/4, D)"),
        Node("input", ""),
    ]
    sheet.column(1.45, "Conformer with CTC", model, 2.7)
    ys = sheet.column(6.42, "Conformer block", block, 5.2)
    sheet.text(6.62, ys[0], "all arrows: (B, T/4, D)")
    sheet.column(10.65, "convolution module", module, 2.75)
    return sheet.fig, (
        "Left, the whole model from bottom to top. Frames (B, T, F) pass two 3 x 3 convolutions with stride 2 and "
        "ReLU, (B, D, T/2, F/2) and (B, D, T/4, F/4). A linear layer makes (B, T/4, D) of them. N Conformer blocks "
        "keep this shape. A linear layer and a log-softmax give (B, T/4, V) for CTC, as a loss or for decoding. "
        "Middle, a block: half a feed-forward network, relative self-attention, the convolution module, and the other "
        "half. Each has a LayerNorm before it and a skip connection around it. The two feed-forward networks are "
        "multiplied by one half, and a LayerNorm comes last. All arrows carry (B, T/4, D). Right, the convolution "
        "module: a pointwise layer to (B, T/4, 2D), a GLU back to (B, T/4, D), a depthwise convolution over k frames, "
        "BatchNorm, Swish, and a pointwise layer."
    )


DIAGRAMS = {"t5": t5, "layouts": layouts, "conformer": conformer}
