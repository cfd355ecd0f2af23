"""Lesson 02: the learner's functions in a training before the page, and in the probes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from course_lib.data.augmentations import two_views
from course_lib.data.digits import LabelledImages
from course_lib.data.draws import generator
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_02 import figures, recipes
from course_lib.models.simclr import SimCLR
from course_lib.training.config import FitConfig
from course_lib.training.loop import fit
from course_lib.training.probes import features_of, label_draw, logistic_regression
from course_lib.training.progress import Progress
from course_lib.training.recipe import common

STEPS, EVERY = 100, 20  # before the learner's eyes; between two looks at the neighbours
NEIGHBOURS = 3
SETTINGS = replace(recipes.SETTINGS, steps=STEPS)

Loss = Callable[[Tensor, Tensor, float], Tensor]
Vote = Callable[[Tensor, Tensor, Tensor, int], Tensor]
Encoder = Callable[[Tensor], Tensor]


def fresh() -> SimCLR:
    """The network of `simclr` with its first weights."""
    return recipes.build(recipes.SETTINGS)


def few_and_many(per_class: int, seen: int = 600) -> tuple[LabelledImages, LabelledImages]:
    """A few labelled training pictures, and test pictures to ask for."""
    pixels, labels = recipes.images("train")
    few = label_draw(labels, per_class, seed=0)
    asked, names = recipes.images("test")
    return LabelledImages(pixels[few], labels[few]), LabelledImages(asked[:seen], names[:seen])


def asked_neighbours(encoder: Encoder, vote: Vote, per_class: int = 5) -> float:
    """Share of test pictures named right by `vote(features, stored, labels, k)`, with so many labels of each digit."""
    few, many = few_and_many(per_class)
    found = vote(encoder(many.pixels), encoder(few.pixels), few.labels, NEIGHBOURS)
    return (found == many.labels).double().mean().item()


def asked_probe(encoder: Encoder, top1: Callable[..., float], per_class: int = 5) -> float:
    """What `top1(features, labels, weight, bias)` says of a linear probe, fitted to the end with a fixed penalty."""
    few, many = few_and_many(per_class, 2000)
    probe = logistic_regression(encoder(few.pixels), few.labels, l2=10.0)
    return top1(encoder(many.pixels).double(), many.labels, probe.weight, probe.bias)


def learn(model: SimCLR, loss: Loss, vote: Vote, display: Progress | None = None) -> dict[str, Any]:
    """Trains as the recipe does, for fewer steps, on the learner's loss; the neighbours are asked now and then."""

    def objective(model: SimCLR, batch: recipes.Views) -> Float[Tensor, ""]:
        first, second = model(standardise(batch.pixels)).chunk(2)
        return loss(first, second, SETTINGS.temperature)

    def neighbours(model: SimCLR) -> float:
        return asked_neighbours(recipes.encoder_of(model), vote)

    begins = neighbours(model)
    history = fit(
        model,
        lambda step: recipes.views_at(SETTINGS, step),
        objective,
        config=FitConfig(**common(SETTINGS, FitConfig), warmup=STEPS // 10, evaluate_every=EVERY),
        validate=neighbours,
        mode="max",
        progress=display,
    )
    return {
        "steps": [0, *history.validation_steps.tolist()],
        "votes": [begins, *history.validation_values.tolist()],
        "losses": history.losses.tolist(),
        "weights": model.state_dict(),
    }


def with_weights(course: Mapping[str, Any]) -> SimCLR:
    """The network that a training ended with."""
    model = fresh()
    model.load_state_dict(course["weights"])
    return model.eval()


def showing(pictures: LabelledImages) -> Callable[[SimCLR], Figure]:
    """An example for `page.watch`: the cosine of each first view with each second view."""
    views = two_views(pictures.pixels, generator("watched", 0), SETTINGS.augmentation)

    def example(model: SimCLR) -> Figure:
        first, second = (F.normalize(features_of(model, view), dim=1) for view in views)
        return figures.cosines(first @ second.T, *(view[:, 0] for view in views))

    return example


pixels_alone = partial(torch.flatten, start_dim=1)  # pictures as their own features
