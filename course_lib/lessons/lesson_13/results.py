"""Lesson 13, Masked autoencoders: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.functional.images import restore
from course_lib.layers.patches import random_mask, unpatchify
from course_lib.lessons.lesson_13 import figures, learner, looking
from course_lib.lessons.lesson_13.recipes import COUNTS, ERROR, HiddenBatch
from course_lib.models.mae import MAE
from course_lib.tasks.claims import above, below

Card = Mapping
RATIOS = (0.25, 0.5, 0.75, 0.9)
PAPER = ((10, 54.6), (75, 73.5))  # patches hidden and linear probe, ViT-L, %: He et al. 2022, section 4.1


def seeds(card: Card, score: str) -> list[float]:
    """A score on test images, for each seed."""
    return [seed["test"][score] for seed in card["seeds"]]


def mechanism(model: MAE, picture: Float[Tensor, "1 1 S S"], *, predicted=None) -> Result:
    noise = looking.coin_noise(model)
    seen, painted = learner.seen_and_painted(model, picture, noise)
    visible = random_mask(noise, model.encoder.mask_ratio).keep.shape[1]
    return Result(figures.mechanism(picture[0, 0], seen[0], painted[0], visible, noise.shape[1]))


def repaired(fresh: MAE, shipped: MAE, batch: HiddenBatch, *, predicted=None) -> Result:
    errors = {}
    for name, model in (("your 600 steps", fresh), ("18,000 steps", shipped)):
        error, grey = looking.errors(model, batch.pixels, batch.noise, 0.75)
        errors[name] = error / grey
    few = batch.pixels[:4], batch.noise[:4]
    with torch.no_grad():
        seen, young = learner.seen_and_painted(fresh, *few)
        _, old = learner.seen_and_painted(shipped, *few)
    return Result(
        figures.repaired(
            (batch.pixels[:4, 0], seen, young, old),
            ("the digit", "seen", "yours", "18,000\nsteps"),
            {"painted in the mean grey of what is seen": 1.0} | errors,
            predicted,
        ),
        claims={"yours": below(errors["your 600 steps"], 0.7), "longer": below(errors["18,000 steps"], 0.3)},
        came=100 * errors["18,000 steps"],
    )


def ratios(card: Card, *, predicted=None) -> Result:
    error, probe = (
        np.array([seeds(card, f"{score}, ratio {ratio}") for ratio in RATIOS]).T
        for score in (ERROR, "accuracy, 100 labels, linear probe")
    )
    few = np.array([seeds(card, f"accuracy, 50 labels, linear probe, ratio {ratio}") for ratio in RATIOS]).T
    return Result(
        figures.ratios(RATIOS, error, probe, PAPER, predicted),
        claims={
            "error": bool((np.diff(error) > 0).all()),
            "probe": bool((probe.argmax(1) == 2).all() and (few.argmax(1) == 2).all()),
        },
        came=100 * float(probe[:, -1].mean()),
    )


def labels(card: Card, *, predicted=None) -> Result:
    names = {
        "from scratch": "scratch",
        "pixels": "pixels",
        "MAE, fine-tuned": "fine-tuned",
        "MAE, linear probe": "linear probe",
    }
    ways = {
        shown: {count: seeds(card, f"accuracy, {count} labels, {name}") for count in COUNTS}
        for shown, name in names.items()
    }
    scratch, pixels, tuned, probe = ways.values()
    return Result(
        figures.labels(ways, predicted),
        claims={
            "fine-tuning": all(min(tuned[n]) > max(scratch[n]) + 0.3 for n in COUNTS),
            "probe": all(p > t for n in COUNTS for p, t in zip(probe[n], tuned[n], strict=True)),
        },
        came=100 * float(np.mean(probe[50])),
    )


def cost(model: MAE, pixels: Float[Tensor, "B 1 H W"], *, predicted=None) -> Result:
    measured = {
        name: (operations / len(pixels), seconds) for name, (operations, seconds) in looking.cost(model, pixels).items()
    }
    visible, everything, decoder = (operations for operations, _ in measured.values())
    return Result(
        figures.cost(measured), claims={"saves": (above(everything / visible, 4), above(visible / decoder, 1))}
    )


def normalised(
    target: Callable[[Tensor], Tensor], picture: Tensor, pixels: Float[Tensor, "B 1 H W"], *, predicted=None
):
    patches = learner.patches_of(picture, 4)
    aimed, size = target(patches), picture.shape[-1]
    means = patches.mean(-1, keepdim=True).expand_as(patches)
    digits = learner.patches_of(pixels, 4)
    flat = (digits.std(dim=-1) < 1e-3).float().mean().item()
    whole = [unpatchify(part, 4, size, size)[0, 0] for part in (aimed, restore(means))]
    return Result(
        figures.normalised(picture[0, 0], *whole),
        claims={
            "mean": (below(aimed.mean(-1).abs().max(), 1e-3), below((aimed.std(-1) - 1).abs().max(), 0.02)),
            "flat": above(flat, 1 / 3),
        },
    )


def masks(digits: MAE, scenes: MAE, pixels: Tensor, ground: Tensor, picture: Tensor, *, predicted=None) -> Result:
    found = {
        name: {kind: error / grey for kind, (error, grey) in looking.by_kind(model, images).items()}
        for name, model, images in (("digits", digits, pixels), ("digits on photographs", scenes, ground))
    }
    seen, painted = {}, {}
    with looking.hiding(scenes, 0.5), torch.no_grad():
        for kind in looking.KINDS:
            noise = looking.noise_of(kind, 1, scenes.config.encoder.grid, seed=3)
            before, after = learner.seen_and_painted(scenes, picture, noise)
            seen[kind], painted[kind] = before[0], after[0]
    return Result(
        figures.masks(seen, painted, found),
        claims={
            "order": (
                above(min(kind["random"] - kind["checkerboard"] for kind in found.values()), 0),
                above(min(kind["block"] / kind["random"] for kind in found.values()), 1.5),
            )
        },
    )


RESULTS = {function.__name__: function for function in (mechanism, repaired, ratios, labels, cost, normalised, masks)}
