"""Lesson 04: one step of an LSTM and of a GRU, the character model, and three arrangements of recurrent layers."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, architecture
from course_lib.viz.marks import HERO, THIRD, arrow, bare, box
from course_lib.viz.style import GREY, PALETTE, figure

STATE, INPUT, PADDING = "#BFDDF2", "#DDDDDD", "#F4F4F4"
GATE, CANDIDATE = "#BFDDF2", "#FBE0BC"


def lstm() -> tuple[Figure, str]:
    """One step of an LSTM, with the shape of every tensor."""
    fig, axes = figure(12, 5.4)
    bare(axes, (-0.2, 12.2), (-1.1, 5.1))
    top, low, product, add = 4.0, 1.75, 2.95, 5.6
    x = {"f": 2.4, "i": 4.5, "g": 6.8, "o": 9.2}
    for start, end in ((1.55, x["f"] - 0.3), (x["f"] + 0.3, add - 0.3), (add + 0.3, 10.25)):
        arrow(axes, (start, top), (end, top), HERO, width=6)
    ends = ((0.72, top, "$c_{t-1}$", HERO), (11.15, top, "$c_t$", HERO), (11.15, product, "$h_t$", GREY))
    for position, height, name, colour in ends:
        box(axes, position, height, f"{name}  (B, H)", colour, width=1.75)
    axes.text(7.9, top + 0.42, "cell state: no matrix, no tanh", color=HERO, ha="center")
    words = {"f": "σ: forget gate", "i": "σ: input gate", "g": "tanh: candidate", "o": "σ: output gate"}
    for name, position in x.items():
        box(axes, position, low, name, CANDIDATE if name == "g" else GATE, width=1.25, ink="black", edge=GREY)
        axes.text(position, low - 0.52, words[name], color=GREY, ha="center")
        axes.text(position + 0.1, 0.6, "(B, H)", color=GREY)
        arrow(axes, (position, 0.35), (position, low - 0.75))
    axes.plot([x["f"], x["o"]], [0.32, 0.32], color=GREY, linestyle="-", linewidth=2)
    arrow(axes, (add, -0.3), (add, 0.3))
    axes.text(add + 0.1, 0.0, "a  (B, 4H)", color=GREY, va="center")
    box(axes, add, -0.6, "ih($x_t$) + hh($h_{t-1}$)", "#E4E4E4", width=3, ink="black", edge=GREY)
    axes.text(3.9, -0.6, "$x_t$ (B, D),  $h_{t-1}$ (B, H)", ha="right", va="center")
    for position, height, sign in ((x["f"], top, "×"), (add, top, "+"), (add, product, "×"), (x["o"], product, "×")):
        _circle(axes, position, height, sign)
    arrow(axes, (x["f"], low + 0.28), (x["f"], top - 0.25))
    arrow(axes, (x["i"], low + 0.28), (add - 0.2, product - 0.2))
    arrow(axes, (x["g"], low + 0.28), (add + 0.2, product - 0.2))
    arrow(axes, (add, product + 0.25), (add, top - 0.25))
    arrow(axes, (x["o"], low + 0.28), (x["o"], product - 0.25))
    arrow(axes, (x["o"], top - 0.05), (x["o"], product + 0.25))
    axes.text(x["o"] + 0.15, 3.45, "tanh", color=GREY)
    arrow(axes, (x["o"] + 0.28, product), (10.25, product))
    return fig, (
        "One step of an LSTM. At the bottom x_t (B, D) and h_{t-1} (B, H) go through the linear layers ih and hh. "
        "Their sum a (B, 4H) is cut into four parts of shape (B, H): forget gate f, input gate i and output gate o "
        "with a sigmoid, candidate g with a tanh. At the top a thick line leads from the cell state c_{t-1} to c_t, "
        "through a product with f and a sum, to which i times g is added. On the right the tanh of c_t times o is the "
        "hidden state h_t."
    )


def gru() -> tuple[Figure, str]:
    """One step of a GRU in PyTorch's form."""
    fig, axes = figure(12, 4.9)
    bare(axes, (-0.2, 12.2), (0.5, 5.0))
    road, above, z, add = 2.1, 3.4, 5.2, 7.8
    for start, end in ((1.75, z - 0.3), (z + 0.3, add - 0.3), (add + 0.3, 10.2)):
        arrow(axes, (start, road), (end, road), THIRD, width=6)
    box(axes, 0.85, road, "$h_{t-1}$  (B, H)", THIRD, width=1.75)
    box(axes, 11.15, road, "$h_t$  (B, H)", THIRD, width=1.75)
    axes.text(9.1, road - 0.45, "hidden state", color=THIRD, ha="center")
    gates = ((2.9, 4.6, "r", GATE), (z, above, "n", CANDIDATE), (z, 0.95, "z", GATE), (9.8, above, "1 − z", GATE))
    for x, y, name, colour in gates:
        box(axes, x, y, name, colour, width=1.25, ink="black", edge=GREY)
    axes.text(3.65, 4.6, "σ: reset gate, of $x_t$ (B, D) and $h_{t-1}$", va="center", color=GREY)
    axes.text(z, above - 0.55, "tanh: candidate, with $x_t$", ha="center", va="center", color=GREY)
    axes.text(z + 0.75, 0.95, "σ: update gate, of $x_t$ and $h_{t-1}$", va="center", color=GREY)
    axes.text(9.8, above + 0.5, "r, z, n: (B, H) each", ha="center", color=GREY)
    for x, y, sign in ((z, road, "×"), (add, road, "+"), (2.9, above, "×"), (add, above, "×")):
        _circle(axes, x, y, sign)
    arrow(axes, (2.9, road + 0.05), (2.9, above - 0.25))
    axes.text(2.8, 2.65, "times $U_n$", color=GREY, ha="right")
    arrow(axes, (2.9, 4.32), (2.9, above + 0.25))
    arrow(axes, (3.18, above), (z - 0.65, above))
    arrow(axes, (z + 0.65, above), (add - 0.27, above))
    arrow(axes, (9.15, above), (add + 0.28, above))
    arrow(axes, (add, above - 0.25), (add, road + 0.27))
    arrow(axes, (z, 1.23), (z, road - 0.25))
    return fig, (
        "One step of a GRU. A thick line leads from h_{t-1} through a product with the update gate z and a sum to h_t. "
        "Above it, h_{t-1} times U_n is multiplied by the reset gate r and enters the candidate n, a tanh, together "
        "with x_t; n times 1 - z is added at the sum. Both gates are sigmoids of x_t and h_{t-1}; all are (B, H)."
    )


def character_model() -> tuple[Figure, str]:
    """The whole model."""
    parts = [
        Box("tokens", "input", shape="(B, T)"),
        Box("embed", "embedding", shape="(B, T, E)"),
        Box("rnn: T steps of an LSTM", "attention", shape="(B, T, H)"),
        Box("head", "head", shape="(B, T, V)"),
        Box("logits", "input"),
    ]
    return architecture({"character model": parts})


def arrangements() -> tuple[Figure, str]:
    """Three ways to arrange layers: stacked, bidirectional, and packed."""
    fig, panels = figure(12.2, 5.4, columns=3)
    for axes, title in zip(panels, ("Stacked", "Bidirectional", "Packed"), strict=True):
        axes.set_title(title)
        bare(axes, (-0.45, 3.45), (-1.2, 3.8))
    stacked, both, packed = panels
    for t in range(4):
        for axes in (stacked, both):
            box(axes, t, 0, f"$x_{t + 1}$", INPUT, width=0.6, ink="black")
        for row, name in ((1.2, "1"), (2.4, "2")):
            box(stacked, t, row, f"$h^{{({name})}}_{t + 1}$", STATE, width=0.64, ink="black")
            arrow(stacked, (t, row - 0.93), (t, row - 0.27))
            if t < 3:
                arrow(stacked, (t + 0.35, row), (t + 0.65, row))
        arrow(stacked, (t, 2.67), (t, 3.2))
        _both_directions(both, t)
    stacked.text(1.5, -0.4, "layer 2 reads\nthe states of layer 1", ha="center", va="top")
    both.text(1.5, -0.4, "output: both states,\n(B, T, 2H)", ha="center", va="top")
    lengths = (4, 3, 1)
    for row, length in enumerate(lengths):
        for t in range(4):
            real = t < length
            box(
                packed,
                t,
                3.3 - 0.9 * row,
                f"$x_{t + 1}$" if real else "pad",
                INPUT if real else PADDING,
                width=0.66,
                ink="black" if real else GREY,
            )
    for t in range(4):
        count = sum(length > t for length in lengths)
        packed.text(t, 0.55, str(count), ha="center", fontsize=13, weight="bold")
    packed.text(1.5, 0.3, "sequences computed\nat each step: 8 of 12", ha="center", va="top")
    return fig, (
        "Stacked: four inputs x_1 to x_4, above them the states of layer 1, above these the states of layer 2, which "
        "reads the states of layer 1; arrows lead to the right in both layers. Bidirectional: each input goes to a "
        "forward state, with arrows to the right between these, and to a backward state, with arrows to the left; both "
        "states go to the output of that step. Packed: three sequences of 4, 3 and 1 symbols, filled up with padding; "
        "below, how many sequences are computed at each step: 3, 2, 2 and 1."
    )


def _both_directions(axes: Axes, t: int) -> None:
    """One time step of a bidirectional layer: the input goes to both states, and both go to the output."""
    forward, backward, output = (t - 0.2, 1.2), (t + 0.2, 2.2), (t, 3.4)
    box(axes, *forward, "", "black", width=0.36, height=0.42)
    axes.text(*forward, "→", ha="center", va="center", color="white", fontsize=13, zorder=4)
    box(axes, *backward, "", PALETTE["orange"], width=0.36, height=0.42)
    axes.text(*backward, "←", ha="center", va="center", color="black", fontsize=13, zorder=4)
    box(axes, *output, "", INPUT, width=0.6, height=0.42, ink="black")
    axes.text(*output, f"$y_{t + 1}$", ha="center", va="center", zorder=4)
    arrow(axes, (t - 0.2, 0.27), (t - 0.2, 0.97))
    arrow(axes, (t + 0.2, 0.27), (t + 0.2, 1.97))
    arrow(axes, (t - 0.2, 1.42), (t - 0.2, 3.17))
    arrow(axes, (t + 0.2, 2.42), (t + 0.2, 3.17))
    if t < 3:
        arrow(axes, (t - 0.01, 1.2), (t + 0.61, 1.2), "black")
        arrow(axes, (t + 1.01, 2.2), (t + 0.39, 2.2), PALETTE["orange"])


def _circle(axes: Axes, x: float, y: float, text: str) -> None:
    """An operation, in a circle."""
    axes.plot(x, y, "o", color="white", mec=GREY, mew=2, markersize=20, zorder=3)
    axes.text(x, y - 0.02, text, ha="center", va="center", fontsize=14, color="black", zorder=4)


DIAGRAMS = {"lstm": lstm, "gru": gru, "character_model": character_model, "arrangements": arrangements}
