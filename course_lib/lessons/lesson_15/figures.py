"""The figures of lesson 15: answers in text, position buckets, tones under CTC, and what two models hear."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.viz.marks import HERO, OTHER, THIRD, arrow, bare, label, prediction, seed_dots
from course_lib.viz.style import GREY, PALETTE, SEQUENTIAL, figure

FRAME = 4  # heard frames for each frame of the model
TONES = [PALETTE[name] for name in ("blue", "sky", "green", "orange", "purple", "black", "yellow", "vermilion")]


def opening(
    answers: Sequence[tuple[str, str, str]], scores: Mapping[str, Sequence[float]], predicted: float | None = None
) -> Figure:
    """Questions with the answers of a model, green if correct; at the right the accuracy of each task."""
    fig, (left, right) = figure(10.2, 4.9, columns=2, width_ratios=(1.3, 1))
    y = 0.0
    for question, answer, correct in answers:
        wrong = answer != correct
        said = f"→ {answer}\n    (correct: {correct})" if wrong else f"→ {answer}"
        left.text(0, y, question, va="top")
        left.text(0.03, y + 1, said, va="top", color=OTHER if wrong else THIRD, weight="bold")
        y += 3.4 if wrong else 2.4
    bare(left, (0, 1), (y - 0.3, 0))
    for row, (name, values) in enumerate(scores.items()):
        mean, y = 100 * np.mean(values), -row - 0.4 * (row > 0)
        right.barh(y, mean, height=0.42, color=HERO, alpha=1 if row == 0 else 0.5)
        right.plot([100 * value for value in values], [y] * len(values), "o", color="black", markersize=4)
        right.text(1, y + 0.22, name, va="bottom")
        right.text(3, y, f"{mean:.0f}", va="center", color="white" if row == 0 else "black")
    if predicted is not None:
        prediction(right, predicted, -0.45, (-12 if predicted > 50 else 12, 0))
    right.set(xlim=(0, 103), ylim=(0.2 - len(scores), 0.75), yticks=[], xlabel="answers exactly correct, %")
    right.grid(visible=False, axis="y")
    return fig


def buckets(
    distances: Int[Tensor, " n"],
    found: Int[Tensor, " n"],
    biases: Mapping[str, Float[Tensor, " n"]],
    predicted: float | None = None,
) -> Figure:
    """The bucket of each distance, and the bias that some heads have learned for it."""
    fig, (left, right) = figure(10.2, 4.4, columns=2)
    left.step(distances, found, where="mid", color=HERO, linestyle="-")
    left.plot(distances, found, ".", color=HERO, markersize=4)
    left.set(
        title="Bucket of each distance",
        xlabel="distance: key minus query, tokens",
        ylabel="bucket",
        yticks=range(0, 16, 5),
    )
    for (name, values), colour in zip(biases.items(), (HERO, OTHER, THIRD), strict=False):
        right.plot(distances, values, color=colour, linestyle="-", linewidth=2, marker=".", markersize=5, label=name)
    right.axhline(0, color=GREY, linewidth=1, linestyle=":")
    right.set(title="Biases that heads have learned", xlabel="distance: key minus query, tokens")
    right.set_ylabel("bias b, added to the score")
    right.legend(handlelength=1.2)
    return fig


def gaps(scores: Mapping[str, Mapping[str, Sequence[float]]], predicted: float | None = None) -> Figure:
    """For each task the exact answers of each way to train, a dot for each seed and a line at the mean."""
    fig, axes = figure(12.2, 5.6)
    colours = dict(zip(scores, (HERO, OTHER, THIRD), strict=True))
    tasks = list(next(iter(scores.values())))
    for shift, (name, values) in zip((-0.24, 0.0, 0.24), scores.items(), strict=True):
        for column, task in enumerate(tasks):
            x, y = column + shift, 100 * np.mean(values[task])
            seed_dots(axes, x, [100 * value for value in values[task]], colours[name], markersize=6)
            axes.plot([x - 0.1, x + 0.1], [y, y], color=colours[name], linestyle="-", linewidth=3)
        axes.plot([], [], "o", color=colours[name], label=name)
    axes.axvline(0.5, color=GREY, linewidth=1, linestyle=":")
    if predicted is not None:
        prediction(axes, -0.7, predicted, (0, 12 if predicted < 50 else -12), "your\nprediction")
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set(
        xlim=(-0.5 if predicted is None else -1.15, len(tasks) - 0.5),
        ylim=(0, 105),
        ylabel="answers exactly correct, %",
    )
    axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1.0), ncols=3, handletextpad=0, columnspacing=1)
    return fig


def stacks(scores: Mapping[str, Sequence[float]], sizes: Mapping[str, str], predicted: float | None = None) -> Figure:
    """Exact answers of each layout, a dot for each seed, and below its name what it costs."""
    fig, axes = figure(12.2, 4.8)
    for row, (values, colour) in enumerate(zip(scores.values(), (HERO, OTHER, THIRD), strict=True)):
        axes.plot([100 * value for value in values], [-row] * len(values), "o", color=colour, markersize=8)
        axes.plot([100 * np.mean(values)] * 2, [-row - 0.25, -row + 0.25], color=colour, linestyle="-", linewidth=3)
    prediction(axes, predicted, -1.5, (12, 0))
    axes.set_yticks([-row for row in range(len(scores))], [f"{name}\n{sizes[name]}" for name in scores])
    axes.set(xlim=(40, 100), ylim=(0.5 - len(scores), 0.5))
    axes.set_xlabel("answers exactly correct, %, five tasks, a dot for each seed")
    return fig


def spikes(
    frames: Float[Tensor, "T F"],
    probs: Float[Tensor, "t V"],
    names: Sequence[str],
    begins: Sequence[int],
    height: float = 4.7,
) -> Figure:
    """The frames of a melody, and the probability of each symbol in each frame of the model."""
    fig, (above, below) = figure(10.2, height, rows=2, height_ratios=(1, 1.3))
    above.imshow(frames.T.numpy(), origin="lower", aspect="auto", cmap=SEQUENTIAL)
    above.set(title=f"Input: log energies of {frames.shape[1]} bands, a frame each 10 ms", yticks=[], ylabel="pitch")
    above.grid(visible=False)
    above.tick_params(labelbottom=False)
    for position in begins:
        above.axvline(position, color="white", linewidth=1, linestyle=":")
    symbols(below, probs, names)
    below.set(xlim=above.get_xlim(), xlabel="frames of 10 ms")
    below.set_title("Output: probability of each symbol, a frame each 40 ms")
    return fig


def symbols(axes: Axes, probs: Float[Tensor, "t V"], names: Sequence[str]) -> None:
    """The probability of the blank as an area, and that of every tone that rises above 0.3 as a line with its name."""
    times = FRAME * np.arange(len(probs)) + (FRAME - 1) / 2
    axes.fill_between(times, 0, probs[:, 0].numpy(), color=GREY, alpha=0.25, linewidth=0)
    axes.text(times[0], 0.8, "blank", color=GREY)
    for number, name in enumerate(names, start=1):
        p = np.pad(probs[:, number].numpy(), 1)
        peaks = (p[1:-1] > 0.3) & (p[1:-1] >= p[:-2]) & (p[1:-1] > p[2:])
        if not peaks.any():
            continue
        colour = TONES[(number - 1) % len(TONES)]
        axes.plot(times, p[1:-1], color=colour, linestyle="-")
        for t in times[peaks]:
            axes.text(t, 1.03, name, color=colour, ha="center", weight="bold")
    axes.set(ylim=(0, 1.3), yticks=(0, 0.5, 1), ylabel="probability")


def lattice(
    states: Sequence[str],
    alpha: Float[Tensor, "T S"],
    allowed: Bool[Tensor, "S S"],
    useful: Bool[Tensor, "T S"],
    path: Sequence[int],
    gradients: tuple[Float[Tensor, " n"], Float[Tensor, " n"]],
) -> Figure:
    """States over frames, shaded by the forward variable; one path; the gradients of two implementations.

    `allowed[s, r]` says whether a path may step from state s to state r, `useful` which cells lie on a full path.
    """
    fig, (left, right) = figure(10.2, 4.7, columns=2, width_ratios=(2, 1))
    frames = alpha.shape[0]
    bare(left, (-0.9, frames - 0.4), (-1.55, len(states) - 0.3))
    for t in range(frames - 1):
        for s, r in allowed.nonzero().tolist():
            if useful[t, s] and useful[t + 1, r]:
                arrow(left, (t, s), (t + 1, r), "#9B9B9B", width=0.8, shrinkA=13, shrinkB=13)
    for t, (s, r) in enumerate(zip(path, path[1:], strict=False)):
        arrow(left, (t, s), (t + 1, r), OTHER, width=3, shrinkA=13, shrinkB=13)
    shade = (alpha / alpha.sum(dim=1, keepdim=True)).numpy()
    x, y = np.meshgrid(np.arange(frames), np.arange(len(states)), indexing="ij")
    left.scatter(x, y, s=620, c=shade, cmap="Blues", vmin=-0.15, vmax=0.9, linewidths=0, zorder=3)
    for t in range(frames):
        for s in range(len(states)):
            if shade[t, s] >= 0.005:
                ink = "white" if shade[t, s] > 0.5 else "black"
                left.text(t, s, f"{100 * shade[t, s]:.0f}", ha="center", va="center", color=ink, zorder=4)
        left.text(t, -0.85, f"t = {t + 1}", ha="center", va="center", color=GREY)
        left.text(t, -1.35, states[path[t]], ha="center", va="center", color=OTHER, fontsize=13, weight="bold")
    for s, name in enumerate(states):
        left.text(-0.7, s, name, ha="center", va="center", fontsize=13, weight="bold")
    left.text(-0.7, -1.35, "path", ha="center", va="center", color=OTHER)
    left.set_title("Forward variables, % of their sum in each frame")
    theirs, hers = (values.numpy() for values in gradients)
    low, high = min(theirs.min(), hers.min()) - 0.05, max(theirs.max(), hers.max()) + 0.05
    right.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=":")
    right.plot(theirs, hers, "o", color=HERO, markersize=6)
    right.set(title="Gradient by each logit", xlabel="F.ctc_loss", ylabel="your loss", aspect="equal")
    return fig


def heard(errors: Mapping[str, Mapping[str, Sequence[float]]], predicted: float | None = None) -> Figure:
    """Errors of two models in several conditions, a dot for each seed."""
    fig, axes = figure(12.2, 5.0)
    for (name, rows), colour, lift in zip(errors.items(), (HERO, OTHER), (0.12, -0.12), strict=True):
        for row, values in enumerate(rows.values()):
            height = [-row + lift] * len(values)
            axes.plot([100 * value for value in values], height, "o", color=colour, markersize=8, alpha=0.8)
        label(axes, 100 * max(next(iter(rows.values()))), lift, name, colour, (10, 0))
    if predicted is not None:
        prediction(axes, predicted, -0.36, (12, 0))
    conditions = list(next(iter(errors.values())))
    axes.set_yticks([-row for row in range(len(conditions))], conditions)
    axes.set(xlim=(0, None), ylim=(0.5 - len(conditions), 0.5), xlabel="errors per 100 tones, a dot for each seed")
    return fig


def beam(
    paths: Mapping[str, tuple[float, str]],
    noise: Sequence[float],
    errors: Mapping[str, Sequence[float]],
    predicted: tuple[float, float] | None = None,
) -> Figure:
    """The paths of a small example with their texts; errors of greedy decoding and of a beam over the noise."""
    fig, (left, right) = figure(10.2, 4.4, columns=2)
    texts = list(dict.fromkeys(text for _, text in paths.values()))
    colours = dict(zip(texts, (GREY, HERO, OTHER, THIRD), strict=False))
    for row, (p, text) in enumerate(paths.values()):
        left.barh(-row, p, height=0.6, color=colours[text])
        left.text(p + 0.015, -row, f"{p:.2f}", va="center")
    below = len(paths) + 0.4
    for row, text in enumerate(texts):
        start = 0.0
        for p in (p for p, belongs in paths.values() if belongs == text):
            left.barh(-row - below, p, left=start, height=0.6, color=colours[text], edgecolor="white", linewidth=2)
            start += p
        left.text(start + 0.015, -row - below, f"{start:.2f}", va="center", weight="bold")
    rows = [-row for row in range(len(paths))] + [-row - below for row in range(len(texts))]
    names = [f"path {' '.join(path)}" for path in paths] + [
        f"text “{text}”" if text else "empty text" for text in texts
    ]
    left.set_yticks(rows, names)
    left.set(xlim=(0, 0.8), xlabel="probability", title="Two frames: .6 for blank, .4 for a")
    left.grid(visible=False, axis="y")
    for (name, values), colour, style in zip(errors.items(), (OTHER, HERO), ("-", "--"), strict=True):
        right.plot(noise, [100 * value for value in values], "o", color=colour, linestyle=style, label=name)
    if predicted is not None:
        prediction(right, *predicted, (12, 0), "your\nprediction")
        right.set_xlim(right=noise[-1] + 0.5)
    right.set(
        title="Noisier melodies", xlabel="noise, standard deviation", ylabel="errors per 100 tones", ylim=(0, None)
    )
    right.legend()
    return fig


def growing(probs: Float[Tensor, "t V"], names: Sequence[str], played: str, found: str) -> Figure:
    """During training: what a network makes of one melody."""
    fig, axes = figure(6.4, 2.6)
    symbols(axes, probs, names)
    axes.set_title(f"played: {played}\nheard:  {found or '(nothing)'}", fontsize=12)
    axes.set_xlabel("frames of 10 ms")
    return fig
