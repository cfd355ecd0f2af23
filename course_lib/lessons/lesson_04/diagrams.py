"""Lesson 04: one step of an LSTM and of a GRU, the character model, and three arrangements of recurrent layers."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.lessons.lesson_04.figures import circle, lstm_step
from course_lib.viz.architecture import Box, architecture
from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, box
from course_lib.viz.style import GREY, PALETTE, figure

STATE, INPUT, PADDING = PALETTE["sky"], "#DDDDDD", "#F4F4F4"


def lstm() -> tuple[Figure, str]:
    """One step of an LSTM, with the shape of every tensor."""
    fig = lstm_step(
        {"f": "f", "i": "i", "g": "g", "o": "o"},
        ("$c_{t-1}$  (B, H)", "$c_t$  (B, H)", "$h_t$  (B, H)"),
        shapes=True,
    )
    return fig, (
        "One step of an LSTM. At the bottom x_t (B, D) and h_{t-1} (B, H) go through the linear layers ih and hh, whose "
        "sum a (B, 4H) is cut into four parts of shape (B, H): forget gate f, input gate i and output gate o with a "
        "sigmoid, candidate g with a tanh. At the top a thick line leads from the cell state c_{t-1} to c_t, through a "
        "product with f and a sum, to which i times g is added. On the right the tanh of c_t times o is the hidden "
        "state h_t."
    )


def gru() -> tuple[Figure, str]:
    """One step of a GRU in PyTorch's form."""
    fig, axes = figure(12, 4.9)
    bare(axes, (-0.2, 12.2), (-0.35, 5.0))
    top, low, product = 4.2, 1.6, 2.85
    for start, end in ((1.75, 2.7), (3.3, 7.5), (8.1, 10.2)):
        arrow(axes, (start, top), (end, top), THIRD, width=6)
    box(axes, 0.85, top, "$h_{t-1}$  (B, H)", THIRD, width=1.75)
    box(axes, 11.15, top, "$h_t$  (B, H)", THIRD, width=1.75)
    axes.text(9.1, top + 0.4, "hidden state", color=THIRD, ha="center", fontsize=14)
    for x, name, words in ((3.0, "z", "σ: update gate"), (5.2, "r", "σ: reset gate"), (7.8, "n", "tanh: candidate")):
        box(axes, x, low, name, "#FBE0BC" if name == "n" else "#BFDDF2", width=1.25, ink="black", edge=GREY)
        axes.text(x, low - 0.52, words, ha="center", color=GREY, fontsize=12)
        arrow(axes, (x, 0.25), (x, low - 0.75))
    for x, y, sign in ((3.0, top, "×"), (7.8, top, "+"), (5.2, product, "×"), (7.8, product, "×")):
        circle(axes, x, y, sign)
    arrow(axes, (3.0, low + 0.28), (3.0, top - 0.25))
    axes.text(3.1, 3.0, "z", fontsize=14)
    arrow(axes, (5.2, low + 0.28), (5.2, product - 0.25))
    arrow(axes, (5.2, top - 0.05), (5.2, product + 0.25))
    axes.text(5.3, 3.45, "times $U_n$", color=GREY, fontsize=13)
    arrow(axes, (5.45, product - 0.1), (7.2, low + 0.2))
    arrow(axes, (7.8, low + 0.28), (7.8, product - 0.25))
    arrow(axes, (7.8, product + 0.25), (7.8, top - 0.25))
    box(axes, 9.6, product, "1 − z", "#BFDDF2", width=1.1, ink="black", edge=GREY)
    arrow(axes, (9.05, product), (8.08, product))
    axes.plot([1.9, 7.8], [0.22, 0.22], color=GREY, linestyle="-", linewidth=2)
    axes.text(1.8, 0.22, "$x_t$ (B, D), $h_{t-1}$", ha="right", va="center", fontsize=13)
    axes.text(8.1, 0.22, "z, r, n: (B, H) each", va="center", fontsize=13, color=GREY)
    return fig, (
        "One step of a GRU. From x_t and h_{t-1} come the reset gate r and the update gate z, both sigmoids, and the "
        "candidate n, a tanh; into n the product U_n h_{t-1} enters multiplied by r. At the top a thick line leads from "
        "h_{t-1} through a product with z and a sum to h_t; n times 1 - z is added there. All have shape (B, H)."
    )


def character_model() -> tuple[Figure, str]:
    """The whole model, and one step of its recurrent layer."""
    model = [
        Box("tokens", "input", shape="(B, T)"),
        Box("embed", "embedding", shape="(B, T, E)"),
        Box("rnn: LSTM, T steps", "attention", shape="(B, T, H)"),
        Box("head", "head", shape="(B, T, V)"),
        Box("logits", "input"),
    ]
    step = [
        Box("$x_t$", "input", shape="(B, E)"),
        Box("ih, plus hh of $h_{t-1}$", shape="(B, 4H)"),
        Box("cut into i, f, g, o", shape="4 × (B, H)"),
        Box("$c_t = f ⊙ c_{t-1} + i ⊙ g$", "attention", shape="(B, H)"),
        Box("$h_t = o ⊙ $tanh$(c_t)$", "attention", shape="(B, H)"),
        Box("", "input"),
    ]
    fig, _ = architecture({"character model": model, "one step of the LSTM": step})
    return fig, (
        "Two columns, from bottom to top. The character model: tokens (B, T), embed (B, T, E), rnn, an LSTM over T steps "
        "(B, T, H), head (B, T, V), logits. One step of the LSTM: x_t (B, E); ih, plus hh of h_{t-1} (B, 4H); cut into "
        "i, f, g, o, each (B, H); c_t = f c_{t-1} + i g (B, H); h_t = o tanh(c_t) (B, H)."
    )


def arrangements() -> tuple[Figure, str]:
    """Three ways to arrange layers: stacked, bidirectional, and packed."""
    fig, panels = figure(12.4, 4.8, columns=3)
    for axes, title in zip(panels, ("Stacked", "Bidirectional", "Packed"), strict=True):
        axes.set_title(title)
        bare(axes, (-0.8, 3.8), (-0.9, 4.1))
    stacked, both, packed = panels
    for t in range(4):
        for axes in (stacked, both):
            box(axes, t, 0, f"$x_{t + 1}$", INPUT, width=0.6, ink="black")
        for row, name in ((1.2, "1"), (2.4, "2")):
            box(stacked, t, row, f"$h^{{({name})}}_{t + 1}$", STATE, width=0.68, ink="black")
            arrow(stacked, (t, row - 0.93), (t, row - 0.27))
            if t < 3:
                arrow(stacked, (t + 0.35, row), (t + 0.65, row))
        arrow(stacked, (t, 2.67), (t, 3.2))
        _both_directions(both, t)
    stacked.text(1.5, -0.75, "layer 2 reads the states of layer 1", ha="center", fontsize=13)
    both.text(1.5, -0.75, "output: both states, (B, T, 2H)", ha="center", fontsize=13)
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
                fontsize=14 if real else 12,
            )
    for t in range(4):
        count = sum(length > t for length in lengths)
        packed.text(t, 0.55, str(count), ha="center", fontsize=15, weight="bold")
    packed.text(1.5, -0.1, "sequences that are computed\nat each step: 8 of 12", ha="center", va="center", fontsize=13)
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
    box(axes, *forward, "", HERO, width=0.36, height=0.42)
    axes.text(*forward, "→", ha="center", va="center", color="white", fontsize=15, zorder=4)
    box(axes, *backward, "", OTHER, width=0.36, height=0.42)
    axes.text(*backward, "←", ha="center", va="center", color="white", fontsize=15, zorder=4)
    box(axes, *output, "", INPUT, width=0.6, height=0.42, ink="black")
    axes.text(*output, f"$y_{t + 1}$", ha="center", va="center", fontsize=14, zorder=4)
    arrow(axes, (t - 0.2, 0.27), (t - 0.2, 0.97))
    arrow(axes, (t + 0.2, 0.27), (t + 0.2, 1.97))
    arrow(axes, (t - 0.2, 1.42), (t - 0.2, 3.17))
    arrow(axes, (t + 0.2, 2.42), (t + 0.2, 3.17))
    if t < 3:
        arrow(axes, (t - 0.01, 1.2), (t + 0.61, 1.2), HERO)
        arrow(axes, (t + 1.01, 2.2), (t + 0.39, 2.2), OTHER)


DIAGRAMS = {"lstm": lstm, "gru": gru, "character_model": character_model, "arrangements": arrangements}
