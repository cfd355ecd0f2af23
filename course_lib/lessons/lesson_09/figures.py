"""The figures of lesson 09: runs, the laws through them, and what others have published."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.functional.scaling import ScalingLaw
from course_lib.lessons.lesson_09.laws import Runs, at
from course_lib.viz.marks import HERO, OTHER, PREDICTION
from course_lib.viz.style import CYCLE, GREY, LINE_STYLES, figure


def grid(runs: Runs, law: ScalingLaw | None = None) -> Figure:
    """The loss over the text that was read, a line for each size."""
    fig, axes = figure(9.6, 4.6)
    _grid(axes, runs, law)
    return fig


def _grid(axes: Axes, runs: Runs, law: ScalingLaw | None) -> None:
    for size, colour, style in zip(sorted({run["parameters"] for run in runs}), CYCLE, LINE_STYLES, strict=False):
        own = sorted((run["tokens"], run["test"]) for run in runs if run["parameters"] == size)
        tokens, losses = zip(*own, strict=True)
        axes.plot(tokens, losses, "o", linestyle="none" if law else style, color=colour, label=f"{size:,} parameters")
        if law:
            many = np.geomspace(tokens[0], tokens[-1], 40)
            axes.plot(many, [at(law, size, float(d)) for d in many], linestyle=style, color=colour, linewidth=2)
    axes.set(xscale="log", xlabel="tokens read", ylabel="loss, nats per character")
    axes.legend(frameon=False, fontsize=11)


def lines(x: Sequence[float], y: Sequence[float], fits: Mapping[str, Sequence[float]], what: str) -> Figure:
    """Points in logarithms, and curves through them."""
    fig, axes = figure(9.6, 4.4)
    axes.plot(x, y, "o", linestyle="none", color="black", markersize=9)
    many = np.geomspace(min(x), 30 * max(x), 80)
    for (name, (a, b, c)), colour, style in zip(fits.items(), (HERO, OTHER), ("-", "--"), strict=False):
        axes.plot(many, a * many**-b + c, color=colour, linestyle=style, label=name)
    axes.set(xscale="log", yscale="log", xlabel=what, ylabel="loss, nats per character")
    axes.set_yticks([0.8, 1, 1.25, 1.5, 2], ["0.8", "1", "1.25", "1.5", "2"])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=13)
    return fig


def tenfold(
    runs: Runs, best: Runs, largest: Mapping[str, float], law: tuple[float, float], predicted: float | None = None
) -> Figure:
    """All runs over what they cost; the best of each budget, the power law through them, and a run beyond."""
    fig, axes = figure(9.6, 4.6)
    axes.plot(
        [r["flops"] for r in runs],
        [r["test"] for r in runs],
        "o",
        linestyle="none",
        color=GREY,
        alpha=0.45,
        label="others, and the two cheapest",
    )
    cost = np.array([r["flops"] for r in best])
    axes.plot(cost, [r["test"] for r in best], "o", linestyle="none", color=HERO, markersize=9)
    a, b = law
    axes.plot(cost, a * cost**-b, color=HERO, label=f"the best for their cost: $L = a \\, C^{{-{b:.2f}}}$")
    on = np.array([cost[-1], largest["flops"]])
    axes.plot(on, a * on**-b, color=HERO, linestyle=":")
    axes.plot(
        largest["flops"],
        largest["test"],
        "D",
        color="black",
        fillstyle="none",
        markersize=10,
        label="one run more, not in the line",
    )
    if predicted is not None:
        begin = a * cost[0] ** -b
        factor = max(1 - predicted / 100, 0.02)
        axes.plot(
            [cost[0], 10 * cost[0]],
            [begin, begin * factor],
            "*",
            linestyle="--",
            color=PREDICTION,
            markersize=15,
            label="your prediction for the first tenfold",
        )
    axes.set(
        xscale="log", yscale="log", xlabel="operations, 6 N D", ylabel="loss, nats per character", ylim=(1.05, 2.9)
    )
    axes.set_yticks([1.1, 1.2, 1.5, 2, 2.5], ["1.1", "1.2", "1.5", "2", "2.5"])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=13)
    return fig


def isoflop(groups: Mapping[float, Runs], best: Mapping[float, float], exponent: float) -> Figure:
    """The loss over the size for each budget, with the lowest points; and how these move."""
    fig, (left, right) = figure(12.2, 4.4, columns=2)
    for (budget, runs), colour, marker in zip(groups.items(), CYCLE, "osD", strict=False):
        sizes, losses = np.array([r["parameters"] for r in runs]), np.array([r["test"] for r in runs])
        left.plot(sizes, losses, marker, linestyle="none", color=colour, label=f"{budget / 1e10:.0f} · 10¹⁰ operations")
        p = np.polyfit(np.log(sizes), losses, 2)
        many = np.geomspace(sizes.min() / 1.2, sizes.max() * 1.2, 60)
        left.plot(many, np.polyval(p, np.log(many)), color=colour, linestyle="-", linewidth=2)
        left.plot(best[budget], np.polyval(p, np.log(best[budget])), "v", color="black", markersize=9)
    left.set(xscale="log", xlabel="parameters", ylabel="loss, nats per character")
    left.legend(frameon=False, fontsize=11)
    budgets = np.array(list(best))
    right.plot(budgets, list(best.values()), "v", linestyle="none", color="black", markersize=10)
    middle = np.exp(np.mean(np.log(list(best.values())))) / np.exp(np.mean(np.log(budgets))) ** exponent
    right.plot(budgets, middle * budgets**exponent, color=HERO, label=f"$N \\propto C^{{{exponent:.2f}}}$")
    right.set(xscale="log", yscale="log", xlabel="operations", ylabel="best number of parameters")
    right.set_xticks(budgets, [f"{budget / 1e10:.0f} · 10¹⁰" for budget in budgets])
    right.set_yticks([5e3, 1e4, 2e4], ["5,000", "10,000", "20,000"])
    right.minorticks_off()
    right.legend(frameon=False, fontsize=14)
    return fig


def predicted(runs: Runs, law: ScalingLaw, largest: Mapping[str, float], predicted: float | None = None) -> Figure:
    """The grid with its law, and a run that is far outside of it."""
    fig, axes = figure(9.6, 4.8)
    _grid(axes, runs, law)
    tokens = np.geomspace(min(run["tokens"] for run in runs), largest["tokens"], 40)
    axes.plot(tokens, [at(law, largest["parameters"], float(d)) for d in tokens], color="black", linestyle=":")
    axes.plot(
        largest["tokens"],
        largest["test"],
        "D",
        color="black",
        markersize=11,
        label=f"{largest['parameters']:,} parameters, not in the fit",
    )
    if predicted is not None:
        axes.plot(largest["tokens"], predicted, "*", color=PREDICTION, markersize=18, label="your prediction")
    axes.legend(frameon=False, fontsize=11)
    return fig


MODELS = {  # year and operations of the training; Brown et al. 2020, table D.1, if nothing else is said
    "AlphaGo Zero": (2017.8, 1.6e23),  # 1,900 petaflop/s-days, Amodei & Hernandez 2018
    "Transformer, big": (2017.5, 2.3e19),  # Vaswani et al. 2017, table 2
    "BERT-Large": (2018.8, 5.33e20),
    "T5-11B": (2019.8, 3.3e22),
    "GPT-3": (2020.4, 3.14e23),
    "PaLM": (2022.3, 2.53e24),  # 6 N D of Chowdhery et al. 2022: 540 billion parameters, 780 billion tokens
}
ALEXNET = (2012.7, 5e17)  # two GPUs of 1.6e12 operations a second for six days, at a third of that


def eras() -> Figure:
    """Computing spent on single trainings, and computing needed for one and the same result."""
    fig, (left, right) = figure(12.2, 4.6, columns=2)
    before, after = np.array([2006.0, 2012.7]), np.array([2012.7, 2018.0])
    left.plot(before, ALEXNET[1] * 2 ** ((before - 2012.7) / 2), color=GREY, label="twice as much in 2 years")
    left.plot(
        after,
        ALEXNET[1] * 2 ** ((after - 2012.7) * 12 / 3.4),
        color=OTHER,
        linestyle="--",
        label="twice as much in 3.4 months",
    )
    for name, (year, cost) in {"AlexNet": ALEXNET, **MODELS}.items():
        left.plot(year, cost, "o", color=HERO)
        left.annotate(name, (year, cost), (6, -4), textcoords="offset points", fontsize=11)
    left.set(yscale="log", xlabel="year", ylabel="operations of one training", xlim=(2006, 2024.5))
    left.set_xticks(range(2006, 2025, 4))
    left.set_title("Two eras of computing")
    left.legend(frameon=False, fontsize=11, loc="upper left")
    years = np.linspace(2012, 2019, 30)
    right.plot(years, 2 ** -((years - 2012) * 12 / 16), color=HERO, label="half as much every 16 months")
    right.plot([2012, 2019], [1, 1 / 44], "o", color=HERO)
    right.annotate("AlexNet", (2012, 1), (8, -4), textcoords="offset points", fontsize=11)
    right.annotate(
        "EfficientNet: a 44th", (2019, 1 / 44), (-6, -18), textcoords="offset points", fontsize=11, ha="right"
    )
    right.set(yscale="log", xlabel="year", ylabel="computing for AlexNet's accuracy", ylim=(0.012, 1.6))
    right.set_yticks([1, 0.5, 0.1, 0.02], ["1", "1/2", "1/10", "1/50"])
    right.minorticks_off()
    right.set_title("Better methods need less of it")
    right.legend(frameon=False, fontsize=11)
    return fig
