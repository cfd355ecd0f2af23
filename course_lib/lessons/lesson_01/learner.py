"""Lesson 01: batches of icons for the learner's loop, and the accidents."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.icons import Icons, icon_names, icons
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_01.measuring import (
    FewLabels,
    few_labels_of,
    halves,
    measured,
    percent,
)
from course_lib.lessons.lesson_01.recipes.icon_names import SHIFT, grounds, known_names, with_classes

__all__ = [
    "accidents",
    "accuracy",
    "batches",
    "draws",
    "few_labels",
    "known",
    "measured",
    "names_of",
    "percent",
    "reads",
    "rgba",
]
Batch = tuple[Float[Tensor, "B 3 H W"], Int[Tensor, " B"]]


# icons --------------------------------------------------------------------------------------------------


def known(split: str) -> tuple[Icons, Int[Tensor, " B"]]:
    """The drawings of a split that show known things, and their classes."""
    return with_classes(icons(split))


def few_labels(per_name: int = 2, draw: int = 0) -> FewLabels:
    """A few labelled drawings of 50 new things, and test drawings of them by a family that drew none of these."""
    return few_labels_of(halves()[1], per_name, draw)


def rgba(drawings: Icons) -> Float[Tensor, "B 4 H W"]:
    """Colours and opacity, as the exercise `augment` takes them."""
    return torch.cat([drawings.pixels, drawings.alpha], dim=1)


def draws(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Random numbers for so many views: flip, shift and ground."""
    return torch.rand(count) < 0.5, torch.randint(0, 2 * SHIFT + 1, (count, 2)), grounds(count)


def batches(
    drawings: Icons, labels: Int[Tensor, " B"], steps: int, augment: Callable[..., Tensor] | None, size: int = 32
) -> list[Batch]:
    """Random batches, standardised: views that `augment` makes, or the drawings on white."""
    found = []
    for _ in range(steps):
        rows = torch.randint(len(labels), (min(size, len(labels)),))
        some = drawings.take(rows)
        images = some.on(1.0) if augment is None else augment(rgba(some), *draws(len(rows)))
        found.append((standardise(images), labels[rows]))
    return found


def accuracy(model: nn.Module, split: str) -> float:
    """The accuracy on the drawings of a split that show known things, on white, in percent."""
    return percent(model, *known(split))


@torch.no_grad()
def names_of(model: nn.Module, images: Float[Tensor, "B 3 H W"], most: int = 3) -> list[list[tuple[str, float]]]:
    """The most probable known names of each image, with their probabilities; pixels from 0 to 1."""
    model.eval()
    best = model(standardise(images)).softmax(dim=1).topk(most, dim=1)
    words = icon_names()
    return [
        [(words[int(known_names()[i])], float(p)) for i, p in zip(ids, ps, strict=True)]
        for ids, ps in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def reads(model: nn.Module) -> str:
    """For `page.watch`: the names that a model gives to three drawings it was not trained on, as HTML."""
    some = known("test")[0].take(torch.tensor([3, 40, 120]))
    was_training = model.training
    found = names_of(model, some.on(1.0))
    model.train(was_training)
    right = [icon_names()[i] for i in some.names.tolist()]
    lines = (
        f"<p>{escape(name)}: {escape(', '.join(f'{said} {p:.2f}' for said, p in guesses))}</p>"
        for name, guesses in zip(right, found, strict=True)
    )
    return "".join(lines)


# accidents ----------------------------------------------------------------------------------------------


@torch.no_grad()
def old_accuracy(model: nn.Module, head: nn.Linear, prepare: Callable[[Tensor], Tensor] = standardise) -> float:
    """The accuracy (%) on known things of this backbone under the old head; `prepare` makes its inputs."""
    drawings, labels = known("test")
    model.eval()
    found = torch.cat([head(model.features(prepare(part))).argmax(dim=1) for part in drawings.on(1.0).split(250)])
    return 100 * (found == labels).float().mean().item()


def accidents(
    source: nn.Module,
    new_head: Callable[..., nn.Module],
    fine_tune: Callable[..., Tensor],
    augment: Callable[..., Tensor],
    rates: Sequence[float] = (1e-3, 1e-2, 1e-1),
    steps: int = 60,
) -> dict[str, Any]:
    """The cost of three accidents: statistics that change, another normalisation, learning rates that are too high."""
    task, head = few_labels(4), source.head
    moved = new_head(source, 50, True).train()
    with torch.no_grad():
        for images, _ in batches(task.given, task.labels, steps, augment):
            moved.features(images)
    by_rate = {}
    for rate in rates:
        torch.manual_seed(0)
        model = new_head(source, 50, False)
        fine_tune(model, batches(task.given, task.labels, steps, augment), rate, 1.0, False)
        by_rate[rate] = (percent(model, task.asked, task.asked_labels), old_accuracy(model, head))
    return {
        "norms": {"evaluation mode": old_accuracy(source, head), "training mode": old_accuracy(moved, head)},
        "pixels": {
            "(p − 0.5) / 0.25": old_accuracy(source, head),
            "p, from 0 to 1": old_accuracy(source, head, lambda pixels: pixels),
            "255 p": old_accuracy(source, head, lambda pixels: 255 * pixels),
        },
        "rates": by_rate,
    }
