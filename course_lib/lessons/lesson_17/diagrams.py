"""The drawings of lesson 17: kinds of attention, a mixture of experts, a Boltzmann machine, and the family of all."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Rectangle

from course_lib.lessons.lesson_17.synthesis import FAMILY
from course_lib.viz.architecture import COLOURS
from course_lib.viz.marks import HERO, OTHER, arrow, bare, box
from course_lib.viz.style import GREY, figure

SHOWN = 0.78  # of its size: fewer bytes, and as large on a slide
EDGED = {"ink": "black", "edge": GREY}
TOKENS, WINDOW, BLOCK = 12, 3, 4
KINDS = {  # of an architecture -> name and colour
    "convolution": ("convolution", "#FBE0BC"),
    "recurrence": ("recurrence", "#C3E7D9"),
    "attention": ("attention", "#BFDDF2"),
    "energy": ("energy", "#F1D3E2"),
    "mlp": ("MLP", "#E4E4E4"),
}
CELL, ROOM = (2.48, 0.99), (2.24, 0.84)  # of the family's grid, and of a box in it: inches


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Bare axes whose units are inches."""
    fig, axes = figure(SHOWN * width, SHOWN * height, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, width), (0, height))
    return fig, axes


def attention_kinds() -> tuple[Figure, str]:
    """Which keys each query attends to: full causal, local, in blocks; and what a recurrent state keeps instead."""
    fig, axes = sheet(12.2, 4.8)
    queries, keys = np.arange(TOKENS)[:, None], np.arange(TOKENS)
    causal = keys <= queries
    block = np.where(keys // BLOCK == queries // BLOCK, 1, 2)
    masks = {
        "Full causal": (causal.astype(int), f"T(T + 1)/2 =\n{TOKENS * (TOKENS + 1) // 2} scores"),
        f"Local, window {WINDOW}": (
            (causal & (queries - keys <= WINDOW)).astype(int),
            "at most T (w + 1)\nscores; the rest is\nout of reach",
        ),
        f"Linear, in blocks of {BLOCK}": (
            np.where(causal, block, 0),
            "dark: scores inside\na block; light:\nthrough the state S",
        ),
    }
    side, top = 2.6, 4.03
    for number, (name, (mask, text)) in enumerate(masks.items()):
        left = 0.5 + 2.98 * number
        axes.text(left + side / 2, top + 0.57, name, ha="center", va="center", weight="bold")
        grid(axes, mask, left, top - side, side)
        axes.text(left + side / 2, top - side - 0.17, text, ha="center", va="top", color=GREY)
    axes.text(0.25, top - side / 2, "queries", rotation=90, ha="center", va="center", color=GREY)
    axes.text(0.5 + side / 2, top + 0.2, "keys", ha="center", va="center", color=GREY)
    recurrent(axes, 11.2, top)
    return fig, (
        f"Three grids of {TOKENS} queries and {TOKENS} keys, and a column of states. Full causal attention: each "
        f"query attends to itself and all keys before it, a triangle of {TOKENS * (TOKENS + 1) // 2} scores. Local "
        f"attention: each query attends to itself and {WINDOW} keys before it, a band along the diagonal. Linear "
        f"attention in blocks of {BLOCK}: scores are computed inside a block, and earlier blocks are read through the "
        "state S. At the right stands linear attention as a recurrence. Each token adds phi(k) v to the state S of "
        "shape (K, V) and phi(k) to z of shape (K,). It reads them with phi(q). The state keeps its size."
    )


def grid(axes: Axes, mask: np.ndarray, left: float, below: float, side: float) -> None:
    """A mask as cells: 0 white, 1 dark, 2 light."""
    colours = ("white", HERO, COLOURS["attention"])
    cell = side / len(mask)
    for query, row in enumerate(mask):
        for key, kind in enumerate(row):
            corner = (left + key * cell, below + side - (query + 1) * cell)
            axes.add_patch(Rectangle(corner, cell, cell, facecolor=colours[kind], edgecolor="#B0B0B0", lw=0.6))


def recurrent(axes: Axes, x: float, top: float) -> None:
    """Linear attention as a recurrent network, from top to bottom."""
    axes.text(x - 0.45, top + 0.57, "As a recurrence", ha="center", va="center", weight="bold")
    axes.text(x - 0.45, top + 0.2, "always S (K, V), z (K,)", ha="center", va="center", color=GREY)
    heights = (top - 0.3, top - 1.5, top - 2.7)
    for number, y in enumerate(heights, start=1):
        name = ("i − 2", "i − 1", "i")[number - 1]
        box(axes, x, y, f"$S_{{{name}}},\\ z_{{{name}}}$", COLOURS["mlp"], width=1.6, height=0.54, **EDGED)
        if number > 1:
            arrow(axes, (x, heights[number - 2] - 0.27), (x, y + 0.27), width=1.6, shrinkA=0, shrinkB=0)
            axes.text(x - 0.1, y + 0.6, f"$+\\,\\phi(k_{{{name}}})\\,v_{{{name}}}^\\top$", ha="right", va="center")
    arrow(axes, (x, heights[-1] - 0.27), (x, heights[-1] - 0.85), width=1.6, shrinkA=0, shrinkB=0)
    axes.text(x - 0.1, heights[-1] - 0.55, r"$\phi(q_i)$ reads", ha="right", va="center")
    axes.text(x, heights[-1] - 0.9, "output (V,)", ha="center", va="top")


def experts() -> tuple[Figure, str]:
    """A mixture-of-experts layer with four experts and k = 2, for one token."""
    fig, axes = sheet(12.2, 5.2)
    high, middle = 4.42, 2.4  # of the router, and of what comes in and goes out
    axes.text(0.7, middle, "token x\n(D,)", ha="center", va="center")
    box(axes, 2.65, high, "router\n$W_r$: D → E", COLOURS["head"], width=1.9, height=0.85, **EDGED)
    box(axes, 5.6, high, "top k of E logits", COLOURS["head"], width=2.2, height=0.6, **EDGED)
    box(axes, 8.9, high, "softmax over\nthe k chosen", COLOURS["head"], width=1.95, height=0.85, **EDGED)
    arrow(axes, (1.1, middle + 0.35), (1.95, high - 0.4), width=1.6)
    arrow(axes, (3.6, high), (4.5, high), width=1.6)
    arrow(axes, (6.7, high), (7.93, high), width=1.6)
    axes.text(4.03, high + 0.12, "(E,)", ha="center", va="bottom", color=GREY)
    axes.text(7.28, high + 0.08, "(k,) and\nindices", ha="center", va="bottom", color=GREY, linespacing=1)
    chosen = (1, 3)
    for number, y in enumerate((3.25, middle, 1.55, 0.7)):
        used = number in chosen
        style = EDGED if used else {"ink": GREY, "edge": "#B0B0B0"}
        text = f"expert {number + 1}:  D → H → D" if used else f"expert {number + 1}: not computed"
        box(axes, 5.6, y, text, COLOURS["mlp"] if used else "#F3F3F3", width=3.1, height=0.58, **style)
        if used:
            arrow(axes, (1.3, middle), (4.05, y), HERO, width=1.8)
            arrow(axes, (7.15, y), (9.4, middle if number == 1 else middle - 0.15), HERO, width=1.8)
            words = f"$E_{number + 1}(x)$ (D,)"
            axes.text(7.5 if number == 1 else 7.95, y + 0.06, words, color=GREY, va="bottom")
    axes.add_patch(Circle((9.62, middle), 0.22, facecolor="white", edgecolor=GREY, zorder=3))
    axes.text(9.62, middle - 0.02, "Σ", ha="center", va="center", zorder=4)
    arrow(axes, (9.0, high - 0.43), (9.55, middle + 0.22), OTHER, width=1.8)
    axes.text(9.5, 3.4, "gates $g_2, g_4$, sum 1", color=OTHER, ha="left", va="center")
    arrow(axes, (9.84, middle), (10.35, middle), width=1.6)
    axes.text(10.4, middle, "$y = g_2 E_2(x)$\n$\\quad + g_4 E_4(x)$\n(D,)", ha="left", va="center")
    return fig, (
        "A mixture-of-experts layer for one token x of shape (D,). A router, one matrix, makes E = 4 logits; the k = 2 "
        "largest are kept, and a softmax over them gives two gates that sum to 1. Only the two chosen experts, numbers "
        "2 and 4, compute: each is a feed-forward network D to H to D. The output is the sum of their results weighted "
        "by the gates, (D,). The other two experts are not computed."
    )


def rbm() -> tuple[Figure, str]:
    """A restricted Boltzmann machine, and the two phases of contrastive divergence."""
    fig, axes = sheet(12.2, 5.3)
    axes.text(2.1, 5.1, "The machine", ha="center", va="center", weight="bold")
    hidden, visible = [(0.9 + 0.8 * i, 4.05) for i in range(4)], [(0.4 + 0.68 * i, 2.25) for i in range(6)]
    for v in visible:
        for h in hidden:
            axes.plot([v[0], h[0]], [v[1], h[1]], color="#B0B0B0", linewidth=0.8, linestyle="-", zorder=1)
    for points, colour in ((hidden, COLOURS["mlp"]), (visible, COLOURS["embedding"])):
        for point in points:
            axes.add_patch(Circle(point, 0.21, facecolor=colour, edgecolor=GREY, zorder=3))
    axes.text(2.1, 4.4, "hidden units h (H,), biases c", ha="center", va="bottom")
    axes.text(2.1, 1.9, "visible units v (V,), biases b", ha="center", va="top")
    axes.text(3.75, 3.15, "W (H, V)", color=GREY, ha="left", va="center")
    axes.text(2.1, 0.95, r"$E(v, h) = -b^\top v - c^\top h - h^\top W v$", ha="center")
    axes.text(2.1, 0.4, r"$p(v, h) = e^{-E(v, h)} / Z$", ha="center")
    axes.text(8.6, 5.1, "Contrastive divergence, CD-k", ha="center", va="center", weight="bold")
    xs, up, down = (5.8, 8.5, 11.35), 4.05, 2.25
    names = (("$v_0$: data", "$p(h\\,|\\,v_0)$"), ("$v_1$", "$p(h\\,|\\,v_1)$"), ("$v_k$: model", "$p(h\\,|\\,v_k)$"))
    for x, (below, above), last in zip(xs, names, (False, False, True), strict=True):
        box(axes, x, down, below, COLOURS["embedding"], width=1.5, height=0.58, **EDGED)
        box(axes, x, up, above, COLOURS["mlp"], width=1.5, height=0.58, **EDGED)
        arrow(axes, (x, down + 0.29), (x, up - 0.29), width=1.6, shrinkA=0, shrinkB=0)
        side, ha = (-0.1, "right") if last else (0.08, "left")
        axes.text(x + side, down + 0.55, r"$\sigma(c + W v)$", ha=ha, va="center", color=GREY)
        if not last:
            arrow(axes, (x + 0.74, up - 0.15), (x + (1.9 if x == xs[0] else 1.5), down + 0.31), width=1.6)
    axes.text(7.42, 3.3, "draw h,\ndraw v", va="center", color=GREY)
    axes.text(9.93, down, "… k steps", ha="center", va="center", color=GREY)
    positive, negative = (
        f"{{}} phase:\n$\\langle h v^\\top\\rangle$ {when}" for when in ("with the data", "after k steps")
    )
    axes.text(5.8, 1.35, positive.format("positive"), ha="center", va="center", color=HERO)
    axes.text(10.94, 1.35, negative.format("negative"), ha="center", va="center", color=OTHER)
    axes.text(8.5, 0.4, r"$\Delta W = \eta\,(\langle h v^\top\rangle_{data} - \langle h v^\top\rangle_{k\ steps})$",
              ha="center")  # fmt: skip
    return fig, (
        "Left: a restricted Boltzmann machine. Every hidden unit is connected with every visible unit by the weights W "
        "of shape (H, V), and no unit with one of its own layer. Below stand its energy and the probability "
        "exp(-E) / Z. Right: contrastive divergence. The data v_0 give the probabilities of the hidden units; hidden "
        "units are drawn, then visible ones, and so on for k Gibbs steps up to v_k. The weights change by the learning "
        "rate times the difference of two mean products of h and v: with the data, and after k steps."
    )


def family() -> tuple[Figure, str]:
    """Every architecture of the course as a change of another one."""
    width, height = 12.2, 6.0
    fig, axes = sheet(width, height)
    at = {one.name: (CELL[0] * one.column + ROOM[0] / 2 + 0.02, height - CELL[1] * one.row - ROOM[1] / 2 - 0.05)
          for one in FAMILY}  # fmt: skip
    for one in FAMILY:
        x, y = at[one.name]
        if one.parent:
            link(axes, at[one.parent], (x, y))
        frame = (x - ROOM[0] / 2, y - ROOM[1] / 2)
        shape = FancyBboxPatch(frame, *ROOM, boxstyle="round,pad=0,rounding_size=0.1")
        shape.set(facecolor=KINDS[one.kind][1], edgecolor=GREY, linewidth=1, zorder=3)
        axes.add_patch(shape)
        name = "\n".join(one.name.rsplit(" ", 1)) if len(one.name) > 15 else one.name
        style = {"ha": "center", "linespacing": 1.0, "zorder": 4}
        axes.text(x, y + ROOM[1] / 2 - 0.04, name, va="top", weight="bold", **style)
        axes.text(x, y - ROOM[1] / 2 + 0.05, one.change, va="bottom", **style)
    handles = [Patch(facecolor=colour, edgecolor=GREY, label=name) for name, colour in KINDS.values()]
    left, top = at["Transformer"][0] - ROOM[0] / 2, at["SegNet"][1] + ROOM[1] / 2 + 0.06
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(left / width, top / height),
        handlelength=1.2,
        handletextpad=0.5,
        labelspacing=0.02,
        borderpad=0,
        borderaxespad=0,
    )
    axes.text(left, 0.1, "Each box says\nwhat it changes.", va="bottom", linespacing=1.0)
    roots = [one.name for one in FAMILY if not one.parent]
    changed = [f"{one.parent} to {one.name}: {one.change.replace(chr(10), ' ')}" for one in FAMILY if one.parent]
    return fig, (
        f"{len(FAMILY)} architectures as boxes; an arrow leads from one to each that changes it, and a box says what "
        f"is changed. The roots are {', '.join(roots[:-1])} and {roots[-1]}. {'; '.join(changed)}."
    )


def link(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow between two boxes: from edge to edge, down or up in a column and to the right between columns."""
    style = {"width": 1.8, "shrinkA": 0, "shrinkB": 0}
    if abs(start[0] - end[0]) < 0.1:
        side = 1 if end[1] > start[1] else -1
        arrow(axes, (start[0], start[1] + side * ROOM[1] / 2), (end[0], end[1] - side * ROOM[1] / 2), **style)
    else:
        arrow(axes, (start[0] + ROOM[0] / 2, start[1]), (end[0] - ROOM[0] / 2, end[1]), **style)


DIAGRAMS = {"attention_kinds": attention_kinds, "experts": experts, "rbm": rbm, "family": family}
