"""The figures of lesson 05: what attention is, where it looks, what it needs and what it costs. Data in, Figure out."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, bare, box, label, prediction
from course_lib.viz.style import DIVERGING, GREY, PALETTE, SEQUENTIAL, figure


def bottleneck(source: Sequence[str], target: Sequence[str], weights: Float[np.ndarray, "T_q T_k"]) -> Figure:
    """Two encoder-decoders side by side: one vector for the whole sentence, or a look at every word.

    On the right the arrows into each target word are as strong as its row of `weights`.
    """
    fig, (left, right) = figure(12.2, 4.8, columns=2)
    for axes, title in ((left, "Everything through one vector c"), (right, "Each word attends to all states")):
        axes.set_title(title)
        bare(axes, (0, 10.1), (-0.6, 4.3))
        below = _words(axes, source, 0.2, PALETTE["sky"], "the encoder reads")
        above = _words(axes, target, 3.4, PALETTE["orange"], "the decoder writes")
    box(left, 5, 1.85, "c", OTHER, width=1.3)
    for x in below:
        _arrow(left, (x, 0.5), (5, 1.6))
    for x in above:
        _arrow(left, (5, 2.15), (x, 3.1))
    for j, i in zip(*np.nonzero(weights > 0.03), strict=True):
        _arrow(right, (below[i], 0.5), (above[j], 3.1), strength=float(weights[j, i]))
    return fig


def mechanism(
    words: Sequence[str],
    query: Float[Tensor, " d"],
    keys: Float[Tensor, "T d"],
    scores: Float[Tensor, " T"],
    weights: Float[Tensor, " T"],
    values: Float[Tensor, "T d_v"],
) -> Figure:
    """One query through attention, with each number on the page: keys, scores, weights, values and their average.

    The query's line passes every key: a dot where both are multiplied, a cross where a weight meets its value.
    """
    fig, axes = figure(12, 5.0)
    bare(axes, (0, 12.6), (-0.1, 5.2))
    columns = {"word": 1.0, "key k": 2.9, "score q·k / √d": 5.4, "weight a": 7.4, "value v": 9.3}
    for name, x in columns.items():
        axes.text(x, 4.95, name, ha="center", color=GREY)
    x_word, x_key, x_score, x_weight, x_value = columns.values()
    x_query, x_times = 4.3, (x_weight + x_value) / 2
    axes.plot([x_query] * 2, [0.72, 3.9], color=PALETTE["orange"], linestyle="-", linewidth=4, zorder=1)
    for row, word in enumerate(words):
        y = 3.9 - row
        box(axes, x_word, y, word, PALETTE["sky"], width=1.7, ink="black")
        axes.text(x_key, y, _vector(keys[row]), ha="center", va="center")
        axes.text(x_score, y, f"{scores[row]:.0f}", ha="center", va="center")
        axes.barh(y, 1.3 * weights[row], left=x_weight - 0.65, height=0.5, color=HERO)
        axes.text(x_weight, y + 0.36, f"{weights[row]:.3f}", ha="center", va="center")
        axes.text(x_value, y, _vector(values[row]), ha="center", va="center")
        axes.plot([x_key + 0.75, x_query], [y, y], color=HERO, linestyle="-", linewidth=1.9, alpha=0.4, zorder=0)
        axes.plot([x_query], [y], "o", color=PALETTE["orange"], markersize=17, zorder=2)
        axes.text(x_query, y, "·", ha="center", va="center", fontsize=15, weight="bold", zorder=3)
        _arrow(axes, (x_query + 0.22, y), (x_score - 0.3, y))
        _arrow(axes, (x_score + 0.3, y), (x_weight - 0.75, y))
        link = {"color": HERO, "linestyle": "-", "linewidth": 1 + 3 * float(weights[row]), "alpha": 0.4, "zorder": 0}
        axes.plot([x_weight - 0.65 + 1.3 * float(weights[row]), x_times - 0.2], [y, y], **link)
        axes.plot([x_times + 0.2, x_value - 0.5], [y, y], **link)
        axes.text(x_times, y, "×", ha="center", va="center", fontsize=14)
        _arrow(axes, (x_value + 0.55, y), (10.75, 2.9), strength=float(weights[row]))
    box(axes, x_query, 0.45, f"query q = {_vector(query)}", PALETTE["orange"], width=3.2, ink="black")
    axes.text(x_query + 1.85, 0.45, "one dot product with each key", color=GREY, va="center")
    axes.text(11.65, 3.3, "output", ha="center", color=GREY)
    axes.text(11.65, 2.85, _vector(weights @ values, places=2), ha="center", va="center", weight="bold")
    return fig


def decoders() -> Figure:
    """One step of Bahdanau's decoder beside one of Luong's: who waits for whom."""
    fig, panels = figure(12, 4.8, columns=2)
    titles = ("Bahdanau: attend, then update", "Luong: update, then attend")
    for axes, title, looks_first in zip(panels, titles, (True, False), strict=True):
        axes.set_title(title)
        bare(axes, (0.1, 6.7), (-0.5, 4.2))
        for step, x in enumerate((0.9, 3.4, 5.9)):
            name = ("s_{i-1}", "s_i", "s_{i+1}")[step]
            box(axes, x, 1.0, f"${name}$", PALETTE["green"])
            if step < 2:
                _arrow(axes, (x + 0.55, 1.0), (x + 1.95, 1.0), colour=PALETTE["green"], strength=0.6)
            look = x + 1.25 if looks_first else x
            if looks_first and step == 2:
                continue
            box(axes, look, 3.0, "attend", HERO, width=1.3)
            _arrow(axes, (x, 1.35), (look - 0.1, 2.65), strength=0.6)
            if looks_first:
                _arrow(axes, (look + 0.15, 2.65), (x + 2.4, 1.4), colour=OTHER, strength=0.6)
            else:
                _arrow(axes, (look, 3.35), (look, 4.0), colour=OTHER, strength=0.6)
    panels[0].text(3.4, 0.2, "each state waits for\nthe context vector before it", ha="center", va="top")
    panels[1].text(3.4, 0.2, "no context vector enters\na state: all in one call", ha="center", va="top")
    return fig


def lengths(
    labels: Sequence[str],
    fixed: Float[np.ndarray, "seeds buckets"],
    attention: Float[np.ndarray, "seeds buckets"],
    yours: Sequence[float],
    predicted: float | None = None,
) -> Figure:
    """BLEU against the length of the sentence: seeds as bands, your run as a line, your prediction as a star."""
    fig, axes = figure(9.5, 4.8)
    places = np.arange(len(labels))
    for scores, colour, text in ((fixed, OTHER, "one fixed vector"), (attention, HERO, "attention")):
        axes.fill_between(places, scores.min(axis=0), scores.max(axis=0), color=colour, alpha=0.25, linewidth=0)
        axes.plot(places, scores.mean(axis=0), color=colour, linestyle="-", linewidth=2.5 if colour == OTHER else 1.5)
        axes.text(places[-1] + 0.08, scores.mean(axis=0)[-1], text, color=colour, va="center")
    axes.plot(places, yours, color=HERO, linestyle="-", linewidth=4)
    axes.text(places[-1] / 2, yours[len(yours) // 2] - 7, "yours", color=HERO, fontsize=13, weight="bold")
    prediction(axes, float(places[-1]), predicted, (-12, 0))
    axes.set_xticks(places, labels)
    axes.set(xlabel="English words in the sentence", ylabel="BLEU on test sentences", ylim=(0, 103))
    axes.set_xlim(-0.2, places[-1] + 1.15)
    axes.set_title("The fixed vector fails as the sentence grows")
    return fig


def root(
    widths: Sequence[int],
    gradient: Mapping[bool, Sequence[tuple[float, float, float]]],
    matrix: Mapping[bool, Sequence[Float[np.ndarray, " batches"]]],
    bleu: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """With and without the root (True, False): gradients at a query and at W by width, and BLEU of real trainings."""
    fig, (left, middle, right) = figure(12.2, 6.0, columns=3)
    names = {True: ("divided", HERO), False: ("not divided", OTHER)}
    offsets = {left: {True: (-46, 12), False: (-62, -6)}, middle: {True: (-1, -30), False: (-1, 12)}}
    batches = {divided: [(min(row), np.median(row), max(row)) for row in rows] for divided, rows in matrix.items()}
    for axes, norms in ((left, gradient), (middle, batches)):
        for divided, (text, colour) in names.items():
            low, median, high = np.array(norms[divided]).T
            axes.fill_between(widths, np.maximum(low, 1e-6), high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(widths, median, color=colour, linestyle="-", marker="o")
            label(axes, widths[-1], median[-1], text, colour, offsets[axes][divided])
        axes.axvline(192, color=GREY, linestyle=":", linewidth=1.5)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(widths, [str(width) for width in widths])
        axes.set(xlabel="width $d_k$")
    left.text(192, 2e-6, "192, as \nour keys ", color=GREY, ha="right")
    left.set(title="At one query", ylabel="norm of the gradient: median, 10 to 90 %", ylim=(1e-6, 30))
    middle.set(title="At $W$, 400 queries", ylabel="norm of the gradient: median and range", ylim=(0.01, 100))
    for y, (name, scores) in enumerate(bleu.items()):
        colour = {"divided": HERO, "not divided": OTHER}.get(name, GREY)
        right.plot(scores, [y] * len(scores), "o", color=colour)
        right.text(61, y - 0.2, name, color=colour)
    right.set(title="Trained translators", xlim=(60, 102), xlabel="BLEU on test, three seeds")
    right.set(ylim=(len(bleu) - 0.3, -0.6), yticks=[])
    star = None if predicted is None else max(predicted, 61)
    prediction(right, star, len(bleu) - 1, (-1 if star and star > 80 else 1, -12))
    return fig


def positions(codes: Float[Tensor, "N D"]) -> Figure:
    """The codes themselves, and the cosine similarity of each two positions."""
    codes = np.asarray(codes)
    fig, (left, right) = figure(12, 4.4, columns=2)
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    drawn = left.imshow(codes, aspect="auto", cmap=DIVERGING, vmin=-1, vmax=1)
    fig.colorbar(drawn, ax=left, ticks=(-1, 0, 1))
    drawn = right.imshow(unit @ unit.T, aspect="auto", cmap=SEQUENTIAL, vmax=1)
    fig.colorbar(drawn, ax=right)
    left.set(title="Fast hands left, slow hands right", xlabel="number in the code", ylabel="position")
    right.set(title="Only the distance counts", xlabel="position", ylabel="position")
    for axes in (left, right):
        axes.grid(visible=False)
    return fig


def heads(
    words: Sequence[str],
    maps: Float[Tensor, "2 T T"],
    wrong: Mapping[int, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """How two heads share a width, where the two trained ones look, and the share of words wrong (%) by heads."""
    fig = figure(12.2, 5.8)[0]
    fig.clear()
    ratios = {"width_ratios": (1.2, 1, 1), "height_ratios": (1.9, 1)}
    parts, *panels, mistakes = fig.subplot_mosaic([["parts", 1, 2], ["mistakes", 1, 2]], **ratios).values()
    _two_heads(parts)
    for axes, weights, name in zip(panels, maps, ("Head 1", "Head 2"), strict=True):
        axes.imshow(weights.numpy(), vmin=0, vmax=1, cmap=SEQUENTIAL)
        side = "left" if weights.diagonal(-1).sum() > weights.diagonal(1).sum() else "right"
        axes.set_title(f"{name}: {side}")
        axes.set_xticks(range(len(words)), words, rotation=60, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(words)), words if axes is panels[0] else [])
        axes.grid(visible=False)
        axes.set_anchor("N")
    for number, colour, name in ((1, OTHER, "1 head"), (2, HERO, "2 heads")):
        mistakes.plot(wrong[number], [number] * len(wrong[number]), "o", color=colour)
        mistakes.text(0, number - 0.2, name, color=colour)
    mistakes.set(title="Neighbours wrong (%)", xlim=(-0.3, None), ylim=(2.3, 0.3), yticks=[])
    prediction(mistakes, predicted, 2)
    return fig


def cost(lengths: Sequence[int], curves: Mapping[str, Sequence[float]], d: int, crossing: float) -> Figure:
    """What reaches what in one layer, and the counted work against the length, with the places where lines cross."""
    fig = figure(12.2, 5.8)[0]
    fig.clear()
    grid = fig.add_gridspec(2, 3, width_ratios=(1, 1, 2.8))
    titles = ("Convolution", "Fully connected", "Self-attention", "Local attention")
    for position, (title, (image, colours)) in enumerate(zip(titles, _patterns(), strict=True)):
        axes = fig.add_subplot(grid[position // 2, position % 2])
        axes.imshow(image, cmap=colours, vmin=0, vmax=1)
        axes.set_title(title, fontsize=12, weight="normal")
        axes.set_xticks([])
        axes.set_yticks([])
    axes = fig.add_subplot(grid[:, 2])
    for (name, values), colour in zip(curves.items(), (HERO, OTHER, PALETTE["purple"], PALETTE["green"]), strict=True):
        axes.plot(lengths, values, color=colour, linestyle="-", marker="o")
        axes.text(lengths[-1] * 1.15, values[-1], name, color=colour, va="center")
    for n, text in ((d, "n = d"), (crossing, "counted")):
        axes.axvline(n, color=GREY, linestyle=":", linewidth=1.5)
        axes.text(n, 0.04, f" {text}", color=GREY, transform=axes.get_xaxis_transform())
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.set_xlim(right=lengths[-1] * 7)
    axes.set(title="Twice the length, four times the work", xlabel="length n", ylabel="operations, forward")
    return fig


def _patterns(length: int = 10, window: int = 1) -> list[tuple[np.ndarray, str]]:
    """Which input (column) reaches which output (row); equal colours are one shared weight."""
    offset = np.arange(length)[None, :] - np.arange(length)[:, None]
    near = np.abs(offset) <= window
    own = np.random.default_rng(0).permutation(length * length).reshape(length, length) / length**2
    content = np.random.default_rng(1).dirichlet(np.full(length, 0.4), size=length)
    local = np.where(near, content, 0)
    shared = np.where(near, (offset + window + 0.3) / (2 * window + 1), np.nan)
    rows = local / local.sum(axis=1, keepdims=True)
    return [(shared, DIVERGING), (own, DIVERGING), (content, SEQUENTIAL), (rows, SEQUENTIAL)]


def _two_heads(axes: Axes) -> None:
    axes.set_title("Two heads")
    bare(axes, (0, 6), (0, 5.6))
    for x, colour, name in ((1.4, HERO, "head 1"), (4.6, PALETTE["orange"], "head 2")):
        box(axes, x, 2.8, f"{name}\nown softmax", colour, width=2.8, height=1.4)
        _arrow(axes, (2.1 + 0.3 * x, 0.85), (x, 2.1), strength=0.6)
        _arrow(axes, (x, 3.5), (3, 4.5), strength=0.6)
    axes.text(3, 1.65, "D/2 each", ha="center", va="center", color=GREY)
    box(axes, 3, 0.4, "each word: D wide", PALETTE["sky"], width=4.6, height=0.8, ink="black")
    box(axes, 3, 4.95, "side by side, then $W^O$", PALETTE["green"], width=5.2, height=0.8)


def _vector(numbers: Float[Tensor, " d"], places: int = 0) -> str:
    return "(" + ", ".join(f"{float(number):.{places}f}" for number in numbers) + ")"


def _words(axes: Axes, words: Sequence[str], y: float, colour: str, label: str) -> list[float]:
    """Words as boxes in a row from 0 to 10; where their middles are."""
    widths = np.array([len(word) + 1.4 for word in words])
    widths *= (10 - 0.1 * len(words)) / widths.sum()
    middles = np.cumsum(widths + 0.1) - widths / 2
    for word, x, width in zip(words, middles, widths, strict=True):
        box(axes, x, y, word, colour, width=width, ink="black")
    axes.text(0.1, y + (-0.6 if y < 1 else 0.6), label, color=GREY, va="center")
    return middles.tolist()


def _arrow(axes, start, end, *, colour: str = HERO, strength: float = 0.3) -> None:
    look = {"alpha": 0.15 + 0.85 * strength, "linewidth": 1 + 3 * strength, "color": colour}
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, **look))
