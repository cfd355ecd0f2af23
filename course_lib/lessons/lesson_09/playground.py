"""What one plays with in lesson 09: a budget of computing, and a model to spend it on."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import torch
from matplotlib.figure import Figure

from course_lib.classroom.widgets import Explorer, Goal, Slider
from course_lib.functional.scaling import PowerLaw, ScalingLaw
from course_lib.lessons.lesson_09 import laws
from course_lib.lessons.lesson_09.laws import Runs
from course_lib.viz.style import GREY, PALETTE, figure

NEAR = 2.0  # a run is near a budget that is this many times larger or smaller, at most


def compute(runs: Runs, law: ScalingLaw | None = None) -> Explorer:
    """A budget and a size: how much text is left, what loss the law promises, and what was measured nearby."""
    budgets, sizes = (9, 13), (3, 6.5)  # powers of ten
    law = law or laws.law()

    @lru_cache(maxsize=64)
    def spent(budget: float, size: float) -> tuple[float, float, float, float]:
        """Tokens, the loss; and the best size with its loss."""
        tokens = budget / (6 * size)
        best, _, lowest = laws.best_split(law, budget)
        return tokens, laws.at(law, size, tokens), best, lowest

    def best(state) -> float:
        return spent(state["budget"], state["size"])[2]

    def words(state) -> str:
        size, (tokens, loss, fittest, lowest) = state["size"], spent(state["budget"], state["size"])
        above = max(0.0, 100 * (loss / lowest - 1))
        return (
            f"{_round(size)} parameters and {_round(state['budget'])} operations leave {_round(tokens)} tokens for "
            f"training. The law predicts a loss of {loss:.2f} nats per character. The best size for this budget is "
            f"{_round(fittest)} parameters, with {lowest:.2f} nats: yours is {above:.0f} % above it."
        )

    def draw(state) -> Figure:
        return _valley(runs, law, state["budget"], state["size"])

    return Explorer(
        name="compute",
        title="Spend your computing",
        controls=[
            Slider(name="budget", label="operations", low=budgets[0], high=budgets[1], step=0.1, value=1e10, log=True),
            Slider(name="size", label="parameters", low=sizes[0], high=sizes[1], step=0.05, value=1e4, log=True),
        ],
        draw=draw,
        alt=words,
        height="38em",
        goals=(
            Goal("twice the best size or more, within 3 % of the best loss",
                 lambda state: state["size"] >= 2 * best(state) and _within(spent, state, 0.03)),
            Goal("100,000 parameters at the budget for which they are best (both within 10 %)",
                 lambda state: abs(state["size"] / 1e5 - 1) < 0.1 and abs(best(state) / 1e5 - 1) < 0.1),
            Goal("fewer tokens than parameters, and a loss 30 % above the best",
                 lambda state: state["budget"] < 6 * state["size"] ** 2 and not _within(spent, state, 0.3)),
        ),
        steps={"budget": (1e10, 1e11, 1e12), "size": (1e4, 1e5)},
        script="compute",
        config={
            "law": asdict(law),
            "runs": [[run[name] for name in ("parameters", "tokens", "flops", "test")] for run in runs],
            "budgets": budgets,
            "sizes": sizes,
            "start": {"budget": 1e10, "size": 1e4, "along": False},
        },
    )  # fmt: skip


def _within(spent, state, share: float) -> bool:
    _, loss, _, lowest = spent(state["budget"], state["size"])
    return loss <= (1 + share) * lowest


def _round(value: float) -> str:
    """Two digits, with thousands parted, or as a power of ten."""
    if value >= 1e8:
        return f"{value:.1e}".replace("e+", "e")
    digits = max(0, len(str(int(value))) - 2)
    return f"{round(value, -digits):,.0f}"


def _valley(runs: Sequence[laws.Record], law: ScalingLaw, budget: float, size: float) -> Figure:
    fig, axes = figure(9.0, 4.0)
    sizes = np.geomspace(1e3, 3.2e6, 60)
    axes.plot(sizes, [laws.at(law, n, budget / (6 * n)) for n in sizes], color=PALETTE["blue"], linewidth=3,
              label="the law, for this budget")  # fmt: skip
    near = [run for run in runs if 1 / NEAR < run["flops"] / budget < NEAR]
    axes.plot([run["parameters"] for run in near], [run["test"] for run in near], "o", linestyle="none", color=GREY,
              label="runs that cost half to twice as much")  # fmt: skip
    best, _, lowest = laws.best_split(law, budget)
    axes.plot(best, lowest, "v", color="black", markersize=11, label="the best size")
    axes.plot(
        size, laws.at(law, size, budget / (6 * size)), "D", color=PALETTE["vermilion"], markersize=12, label="yours"
    )
    axes.set(xscale="log", xlabel="parameters", ylabel="loss, nats per character", ylim=(0.8, 4.0))
    axes.minorticks_off()
    axes.legend(frameon=False, loc="upper right")
    return fig


# ------------------------------------------------------------------------------------------------- a law by hand


EXPONENTS = {"low": 0.02, "high": 0.8, "step": 0.01}
FLOORS = {"low": 0.0, "high": 1.25, "step": 0.05}


def by_hand(runs: Runs) -> Explorer:
    """An exponent and a floor to choose; how far the curve misses, and what it promises for larger models."""
    most = max(run["tokens"] for run in runs)
    x, y = laws.columns([run for run in runs if run["tokens"] == most], "parameters", "test")

    def law(state) -> PowerLaw:
        """The factor is the best one for this exponent and floor, in logarithms."""
        b, c = state["exponent"], state["floor"]
        return PowerLaw(a=float(((y - c).log() + b * x.log()).mean().exp()), b=b, c=c)

    def miss(state) -> float:
        return float((law(state)(x) / y - 1).abs().max())

    def promised(state) -> float:
        return float(law(state)(torch.tensor([1e8])))

    def words(state) -> str:
        return (
            f"With exponent {state['exponent']:.2f} and floor {state['floor']:.2f} the curve misses a run by "
            f"{100 * miss(state):.0f} % at most. For 100 million parameters it promises {promised(state):.2f} nats."
        )

    def draw(state) -> Figure:
        fig, axes = figure(9.0, 3.8)
        sizes = torch.logspace(3.5, 8, 40, dtype=torch.float64)
        axes.plot(x, y, "o", linestyle="none", color="black", markersize=9)
        axes.plot(sizes, law(state)(sizes), color=PALETTE["blue"])
        axes.axhline(state["floor"], color=GREY, linestyle=":")
        axes.set(xscale="log", xlabel="parameters", ylabel="loss, nats per character", ylim=(0, 2.4))
        axes.minorticks_off()
        return fig

    return Explorer(
        name="fit",
        title="A law by hand",
        controls=[
            Slider(name="exponent", label="exponent b", value=0.2, **EXPONENTS),
            Slider(name="floor", label="floor c", value=0.0, **FLOORS),
        ],
        draw=draw,
        alt=words,
        goals=(
            Goal("no floor, and no run missed by more than 5 %",
                 lambda state: state["floor"] == 0 and miss(state) < 0.05),
            Goal("no run missed by more than 4 %, and less than 0.8 nats promised",
                 lambda state: miss(state) < 0.04 and promised(state) < 0.8),
            Goal("no run missed by more than 4 %, and more than 1.1 nats promised",
                 lambda state: miss(state) < 0.04 and promised(state) > 1.1),
        ),
        steps={"floor": (0.0, 0.6, 1.0), "exponent": (0.1, 0.2, 0.4)},
        script="powerlaw",
        config={
            "sizes": x.tolist(),
            "losses": y.tolist(),
            "exponents": EXPONENTS,
            "floors": FLOORS,
            "start": {"exponent": 0.2, "floor": 0.0},
        },
    )  # fmt: skip


PLAYGROUNDS = {"compute": compute, "fit": by_hand}
