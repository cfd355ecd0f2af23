"""The figures of lesson 10: the three steps, what they move, and where it goes wrong."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from course_lib.viz.marks import HERO, OTHER, THIRD, box, prediction
from course_lib.viz.style import GREY, figure

Points = Sequence[Mapping[str, float]]


def steps() -> Figure:
    """The three steps; Ouyang et al. 2022, figure 2."""
    fig, axes = figure(12.2, 4.6, layout=None)
    fig.subplots_adjust(left=0, right=1, bottom=0, top=1)
    axes.set(xlim=(0, 12.2), ylim=(0, 4.6))
    axes.axis("off")
    columns = (
        ("1 · demonstrate", "people write answers", "next-token loss\non the answer", "fine-tuned model", HERO),
        ("2 · compare", "it answers twice, people\nsay which is better", "Bradley-Terry loss", "reward model", OTHER),
        (
            "3 · improve",
            "it answers, the reward\nmodel scores",
            "policy gradient,\nKL penalty",
            "policy",
            THIRD,
        ),
    )
    for number, (title, data, loss, made, colour) in enumerate(columns):
        x = 2.1 + 4 * number
        axes.text(x, 4.25, title, ha="center", va="center", fontsize=14, weight="bold")
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
    """The reward model's score, the true goal, and how much is grammatical, round by round."""
    fig, panels = figure(12.2, 4.3, columns=3)
    names = {
        "reward": "reward model's score",
        "true goal": "true goal",
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
    panels[0].legend(frameon=False, loc="lower right")
    rounds = every * (len(next(iter(ways.values()))) - 1)
    prediction(panels[2], rounds, predicted, (-12, 0))
    panels[2].set(ylim=(-3, 103))
    return fig


def over(ways: Mapping[str, Sequence[Points]]) -> Figure:
    """Proxy (left) and true goal (right) over the distance from the reference; a line for each seed."""
    fig, (left, right) = figure(12.2, 4.6, columns=2)
    for axes, key, title in (
        (left, "reward", "proxy: the reward model's score"),
        (right, "true goal", "the true goal"),
    ):
        for (name, seeds), colour, style in zip(ways.items(), (OTHER, HERO), ("--", "-"), strict=True):
            for number, points in enumerate(seeds):
                axes.plot(
                    [max(point["KL"], 0.0) ** 0.5 for point in points],
                    [point[key] for point in points],
                    color=colour,
                    linestyle=style,
                    linewidth=2,
                    label=name if number == 0 else None,
                )
        marks = (0, 1, 4, 9, 16, 25, 36)
        axes.set_xticks([mark**0.5 for mark in marks], [str(mark) for mark in marks])
        axes.set(xlabel="KL from the reference, nats (√ scale)")
        axes.set_title(title)
    left.legend(frameon=False, loc="lower right", title="reward model of")
    return fig


def drift(direct: Sequence[Points], ppo: Sequence[Points], best: Sequence[float], steps: tuple[int, int]) -> Figure:
    """KL of DPO and PPO while they train, and what DPO does to the pairs that were compared; a line for each seed."""
    fig, (left, right) = figure(12.2, 4.6, columns=2)
    for name, seeds, every, colour, style in (
        ("DPO", direct, steps[0], OTHER, "--"),
        ("PPO", ppo, steps[1], HERO, "-"),
    ):
        for number, points in enumerate(seeds):
            times = [every * part for part in range(len(points))]
            values = [point["KL"] for point in points]
            left.plot(times, values, color=colour, linestyle=style, linewidth=2, label=name if number == 0 else None)
    for number, value in enumerate(best):
        left.axhline(value, color=GREY, linestyle=":", linewidth=2, label="best policy" if number == 0 else None)
    left.set(xlabel="gradient steps", ylabel="KL from the reference, nats", ylim=(0, None))
    left.legend(frameon=False, loc="upper left")
    for key, colour, style in (("chosen", HERO, "-"), ("rejected", THIRD, "--")):
        for number, points in enumerate(direct):
            times = [steps[0] * part for part in range(len(points))]
            values = [point[f"gain, {key}, compared"] for point in points]
            right.plot(times, values, color=colour, linestyle=style, linewidth=2, label=key if number == 0 else None)
    right.axhline(0, color=GREY, linewidth=1)
    right.set(xlabel="gradient steps of DPO", ylabel="mean of ln π(y) − ln π_ref(y)")
    right.legend(frameon=False, loc="lower left")
    return fig


def accepted(ways: Mapping[str, Sequence[float]], ends: Mapping[str, Mapping[str, float]]) -> Figure:
    """How many answers each program accepted, round by round, and what held-out answers are like at the end."""
    fig, (left, right) = figure(12.2, 5.0, columns=2, gridspec_kw={"width_ratios": (1, 1.4)})
    for (name, values), colour, style in zip(ways.items(), (HERO, OTHER), ("-", "--"), strict=True):
        left.plot(range(1, len(values) + 1), [100 * value for value in values], color=colour, linestyle=style,
                  linewidth=2.5, label=f"program checks {name}")  # fmt: skip
    left.set(xlabel="round of GRPO", ylabel="accepted by its program, %", ylim=(0, 102))
    kinds = ("eight words", "grammatical", "both", "different sentences")
    for row, ((name, point), colour) in enumerate(zip(ends.items(), (GREY, HERO, OTHER), strict=True)):
        places = [index + 0.26 * (row - 1) for index in range(len(kinds))]
        right.bar(places, [100 * point[kind] for kind in kinds], width=0.24, color=colour, label=name)
    right.set_xticks(range(len(kinds)), [kind.replace(" ", "\n") for kind in kinds])
    right.set(ylabel="% of test answers", ylim=(0, 102))
    before = right.containers[0]
    fig.legend(handles=[before, *left.lines], loc="outside upper center", ncols=3)
    return fig


def _arrow() -> dict:
    return {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.8}
