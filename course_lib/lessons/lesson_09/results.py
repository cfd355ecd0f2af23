"""Lesson 09, Scaling laws: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.functional.scaling import ALLOCATIONS, fit_power_law
from course_lib.lessons.lesson_09 import figures, laws, recipes
from course_lib.lessons.lesson_09.laws import Runs
from course_lib.lessons.lesson_09.recipes import columns
from course_lib.tasks.claims import above, below

Card = Mapping[str, Any]
Fit = Callable[[Tensor, Tensor], Tensor]
LEVEL, RESAMPLES = 0.9, 1000


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table whose first column names the rows."""
    top = "".join(f"<th>{html.escape(words)}</th>" for words in head)
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>'
        + "".join(f'<td style="text-align:right">{html.escape(cell)}</td>' for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    return f"<div><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def counted(steps: Sequence[laws.Counted], *, predicted=None) -> Result:
    rows = [
        (step.name, f"{step.counted:.3g}", f"{step.ruled:.3g}", f"{step.counted / step.ruled:.2f}") for step in steps
    ]
    ratios = [step.counted / step.ruled for step in steps]
    return Result(
        table(("one step, 32 tokens", "operations counted", "6 N D", "ratio"), rows),
        claims={"width": (ratios[0] > ratios[1] > ratios[2], below(abs(ratios[2] - 1), 0.15))},
    )


def mini(runs: Runs, *, predicted=None) -> Result:
    ends = {run["dim"]: run["test"] for run in runs if run["tokens"] == max(run["tokens"] for run in runs)}
    falls = [[run["test"] for run in sorted(runs, key=lambda run: run["tokens"]) if run["dim"] == dim] for dim in ends]
    return Result(
        figures.grid(runs),
        claims={
            "size": above(min(ends[12], ends[20]) - ends[32], 0),
            "text": above(min(-np.diff(falls).max(axis=1)), 0),
        },
    )


def line(runs: Runs, fit: Fit, interval: Callable[..., Tensor], *, predicted=None) -> Result:
    most = max(run["tokens"] for run in runs)
    chosen = sorted((run for run in runs if run["tokens"] == most), key=lambda run: run["parameters"])
    x, y = columns(chosen, "parameters", "test")
    a, b = fit(x, y).tolist()
    draws = torch.Generator().manual_seed(0)
    picks = torch.randint(len(x), (RESAMPLES, len(x)), generator=draws)
    picks = picks[[len(set(row)) > 1 for row in picks.tolist()]]
    low, high = interval(x, y, picks, LEVEL).tolist()
    bent = fit_power_law(x, y)
    fits = {
        f"$L = {a:.1f} \\, N^{{-{b:.2f}}}$": (a, b, 0.0),
        f"$L = {bent.a:.0f} \\, N^{{-{bent.b:.2f}}} + {bent.c:.2f}$": (bent.a, bent.b, bent.c),
    }
    return Result(
        figures.lines(x.tolist(), y.tolist(), fits, "parameters"),
        claims={"positive": low > 0},
        values={"factor": 10 ** (-b), "low": low, "high": high, "bent": bent.b},
    )


def tenfold(groups: Mapping[str, Runs], fit: Fit, *, predicted=None) -> Result:
    runs, (largest,) = [*groups["grid"], *groups["isoflop"]], groups["largest"]
    best = [run for run in laws.frontier(runs) if run["flops"] > 1.5e10]
    half = len(best) // 2
    exponents = [fit(*columns(part, "flops", "test"))[1].item() for part in (best[: half + 1], best[half:])]
    a, b = fit(*columns(best, "flops", "test")).tolist()
    fall, cheap, dear = (100 * (1 - 10**-exponent) for exponent in (b, *exponents))
    carried = a * largest["flops"] ** -b
    return Result(
        figures.tenfold(runs, best, largest, (a, b), predicted),
        claims={
            "one line": best[-1]["flops"] > 50 * best[0]["flops"]
            and all(abs(np.log(a * run["flops"] ** -b / run["test"])) < 0.05 for run in best)
        },
        came=fall,
        values={"fall": fall, "cheap": cheap, "dear": dear, "carried": carried, "reached": largest["test"]},
    )


def efficient(runs: Runs, *, predicted=None) -> Result:
    goals = (2.1, 1.9, 1.7)
    reached = [laws.tokens_to_reach(runs, goal) for goal in goals]
    sizes = {run["dim"]: run["parameters"] for run in runs}
    rows = [
        (f"{sizes[width]:,} parameters", *("–" if found[width] is None else f"{found[width]:,}" for found in reached))
        for width in sizes
    ]
    needed = [found[64] for found in reached[1:]], [found[20] for found in reached[1:]]
    return Result(
        table(("tokens read to reach", *(f"{goal} nats" for goal in goals)), rows),
        claims={"tokens": all(large <= small / 1.5 for large, small in zip(*needed, strict=True))},
    )


def shape(groups: Mapping[str, Runs], *, predicted=None) -> Result:
    tokens = groups["shapes"][0]["tokens"]
    runs = [*groups["shapes"], *(r for r in groups["grid"] if r["dim"] == 32 and r["tokens"] == tokens)]
    runs = sorted(runs, key=lambda run: run["depth"])
    losses = [run["test"] for run in runs]
    apart = 100 * (max(losses) / min(losses) - 1)
    rows = [(f"{r['depth']} x {r['dim']} wide", f"{r['parameters']:,}", f"{r['test']:.2f}") for r in runs]
    return Result(
        table(("blocks", "parameters", "loss, nats"), rows),
        claims={"flat": max(losses[:3]) < 1.08 * min(losses[:3])},
        came=apart,
    )


def isoflop(groups: Mapping[str, Runs], best_size: Callable[[Tensor, Tensor], float], *, predicted=None) -> Result:
    budgets, runs = [budget for budget, _ in recipes.ScalingSettings().isoflop], [*groups["isoflop"]]
    parts = {}
    for budget, (_, dims) in zip(budgets, recipes.ScalingSettings().isoflop, strict=True):
        parts[budget], runs = runs[: len(dims)], runs[len(dims) :]
    best = {budget: best_size(*columns(part, "parameters", "test")) for budget, part in parts.items()}
    slope = np.polyfit(np.log(list(best)), np.log(list(best.values())), 1)[0]
    law = laws.law()
    rows = [(f"{name}", f"{a:.2f}", f"{b:.2f}") for name, (a, b) in ALLOCATIONS.items()]
    rows.append(("ours, lowest points", f"{slope:.2f}", f"{1 - slope:.2f}"))
    both = law.alpha + law.beta
    rows.append(("ours, from the law of the 25 runs", f"{law.beta / both:.2f}", f"{law.alpha / both:.2f}"))
    shown = "; ".join(f"{name}: {a} and {b}" for name, a, b in rows[-2:])
    return Result(
        figures.isoflop(parts, best, slope),
        claims={"grows": 0.1 < slope < 1 and list(best.values()) == sorted(best.values())},
        values={"shown": shown},
    )


def predicted(groups: Mapping[str, Runs], card: Card, *, predicted=None) -> Result:
    law, (largest,) = laws.law(), groups["largest"]
    guess = laws.at(law, largest["parameters"], largest["tokens"])
    wide = [laws.at(one, largest["parameters"], largest["tokens"]) for one in laws.resampled_laws()]
    low, high = np.quantile(wide, [0.05, 0.95])
    misses = [
        abs(predicted / measured - 1)
        for predicted, measured in zip(
            laws.of_card(card, "predicted"), laws.of_card(card, "nats per character, largest"), strict=True
        )
    ]
    best = min(run["test"] for run in groups["grid"])
    floors, alphas, betas = (laws.of_card(card, name) for name in ("E", "alpha", "beta"))
    return Result(
        figures.predicted(groups["grid"], law, largest, predicted),
        claims={"close": max(misses) < 0.05},
        came=largest["test"],
        values={
            "guess": guess,
            "low": low,
            "high": high,
            "reached": largest["test"],
            "side": "inside" if low <= largest["test"] <= high else "*outside*",
            "gap": 100 * (best / largest["test"] - 1),
            "misses": ", ".join(f"{100 * miss:.1f}" for miss in misses),
            "lowest_floor": min(floors),
            "highest_floor": max(floors),
            "lowest_alpha": min(alphas),
            "highest_alpha": max(alphas),
            "lowest_beta": min(betas),
            "highest_beta": max(betas),
        },
    )


def eras(*, predicted=None) -> Result:
    return Result(figures.eras())


RESULTS = {
    "counted": counted,
    "mini": mini,
    "line": line,
    "tenfold": tenfold,
    "efficient": efficient,
    "shape": shape,
    "isoflop": isoflop,
    "predicted": predicted,
    "eras": eras,
}
