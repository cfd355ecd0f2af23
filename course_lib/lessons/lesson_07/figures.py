"""The figures of lesson 07: gaps, a training, what few labels and another language can teach, and an attractor."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure

from course_lib.viz.marks import HERO, OTHER, THIRD, box, prediction, seed_dots
from course_lib.viz.style import GREY, PALETTE, figure

FATES = {"[MASK]": OTHER, "replaced": PALETTE["orange"], "kept": THIRD, "": PALETTE["sky"]}


def masking(words: Sequence[str], given: Sequence[str], fates: Sequence[str]) -> Figure:
    """A sentence, what the model reads instead, and which words are asked: the others count for nothing."""
    widths = np.array([0.3 + 0.14 * max(len(word), len(new)) for word, new in zip(words, given, strict=True)])
    centres = np.cumsum(widths + 0.08) - widths / 2 + 2.3
    fig, axes = figure(12.2, 3.6)
    axes.set(xlim=(0, centres[-1] + 0.6 * widths[-1]), ylim=(-0.35, 3.6))
    axes.axis("off")
    for y, text in ((3.0, "the sentence"), (1.7, "the model reads"), (0.4, "it predicts")):
        axes.text(2.1, y, text, ha="right", va="center", color=GREY)
    for x, width, word, new, fate in zip(centres, widths, words, given, fates, strict=True):
        box(axes, x, 3.0, word, FATES[""], width=width, ink="black")
        box(axes, x, 1.7, new, FATES[fate], width=width, ink="white" if fate in ("[MASK]", "kept") else "black")
        if fate:
            axes.annotate("", (x, 2.05), (x, 2.65), arrowprops={"arrowstyle": "-|>", "color": FATES[fate], "lw": 2})
            axes.annotate("", (x, 0.75), (x, 1.35), arrowprops={"arrowstyle": "-|>", "color": GREY, "lw": 2})
            axes.text(x, 0.4, f"{word}?", ha="center", va="center")
            axes.text(x, -0.1, {"[MASK]": "masked"}.get(fate, fate), ha="center", color=GREY)
    return fig


def training(steps: Int[np.ndarray, " N"], yours: Float[np.ndarray, " N"], lines: Mapping[str, float]) -> Figure:
    """The loss at chosen tokens of new sentences, beside models that do not learn any more."""
    fig, axes = figure(9.5, 4.4)
    axes.plot(steps, yours, color=HERO, linestyle="-", linewidth=4, marker="o")
    axes.text(steps[len(steps) // 2], yours[len(yours) // 2] + 0.25, "yours", color=HERO, fontsize=13, weight="bold")
    for (name, value), colour in zip(lines.items(), (OTHER, THIRD), strict=False):
        axes.axhline(value, color=colour, linestyle="--")
        axes.text(steps[-1], value + 0.15, name, color=colour, ha="right")
    axes.set(
        xlabel="steps", ylabel="loss (nats per chosen token)", ylim=(0, None), title="Masked tokens teach the language"
    )
    return fig


def few_labels(
    tagging: Mapping[str, Mapping[int, Sequence[float]]],
    gender: Mapping[str, Mapping[int, Sequence[float]]],
    predicted: float | None = None,
) -> Figure:
    """Two tasks: the accuracy (%) by the number of labelled sentences, for three learners; bands are seeds."""
    fig, panels = figure(12.2, 5.2, columns=2)
    titles = ("A tag for each French word", "A gender no other word shows")
    colours = {"pretrained": HERO, "scratch": OTHER, "baseline": GREY}
    names = {"pretrained": "pre-trained", "scratch": "from scratch", "baseline": "without a network"}
    for axes, scores, title in zip(panels, (tagging, gender), titles, strict=True):
        for learner, by_count in scores.items():
            counts = list(by_count)
            low, middle, high = (np.array([reduce(by_count[n]) for n in counts]) for reduce in (min, np.mean, max))
            positions = range(len(counts))
            axes.fill_between(positions, low, high, color=colours[learner], alpha=0.25, linewidth=0)
            axes.plot(
                positions,
                middle,
                color=colours[learner],
                linestyle="-",
                marker="o",
                linewidth=4 if learner == "pretrained" else 2.5,
            )
            axes.text(
                len(counts) - 0.88,
                middle[-1] + (axes is panels[1]) * {"baseline": -6, "scratch": 6}.get(learner, 0),
                names[learner],
                color=colours[learner],
                va="center",
            )
        axes.set_xticks(range(len(counts)), counts)
        axes.set(title=title, xlabel="labelled sentences", ylim=(0, 103), xlim=(-0.2, 1.3 * len(counts)))
    panels[0].set_ylabel("test accuracy (%)")
    panels[1].axhline(50, color=GREY, linestyle=":", linewidth=1.5)
    prediction(panels[0], 1, predicted, (0, 13))
    return fig


def bars(
    panels: Mapping[str, tuple[Mapping[str, Sequence[float]], str, float | None]],
    predicted: float | None = None,
    *,
    predicted_for: str = "",
) -> Figure:
    """For each panel {title: ({name: values of the seeds}, label, top)} a bar for each name, its seeds as dots."""
    ratios = {"width_ratios": [len(scores) + 0.5 for scores, _, _ in panels.values()]}
    fig, many = figure(*(12.2, 5.0) if len(panels) > 1 else (8.5, 4.2), columns=len(panels), gridspec_kw=ratios)
    known = ""
    for axes, (title, (scores, label, top)) in zip(np.atleast_1d(many), panels.items(), strict=True):
        for x, (name, values) in enumerate(scores.items()):
            last = x == len(scores) - 1
            axes.bar(x, np.mean(values), color=HERO if last else OTHER if x else GREY, alpha=0.85, width=0.5)
            axes.text(x + 0.29, np.mean(values), f"{np.mean(values):.{0 if max(values) > 10 else 1}f}", va="center")
            if max(values) > min(values):
                seed_dots(axes, x, values, "black", markersize=6)
            if name == predicted_for:
                prediction(axes, x - 0.32, predicted, (-12, 0))
        axes.set_xticks(
            range(len(scores)), [name.replace("side by", "side\nby").replace("-", "-\n") for name in scores]
        )
        axes.set(
            title=title,
            ylabel="" if label == known else label,
            xlim=(-0.5, len(scores) - 0.4),
            ylim=(0, top and 1.04 * top),
        )
        known = label
    return fig


def agreement(right: Mapping[str, tuple[float, float]], predicted: float | None = None) -> Figure:
    """How often (%) the right form is preferred, where the noun in between agrees with the subject, and where not."""
    fig, axes = figure(9.5, 4.4)
    for x, values in enumerate(right.values()):
        for shift, value, colour in zip((-0.2, 0.2), values, (HERO, OTHER), strict=True):
            axes.bar(x + shift, value, width=0.36, color=colour)
            axes.text(x + shift, value + 2, f"{value:.0f}", ha="center")
    axes.axhline(50, color=GREY, linestyle=":", linewidth=1.5)
    axes.text(2.55, 51, "chance", color=GREY, va="bottom", ha="left")
    axes.text(2.55, 90, "nearest noun agrees", color=HERO)
    axes.text(2.55, 20, "nearest noun misleads", color=OTHER)
    prediction(axes, 0.2, predicted)
    axes.set_xticks(range(len(right)), list(right))
    axes.set(ylabel="right form more probable (%)", ylim=(0, 112), xlim=(-0.5, 3.9))
    axes.set_title("The form follows the nearest noun, not the subject")
    return fig
