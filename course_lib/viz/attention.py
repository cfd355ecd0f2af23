"""Figures of lesson 05: what attention is, where it looks and what it costs. Data in, Figure out."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import Tensor

from course_lib.functional.metrics import LengthBucket
from course_lib.viz.style import CYCLE, DIVERGING, GREY, LINE_STYLES, PALETTE, SEQUENTIAL, figure

MARKERS = ("o", "s", "^", "D", "v", "P")


def bottleneck_diagram(source: Sequence[str], target: Sequence[str], weights: Float[np.ndarray, "T_q T_k"]) -> Figure:
    """Two encoder-decoders side by side: one vector for the whole sentence, or a look at every word.

    On the right the arrows into each target word are as strong as its row of `weights`.
    """
    fig, (left, right) = figure(12, 5.2, columns=2)
    for axes, title in ((left, "One fixed vector"), (right, "Attention")):
        axes.set_title(title)
        _blank(axes, (-0.55, max(len(source), len(target)) - 0.45), (-0.6, 4.3))
        _boxes(axes, source, 0.2, PALETTE["sky"], "encoder reads")
        _boxes(axes, target, 3.4, PALETTE["orange"], "decoder writes")
    middle = (len(source) - 1) / 2
    for i in range(len(source)):
        _arrow(left, (i, 0.5), (middle, 1.6), alpha=0.7)
    left.add_patch(FancyBboxPatch((middle - 0.5, 1.6), 1.0, 0.5, boxstyle="round,pad=0.05", fc=PALETTE["vermilion"]))
    left.text(middle, 1.85, "c", ha="center", va="center", color="white", fontsize=16, style="italic")
    left.text(middle + 0.8, 1.85, "everything must\nfit in here", va="center", fontsize=13, color=GREY)
    for j in range(len(target)):
        _arrow(left, (middle, 2.15), (j, 3.1), alpha=0.7)
        for i in range(len(source)):
            if weights[j, i] > 0.03:
                _arrow(
                    right,
                    (i, 0.5),
                    (j, 3.1),
                    alpha=float(0.15 + 0.85 * weights[j, i]),
                    width=4 * weights[j, i],
                )
    return fig


def word_links(source: Sequence[str], target: Sequence[str], links: Sequence[tuple[int, int]]) -> Figure:
    """A sentence above its translation, each gold link a line; lines that cross another are drawn strong.

    In long sentences every second word stands further out, so that neighbours have room.
    """
    links = sorted(links)
    longest = max(len(source), len(target))
    outward = 0.32 if longest > 8 else 0.0
    crossing = {a for a in links for b in links if (a[0] - b[0]) * (a[1] - b[1]) < 0}
    fig, axes = figure(min(12, 1.35 * longest), 3.4 + 2 * outward)
    _blank(axes, (-0.7, longest - 0.3), (-0.25 - outward, 2.25 + outward))
    for i, j in links:
        strong = (i, j) in crossing
        axes.plot(
            [i, j],
            [1.75 + outward * (i % 2), 0.3 - outward * (j % 2)],
            color=PALETTE["vermilion"] if strong else GREY,
            linestyle="-" if strong else ":",
            linewidth=2.5 if strong else 1.5,
        )
    for words, y, away in ((source, 2.0, outward), (target, 0.05, -outward)):
        for x, word in enumerate(words):
            axes.text(x, y + away * (x % 2), word, ha="center", va="center", fontsize=14)
    return fig


def alignment_map(
    weights: Float[np.ndarray, "T_q T_k"] | Float[Tensor, "T_q T_k"],
    source: Sequence[str],
    target: Sequence[str],
    *,
    gold: Sequence[tuple[int, int]] | None = None,
    title: str = "",
) -> Figure:
    """Attention weights of each target word (row) over the source words (columns); gold links as rings."""
    weights = np.asarray(weights)
    fig, axes = figure(2.4 + 0.62 * len(source), 1.5 + 0.32 * len(target))
    _weight_image(axes, weights, source, target)
    axes.set(xlabel="source word", ylabel="word being written", title=title)
    if gold is not None:
        columns, rows = zip(*sorted(gold), strict=True)
        axes.plot(columns, rows, "o", mfc="none", mec=PALETTE["vermilion"], mew=2.2, ms=13, label="gold alignment")
        fig.legend(loc="outside lower right")
    fig.colorbar(axes.images[0], ax=axes, label="attention weight", shrink=0.8)
    return fig


def head_maps(weights: Float[Tensor, "H T_q T_k"], words: Sequence[str], titles: Sequence[str]) -> Figure:
    """The weights of several heads over one sentence, side by side."""
    fig, panels = figure(4.6 * len(weights) + 0.8, 4.9, columns=len(weights), squeeze=False)
    for axes, head, title in zip(panels[0], np.asarray(weights), titles, strict=True):
        _weight_image(axes, head, words, words)
        axes.set(title=title, xlabel="looks at")
    panels[0][0].set_ylabel("word")
    fig.colorbar(panels[0][-1].images[0], ax=list(panels[0]), label="attention weight", shrink=0.8)
    return fig


def scores_by_length(buckets: Mapping[str, Sequence[Sequence[LengthBucket]]]) -> Figure:
    """BLEU against sentence length for each model: a line through the mean of its seeds, a band from worst to best."""
    fig, axes = figure(9, 4.8)
    for i, (label, runs) in enumerate(buckets.items()):
        scores = np.array([[bucket.bleu.score for bucket in run] for run in runs])  # (seeds, buckets)
        places = np.arange(scores.shape[1])
        axes.plot(places, scores.mean(axis=0), marker=MARKERS[i], label=label)
        axes.fill_between(places, scores.min(axis=0), scores.max(axis=0), color=CYCLE[i], alpha=0.25, linewidth=0)
    first = next(iter(buckets.values()))[0]
    axes.set_xticks(places, [f"{bucket.low:g}-{bucket.high - 1:g}\n({bucket.count})" for bucket in first])
    axes.set(xlabel="English words in the sentence (sentences)", ylabel="BLEU on test", ylim=(0, 102))
    axes.legend()
    return fig


def training_curves(losses: Mapping[str, Sequence[np.ndarray]], seconds: Mapping[str, Sequence[np.ndarray]]) -> Figure:
    """Training loss, smoothed over 20 steps, against CPU seconds: one thin line a run, one colour a model."""
    fig, axes = figure(9, 4.2)
    for i, (label, runs) in enumerate(losses.items()):
        for k, (loss, clock) in enumerate(zip(runs, seconds[label], strict=True)):
            smooth = np.convolve(loss, np.ones(20) / 20, mode="valid")
            axes.plot(
                clock[19:], smooth, color=CYCLE[i], linestyle=LINE_STYLES[i], linewidth=1.6,
                label=label if k == 0 else None,
            )  # fmt: skip
    axes.set(xlabel="CPU seconds of training", ylabel="loss (nats per word)", ylim=(0, None))
    axes.legend()
    return fig


def saturation_curves(
    widths: Sequence[int],
    variance: Mapping[str, Sequence[float]],
    largest: Mapping[str, Sequence[float]],
    gradient: Mapping[str, Sequence[float]],
) -> Figure:
    """Against d_k, with and without the division: variance of q.k, largest weight and gradient through the softmax."""
    fig, panels = figure(12, 4.6, columns=3)
    for axes, curves, label, scale in (
        (panels[0], variance, "variance of the score", "log"),
        (panels[1], largest, "largest weight (mean)", "linear"),
        (panels[2], gradient, "gradient (median norm)", "log"),
    ):
        for i, (name, values) in enumerate(curves.items()):
            axes.plot(widths, values, marker=MARKERS[i], label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale(scale)
        axes.set(xlabel="d_k", title=label)
    panels[1].set_ylim(0, 1.02)
    panels[0].legend()
    return fig


def position_figure(codes: Float[Tensor, "N D"]) -> Figure:
    """The sinusoidal codes themselves, and the cosine similarity of each two positions."""
    codes = np.asarray(codes)
    fig, (left, right) = figure(12, 4.9, columns=2)
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    for axes, image, colours, limits in (
        (left, codes, DIVERGING, (-1, 1)),
        (right, unit @ unit.T, SEQUENTIAL, (None, 1)),
    ):
        drawn = axes.imshow(image, aspect="auto", cmap=colours, vmin=limits[0], vmax=limits[1])
        axes.grid(visible=False)
        fig.colorbar(drawn, ax=axes)
    left.set(title="PE(pos, i)", xlabel="dimension i", ylabel="position")
    right.set(title="Cosine similarity of two positions", xlabel="position", ylabel="position")
    return fig


def similarity_by_distance(codes: Float[Tensor, "N D"], starts: Sequence[int]) -> Figure:
    """Cosine similarity of position p with p + distance, for several p: the curves coincide."""
    codes = np.asarray(codes)
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    fig, axes = figure(9, 4.0)
    reach = len(codes) - max(starts)
    for i, start in enumerate(starts):
        axes.plot(range(reach), unit[start : start + reach] @ unit[start], label=f"from position {start}")
        axes.lines[-1].set_linewidth(6 - 2 * i)
    axes.set(xlabel="distance (positions)", ylabel="cosine similarity")
    axes.legend()
    return fig


def mixing_patterns(length: int = 10, window: int = 1) -> Figure:
    """Which input (column) reaches which output (row) in one layer; equal numbers and colours are one shared weight."""
    offset = np.arange(length)[None, :] - np.arange(length)[:, None]
    near = np.abs(offset) <= window
    own = np.random.default_rng(0).permutation(length * length).reshape(length, length) / length**2
    content = np.random.default_rng(1).dirichlet(np.full(length, 0.4), size=length)
    local = np.where(near, content, 0)
    fig, panels = figure(15, 5.6, columns=4)
    for axes, image, title, colours in (
        (
            panels[0],
            np.where(near, (offset + window + 0.3) / (2 * window + 1), np.nan),
            "Convolution",
            DIVERGING,
        ),
        (panels[1], own, "Fully connected", DIVERGING),
        (panels[2], content, "Self-attention", SEQUENTIAL),
        (panels[3], local / local.sum(axis=1, keepdims=True), "Local attention", SEQUENTIAL),
    ):
        axes.imshow(image, cmap=colours, vmin=0, vmax=1)
        axes.grid(visible=False)
        axes.set_title(title)
    panels[0].set_ylabel("output position")
    for axes, line in zip(
        panels,
        (
            "one learned weight per offset,\nthe same everywhere",
            "a learned weight for each pair,\nnothing shared",
            "a weighted average, weights\ncomputed from the content",
            "the same, between\nneighbours only",
        ),
        strict=True,
    ):
        axes.set_xlabel(f"input position\n\n{line}")
    fig.get_layout_engine().set(h_pad=0.2)  # inches; the two lines below the axes
    return fig


def cost_curves(
    lengths: Sequence[int],
    curves: Mapping[str, Mapping[str, Sequence[float]]],
    slopes: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Cost against sequence length on log axes: a panel a quantity, a line a layer, its fitted slope in the legend."""
    fig, panels = figure(12, 5.4, columns=len(curves), squeeze=False)
    for axes, (quantity, layers) in zip(panels[0], curves.items(), strict=True):
        for i, (layer, values) in enumerate(layers.items()):
            axes.plot(lengths, values, marker=MARKERS[i], label=f"{layer}: n^{slopes[quantity][layer]:.1f}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        lines = (fill(part, 24) for part in quantity.replace(" (", "\n(").splitlines())
        axes.set(xlabel="sequence length n", title="\n".join(lines))
        axes.set_ylim(top=30 * axes.get_ylim()[1])  # room for the legend above the curves
        axes.legend(loc="upper left")
    return fig


def heads_figure(accuracy: Mapping[str, Mapping[int, Sequence[float]]]) -> Figure:
    """Accuracy against the number of heads, for each task: the mean of the seeds, and each seed as a dot."""
    fig, axes = figure(8.5, 4.2)
    for i, (task, by_heads) in enumerate(accuracy.items()):
        heads = list(by_heads)
        axes.plot(heads, [100 * np.mean(by_heads[h]) for h in heads], marker=MARKERS[i], label=task)
        for h in heads:
            axes.plot([h] * len(by_heads[h]), 100 * np.array(by_heads[h]), ".", color=CYCLE[i], alpha=0.6)
            axes.annotate(
                f"{100 * np.mean(by_heads[h]):.1f}",
                (h, 100 * np.mean(by_heads[h])),
                (4, -18 - 16 * i),
                textcoords="offset points",
                fontsize=11,
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks(heads, [str(h) for h in heads])
    axes.set(xlabel="heads (the width of all heads together is the same)", ylabel="words right (%)", ylim=(0, 105))
    axes.legend(loc="lower right")
    return fig


def _weight_image(axes: Axes, weights: np.ndarray, columns: Sequence[str], rows: Sequence[str]) -> None:
    axes.imshow(weights, vmin=0, vmax=1, cmap=SEQUENTIAL, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.grid(visible=False)


def _blank(axes: Axes, x_limits: tuple[float, float], y_limits: tuple[float, float]) -> None:
    axes.set(xlim=x_limits, ylim=y_limits)
    axes.axis("off")


def _boxes(axes: Axes, words: Sequence[str], y: float, colour: str, label: str) -> None:
    for x, word in enumerate(words):
        axes.add_patch(FancyBboxPatch((x - 0.44, y - 0.25), 0.88, 0.5, boxstyle="round,pad=0.03", fc=colour, ec="none"))
        axes.text(x, y, word, ha="center", va="center", fontsize=12)
    axes.text(-0.47, y + (-0.6 if y < 1 else 0.6), label, color=GREY, fontsize=13, va="center")


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], *, alpha: float, width: float = 1.5
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=12,
            alpha=alpha,
            linewidth=width,
            color=PALETTE["blue"],
        )
    )
