"""Lesson 09, Scaling laws: its results, each with its figure or table, its claims and what was measured."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed, load_trained
from course_lib.functional.scaling import fit_power_law
from course_lib.lessons.lesson_09 import figures, laws
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


def valleys(*, predicted=None) -> Result:
    """Runs of three budgets, and the law that was fitted to other runs, at exactly these budgets."""
    measured, law = laws.valleys(), laws.law()
    misses = {
        budget: [np.mean(losses) / laws.at(law, size, budget / (6 * size)) - 1 for size, losses in runs.items()]
        for budget, runs in measured.items()
    }
    all_of_them = [abs(miss) for of_one in misses.values() for miss in of_one]
    return Result(
        figures.valleys(measured, law),
        claims={"near": below(float(np.median(all_of_them)), 0.03)},
        values={
            "median": 100 * float(np.median(all_of_them)),
            **{
                f"worst{number}": 100 * float(max(map(abs, of_one))) for number, of_one in enumerate(misses.values(), 1)
            },
        },
    )


def counted(
    counts: Mapping[tuple[int, int], int], flops: Callable[..., float], *, vocab: int = 77, predicted=None
) -> Result:
    rows, ratios, off = [], [], []
    for (dim, depth), count in counts.items():
        by_hand, ruled = flops(dim, depth, 32, vocab, 32), 6 * 12 * depth * dim**2 * 32
        again = 2 * depth * 32 * 32 * dim  # the scores of a fused attention, computed once more in the backward pass
        ratios.append(count / ruled)
        off.append(min(abs(count - by_hand), abs(count - by_hand - again)) / count)
        rows.append((f"{depth} blocks, {dim} wide", f"{count:,}", f"{by_hand:,.0f}", f"{ruled:,}", f"{ratios[-1]:.2f}"))
    return Result(
        table(("one step, 32 tokens", "PyTorch counts", "your function", "6 N D", "counted / 6 N D"), rows),
        claims={
            "exact": below(max(off), 1e-6),
            "width": (ratios == sorted(ratios, reverse=True), below(abs(ratios[-1] - 1), 0.05)),
        },
        values={"wide": ratios[-1]},
    )


def mini(runs: Runs, *, predicted=None) -> Result:
    amounts = sorted({run["tokens"] for run in runs})
    found = {(run["parameters"], run["tokens"]): run["test"] for run in runs}
    sizes = sorted({size for size, _ in found})
    rows = [(f"{size:,} parameters", *(varies(f"{found[size, tokens]:.2f}") for tokens in amounts)) for size in sizes]
    falls = [found[size, amounts[0]] - found[size, amounts[-1]] for size in sizes]
    return Result(
        table(("loss in nats after", *(f"{tokens:,} characters" for tokens in amounts)), rows),
        claims={"text": above(float(min(falls)), 0)},
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
    law = laws.law()
    fits = {
        f"$L = {a:.1f} \\, N^{{-{b:.2f}}}$": (a, b, 0.0),
        f"$L = {bent.a:.0f} \\, N^{{-{bent.b:.2f}}} + {bent.c:.2f}$": (bent.a, bent.b, bent.c),
    }
    return Result(
        figures.lines(x.tolist(), y.tolist(), fits, "parameters N"),
        claims={"positive": above(low, 0.04)},
        values={
            "factor": 10 ** (-b),
            "low": low,
            "high": high,
            "bent": bent.b,
            "floor": bent.c,
            "joint": law.E + law.B * most**-law.beta,
            "E": law.E,
        },
    )


def tenfold(groups: Mapping[str, Runs], fit: Fit, *, predicted=None) -> Result:
    runs = [*groups["grid"], *groups["isoflop"]]
    best = [run for run in laws.frontier(runs) if run["flops"] > 1.5e10]
    half = len(best) // 2
    exponents = [fit(*columns(part, "flops", "test"))[1].item() for part in (best[: half + 1], best[half:])]
    a, b = fit(*columns(best, "flops", "test")).tolist()
    fall, low_cost, high_cost = (100 * (1 - 10**-exponent) for exponent in (b, *exponents))
    law = laws.law()
    gamma = law.alpha * law.beta / (law.alpha + law.beta)
    at10, at11, at12 = (laws.best_split(law, cost)[2] for cost in (1e10, 1e11, 1e12))
    return Result(
        figures.tenfold(runs, best, (a, b), predicted),
        claims={
            "one line": best[-1]["flops"] > 50 * best[0]["flops"]
            and all(abs(np.log(a * run["flops"] ** -b / run["test"])) < 0.05 for run in best)
        },
        came=fall,
        values={
            "fall": fall,
            "first": low_cost,
            "second": high_cost,
            "E": law.E,
            "gamma": gamma,
            "above": 10**-gamma,
            "at10": at10,
            "at11": at11,
            "at12": at12,
            "drop1": 100 * (1 - at11 / at10),
            "drop2": 100 * (1 - at12 / at11),
        },
    )


def efficient(runs: Runs, *, predicted=None) -> Result:
    goals = (2.1, 1.9, 1.7)
    reached = [laws.tokens_to_reach(runs, goal) for goal in goals]
    sizes = {run["dim"]: run["parameters"] for run in runs}
    rows = [
        (f"{sizes[width]:,} parameters", *("–" if found[width] is None else f"{found[width]:,}" for found in reached))
        for width in sizes
    ]
    return Result(table(("tokens read to reach", *(f"{goal} nats" for goal in goals)), rows))


def predicted(groups: Mapping[str, Runs], theta: Tensor, foretold: Tensor, card: Card, *, predicted=None) -> Result:
    """The law of the learner's fit, what its resamples foretell for the largest run, and what that run reached."""
    (largest,) = groups["largest"]
    low, high = foretold.quantile(torch.tensor([0.05, 0.95], dtype=foretold.dtype)).tolist()
    guess = laws.of_parameters(theta)
    misses = [
        abs(said / measured - 1)
        for said, measured in zip(by_seed(card, "predicted"), by_seed(card, "nats per character, largest"), strict=True)
    ]
    best = min(run["test"] for run in groups["grid"])
    floors, alphas, betas = (by_seed(card, name) for name in ("E", "alpha", "beta"))
    line = [run for run in laws.frontier([*groups["grid"], *groups["isoflop"]]) if run["flops"] > 1.5e10]
    slope, height = np.polyfit(*(np.log([run[name] for run in line]) for name in ("flops", "test")), 1)
    return Result(
        figures.predicted(groups["grid"], guess, largest, (low, high), predicted),
        claims={"close": below(max(misses), 0.05)},
        came=largest["test"],
        values={
            "guess": laws.at(guess, largest["parameters"], largest["tokens"]),
            "low": low,
            "high": high,
            "reached": largest["test"],
            "side": "inside" if low <= largest["test"] <= high else "*outside*",
            "gap": 100 * (best / largest["test"] - 1),
            "over": sum(
                abs(np.log(laws.at(guess, run["parameters"], run["tokens"]) / run["test"])) > 1e-3
                for run in groups["grid"]
            ),
            "straight": float(np.exp(height) * largest["flops"] ** slope),
            "misses": ", ".join(f"{100 * miss:.1f}" for miss in misses),
            "lowest_floor": min(floors),
            "highest_floor": max(floors),
            "lowest_alpha": min(alphas),
            "highest_alpha": max(alphas),
            "lowest_beta": min(betas),
            "highest_beta": max(betas),
        },
    )


def isoflop(best_size: Callable[[Tensor, Tensor], float], *, predicted=None) -> Result:
    """Parabolas through the mean losses of each budget, and what is left over."""
    measured, best = laws.valleys(), {}
    for budget, runs in measured.items():
        sizes = torch.tensor([*runs], dtype=torch.float64)
        best[budget] = best_size(sizes, torch.tensor([np.mean(losses) for losses in runs.values()]).double())
    left = figures.off_parabola(measured)
    off, outlier, at = max((abs(value), size, budget) for budget, row in left.items() for size, value in row.items())
    alphas, betas = (by_seed(load_trained("scaling").card, name) for name in ("alpha", "beta"))
    exponents = [beta / (alpha + beta) for alpha, beta in zip(alphas, betas, strict=True)]
    return Result(
        figures.isoflop(measured, best, left),
        claims={"grows": [*best.values()] == sorted(best.values())},
        values={"exponents": ", ".join(f"{one:.2f}" for one in exponents)}
        | {"off": off, "outlier": outlier, "seeds": ", ".join(f"{loss:.2f}" for loss in measured[at][outlier])}
        | {f"off{number}": max(map(abs, values.values())) for number, values in enumerate(left.values(), 1)},
    )


def sharp(*, predicted=None) -> Result:
    """One set of models under smooth and under sharp metrics."""
    models = laws.all_right()
    first, last = (models[end]["right"] for end in (0, -1))
    low = float(np.median([one["right"][8] for one in models[: len(models) // 2]]))
    return Result(
        figures.sharp(models),
        claims={"sharp": (below(last[1], 2 * first[1]), above(last[8], 5 * low))},
        values={
            "first1": 100 * first[1],
            "last1": 100 * last[1],
            "low8": 100 * low,
            "last8": 100 * last[8],
            "power_first": 100 * first[1] ** 8,
            "power": 100 * last[1] ** 8,
            "models": len(models),
        },
    )


def repeated(*, predicted=None) -> Result:
    """The loss on text that is read again and again, beside new text."""
    fresh, again = (
        {tokens: np.array(losses) for tokens, losses in laws.of_one_size(name).items()}
        for name in ("fresh", "repeated")
    )
    ends = [max(fresh), min(fresh)]
    gaps = [float(again[tokens].mean() - fresh[tokens].mean()) for tokens in ends]
    amounts = sorted(fresh, reverse=True)  # of new text, from the lowest loss on
    means = [fresh[tokens].mean() for tokens in amounts]
    worth = float(np.exp(np.interp(again[ends[0]].mean(), means, np.log(amounts))))
    return Result(
        figures.repeated(fresh, again, predicted),
        claims={"worse": above(gaps[0], 0.05)},
        came=float(again[ends[0]].mean()),
        values={
            "again": float(again[ends[0]].mean()),
            "fresh": float(fresh[ends[0]].mean()),
            "twice": gaps[1],
            "gap": gaps[0],
            "worth": worth / 1000,
            "passes": worth / 125_000,
        },
    )


def eras(*, predicted=None) -> Result:
    return Result(figures.eras())


RESULTS = {
    "valleys": valleys,
    "counted": counted,
    "mini": mini,
    "line": line,
    "tenfold": tenfold,
    "efficient": efficient,
    "isoflop": isoflop,
    "predicted": predicted,
    "sharp": sharp,
    "repeated": repeated,
    "eras": eras,
}
