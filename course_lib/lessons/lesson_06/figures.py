"""The figures of lesson 06: the place of the norm, attention maps, gradients, costs, and one change at a time."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, arrow, bare, box, prediction
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

LOOK, THINK, PLAIN = PALETTE["orange"], PALETTE["green"], PALETTE["sky"]

BLOCKS = {  # from bottom to top: what lies on the side path, and what on the residual one
    "post-norm (2017)": (("sublayer", "side"), ("+", "main"), ("norm", "main")),
    "pre-norm (from 2019)": (("norm", "side"), ("sublayer", "side"), ("+", "main")),
}


def two_norms() -> tuple[Figure, str]:
    """One sublayer of a block, with the norm after the addition or before the sublayer."""
    fig, panels = figure(7.5, 5.2, columns=2)
    for axes, (title, parts) in zip(panels, BLOCKS.items(), strict=True):
        _sublayer(axes, title, parts)
    return fig, (
        "Two drawings of one sublayer, each with a thick vertical arrow for the residual path of x. Post-norm: the "
        "sublayer lies on a side path, its result is added, and then the sum passes through a norm that lies on the "
        "residual path itself. Pre-norm: norm and sublayer both lie on the side path, and nothing but the addition "
        "lies on the residual path."
    )


def _sublayer(axes: Axes, title: str, parts: Sequence[tuple[str, str]]) -> None:
    axes.set_title(title)
    bare(axes, (-0.2, 4.2), (-0.75, 6.9))
    main, side, colours = 1.0, 2.8, {"sublayer": LOOK, "norm": PALETTE["yellow"], "+": "white"}
    heights = np.linspace(1.5, 5.1, len(parts))
    arrow(axes, (main, 0.0), (main, 6.6), HERO, width=5)
    axes.text(main, -0.6, "x", ha="center", fontsize=13)
    positions = []
    for y, (name, path) in zip(heights, parts, strict=True):
        x = side if path == "side" else main
        box(axes, x, y, name, colours[name], width=0.5 if name == "+" else 1.5, ink="black", edge=GREY)
        positions.append((x, y))
    on_side = [y for x, y in positions if x == side]
    plus = next(y for (name, _), y in zip(parts, heights, strict=True) if name == "+")
    arrow(axes, (main, 0.55), (side, on_side[0] - 0.33), width=2.0)
    for low, high in zip(on_side, on_side[1:], strict=False):
        arrow(axes, (side, low + 0.33), (side, high - 0.33), width=2.0)
    arrow(axes, (side, on_side[-1] + 0.33), (main + 0.35, plus), width=2.0)


def race(
    rows: Mapping[str, Sequence[float]], seconds: Mapping[str, float], yours: float, predicted: float | None = None
) -> Figure:
    """BLEU of some translators, a dot for each seed, with the computing time that their training took."""
    fig, axes = figure(11, 4.4)
    for y, (name, values) in enumerate(rows.items()):
        colour = OTHER if name.startswith("GRU") else HERO
        axes.plot(values, [y] * len(values), "o", color=colour, markersize=11, alpha=0.8)
        axes.text(
            0.99,
            y,
            f"{seconds[name]:.0f} s",
            va="center",
            ha="right",
            color=GREY,
            transform=axes.get_yaxis_transform(),
        )
    axes.plot([yours], [list(rows).index("Transformer, 1,000 steps")], "D", color=HERO, markersize=13)
    axes.annotate("yours", (yours, 2), (0, -24), textcoords="offset points", color=HERO, weight="bold", ha="center")
    prediction(axes, predicted, 2, (0, 13))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set(xlabel="BLEU on test sentences; at the right the training time (one core)")
    lowest = min(map(min, rows.values()))
    left = min(lowest, yours, 100 if predicted is None else predicted) - 4
    axes.set_xlim(left, 100 + 0.18 * (100 - left))
    axes.set_xticks([tick for tick in axes.get_xticks() if left <= tick <= 100])
    axes.set_ylim(len(rows) - 0.5, -0.6)
    axes.set_title("The same steps, the same time, and more time")
    return fig


def looks(
    maps: Float[Tensor, "L H T_q T_k"],
    french: Sequence[str],
    english: Sequence[str],
    links: set[tuple[int, int]],
    errors: Sequence[Sequence[float]],
) -> Figure:
    """The cross-attention of every head, the gold links as rings, the alignment error rate over all tests as title.

    The head with the lowest rate is drawn large, too, with the words.
    """
    layers, heads = maps.shape[:2]
    fig = figure(12.2, 5.9)[0]
    fig.clear()
    cells = fig.add_gridspec(layers, heads + 1, width_ratios=(2.3, *[1] * heads))
    panels = {place: fig.add_subplot(cells[place[0], place[1] + 1]) for place in np.ndindex(layers, heads)}
    best = min(panels, key=lambda place: errors[place[0]][place[1]])
    for (layer, head), axes in panels.items():
        _map(axes, maps[layer, head], links, ring=5)
        colour = HERO if (layer, head) == best else "black"
        axes.set_title(f"head {head + 1}\nerror {errors[layer][head]:.2f}", fontsize=12, weight="normal", color=colour)
        axes.set(xticks=[], yticks=[], ylabel="" if head else f"layer {layer + 1}")
    axes = fig.add_subplot(cells[:, 0])
    _map(axes, maps[best], links, ring=12)
    axes.set_title(f"Layer {best[0] + 1}, head {best[1] + 1}", color=HERO)
    axes.set_xticks(range(len(english)), english, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(french)), french)
    return fig


def _map(axes: Axes, weights: Float[Tensor, "T_q T_k"], links: set[tuple[int, int]], *, ring: float) -> None:
    axes.imshow(weights.numpy(), vmin=0, vmax=1, cmap=SEQUENTIAL, aspect="auto")
    axes.plot(*zip(*links, strict=True), "o", mfc="none", mec=OTHER, mew=0.8 + ring / 12, markersize=ring)
    axes.grid(visible=False)


def norms(depths: Sequence[int], losses: Mapping[str, Float[np.ndarray, "seeds depths"]], unigram: float) -> Figure:
    """The loss against depth: post-norm without and with warm-up, pre-norm; a thin line for each seed."""
    fig, axes = figure(9.5, 4.8)
    positions = np.arange(len(depths))
    axes.plot([-0.2, positions[-1]], [unigram, unigram], color=GREY, linestyle=":", linewidth=2)
    axes.text(-0.15, unigram + 0.08, "knows only the frequencies of the words", color=GREY)
    heights = [float(values[:, -1].mean()) for values in losses.values()]
    heights[1] = min(heights[1], heights[0] - 0.4)  # the names must not meet
    for (name, values), colour, height in zip(losses.items(), (OTHER, LOOK, HERO), heights, strict=True):
        axes.fill_between(positions, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25, linewidth=0)
        axes.plot(positions, values.mean(axis=0), color=colour, linestyle="-", marker="o", linewidth=3)
        axes.text(positions[-1] + 0.08, height, name, color=colour, va="center")
    axes.set_xticks(positions, [str(depth) for depth in depths])
    axes.set(xlabel="blocks in the encoder, and in the decoder", ylabel="loss on test sentences, nats per word")
    axes.set_xlim(-0.2, positions[-1] + 1.5)
    axes.set_ylim(0, unigram + 0.6)
    axes.set_title("Loss after 200 steps, at the best learning rate of each")
    return fig


def gradients(
    depths: Sequence[int],
    norms: Mapping[str, Mapping[str, Sequence[Sequence[float]]]],
    sizes: Mapping[str, Sequence[float]],
) -> Figure:
    """Before any training: gradients in the last and the first block against depth, and the size of the vectors."""
    fig, panels = figure(12.2, 5.0, columns=3)
    colours = {"post-norm": OTHER, "pre-norm": HERO}
    for axes, (block, rows_of) in zip(panels, norms.items(), strict=False):
        for name, rows in rows_of.items():
            values = np.array(rows)
            axes.plot(depths, values.T, color=colours[name], linestyle="-", marker="o", alpha=0.6)
            height = values[:, -1].mean()
            axes.text(depths[-1] * 1.06, height, name, color=colours[name], va="center")
        axes.set(xlabel="blocks on each side", title=f"{block.capitalize()} decoder MLP")
        axes.set(xlim=(0, depths[-1] * 1.75), ylim=(0, 1))
        axes.set_xticks(depths)
    panels[0].set_ylabel("norm of the gradient, untrained")
    for name, values in sizes.items():
        panels[2].plot(range(1, len(values) + 1), values, color=colours[name], linestyle="-", marker="o")
        panels[2].text(len(values) * 1.06, values[-1], name, color=colours[name], va="center")
    panels[2].set(xlabel="block of the encoder", ylabel="root mean square of x", title="Output of each block")
    panels[2].set(xlim=(0, len(sizes["pre-norm"]) * 1.75), ylim=(0, None))
    panels[2].set_xticks(range(2, len(sizes["pre-norm"]) + 1, 2))
    return fig


def tricks(rows: Mapping[str, Sequence[float]], predicted: float | None = None) -> Figure:
    """BLEU with one thing changed at a time, a dot for each seed, beside the recipe of the paper."""
    fig, axes = figure(10.5, 5.4)
    base = rows["baseline"]
    axes.axvspan(min(base), max(base), color=HERO, alpha=0.15, linewidth=0)
    for y, (name, values) in enumerate(rows.items()):
        colour = HERO if name == "baseline" else THINK if min(values) > max(base) else OTHER
        colour = "black" if colour == OTHER and max(values) >= min(base) else colour
        axes.plot(values, [y] * len(values), "o", color=colour, markersize=11, alpha=0.8)
    y = list(rows).index("no positions at all")
    prediction(axes, predicted, y, (0, 13))
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set(xlabel="BLEU on test sentences after 1,000 steps", xlim=(-3, 103))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title("One change at a time; the band is the baseline")
    return fig


def cache(
    lengths: Sequence[int], operations: Mapping[str, Sequence[float]], seconds: Mapping[str, Sequence[float]]
) -> Figure:
    """What the next word costs after so many, counted and by the clock, with a cache and without."""
    fig, panels = figure(12, 4.4, columns=2)
    for axes, curves, scale in ((panels[0], operations, 1e-6), (panels[1], seconds, 1e3)):
        for (name, values), colour in zip(curves.items(), (OTHER, HERO), strict=True):
            axes.plot(lengths, np.array(values) * scale, color=colour, linestyle="-", marker="o")
            axes.text(lengths[-1] * 1.06, values[-1] * scale, name, color=colour, va="center")
        axes.set(xlabel="words written so far", xlim=(0, lengths[-1] * 1.4), ylim=(0, None))
    panels[0].set(title="Operations for the next word", ylabel="millions")
    panels[1].set(title="Its time on this machine", ylabel="milliseconds")
    return fig
