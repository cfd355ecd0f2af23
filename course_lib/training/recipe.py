"""The shape of what `course train` makes for a lesson: variants, their scores, and which of them is shipped."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from course_lib.training.batches import Rollouts
from course_lib.training.config import FitConfig
from course_lib.training.history import History
from course_lib.training.loop import fit

Scores = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished training: its settings, its model and what happened."""

    settings: Any  # a frozen dataclass
    model: nn.Module
    history: History
    extra: Mapping[str, Any] = field(default_factory=dict)  # plain values kept beside the weights: a vocabulary


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a recipe made of one seed."""

    shipped: Trained
    validation: Mapping[str, float]  # scores by which the recipe was tuned and a seed is chosen
    test: Mapping[str, float]  # scores to be reported, on data that nothing was chosen by


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a lesson's checkpoint is made: all variants are trained with the same seed, and one of them is shipped.

    `train(settings, checkpoint=folder)` trains one variant, with the folder for `fit`, so that an interrupted
    training goes on. `scores(trained, split)` are those of all variants, by name, on "validation" or "test"; `each`
    makes it of a score for one. Of several seeds, the one is shipped that is best by `chosen_by` on validation. What a
    reader of the card should know beside its facts are its notes: they are written on the card.

    Raises ValueError for another `mode`, or if no variant has the name of the one that `ships`.
    """

    title: str
    lesson: str  # its number
    data: str  # what it is trained on, and where that comes from
    minutes: float  # about, for one seed on two cores
    variants: Mapping[str, Any]  # name -> settings, a frozen dataclass with a `seed`; "": needs no name
    train: Callable[..., Trained]
    scores: Callable[[Mapping[str, Trained], str], Scores]
    chosen_by: str  # a name among the scores
    mode: str = "min"  # as in `fit`: "min" if low values of `chosen_by` are good, "max" if high ones are
    ships: str = ""  # a variant's name
    timed: Sequence[str] = ()  # variants whose CPU seconds are reported, too
    settings: Mapping[str, Any] | None = None  # plain values for the card; None: those of the variants
    licence: str = "MIT"  # of the checkpoint
    weights: bool = True  # False: the course keeps the card alone, for a comparison whose models nobody opens

    def __post_init__(self):
        if self.mode not in ("min", "max"):
            raise ValueError(f'mode must be "min" or "max", got {self.mode!r}')
        if self.ships not in self.variants:
            raise ValueError(f"ships must be one of {', '.join(map(repr, self.variants))}, got {self.ships!r}")

    def run(self, seed: int, folder: Path) -> Outcome:
        """Trains all variants, each in a folder of its own, and scores them."""
        trained = {
            name: self.train(replace(settings, seed=seed), checkpoint=folder / "-".join(re.findall(r"\w+", name)))
            for name, settings in self.variants.items()
        }
        seconds = {f"CPU seconds, {name}": float(trained[name].history.cpu_seconds[-1]) for name in self.timed}
        return Outcome(
            shipped=trained[self.ships],
            validation=self.scores(trained, "validation"),
            test=self.scores(trained, "test") | seconds,
        )

    def best(self, results: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Of the results of several seeds the one that is best by `chosen_by` on validation."""
        choose = {"min": min, "max": max}[self.mode]
        return choose(results, key=lambda result: result["validation"][self.chosen_by])

    def facts(self) -> dict[str, Any]:
        """What the card says of the recipe."""
        settings = self.settings
        if settings is None:
            settings = {name: plain(each) for name, each in self.variants.items()}
            settings = settings.get("", settings)
        facts = {name: getattr(self, name) for name in ("title", "lesson", "data", "licence")}
        return facts | {"settings": dict(settings), "chosen_by": self.chosen_by}


def fit_by(
    settings: Any,
    model: nn.Module,
    batch_at: Callable[[int], Any] | Rollouts,
    loss: Callable[[nn.Module, Any], Tensor],
    *,
    parts: int = 1,
    validate: Callable[[nn.Module], float] | None = None,
    mode: str = "min",
    optimizer: Optimizer | None = None,
    checkpoint: Path | str | None = None,
    extra: Mapping[str, Any] | None = None,
    **config: Any,
) -> Trained:
    """`fit` by the settings that `FitConfig` has, too, and by `config`; validates after each of so many `parts`."""
    places = {"evaluate_every": max(1, settings.steps // parts), "checkpoint_every": max(1, settings.steps // 20)}
    history = fit(
        model,
        batch_at,
        loss,
        config=FitConfig(**places | common(settings, FitConfig) | config),
        validate=validate,
        mode=mode,
        optimizer=optimizer,
        checkpoint=checkpoint,
    )
    return Trained(settings=settings, model=model, history=history, extra=extra or {})


@torch.no_grad()
def rounded(model: nn.Module) -> nn.Module:
    """The model with its weights rounded to 16 bits, in place: its checkpoint is then half as large, see `own.save`."""
    for weights in model.parameters():
        weights.copy_(weights.half())
    return model


def common(settings: Any, config: type) -> dict[str, Any]:
    """The settings that a config has, too, by the same names."""
    return {one.name: getattr(settings, one.name) for one in fields(config) if hasattr(settings, one.name)}


def plain(settings: Any, *without: str) -> dict[str, Any]:
    """Settings as plain values, without the seed and others that are named."""
    return {name: value for name, value in asdict(settings).items() if name not in ("seed", *without)}


def each(
    score: Callable[[Trained, str], Scores], label: str = "{score}, {name}"
) -> Callable[[Mapping[str, Trained], str], Scores]:
    """`scores` of a recipe from the scores of one variant: a nameless one's keep their names."""

    def scores(trained: Mapping[str, Trained], split: str) -> Scores:
        return {
            label.format(score=key, name=name) if name else key: value
            for name, one in trained.items()
            for key, value in score(one, split).items()
        }

    return scores


def mean_and_spread(name: str, values: Sequence[float]) -> Scores:
    """A score's mean and its standard deviation over two or more draws."""
    return {name: mean(values), f"{name}, spread": stdev(values)}
