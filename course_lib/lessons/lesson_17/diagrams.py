"""The drawings of lesson 17: kinds of attention, a mixture of experts, a Boltzmann machine, and the family of all."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Rectangle

from course_lib.lessons.lesson_17.synthesis import FAMILY
from course_lib.viz.architecture import COLOURS
from course_lib.viz.marks import HERO, OTHER, arrow, bare, box
from course_lib.viz.style import GREY, figure

SMALL = 12
EDGED = {"ink": "black", "edge": GREY}
TOKENS, WINDOW, BLOCK = 12, 3, 4
KINDS = {  # of an architecture -> name and colour
    "convolution": ("convolution", "#FBE0BC"),
    "recurrence": ("recurrence", "#C3E7D9"),
    "attention": ("attention", "#BFDDF2"),
    "energy": ("energy", "#F1D3E2"),
    "mlp": ("MLP", "#E4E4E4"),
}
CELL, ROOM = (2.46, 0.9), (2.04, 0.76)  # of the family's grid, and of a box in it: inches


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Bare axes whose units are inches."""
    fig, axes = figure(width, height, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, width), (0, height))
    return fig, axes


def attention_kinds() -> tuple[Figure, str]:
    """Which keys each query attends to: full causal, local, in blocks; and what a recurrent state keeps instead."""
    fig, axes = sheet(12.0, 4.3)
    queries, keys = np.arange(TOKENS)[:, None], np.arange(TOKENS)
    causal = keys <= queries
    block = np.where(keys // BLOCK == queries // BLOCK, 1, 2)
    masks = {
        "Full causal": (causal.astype(int), f"T(T + 1)/2 = {TOKENS * (TOKENS + 1) // 2} scores"),
        f"Local, window {WINDOW}": (
            (causal & (queries - keys <= WINDOW)).astype(int),
            "at most T (w + 1) scores;\nthe rest is out of reach",
        ),
        f"Linear, in blocks of {BLOCK}": (
            np.where(causal, block, 0),
            "dark: scores inside a block\nlight: through the state S",
        ),
    }
    side, top = 2.55, 3.65
    for number, (name, (mask, text)) in enumerate(masks.items()):
        left = 0.55 + 2.95 * number
        axes.text(left + side / 2, top + 0.35, name, ha="center", va="center", fontsize=14, weight="bold")
        grid(axes, mask, left, top - side, side)
        axes.text(left + side / 2, top - side - 0.17, text, ha="center", va="top", fontsize=SMALL, color=GREY)
    axes.text(0.3, top - side / 2, "queries", rotation=90, ha="center", va="center", fontsize=SMALL, color=GREY)
    axes.text(0.55 + side / 2, top + 0.12, "keys", ha="center", va="center", fontsize=SMALL, color=GREY)
    recurrent(axes, 10.65, top)
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
    axes.text(x, top + 0.35, "As a recurrence", ha="center", va="center", fontsize=14, weight="bold")
    heights = (top - 0.15, top - 1.3, top - 2.45)
    for number, y in enumerate(heights, start=1):
        name = ("i − 2", "i − 1", "i")[number - 1]
        box(axes, x, y, f"$S_{{{name}}},\\ z_{{{name}}}$", COLOURS["mlp"], width=1.25, height=0.46, **EDGED)
        if number > 1:
            arrow(axes, (x, heights[number - 2] - 0.23), (x, y + 0.23), width=1.6, shrinkA=0, shrinkB=0)
            axes.text(x - 0.1, y + 0.58, f"$+\\,\\phi(k_{{{name}}})\\,v_{{{name}}}^\\top$", ha="right", va="center",
                      fontsize=SMALL)  # fmt: skip
    arrow(axes, (x, heights[-1] - 0.23), (x, heights[-1] - 0.6), width=1.6, shrinkA=0, shrinkB=0)
    axes.text(x + 0.1, heights[-1] - 0.42, r"$\phi(q_i)$ reads", ha="left", va="center", fontsize=SMALL)
    axes.text(x, heights[-1] - 0.64, "output (V,)", ha="center", va="top", fontsize=SMALL)
    axes.text(
        x + 0.1, heights[1] + 0.58, "S (K, V), z (K,)\nalways", ha="left", va="center", fontsize=SMALL, color=GREY
    )


def experts() -> tuple[Figure, str]:
    """A mixture-of-experts layer with four experts and k = 2, for one token."""
    fig, axes = sheet(12.0, 4.6)
    axes.text(0.75, 2.1, "token x\n(D,)", ha="center", va="center", fontsize=14)
    box(axes, 2.75, 3.75, "router\n$W_r$: D → E", COLOURS["head"], width=1.7, height=0.75, fontsize=13, **EDGED)
    box(axes, 5.25, 3.75, "top k of E logits", COLOURS["head"], width=1.9, height=0.5, fontsize=13, **EDGED)
    box(axes, 8.05, 3.75, "softmax over\nthe k chosen", COLOURS["head"], width=1.6, height=0.75, fontsize=13, **EDGED)
    arrow(axes, (1.15, 2.35), (1.95, 3.55), width=1.6)
    arrow(axes, (3.6, 3.75), (4.3, 3.75), width=1.6)
    arrow(axes, (6.2, 3.75), (7.25, 3.75), width=1.6)
    axes.text(3.95, 4.0, "(E,)", ha="center", fontsize=SMALL, color=GREY)
    axes.text(6.72, 4.0, "(k,) and\nindices", ha="center", va="center", fontsize=SMALL, color=GREY)
    heights = (2.85, 2.1, 1.35, 0.6)
    chosen = (1, 3)
    for number, y in enumerate(heights):
        used = number in chosen
        style = EDGED if used else {"ink": GREY, "edge": "#B0B0B0"}
        text = f"expert {number + 1}:  D → H → D" if used else f"expert {number + 1}: not computed"
        box(axes, 5.25, y, text, COLOURS["mlp"] if used else "#F3F3F3", width=2.7, height=0.5, fontsize=13, **style)
        if used:
            arrow(axes, (1.25, 2.1), (3.9, y), HERO, width=1.8)
            arrow(axes, (6.6, y), (9.05, 2.1 if number == 1 else 1.98), HERO, width=1.8)
            words = f"$E_{number + 1}(x)$ (D,)"
            axes.text(7.1 if number == 1 else 7.9, y + 0.06, words, fontsize=SMALL, color=GREY, va="bottom")
    axes.add_patch(Circle((9.25, 2.08), 0.2, facecolor="white", edgecolor=GREY, zorder=3))
    axes.text(9.25, 2.06, "Σ", ha="center", va="center", fontsize=14, zorder=4)
    arrow(axes, (8.35, 3.37), (9.17, 2.28), OTHER, width=1.8)
    axes.text(8.95, 2.95, "gates $g_2, g_4$, sum 1", fontsize=SMALL, color=OTHER, ha="left", va="center")
    arrow(axes, (9.45, 2.08), (9.95, 2.08), width=1.6)
    axes.text(10.0, 2.08, "$y = g_2 E_2(x)$\n$\\quad + g_4 E_4(x)$\n(D,)", ha="left", va="center")
    return fig, (
        "A mixture-of-experts layer for one token x of shape (D,). A router, one matrix, makes E = 4 logits; the k = 2 "
        "largest are kept, and a softmax over them gives two gates that sum to 1. Only the two chosen experts, numbers "
        "2 and 4, compute: each is a feed-forward network D to H to D. The output is the sum of their results weighted "
        "by the gates, (D,). The other two experts are not computed."
    )


def rbm() -> tuple[Figure, str]:
    """A restricted Boltzmann machine, and the two phases of contrastive divergence."""
    fig, axes = sheet(12.0, 4.6)
    axes.text(2.35, 4.35, "The machine", ha="center", fontsize=14, weight="bold")
    hidden, visible = [(0.95 + 0.95 * i, 3.55) for i in range(4)], [(0.45 + 0.76 * i, 1.7) for i in range(6)]
    for v in visible:
        for h in hidden:
            axes.plot([v[0], h[0]], [v[1], h[1]], color="#B0B0B0", linewidth=1, linestyle="-", zorder=1)
    for points, colour in ((hidden, COLOURS["mlp"]), (visible, COLOURS["embedding"])):
        for point in points:
            axes.add_patch(Circle(point, 0.21, facecolor=colour, edgecolor=GREY, zorder=3))
    axes.text(2.35, 3.93, "hidden units h (H,), biases c", ha="center", va="bottom", fontsize=SMALL)
    axes.text(2.35, 1.33, "visible units v (V,), biases b", ha="center", va="top", fontsize=SMALL)
    axes.text(4.25, 2.62, "W (H, V)", fontsize=SMALL, color=GREY, ha="left", va="center")
    axes.text(2.35, 0.72, r"$E(v, h) = -b^\top v - c^\top h - h^\top W v$", ha="center", fontsize=14)
    axes.text(2.35, 0.28, r"$p(v, h) = e^{-E(v, h)} / Z$", ha="center", fontsize=14)
    axes.text(8.7, 4.35, "Contrastive divergence, CD-k", ha="center", fontsize=14, weight="bold")
    xs, up, down = (6.0, 8.25, 11.0), 3.3, 1.7
    names = (("$v_0$: data", "$p(h\\,|\\,v_0)$"), ("$v_1$", "$p(h\\,|\\,v_1)$"), ("$v_k$: model", "$p(h\\,|\\,v_k)$"))
    for x, (below, above), last in zip(xs, names, (False, False, True), strict=True):
        box(axes, x, down, below, COLOURS["embedding"], width=1.45, height=0.5, fontsize=13, **EDGED)
        box(axes, x, up, above, COLOURS["mlp"], width=1.45, height=0.5, fontsize=13, **EDGED)
        arrow(axes, (x, down + 0.25), (x, up - 0.25), width=1.6, shrinkA=0, shrinkB=0)
        axes.text(x - 0.1, 2.5, r"$\sigma(c + W v)$", fontsize=SMALL, ha="right", va="center", color=GREY)
        if not last:
            arrow(axes, (x + 0.72, up - 0.1), (x + (1.5 if x == xs[0] else 1.1), down + 0.27), width=1.6)
    axes.text(7.1, 2.25, "draw h,\ndraw v", fontsize=SMALL, ha="right", va="center", color=GREY)
    axes.text(9.63, 1.7, "…  k steps  …", ha="center", va="center", color=GREY)
    axes.text(
        6.0, 1.05, "positive phase:\n$\\langle h v^\\top\\rangle$ with the data", ha="center", va="center", color=HERO
    )
    axes.text(
        10.95,
        1.05,
        "negative phase:\n$\\langle h v^\\top\\rangle$ after k steps",
        ha="center",
        va="center",
        color=OTHER,
    )
    axes.text(8.25, 0.35, r"$\Delta W = \eta\,(\langle h v^\top\rangle_{data} - \langle h v^\top\rangle_{k\ steps})$",
              ha="center", fontsize=14)  # fmt: skip
    return fig, (
        "Left: a restricted Boltzmann machine. Every hidden unit is connected with every visible unit by the weights W "
        "of shape (H, V), and no unit with one of its own layer. Below stand its energy and the probability "
        "exp(-E) / Z. Right: contrastive divergence. The data v_0 give the probabilities of the hidden units; hidden "
        "units are drawn, then visible ones, and so on for k Gibbs steps up to v_k. The weights change by the learning "
        "rate times the difference of two mean products of h and v: with the data, and after k steps."
    )


def family() -> tuple[Figure, str]:
    """Every architecture of the course as a change of another one."""
    fig, axes = sheet(12.0, 5.5)
    at = {one.name: (CELL[0] * one.column + ROOM[0] / 2 + 0.06, 5.5 - CELL[1] * one.row - ROOM[1] / 2 - 0.1)
          for one in FAMILY}  # fmt: skip
    for one in FAMILY:
        x, y = at[one.name]
        if one.parent:
            link(axes, at[one.parent], (x, y))
        frame = (x - ROOM[0] / 2, y - ROOM[1] / 2)
        shape = FancyBboxPatch(frame, *ROOM, boxstyle="round,pad=0,rounding_size=0.1")
        shape.set(facecolor=KINDS[one.kind][1], edgecolor=GREY, linewidth=1, zorder=3)
        axes.add_patch(shape)
        axes.text(x, y + 0.22, one.name, ha="center", va="center", fontsize=12, weight="bold", zorder=4)
        axes.text(x, y - 0.12, one.change, ha="center", va="center", fontsize=10.5, linespacing=1.05, zorder=4)
    handles = [Patch(facecolor=colour, edgecolor=GREY, label=name) for name, colour in KINDS.values()]
    left, top = at["Transformer"][0] - ROOM[0] / 2, at["LSTM, GRU"][1] + ROOM[1] / 2
    words = "Each box: what it changes\nin the box before the arrow"
    axes.text(left, at["DBN"][1], words, fontsize=11.5, va="center", ha="left")
    axes.legend(
        handles=handles,
        ncols=2,
        loc="upper left",
        bbox_to_anchor=((left - 0.08) / 12, top / 5.5),
        fontsize=11.5,
        handlelength=1.0,
        handletextpad=0.4,
        columnspacing=0.8,
        labelspacing=0.25,
        frameon=False,
        borderpad=0,
    )
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
