"""The figures of lesson 09: runs, the laws through them, and what others have published."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.functional.scaling import ScalingLaw
from course_lib.lessons.lesson_09.laws import Runs, at
from course_lib.viz.marks import HERO, OTHER, PREDICTION, label
from course_lib.viz.style import CYCLE, GREY, LINE_STYLES, figure


def _grid(axes: Axes, runs: Runs, law: ScalingLaw | None) -> None:
    for size, colour, style in zip(sorted({run["parameters"] for run in runs}), CYCLE, LINE_STYLES, strict=False):
        own = sorted((run["tokens"], run["test"]) for run in runs if run["parameters"] == size)
        tokens, losses = zip(*own, strict=True)
        axes.plot(tokens, losses, "o", linestyle="none" if law else style, color=colour, label=f"N = {size:,}")
        if law:
            many = np.geomspace(tokens[0], tokens[-1], 40)
            axes.plot(many, [at(law, size, float(d)) for d in many], linestyle=style, color=colour, linewidth=2)
    axes.set(xscale="log", xlabel="tokens read", ylabel="loss, nats per character")
    amounts = sorted({run["tokens"] for run in runs})
    axes.set_xticks(amounts, [f"{tokens / 1e6:.2g} M" for tokens in amounts])
    axes.minorticks_off()
    axes.legend(frameon=False)


def lines(x: Sequence[float], y: Sequence[float], fits: Mapping[str, Sequence[float]], what: str) -> Figure:
    """Points in logarithms, and curves through them."""
    fig, axes = figure(9.0, 4.0)
    axes.plot(x, y, "o", linestyle="none", color="black", markersize=9)
    many = np.geomspace(min(x), 30 * max(x), 40)
    for (name, (a, b, c)), colour, style in zip(fits.items(), (HERO, OTHER), ("-", "--"), strict=False):
        axes.plot(many, a * many**-b + c, color=colour, linestyle=style, label=name)
    axes.set(xscale="log", yscale="log", xlabel=what, ylabel="loss, nats per character")
    axes.set_yticks([0.8, 1, 1.25, 1.5, 2], ["0.8", "1", "1.25", "1.5", "2"])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return fig


def tenfold(runs: Runs, best: Runs, law: tuple[float, float], predicted: float | None = None) -> Figure:
    """All runs over what they cost; the best of each budget, and the power law through them."""
    fig, axes = figure(9.0, 4.2)
    axes.plot(
        [r["flops"] for r in runs],
        [r["test"] for r in runs],
        "o",
        linestyle="none",
        color=GREY,
        alpha=0.45,
        label="other runs",
    )
    cost = np.array([r["flops"] for r in best])
    axes.plot(cost, [r["test"] for r in best], "o", linestyle="none", color=HERO, markersize=9)
    a, b = law
    axes.plot(cost, a * cost**-b, color=HERO, label=f"the best for their cost: $L = a \\, C^{{-{b:.2f}}}$")
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
        xscale="log", yscale="log", xlabel="operations, 6 N D", ylabel="loss, nats per character", ylim=(1.25, 2.9)
    )
    axes.set_yticks([1.3, 1.5, 2, 2.5], ["1.3", "1.5", "2", "2.5"])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return fig


Valleys = Mapping[float, Mapping[int, Sequence[float]]]  # budget -> parameters -> losses of all seeds


def valleys(measured: Valleys, law: ScalingLaw) -> Figure:
    """Runs of three budgets, and a law of other runs at the same budgets."""
    fig, axes = figure(9.0, 4.2)
    for (budget, runs), colour, marker, style in zip(measured.items(), CYCLE, "osD", LINE_STYLES, strict=False):
        _seeds(axes, runs, colour, marker, "")
        many = np.geomspace(min(runs) / 1.15, max(runs) * 1.15, 40)
        losses = [at(law, n, budget / (6 * n)) for n in many]
        axes.plot(many, losses, color=colour, linestyle=style)
        label(axes, many[-1], losses[-1], _budget(budget), colour)
    axes.set(xscale="log", xlabel="parameters N", ylabel="loss, nats per character", xlim=(1.2e3, 2.8e5))
    axes.set_title("points: measured, lines: the law")
    axes.minorticks_off()
    return fig


def _budget(budget: float) -> str:
    return f"C = {budget / 1e10:.0f} · 10¹⁰"


def _seeds(axes: Axes, runs: Mapping[float, Sequence[float]], colour: str, marker: str, name: str) -> None:
    """The mean over seeds, with a bar from the lowest to the highest."""
    means = np.array([np.mean(losses) for losses in runs.values()])
    ends = np.array([[min(losses), max(losses)] for losses in runs.values()])
    bars = [means - ends[:, 0], ends[:, 1] - means]
    axes.errorbar([*runs], means, yerr=bars, fmt=marker, color=colour, markersize=8, capsize=3, label=name)


def off_parabola(measured: Valleys) -> dict[float, dict[int, float]]:
    """How far the mean loss of each run lies above the parabola of its budget, in nats."""
    found = {}
    for budget, runs in measured.items():
        u, means = np.log([*runs]), np.array([np.mean(losses) for losses in runs.values()])
        left = means - np.polyval(np.polyfit(u, means, 2), u)
        found[budget] = dict(zip(runs, left.tolist(), strict=True))
    return found


def isoflop(measured: Valleys, best: Mapping[float, float], left: Mapping[float, Mapping[int, float]]) -> Figure:
    """The loss over the size for each budget, with parabolas and their lowest points; and what is left over."""
    fig, (axes, rest) = figure(11.4, 4.6, columns=2)
    for (budget, runs), colour, marker in zip(measured.items(), CYCLE, "osD", strict=False):
        _seeds(axes, runs, colour, marker, _budget(budget))
        u, means = np.log([*runs]), [np.mean(losses) for losses in runs.values()]
        p = np.polyfit(u, means, 2)
        many = np.linspace(u.min() - 0.2, u.max() + 0.2, 40)
        axes.plot(np.exp(many), np.polyval(p, many), color=colour, linestyle="-", linewidth=2)
        axes.plot(best[budget], np.polyval(p, np.log(best[budget])), "v", color="black", markersize=9)
        rest.plot([*left[budget]], [*left[budget].values()], marker, linestyle="-", color=colour, linewidth=1.2)
    axes.set(xscale="log", xlabel="parameters N", ylabel="loss, nats per character", ylim=(1.45, 2.45))
    fig.legend(loc="outside upper center", ncols=3)
    rest.axhline(0, color=GREY, linestyle=":", linewidth=1.5)
    rest.set(xscale="log", xlabel="parameters N", ylabel="loss minus parabola, nats")
    return fig


def predicted(
    runs: Runs,
    law: ScalingLaw,
    largest: Mapping[str, float],
    interval: tuple[float, float],
    predicted: float | None = None,
) -> Figure:
    """The grid with its law; a run far outside of it, with the law's interval for it."""
    fig, axes = figure(9.2, 4.5)
    _grid(axes, runs, law)
    tokens = np.geomspace(min(run["tokens"] for run in runs), largest["tokens"], 40)
    axes.plot(tokens, [at(law, largest["parameters"], float(d)) for d in tokens], color="black", linestyle=":")
    axes.plot(
        [largest["tokens"]] * 2, interval, color=GREY, linestyle="-", linewidth=14, alpha=0.5, label="90 % interval"
    )
    axes.plot(
        largest["tokens"],
        largest["test"],
        "D",
        color="black",
        markersize=10,
        label=f"N = {largest['parameters']:,}, not in the fit",
    )
    if predicted is not None:
        axes.plot(largest["tokens"], predicted, "*", color=PREDICTION, markersize=18, label="your prediction")
    amounts = [*sorted({run["tokens"] for run in runs}), largest["tokens"]]
    axes.set_xticks(amounts, [f"{amount / 1e6:.2g} M" for amount in amounts])
    axes.set_ylim(1.1, 2.75)
    axes.legend(frameon=False, ncols=2)
    return fig


def sharp(models: Sequence[Mapping]) -> Figure:
    """Smooth and sharp metrics of the same models, over what they cost."""
    fig, panels = figure(11.8, 4.3, columns=3)
    cost = [one["flops"] for one in models]
    shown = (
        ("loss,\nnats per character", [one["loss"] for one in models], HERO),
        ("next character\ncorrect, %", [100 * one["right"][1] for one in models], HERO),
        ("next 8 all\ncorrect, %", [100 * one["right"][8] for one in models], OTHER),
    )
    for axes, (name, values, colour) in zip(panels, shown, strict=True):
        axes.plot(cost, values, "o", linestyle="none", color=colour)
        axes.set(xscale="log", xlabel="operations, 6 N D", ylabel=name, ylim=(0, 1.1 * max(values)))
    return fig


def repeated(
    fresh: Mapping[int, Sequence[float]], again: Mapping[int, Sequence[float]], predicted: float | None = None
) -> Figure:
    """The loss over the tokens that were read: new ones, and the same ones again."""
    fig, axes = figure(8.6, 3.8)
    for runs, colour, marker, style, name in (
        (again, OTHER, "s", "--", "the same 125,000 characters\nagain and again"),
        (fresh, HERO, "o", "-", "new characters"),
    ):
        _seeds(axes, runs, colour, marker, name)
        axes.plot([*runs], [np.mean(losses) for losses in runs.values()], color=colour, linestyle=style, linewidth=2)
    if predicted is not None:
        axes.plot(max(again), predicted, "*", color=PREDICTION, markersize=18, label="your prediction")
    axes.set(xscale="log", xlabel="characters read in training", ylabel="test loss, nats per character")
    axes.set_xticks([*fresh], [f"{tokens:,}" for tokens in fresh])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower left")
    return fig


MODELS = {  # year and operations of the training; Brown et al. 2020, table D.1, if nothing else is said
    "AlphaGo Zero": (2017.8, 1.6e23),  # 1,900 petaflop/s-days, Amodei & Hernandez 2018
    "Transformer, big": (2017.5, 2.3e19),  # Vaswani et al. 2017, table 2
    "BERT-Large": (2018.8, 5.33e20),
    "T5-11B": (2019.8, 3.3e22),
    "GPT-3": (2020.4, 3.14e23),
    "PaLM": (2022.3, 2.53e24),  # 6 N D of Chowdhery et al. 2022: 540 billion parameters, 780 billion tokens
    "Llama 3, 405B": (2024.5, 3.8e25),  # Llama Team 2024, arXiv 2407.21783, section 1
    "DeepSeek-V3": (2024.95, 3.3e24),  # 6 N D of arXiv 2412.19437: 37 billion active parameters, 14.8 trillion tokens
}
ALEXNET = (2012.7, 5e17)  # two GPUs of 1.6e12 operations a second for six days, at a third of that


def eras() -> Figure:
    """Compute spent on single trainings."""
    fig, axes = figure(9.0, 4.2)
    before, after = np.array([2006.0, 2012.7]), np.array([2012.7, 2018.0])
    axes.plot(before, ALEXNET[1] * 2 ** ((before - 2012.7) / 2), color=GREY, label="twice as much in 2 years")
    axes.plot(
        after,
        ALEXNET[1] * 2 ** ((after - 2012.7) * 12 / 3.4),
        color=OTHER,
        linestyle="--",
        label="twice as much in 3.4 months",
    )
    for name, (year, cost) in {"AlexNet": ALEXNET, **MODELS}.items():
        axes.plot(year, cost, "o", color=HERO)
        right = name != "AlphaGo Zero"
        place, side = ((6, -4), "left") if right else ((-6, -2), "right")
        axes.annotate(name, (year, cost), place, textcoords="offset points", ha=side)
    axes.set(yscale="log", xlabel="year", ylabel="operations of one training", xlim=(2006, 2029))
    axes.set_xticks(range(2006, 2027, 4))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper left")
    return fig
