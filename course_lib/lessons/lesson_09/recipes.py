"""Lesson 09: some sixty small GPTs of English characters, from which the laws of their losses can be read.

Kaplan et al., "Scaling laws for neural language models", 2020, arXiv 2001.08361.
Hoffmann et al., "Training compute-optimal large language models", NeurIPS 2022, arXiv 2203.15556.

The models begin wider than GPT-2's N(0, 0.02²), which was chosen for widths of 768 and more: narrow ones that begin
like it sit for thousands of steps at what pairs of characters tell, and leave that by luck.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.positions import sinusoidal_positions
from course_lib.functional.scaling import fit_scaling_law, training_flops
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.training import language_models
from course_lib.training.batches import text_windows
from course_lib.training.language_models import nats_per_token, next_token_loss
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by
from course_lib.training.scaling import sweep
from course_lib.training.seeding import seeded

Record = dict[str, Any]  # a run's settings and what it reached
LOOKS = 8_000  # characters of the validation text, each time that a training is looked at
SCORED = 40_000  # characters of each split, when it has ended
HEADS = 4


@dataclass(frozen=True, kw_only=True)
class ScalingSettings:
    """Which models are trained on how much text. Each has a learning rate tuned for its size."""

    dims: tuple[int, ...] = (12, 20, 32, 48, 64)  # the grid's sizes
    depth: int = 2
    tokens: tuple[int, ...] = (250_000, 400_000, 700_000, 1_200_000, 2_000_000)  # the grid's amounts
    isoflop: tuple[tuple[float, tuple[int, ...]], ...] = (  # budgets C = 6 N D in operations, and their sizes
        (2e10, (8, 12, 16, 24, 32)),
        (6e10, (12, 16, 24, 32, 48)),
        (1.8e11, (16, 24, 32, 48, 64)),
    )
    shapes: tuple[tuple[int, int], ...] = ((8, 16), (4, 24), (1, 44))  # depth and width, about as many parameters
    shape_tokens: int = 700_000
    rates: tuple[float, ...] = (5e-3, 1e-2, 2e-2, 4e-2)
    rate_tokens: int = 400_000
    largest: tuple[int, int] = (96, 4_000_000)  # width and tokens of the run that is to be predicted
    batch_size: int = 16  # windows
    context_length: int = 32
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training."""

    dim: int
    depth: int
    tokens: int  # that are read
    learning_rate: float
    batch_size: int
    context_length: int
    seed: int

    @property
    def steps(self) -> int:
        return max(1, round(self.tokens / (self.batch_size * self.context_length)))


# --------------------------------------------------------------------------------------------- one run


def build(run: Run) -> GPT:
    """A fresh GPT: matrices of variance 1 / fan-in, embeddings of 0.2², positions that begin as sinusoids."""
    vocab_size = len(language_models.tokenized_prose(None).tokenizer)
    with seeded(run.seed), torch.no_grad():
        model = GPT(
            GPTConfig(
                vocab_size=vocab_size,
                context_length=run.context_length,
                dim=run.dim,
                depth=run.depth,
                num_heads=HEADS,
                dropout=0.0,
            )
        )
        model.token_embed.weight.mul_(0.2 / 0.02)
        model.pos_embed.table.copy_(0.2 * sinusoidal_positions(run.context_length, run.dim))
        for layer in model.blocks.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.mul_(layer.in_features**-0.5 / 0.02)
    return model


def train_one(run: Run, *, unique: int = 0, checkpoint: Path | None = None) -> Trained:
    """Trains one GPT, on the first `unique` characters of the training text, or on all of it."""
    model = build(run)
    prose = language_models.tokenized_prose(None)
    text = prose.ids["train"][: unique or None]
    windows = text_windows(text, batch_size=run.batch_size, length=run.context_length + 1, seed=run.seed)
    return fit_by(
        run,
        model,
        windows,
        next_token_loss,
        steps=run.steps,
        parts=8,
        schedule="cosine",
        warmup=run.steps // 20,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: nats_per_token(model, prose.ids["validation"][:LOOKS]),
        checkpoint=checkpoint,
    )


def measure(folder: Path | None = None, unique: int | None = None, **run: Any) -> Record:
    """What a run costs and reaches, as plain values: losses in nats per character.

    With `unique` (0: all of the text) it also says how often whole pieces of test text are written, see `all_right`.
    """
    settings = Run(**run)
    named = run if unique is None else run | {"unique": unique}
    path = None if folder is None else folder / folder_name(named)
    trained = train_one(settings, unique=unique or 0, checkpoint=path)
    history, prose = trained.history, language_models.tokenized_prose(None)
    size = parameters(trained.model)
    losses = {
        split: round(nats_per_token(trained.model, prose.ids[split][:SCORED]), 5) for split in ("validation", "test")
    }
    return {
        "parameters": size,
        "flops": training_flops(size, settings.tokens),
        **losses,
        "steps": settings.steps,
        "curve": [round(float(value), 4) for value in history.validation_values],
        "cpu_seconds": round(float(history.cpu_seconds[-1]), 2),
    } | ({} if unique is None else {"right": all_right(trained.model, prose.ids["test"][:SCORED])})


def folder_name(run: Mapping[str, Any]) -> str:
    """Where a run's own checkpoint lies."""
    return "-".join(f"{value:g}" for value in run.values())


def parameters(model: GPT) -> int:
    """N without embeddings, as Kaplan et al. 2020, section 1.3, count."""
    return sum(parameter.numel() for parameter in model.blocks.parameters())


def size_of(dim: int, depth: int) -> int:
    """N of a GPT of this shape: matrices 12 L d², biases 9 L d, norms 4 L d."""
    return depth * (12 * dim**2 + 13 * dim)


# --------------------------------------------------------------------------------------------- the sweep


def make_run(settings: "ScalingSettings | PracticeSettings", rate: float, **own: Any) -> dict[str, Any]:
    """The settings of a run as plain values; `own` are those that differ from run to run. Tokens fill whole steps."""
    common = {name: getattr(settings, name) for name in ("depth", "batch_size", "context_length", "seed")}
    step = settings.batch_size * settings.context_length
    own["tokens"] = step * max(1, round(own["tokens"] / step))
    return asdict(Run(**common | {"learning_rate": rate} | own))


def rate_runs(settings: ScalingSettings) -> list[dict[str, Any]]:
    """Each size of the grid with each learning rate."""
    return [
        make_run(settings, rate, dim=dim, tokens=settings.rate_tokens)
        for dim in settings.dims
        for rate in settings.rates
    ]


def tuned_rates(records: Sequence[Record]) -> dict[int, float]:
    """The learning rate of each size that is best on validation."""
    best = {}
    for record in sorted(records, key=lambda record: -record["validation"]):
        best[record["dim"]] = record["learning_rate"]
    return best


def planned_runs(settings: ScalingSettings, rates: Mapping[int, float]) -> dict[str, list[dict[str, Any]]]:
    """All other runs by what they are for. A size off the grid has the rate of the grid's size nearest to it."""

    def run(dim: int, tokens: float, **own: Any) -> dict[str, Any]:
        nearest = min(rates, key=lambda known: abs(np.log(known / dim)))
        return make_run(settings, rates[nearest], dim=dim, tokens=tokens, **own)

    return {
        "grid": [run(dim, tokens) for dim in settings.dims for tokens in settings.tokens],
        "isoflop": [
            run(dim, budget / (6 * size_of(dim, settings.depth))) for budget, dims in settings.isoflop for dim in dims
        ],
        "shapes": [run(dim, settings.shape_tokens, depth=depth) for depth, dim in settings.shapes],
        "largest": [run(*settings.largest)],
    }


def train(settings: ScalingSettings, *, checkpoint: Path | None = None) -> Trained:
    """All runs, and the grid's largest model with the most text; with a folder what is finished is not run again."""
    records = None if checkpoint is None else checkpoint / "runs.jsonl"
    measured = partial(measure, checkpoint)
    found = {"rates": sweep(measured, rate_runs(settings), records=records)}
    plan = planned_runs(settings, tuned_rates(found["rates"]))
    for purpose, runs in plan.items():
        found[purpose] = sweep(measured, runs, records=records)
    ships = plan["grid"][-1]
    shipped = train_one(Run(**ships), checkpoint=None if checkpoint is None else checkpoint / folder_name(ships))
    return Trained(settings=settings, model=shipped.model, history=shipped.history, extra={"runs": found})


def scores(trained: Trained, split: str) -> Scores:
    """The largest run's loss in nats per character, what the law of the grid predicts for it, and the law."""
    runs = trained.extra["runs"]
    found = {"nats per character, largest": runs["largest"][0][split]}
    try:
        law = fit_scaling_law(*columns(runs["grid"], "parameters", "tokens", split))
        found["predicted"] = float(law(*columns(runs["largest"], "parameters", "tokens")))
        found |= {"E": law.E, "alpha": law.alpha, "beta": law.beta}
    except ValueError:  # too few runs to tell
        found |= dict.fromkeys(("predicted", "E", "alpha", "beta"), float("nan"))
    shapes = [run[split] for run in runs["shapes"]]
    found["spread of shapes"] = max(shapes) - min(shapes)
    if split == "test":
        found["CPU seconds, all runs"] = sum(run["cpu_seconds"] for group in runs.values() for run in group)
    return found


def columns(runs: Sequence[Record], *names: str) -> list[Float[Tensor, " n"]]:
    """What the runs have under these names, a tensor for each."""
    return [torch.tensor([run[name] for run in runs], dtype=torch.float64) for name in names]


# --------------------------------------------------------------------------------------------- more seeds


RATES = {12: 2e-2, 20: 2e-2, 32: 1e-2, 48: 1e-2, 64: 5e-3}  # those that the first sweep has found, by width
LENGTHS = (1, 2, 4, 8)  # characters in a row that must all be right
STRIDE = 8  # characters between two windows on which that is counted


@dataclass(frozen=True, kw_only=True)
class PracticeSettings:
    """Runs beside the first sweep: two valleys and one size with more seeds, and text that is read again."""

    isoflop: tuple[tuple[float, tuple[int, ...]], ...] = ScalingSettings.isoflop[:2]
    seeds: tuple[int, ...] = (0, 1)  # of the valleys; the first sweep has seed 2
    dim: int = 32
    tokens: tuple[int, ...] = (250_000, 700_000, 2_000_000)
    unique: int = 125_000  # characters that are read again and again
    fresh_seeds: tuple[int, ...] = (0,)  # the first sweep has seed 2
    repeated_seeds: tuple[int, ...] = (0, 2)
    depth: int = 2
    batch_size: int = 16
    context_length: int = 32
    seed: int = 0


def practice_runs(settings: PracticeSettings) -> dict[str, list[dict[str, Any]]]:
    """The runs by what they are for. `unique` is the length of the text that a run reads from; 0: all of it."""

    def run(dim: int, tokens: float, seed: int, unique: int = 0) -> dict[str, Any]:
        rate = RATES[min(RATES, key=lambda known: abs(np.log(known / dim)))]
        seed += settings.seed
        return make_run(settings, rate, dim=dim, tokens=tokens, seed=seed) | {"unique": unique}

    return {
        "repeated": [
            run(settings.dim, tokens, seed, settings.unique)
            for seed in settings.repeated_seeds
            for tokens in settings.tokens
        ],
        "fresh": [run(settings.dim, tokens, seed) for seed in settings.fresh_seeds for tokens in settings.tokens],
        "isoflop": [
            run(dim, budget / (6 * size_of(dim, settings.depth)), seed)
            for seed in settings.seeds
            for budget, dims in settings.isoflop
            for dim in dims
        ],
    }


def train_practice(settings: PracticeSettings, *, checkpoint: Path | None = None) -> Trained:
    """All runs of `practice_runs`, and once more the first on fresh text, whose model is kept."""
    records, plan = None if checkpoint is None else checkpoint / "runs.jsonl", practice_runs(settings)
    found = {name: sweep(partial(measure, checkpoint), runs, records=records) for name, runs in plan.items()}
    first = {name: value for name, value in plan["fresh"][0].items() if name != "unique"}
    kept = train_one(Run(**first), checkpoint=None if checkpoint is None else checkpoint / folder_name(first))
    return Trained(settings=settings, model=kept.model, history=kept.history, extra={"runs": found})


def practice_scores(trained: Trained, split: str) -> Scores:
    """Mean losses in nats per character after the most text, new and repeated."""
    return {
        f"nats per character, {name}": float(
            np.mean([run[split] for run in runs if run["tokens"] == runs[-1]["tokens"]])
        )
        for name, runs in trained.extra["runs"].items()
        if name != "isoflop"
    }


@torch.no_grad()
def all_right(model: GPT, ids: Tensor) -> dict[str, float]:
    """How often greedy decoding writes the next n characters of the text, all of them, behind half a window or more."""
    context = model.config.context_length
    starts = torch.arange(0, len(ids) - context, STRIDE)
    windows = ids[starts[:, None] + torch.arange(context + 1)]
    right = model(windows[:, :-1]).argmax(-1) == windows[:, 1:]
    return {str(n): round(float(right[:, -n:].all(dim=1).float().mean()), 5) for n in LENGTHS}


RECIPES = {
    "scaling_practice": Recipe(
        title="Small GPTs again: more seeds, and text that is read many times",
        lesson="09",
        data="English prose of docstrings as for `scaling`; a character is a token.",
        minutes=6,
        variants={"": PracticeSettings()},
        train=train_practice,
        scores=lambda trained, split: practice_scores(trained[""], split),
        chosen_by="nats per character, fresh",
    ),
    "scaling": Recipe(
        title="Small GPTs of many sizes on many amounts of text",
        lesson="09",
        data="English prose of docstrings, 2.0 million characters to train on, data/prose; a character is a token. "
        f"The first {SCORED:,} characters of the validation and of the test split are scored.",
        minutes=12,
        variants={"": ScalingSettings()},
        train=train,
        scores=lambda trained, split: scores(trained[""], split),
        chosen_by="nats per character, largest",
    ),
}
