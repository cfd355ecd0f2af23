"""The figures of lesson 08: what a GPT predicts, how well, how it is sampled from, and which heads copy."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, bare, label, prediction
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

KINDS = {"GPT": HERO, "LSTM": OTHER}

COUNTED, SKY = PALETTE["black"], PALETTE["sky"]


def mechanism(tokens: Sequence[str], right: Sequence[float], guesses: Sequence[str]) -> Figure:
    """One text, all its predictions at once: the most probable next token, and the probability of the true one."""
    fig, (mask, table) = figure(12, 5.9, columns=2, gridspec_kw={"width_ratios": (1.05, 1.75)})
    count = len(right)
    edges = np.arange(count + 1) - 0.5
    mask.fill_between(edges, edges, count - 0.5, step="post", color=HERO, alpha=0.75, linewidth=0)
    mask.set(aspect="equal", xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5), xticks=[])
    mask.set_xlabel("keys: the same tokens")
    mask.tick_params(length=0)
    mask.set_yticks(range(count), tokens[:count])
    mask.set_title("Attention to the past")
    mask.grid(visible=False)
    bare(table, (0, 10), (-count + 0.4, 1.4))
    for x, name in ((1.1, "reads ... up to"), (3.9, "predicts"), (6.1, "next token"), (8.6, "its probability")):
        table.text(x, 0.9, name, ha="center", color=GREY)
    table.plot([2.5] * count, -np.arange(count), ">", color=GREY)
    for row, (p, guess) in enumerate(zip(right, guesses, strict=True)):
        found = PALETTE["green" if guess == tokens[row + 1] else "orange"]
        for x, word, colour in ((1.1, tokens[row], SKY), (3.9, guess, found), (6.1, tokens[row + 1], SKY)):
            table.plot((x - 0.7, x + 0.7), (-row, -row), "-", color=colour, linewidth=18, solid_capstyle="round")
            table.text(x, -row, word, ha="center", va="center")
        table.barh(-row, 1.6 * p, left=7.5, height=0.5, color=HERO)
        table.text(7.6 + 1.6 * p, -row, f"{p:.2f}", va="center")
    return fig


def bits(rows: Sequence[tuple[str, str, Sequence[float]]], predicted: float | None = None) -> Figure:
    """Bits per byte, a row for each model: (group, name, one value for each seed); an empty name leaves a gap."""
    fig, axes = figure(11, 5.9)
    if predicted is not None:
        yours = next(number for number, (_, name, _) in enumerate(rows) if "yours" in name)
        rows = [*rows[:yours], ("", "your prediction", [min(max(predicted, 1.3), 2.2)]), *rows[yours:]]
    for position, (group, name, values) in enumerate(rows):
        y = -position
        if not name:
            axes.text(1.27, y - 0.1, group, color=GREY, va="center")
            continue
        if name == "your prediction":
            prediction(axes, *values, y, (12 if predicted < 1.9 else -12, 0), f"{name}: {predicted:.1f}")
            continue
        colour = next((colour for kind, colour in KINDS.items() if kind in name), COUNTED)
        axes.plot(values, [y] * len(values), "*" if "yours" in name else "o", color=colour, markersize=9)
        axes.text(max(values) + 0.02, y, f"{name}: {np.mean(values):.2f}", color=colour, va="center")
    axes.set(xlabel="bits per byte of test entries (lower is better)")
    axes.set(xlim=(1.25, 2.3), ylim=(0.3 - len(rows), 0.7))
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title("With enough training, GPT is ahead")
    return fig


def first_loss(losses: Mapping[str, float], even: float) -> Figure:
    """The loss before any training as points on a line, a name for each, beside that of equal probabilities."""
    fig, axes = figure(11, 2.9)
    axes.axvline(even, color=GREY, linestyle=":")
    label(axes, even, 1.25, f"all tokens equally probable: ln V = {even:.2f}", GREY)
    for y, ((name, loss), colour) in enumerate(zip(losses.items(), (OTHER, HERO), strict=True)):
        axes.plot([loss], [-y], "o", color=colour, markersize=11)
        label(axes, loss, -y, f"{name}: {loss:.3g}", colour, (-10 if loss > 3 * even else 10, 0))
    axes.set(xlabel="first loss, nats per token", xlim=(0, 1.05 * max(losses.values())), ylim=(-1.6, 1.8))
    axes.set_yticks([])
    return fig


def twice(first: float, second: float) -> Figure:
    """The loss on a passage and on its repetition."""
    fig, axes = figure(11, 2.6)
    for y, (name, nats, colour) in enumerate((("first reading", first, HERO), ("second reading", second, OTHER))):
        axes.barh(-y, nats, color=colour, height=0.6)
        axes.text(nats + 0.04, -y, f"{nats:.2f}", color=colour, va="center")
        axes.text(0.05, -y, name, color="white", va="center")
    axes.set(xlabel="nats per token (a perfect copy would cost 0)", xlim=(0, 1.15 * max(first, second)))
    axes.set_yticks([])
    return fig


def headword(
    saved: Mapping[str, Sequence[float]],
    means: Mapping[str, Mapping[tuple[int, int], float]],
    predicted: float | None = None,
) -> Figure:
    """What the true headword saves at each token of a definition, in nats, a line for each model.

    Of the models in `means` only the means over parts of the definitions are known: steps from one token to another.
    """
    fig, axes = figure(11, 4.4)
    for name, parts in means.items():
        edges = [first + 0.5 for first, _ in parts] + [max(last for _, last in parts) + 0.5]
        axes.stairs([*parts.values()], edges, baseline=None, color=KINDS[name], linewidth=2.5)
        axes.text(edges[-1] + 0.1, [*parts.values()][-1] + 0.1, name, color=KINDS[name], va="center")
    for name, values in saved.items():
        places = range(1, len(values) + 1)
        axes.plot(places, values, color=KINDS.get(name, COUNTED), linestyle="-", marker="o")
        axes.text(len(values) + 0.6, np.mean(values[-3:]), name, color=KINDS.get(name, COUNTED), va="center")
    if predicted is not None:
        prediction(axes, 17, min(predicted, 1.1), (0, 12), f"your prediction {predicted:.1f}")
    axes.hlines(0, 0, max(map(len, saved.values())), color=GREY, linestyle=":")
    axes.set(xlabel="token of the definition", ylabel="nats saved by the headword", xlim=(0, 28), ylim=(-0.1, 1.25))
    axes.set_title("GPT uses the headword to the end of a definition, the LSTM forgets it")
    return fig


def knobs(
    names: Sequence[str],
    stations: Mapping[str, Sequence[float]],
    temperatures: Sequence[float],
    repeated: Sequence[float],
    greedy: float,
    human: float,
    predicted: float | None = None,
) -> Figure:
    """One distribution under each knob, and how often a text repeats itself, by temperature."""
    fig = figure(12.2, 5.2)[0]
    fig.clear()
    grid = fig.add_gridspec(1, len(stations) + 1, width_ratios=(*[1] * len(stations), 3))
    first = None
    for position, (title, probs) in enumerate(stations.items()):
        axes = first = fig.add_subplot(grid[position], sharex=first)
        colours = [HERO if share > 0 else "none" for share in probs]
        axes.barh(range(len(names)), probs, color=colours)
        axes.set_yticks(*((range(len(names)), names) if position == 0 else ([],)))
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.tick_params(left=False)
        axes.set_title(title, fontsize=12, weight="normal")
        axes.set_xticks((0, 0.5), ("0", "0.5"))
    axes = fig.add_subplot(grid[-1])
    axes.plot(temperatures, 100 * np.array(repeated), color=HERO, linestyle="-", marker="o")
    axes.plot([0], [100 * greedy], "o", color=OTHER, markersize=9)
    label(axes, 0, 100 * greedy, "greedy decoding", OTHER)
    axes.axhline(100 * human, color=GREY, linestyle=":")
    label(axes, 0, 100 * human, "people", GREY, (0, 3), ha="left")
    axes.set(
        xlabel="temperature", ylabel="% of 4-grams repeated", xlim=(-0.06, None), ylim=(0, max(40, predicted or 0) + 2)
    )
    axes.set_title("Greedy decoding\nrepeats itself", fontsize=12)
    near = predicted is not None and abs(predicted - 100 * greedy) < 4
    prediction(axes, 0, predicted, (12, (9 if predicted > 100 * greedy else -9) if near else 0))
    return fig


def cache(
    lengths: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    kept: Sequence[int],
) -> Figure:
    """Operations of one more token, and the numbers that a cache keeps, against the number of tokens before it."""
    fig, (work, memory) = figure(11.5, 4.4, columns=2)
    lines = [(work, operations["without"], 1e6, "without\na cache", OTHER)]
    lines += [(work, operations["with"], 1e6, "with\na cache", HERO), (memory, kept, 1e3, "with\na cache", HERO)]
    for axes, counted, unit, name, colour in lines:
        values = np.array(counted) / unit
        axes.plot(lengths, values, color=colour, linestyle="-", marker="o")
        label(axes, lengths[-1], values[-1], name, colour)
        axes.margins(y=0.15)
    for axes in (work, memory):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.set_xticks(lengths, [str(n) for n in lengths])
        axes.set_xlim(right=lengths[-1] * 4)
    work.set(title="Operations for one more token", xlabel="preceding tokens", ylabel="millions")
    memory.set(title="Numbers kept in the cache", xlabel="preceding tokens", ylabel="thousands")
    return fig


def induction(
    maps: Float[Tensor, "2 T T"],
    found: Bool[Tensor, "T T"],
    period: int,
    right: Mapping[str, Sequence[float]],
    predicted: float | None = None,
) -> Figure:
    """The attention of both layers on one sequence, and the accuracy with both, without one, and of other networks."""
    fig, panels = figure(12.2, 5.2, columns=3, gridspec_kw={"width_ratios": (1, 1, 1.2)})
    titles = ("Layer 1: the\nprevious symbol", "Layer 2: what\nfollowed it")
    for axes, weights, title in zip(panels, maps, titles, strict=False):
        axes.imshow(weights.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
        axes.axhline(period - 0.5, color="white", linestyle=":")
        axes.set(title=title, xlabel="key position")
        axes.grid(visible=False)
    panels[0].set_ylabel("query position")
    for query, key in found.nonzero().tolist():
        panels[1].plot(key, query, "o", mfc="none", color=OTHER, markersize=4, markeredgewidth=0.8)
    axes = panels[2]
    for position, (name, values) in enumerate(right.items()):
        colour = HERO if name == "two layers" else OTHER
        axes.plot(100 * np.array(values), [-position] * len(values), "o", color=colour, markersize=8)
        aside = (97, "right") if max(values) > 0.5 else (100 * max(values) + 5, "left")
        axes.text(aside[0], -position + (0.4 if max(values) > 0.5 else 0), name, ha=aside[1], va="center")
        if "4" in name:
            prediction(axes, predicted, -position - 0.5, (12 if (predicted or 0) < 60 else -12, 0), "predicted")
    axes.set(title="% correct, second copy", xlim=(-3, 103), ylim=(-len(right) + 0.1, 0.8))
    axes.set_yticks([])
    return fig


def copying(attention: Sequence[float], without: Sequence[float], whole: float) -> Figure:
    """Of each head of the last block: its attention to the headword, and the stems copied when it is switched off."""
    fig, (left, right) = figure(11.5, 4.2, columns=2)
    heads = range(1, len(attention) + 1)
    colours = [OTHER if fraction == min(without) else HERO for fraction in without]
    left.bar(heads, attention, color=colours)
    right.bar(heads, without, color=colours)
    right.axhline(whole, color=GREY, linestyle=":")
    right.text(0.4, whole + 0.012, "all heads on", color=GREY)
    left.set(title="Attention to the headword", ylabel="fraction of a head's attention", ylim=(0, 1))
    right.set(title="Stems copied without this head", ylabel="fraction of 100 words", ylim=(0, 1.35 * whole))
    for axes in (left, right):
        axes.set_xticks([*heads])
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("head of the last block")
    return fig


def parts(nats: Mapping[str, Sequence[float]], kept: Mapping[str, float]) -> Figure:
    """Nats a token of the GPT with each part of today's in it, one value for each seed, and what its cache keeps."""
    fig, axes = figure(11, 4.6)
    plain, right = np.mean(nats["GPT"]), max(map(max, nats.values()))
    axes.axvline(plain, color=GREY, linestyle=":")
    for position, (name, values) in enumerate(nats.items()):
        colour = HERO if name in ("all four", "Llama") else COUNTED if name == "GPT" else OTHER
        axes.plot(values, [-position] * len(values), "o", color=colour, markersize=8)
        label(axes, max(values), -position, f"{name}: {np.mean(values):.2f}, {kept[name]:,.0f} bytes", colour, (10, 0))
    axes.set(xlabel="test loss in nats per token (lower is better), and bytes per token in the cache")
    axes.set(xlim=(None, right + 0.25), ylim=(-len(nats) + 0.4, 0.6))
    axes.set_yticks([])
    axes.set_title("Rotary positions carry the gain")
    return fig


def looks(maps: Float[Tensor, "L T T"], period: int) -> Figure:
    """The attention of each layer on one sequence, while it learns."""
    fig, panels = figure(3.1 * len(maps), 2.9, columns=len(maps), squeeze=False)
    for layer, (axes, weights) in enumerate(zip(panels[0], maps, strict=True)):
        axes.imshow(weights.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
        axes.axhline(period - 0.5, color="white", linestyle=":")
        axes.set_title(f"attention of layer {layer + 1}", fontsize=12)
        axes.grid(visible=False)
    return fig
