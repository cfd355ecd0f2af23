"""The figures of lesson 10: the three steps, what they move, and where it goes wrong."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from course_lib.viz.marks import HERO, OTHER, PREDICTION, THIRD, box, prediction, seed_dots
from course_lib.viz.style import GREY, figure

Points = Sequence[Mapping[str, float]]


def steps() -> Figure:
    """The three steps; Ouyang et al. 2022, figure 2."""
    fig, axes = figure(12.2, 4.6, layout=None)
    fig.subplots_adjust(left=0, right=1, bottom=0, top=1)
    axes.set(xlim=(0, 12.2), ylim=(0, 4.6))
    axes.axis("off")
    columns = (
        ("1 · show it", "people write good answers", "learn them, token by token", "fine-tuned model", HERO),
        ("2 · compare", "it answers twice,\npeople say which is better", "learn who wins", "reward model", OTHER),
        (
            "3 · improve",
            "it answers, the reward\nmodel says how good",
            "more of what beats\nexpectation, near step 1",
            "policy",
            THIRD,
        ),
    )
    for number, (title, data, loss, made, colour) in enumerate(columns):
        x = 2.1 + 4 * number
        axes.text(x, 4.25, title, ha="center", va="center", fontsize=18, weight="bold")
        box(axes, x, 3.3, data, "white", width=3.3, height=0.95, ink="black", edge=GREY)
        box(axes, x, 2.0, loss, "white", width=3.3, height=0.95, ink="black", edge=GREY)
        box(axes, x, 0.7, made, colour, width=3.3, height=0.8)
        for start, end in ((2.82, 2.48), (1.52, 1.12)):
            axes.annotate("", (x, end), (x, start), arrowprops=_arrow())
    for number in range(2):
        x = 3.8 + 4 * number
        axes.annotate("", (x + 0.62, 3.0), (x - 0.05, 0.8), arrowprops=_arrow() | {"linestyle": "--"})
    return fig


def climb(ways: Mapping[str, Points], every: int, predicted: float | None = None) -> Figure:
    """What the reward model says, what is really wanted, and how much of it is grammatical, round by round."""
    fig, panels = figure(12.2, 4.3, columns=3)
    names = {
        "reward": "what the reward model says",
        "true goal": "what is really wanted",
        "grammatical": "grammatical, %",
    }
    for axes, (key, title) in zip(panels, names.items(), strict=True):
        scale = 100 if key == "grammatical" else 1
        for (name, points), colour, style in zip(ways.items(), (HERO, OTHER), ("-", "--"), strict=True):
            rounds = [every * number for number in range(len(points))]
            values = [scale * point[key] for point in points]
            axes.plot(rounds, values, color=colour, linestyle=style, linewidth=3, label=name)
        axes.set(xlabel="round of PPO")
        axes.set_title(title)
    panels[0].legend(frameon=False, fontsize=12, loc="lower right")
    rounds = every * (len(next(iter(ways.values()))) - 1)
    prediction(panels[2], rounds, predicted, (-12, 0))
    panels[2].set(ylim=(-3, 103))
    return fig


def over(ways: Mapping[str, Sequence[Points]], direct: Points) -> Figure:
    """Proxy (left) and true goal (right) over the distance from the reference; a line for each seed."""
    fig, (left, right) = figure(12.2, 4.6, columns=2)
    for axes, key, title in (
        (left, "reward", "what the reward model says"),
        (right, "true goal", "what is really wanted"),
    ):
        for (name, seeds), colour, style in zip(ways.items(), (THIRD, HERO, OTHER), (":", "-", "--"), strict=True):
            for number, points in enumerate(seeds):
                axes.plot(
                    [max(point["KL"], 0.0) ** 0.5 for point in points],
                    [point[key] for point in points],
                    color=colour,
                    linestyle=style,
                    linewidth=2,
                    label=name if number == 0 else None,
                )
        axes.plot(
            [point["KL"] ** 0.5 for point in direct],
            [point[key] for point in direct],
            "D",
            color=PREDICTION,
            markersize=10,
            label="DPO",
        )
        marks = (0, 1, 4, 9, 16, 25, 36, 49)
        axes.set_xticks([mark**0.5 for mark in marks], [str(mark) for mark in marks])
        axes.set(xlabel="KL from the fine-tuned model, nats (root scale)")
        axes.set_title(title)
    left.legend(frameon=False, fontsize=12, loc="lower right")
    return fig


def comparisons(seeds: Mapping[int, Sequence[float]], predicted: float | None = None) -> Figure:
    """How often reward models agree with the labellers, by how many comparisons they learned from."""
    fig, axes = figure(8.4, 4.2)
    counts = list(seeds)
    means = [100 * float(np.mean(values)) for values in seeds.values()]
    axes.plot(range(len(counts)), means, color=HERO, linewidth=2)
    for position, values in enumerate(seeds.values()):
        seed_dots(axes, position, [100 * value for value in values], HERO)
    axes.axhline(50, color=GREY, linestyle="--", linewidth=1.5)
    axes.text(0, 50.8, "a guess", fontsize=12, color=GREY, va="bottom")
    prediction(axes, len(counts) - 1, predicted, (-12, 0))
    axes.set_xticks(range(len(counts)), [f"{count:,}" for count in counts])
    axes.set(xlabel="comparisons, one in twenty wrong", ylabel="agrees with the labellers, %", ylim=(47, 102))
    return fig


def _arrow() -> dict:
    return {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.8}
