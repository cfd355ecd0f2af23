"""Lesson 03: the recurrent network, folded and unrolled, with the shape of every tensor."""

from matplotlib.figure import Figure

from course_lib.viz.marks import HERO, arrow, bare, box
from course_lib.viz.style import GREY, PALETTE, figure

NAME = ("o", "s", "l", "o")


def rnn() -> tuple[Figure, str]:
    """The recogniser of names: one layer with a loop, and the same layer once for each letter."""
    fig, (folded, unrolled) = figure(12, 5.2, columns=2, gridspec_kw={"width_ratios": (1, 2.9)})
    bare(folded, (-0.45, 0.95), (-0.5, 5.3))
    _column(folded, 0, "tokens", ("(B, T)", "(B, T, D)", "(B, T, H)"), last=True)
    loop = {"arrowstyle": "-|>", "color": HERO, "lw": 2, "connectionstyle": "arc3,rad=-1.2"}
    folded.annotate("", (0.42, 1.9), (0.42, 2.5), arrowprops=loop)
    folded.text(0.6, 2.2, "$W_{hh}$", color=HERO, va="center", fontsize=13)
    folded.set_title("folded", loc="center", x=0.32)
    bare(unrolled, (-1.05, len(NAME) - 0.55), (-0.5, 5.3))
    for t, letter in enumerate(NAME):
        _column(unrolled, t, letter, ("", "", f"$h_{t + 1}$"), last=t == len(NAME) - 1)
        arrow(unrolled, (t - 0.61, 2.2), (t - 0.39, 2.2), HERO)
    unrolled.text(-0.66, 2.2, "$h_0 = 0$", ha="right", va="center")
    unrolled.set_title("unrolled: the same weights in every column", loc="center")
    return fig, (
        "Two drawings of the recogniser. Folded, from bottom to top: tokens (B, T), embedding (B, T, D), a recurrent "
        "layer with a loop labelled W_hh and states (B, T, H), and for the last state a linear output layer with "
        "logits (B, C). Unrolled for the letters o, s, l, o: four columns with the same embedding and the same "
        "recurrent step; an arrow leads from each state to the next step, from h_0 = 0 on, and only the last state "
        "goes into the output layer."
    )


def _column(axes, t: float, below: str, shapes: tuple[str, str, str], *, last: bool) -> None:
    axes.text(t, -0.2, below, ha="center", va="center", fontsize=13)
    for row, (text, colour) in enumerate((("embedding", "#FBE0BC"), ("tanh step", PALETTE["sky"]))):
        box(axes, t, 0.9 + 1.3 * row, text, colour, width=0.76, height=0.6, ink="black", edge=GREY)
    arrow(axes, (t, 0.05), (t, 0.6))
    arrow(axes, (t, 1.2), (t, 1.9))
    for level, shape in zip((0.3, 1.55, 2.85), shapes, strict=True):
        axes.text(t + 0.06, level, shape, va="center", color=GREY)
    if last:
        arrow(axes, (t, 2.5), (t, 3.2))
        box(axes, t, 3.5, "linear", "#F1D3E2", width=0.76, height=0.6, ink="black", edge=GREY)
        arrow(axes, (t, 3.8), (t, 4.5))
        axes.text(t, 4.75, "logits (B, C)", ha="center")


DIAGRAMS = {"rnn": rnn}
