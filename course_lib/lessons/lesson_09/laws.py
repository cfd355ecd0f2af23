"""Lesson 09: what the shipped runs say."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from course_lib.data.checkpoints import load_trained
from course_lib.functional.scaling import ScalingLaw, fit_scaling_law
from course_lib.lessons.lesson_09 import recipes
from course_lib.lessons.lesson_09.recipes import Record, columns
from course_lib.training.language_models import tokenized_prose

Runs = Sequence[Record]


def shipped() -> Mapping[str, Runs]:
    """The runs that come with the course, by what they are for."""
    return load_trained("scaling").extra["runs"]


@lru_cache(maxsize=1)
def practice() -> Mapping[str, Runs]:
    """The runs with more seeds, and those on text that is read again."""
    return load_trained("scaling_practice").extra["runs"]


def valleys() -> dict[float, dict[int, list[float]]]:
    """For each budget the losses on test text by size, one for each seed that was trained."""
    runs, found = [*shipped()["isoflop"], *practice()["isoflop"]], {}
    for budget, _ in recipes.ScalingSettings.isoflop:
        own = sorted((run for run in runs if abs(run["flops"] / budget - 1) < 0.02), key=lambda run: run["parameters"])
        for run in own:
            found.setdefault(budget, {}).setdefault(run["parameters"], []).append(run["test"])
    return found


def of_one_size(group: str) -> dict[int, list[float]]:
    """Losses by the tokens that were read, on "fresh" or on "repeated" text, all seeds."""
    settings, found = recipes.PracticeSettings(), {}
    runs = [*practice()[group]]
    if group == "fresh":
        runs += [run for run in shipped()["grid"] if run["dim"] == settings.dim]
    wanted = {run["tokens"] for run in practice()[group]}
    for run in sorted(runs, key=lambda run: run["tokens"]):
        if run["tokens"] in wanted:
            found.setdefault(run["tokens"], []).append(run["test"])
    return found


def all_right(lengths: Sequence[int] = recipes.LENGTHS) -> list[dict[str, Any]]:
    """For each kind of run that was asked: its operations, its loss, and how often it writes n characters rightly."""
    runs = [run for name in ("isoflop", "fresh") for run in practice()[name]]
    named: dict[tuple, list[Record]] = {}
    for run in runs:
        named.setdefault((run["dim"], run["tokens"]), []).append(run)
    found = [
        {
            "flops": own[0]["flops"],
            "loss": sum(run["test"] for run in own) / len(own),
            "right": {n: sum(run["right"][str(n)] for run in own) / len(own) for n in lengths},
        }
        for own in named.values()
    ]
    trained, largest = load_trained("scaling").model, shipped()["grid"][-1]
    right = recipes.all_right(trained, tokenized_prose(None).ids["test"][: recipes.SCORED])
    found.append({"flops": largest["flops"], "loss": largest["test"], "right": {n: right[str(n)] for n in lengths}})
    return sorted(found, key=lambda one: one["flops"])


def frontier(runs: Runs) -> list[Record]:
    """Those runs that no run of lower cost beats, by increasing cost."""
    best, found = float("inf"), []
    for run in sorted(runs, key=lambda run: run["flops"]):
        if run["validation"] < best:
            best = run["validation"]
            found.append(run)
    return found


@lru_cache(maxsize=1)
def law() -> ScalingLaw:
    """The law of Hoffmann et al. 2022 for the 25 runs of the grid."""
    return fit_scaling_law(*columns(shipped()["grid"], "parameters", "tokens", "test"))


def of_parameters(theta: Tensor) -> ScalingLaw:
    """The law with these log E, log A, log B, alpha and beta."""
    log_E, log_A, log_B, alpha, beta = theta.double()
    return ScalingLaw(
        E=log_E.exp().item(), A=log_A.exp().item(), B=log_B.exp().item(), alpha=alpha.item(), beta=beta.item()
    )


def best_split(law: ScalingLaw, flops: float) -> tuple[float, float, float]:
    """N, D and the loss that the law promises for a budget."""
    size, tokens = law.allocation(flops)
    return size, tokens, at(law, size, tokens)


def at(law: ScalingLaw, size: float, tokens: float) -> float:
    """The loss that the law promises for one model."""
    return float(law(torch.tensor([size], dtype=torch.float64), torch.tensor([tokens], dtype=torch.float64)))


def tokens_to_reach(runs: Runs, loss: float) -> dict[int, float | None]:
    """By width: how many tokens the cheapest run read that reached this loss; None if none did."""
    widths = sorted({run["dim"] for run in runs})
    return {
        width: min((run["tokens"] for run in runs if run["dim"] == width and run["test"] <= loss), default=None)
        for width in widths
    }
