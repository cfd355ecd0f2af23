"""Lesson 09: what the shipped runs say, and the nine that run before the page."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_lib.data.checkpoints import load_trained
from course_lib.functional.cost import count_flops
from course_lib.functional.scaling import ScalingLaw, fit_scaling_law, training_flops
from course_lib.lessons.lesson_09 import recipes
from course_lib.lessons.lesson_09.recipes import Record, columns
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.training.language_models import next_token_loss
from course_lib.training.scaling import sweep

MINI_DIMS, MINI_TOKENS = (12, 20, 32), (75_000, 150_000, 300_000)  # before the page
MINI_SEED = 2  # that of the shipped runs

Runs = Sequence[Record]


def shipped() -> Mapping[str, Runs]:
    """The runs that come with the course, by what they are for."""
    return load_trained("scaling").extra["runs"]


def mini() -> list[Record]:
    """Nine small runs, each size at the rate that the shipped runs found best for it."""
    settings = recipes.ScalingSettings(dims=MINI_DIMS, tokens=MINI_TOKENS, seed=MINI_SEED)
    rates = recipes.tuned_rates(shipped()["rates"])
    runs = recipes.planned_runs(settings, rates)["grid"]
    return sweep(recipes.measure, runs)


def frontier(runs: Runs) -> list[Record]:
    """Those that no cheaper run beats, from cheap to dear."""
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


def resampled_laws(resamples: int = 8, seed: int = 0) -> list[ScalingLaw]:
    """Laws of the grid's runs drawn anew."""
    grid, draws, found = shipped()["grid"], torch.Generator().manual_seed(seed), []
    while len(found) < resamples:
        picks = torch.randint(len(grid), (len(grid),), generator=draws).tolist()
        try:
            found.append(fit_scaling_law(*columns([grid[pick] for pick in picks], "parameters", "tokens", "test")))
        except ValueError:  # too few different ones
            continue
    return found


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


class Counted(NamedTuple):
    """One training step: operations counted, and by the rule."""

    name: str
    counted: int
    ruled: float


def count_steps(sizes: Sequence[tuple[int, int]] = ((12, 2), (64, 2), (256, 4)), length: int = 32) -> list[Counted]:
    """A step of one window with each size, all matrix products forwards and backwards, beside 6 N D."""
    found = []
    for dim, depth in sizes:
        model = GPT(GPTConfig(vocab_size=77, context_length=length, dim=dim, depth=depth, num_heads=4, dropout=0.0))
        window = torch.zeros(1, length + 1, dtype=torch.long)

        def step(model: GPT = model, window: Tensor = window) -> None:
            next_token_loss(model, window).backward()

        matrices = depth * 12 * dim**2
        found.append(Counted(f"{depth} blocks, {dim} wide", count_flops(step), training_flops(matrices, length)))
    return found


def of_card(card: Mapping[str, Any], score: str) -> list[float]:
    """A score on test text, for each seed."""
    return [seed["test"][score] for seed in card["seeds"]]
