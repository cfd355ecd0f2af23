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


def counted(steps: Sequence[laws.Counted], *, bet=None) -> Result:
    rows = [
        (step.name, f"{step.counted:.3g}", f"{step.ruled:.3g}", f"{step.counted / step.ruled:.2f}") for step in steps
    ]
    ratios = [step.counted / step.ruled for step in steps]
    return Result(
        table(("one step, 32 tokens", "operations counted", "6 N D", "ratio"), rows),
        alt="A table of three sizes: the operations counted in a training step, the rule 6 N D, and their ratio: "
        "about 1.8 for the narrowest model, 1.15 for 64, 1.03 for 256 wide.",
        claims=(
            ("the wider the model, the better the rule; within 15 % for the widest",
             ratios[0] > ratios[1] > ratios[2], below(abs(ratios[2] - 1), 0.15)),
        ),
        outcome="The rule leaves out what is no weight of a block: the output layer, here 77 numbers for each token, "
        "and the products of attention. In the narrowest model that is nearly half of the work; in GPT-3 it is one "
        "to three per cent. (Hence embeddings and output layer in N or not: it matters for small models, and we come "
        "back to it.)",
    )  # fmt: skip


def mini(runs: Runs, *, bet=None) -> Result:
    ends = {run["dim"]: run["test"] for run in runs if run["tokens"] == max(run["tokens"] for run in runs)}
    falls = [[run["test"] for run in sorted(runs, key=lambda run: run["tokens"]) if run["dim"] == dim] for dim in ends]
    return Result(
        figures.grid(runs),
        alt="The loss of three sizes over 75,000 to 300,000 tokens: each falls, and the largest lies lowest, from "
        "about 2.4 to about 2 nats.",
        claims=(
            ("with 300,000 tokens the largest is best", above(min(ends[12], ends[20]) - ends[32], 0)),
            ("for each size more text is better", above(min(-np.diff(falls).max(axis=1)), 0)),
        ),
        outcome="The largest leads from the start, and all gain from text: in their first fifty thousand tokens the "
        "models mostly learn letters and pairs of letters (about 2.45 nats). One seed each: with another one the two "
        "smaller sizes may change places, so read nothing into small differences here.",
    )


def line(runs: Runs, fit: Fit, interval: Callable[..., Tensor], *, bet=None) -> Result:
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
        alt="The loss of five sizes after 2 million tokens, on logarithmic axes: nearly a straight line, which goes "
        "down from about 2 nats. A second curve, with a floor, follows the points more closely and bends away from "
        "the line to the right.",
        claims=(
            ("the exponent is positive with nine tenths of the resamples", low > 0),
        ),
        outcome=f"Ten times the parameters: the loss times $10^{{-b}} = {10**-b:.2f}$. From resamples: b lies "
        f"between {low:.2f} and {high:.2f}. The dashed curve, which fits better, has b = {bent.b:.2f}: far outside. "
        "The interval says what other draws of *these* runs would do to a *straight line*; it cannot say that the "
        "formula is wrong, nor what another seed would do (section 6). Kaplan et al. (2020) found 0.076 for models "
        "of up to a billion parameters and tokens that are pieces of words: exponents belong to the data and to how "
        "they are measured.",
    )  # fmt: skip


def tenfold(groups: Mapping[str, Runs], fit: Fit, *, bet=None) -> Result:
    runs, (largest,) = [*groups["grid"], *groups["isoflop"]], groups["largest"]
    best = [run for run in laws.frontier(runs) if run["flops"] > 1.5e10]
    half = len(best) // 2
    exponents = [fit(*columns(part, "flops", "test"))[1].item() for part in (best[: half + 1], best[half:])]
    a, b = fit(*columns(best, "flops", "test")).tolist()
    fall, cheap, dear = (100 * (1 - 10**-exponent) for exponent in (b, *exponents))
    carried = a * largest["flops"] ** -b
    return Result(
        figures.tenfold(runs, best, largest, (a, b), bet),
        alt="Forty runs over their operations, on logarithmic axes; those that no cheaper run beats lie nearly on a "
        "straight line from above 2 nats down to about 1.35. One that cost five times as much as the dearest of them "
        "lies above the line's continuation.",
        claims=(
            ("the best runs for their cost lie within 5 % of one power law over a factor of 50 in computing",
             best[-1]["flops"] > 50 * best[0]["flops"]
             and all(abs(np.log(a * run["flops"] ** -b / run["test"])) < 0.05 for run in best)),
        ),
        came=fall,
        outcome=f"On average ten times the computing takes {fall:.0f} % off here, but less each time: {cheap:.0f} % "
        f"in the cheaper half of these runs, {dear:.0f} % in the dearer. Carried on to the run that you will meet "
        f"below (the open diamond), the straight line promises {carried:.2f} nats; it became {largest['test']:.2f}: "
        "in logarithms a straight line has no floor. Kaplan et al. (2020) saw none over more than six orders of "
        "magnitude, with an exponent of 0.050: 11 % for each tenfold.",
    )  # fmt: skip


def efficient(runs: Runs, *, bet=None) -> Result:
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
        alt="A table: how many tokens each size had to read to reach 2.1, 1.9 and 1.7 nats. The two smallest need "
        "most, and the smallest reaches 1.9 not at all; the three largest are about alike.",
        claims=(
            ("the largest needs at most two thirds of the tokens of the second smallest, for 1.9 and 1.7",
             all(large <= small / 1.5 for large, small in zip(*needed, strict=True))),
        ),
        outcome="Larger models are more *sample-efficient*: they learn more from each token. Only five amounts were "
        "tried, so the three largest cannot be told apart here; all need fewer than the two smallest. Where text "
        "is scarce, a larger model gets more out of it, up to a point.",
    )  # fmt: skip


def shape(groups: Mapping[str, Runs], *, bet=None) -> Result:
    tokens = groups["shapes"][0]["tokens"]
    runs = [*groups["shapes"], *(r for r in groups["grid"] if r["dim"] == 32 and r["tokens"] == tokens)]
    runs = sorted(runs, key=lambda run: run["depth"])
    losses = [run["test"] for run in runs]
    apart = 100 * (max(losses) / min(losses) - 1)
    rows = [(f"{r['depth']} x {r['dim']} wide", f"{r['parameters']:,}", f"{r['test']:.2f}") for r in runs]
    return Result(
        table(("blocks", "parameters", "loss, nats"), rows),
        alt="A table of four shapes with about 25,000 parameters and their losses: one, two and four blocks are "
        "alike, eight narrow ones are worse.",
        claims=(
            ("one, two and four blocks are within 8 % of each other", max(losses[:3]) < 1.08 * min(losses[:3])),
        ),
        came=apart,
        outcome="One, two and four blocks are within a few per cent; eight that are 16 wide are not. That comparison "
        "is not quite fair: the learning rate was tuned for two blocks only, and a head of the narrowest model has "
        "four numbers. Here, then, an odd shape costs more than a doubling of size brings. Kaplan et al. (2020, "
        "figure 5) found a few per cent over a wide range of shapes, with models a thousand times as large.",
    )  # fmt: skip


def isoflop(groups: Mapping[str, Runs], best_size: Callable[[Tensor, Tensor], float], *, bet=None) -> Result:
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
        alt="Left: for each of three budgets the loss over the size is a valley. Right: its lowest point moves to "
        "larger models as the budget grows.",
        claims=(
            ("the best size grows with the budget, more slowly than the budget", 0.1 < slope < 1
             and list(best.values()) == sorted(best.values())),
        ),
        outcome="Too small a model cannot learn it, too large a one has no time to. How the best N and D grow with "
        "C, as exponents: Hoffmann et al. (2022, table 2) 0.50 and 0.50, 0.49 and 0.51, 0.46 and 0.54 by three ways; "
        f"Kaplan et al. 0.73 and 0.27; {shown}. Three budgets of five runs, one seed, and a small N counted without "
        "embeddings: that cannot tell the two apart.",
    )  # fmt: skip


def predicted(groups: Mapping[str, Runs], card: Card, *, bet=None) -> Result:
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
        figures.predicted(groups["grid"], law, largest, bet),
        alt="The grid's 25 runs with the curves of one law through them, and a run outside of it with more than "
        "twice the parameters and twice the text.",
        claims=(("the law misses the run that it has not seen by less than 5 %, with each seed", max(misses) < 0.05),),
        came=largest["test"],
        outcome=f"The law guessed {guess:.2f} nats (eight resamples: {low:.2f} to {high:.2f}); it became "
        f"{largest['test']:.2f}. A small miss, and still "
        f"{'inside' if low <= largest['test'] <= high else '*outside*'} the interval, which knows of the draw of "
        "runs, but not of a wrong formula, another seed or text that is read twice. To say “no better than the best "
        f"so far” would have missed by {100 * (best / largest['test'] - 1):.0f} %. On three seeds the law missed by "
        f"{', '.join(f'{100 * miss:.1f}' for miss in misses)} %. With three seeds: E {min(floors):.2f} to "
        f"{max(floors):.2f}, $\\alpha$ {min(alphas):.2f} to {max(alphas):.2f}, $\\beta$ {min(betas):.2f} to "
        f"{max(betas):.2f}; Hoffmann et al. found 1.69, 0.34, 0.28, and Besiroglu et al. (2024), who fitted their "
        "points again, 1.82, 0.35, 0.37. The loss is better known than the five numbers that it is made of: one can "
        "be traded for another.",
    )


def eras(*, bet=None) -> Result:
    return Result(
        figures.eras(),
        alt="Left: operations of single trainings, from AlexNet in 2012 to PaLM in 2022, beside a line that doubles "
        "every two years until 2012 and every 3.4 months after it. Right: what one needs for AlexNet's accuracy, "
        "halved every 16 months: a 44th in 2019.",
    )


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
