"""Lesson 13, Masked autoencoders: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.icons import icons
from course_lib.lessons.lesson_13 import figures, looking
from course_lib.lessons.lesson_13.icon_recipes import BASE, BASELINES, ERROR, LABELS, interpolation
from course_lib.models.mae import MAE
from course_lib.tasks.claims import above, below

Card = Mapping
RATIOS = {"25 % hidden": 25, "50 % hidden": 50, BASE: 75, "90 % hidden": 90}
DEPTHS = {"decoder depth 1": 1, BASE: 2, "decoder depth 4": 4}
SHOWN = 8  # drawings


def by_variant(card: Card, score: str, variants: Mapping[str, int]) -> Float[np.ndarray, "seeds settings"]:
    """A score on test drawings, for each seed and variant."""
    return np.array([by_seed(card, f"{score}, {name}") for name in variants]).T


def errors_of(card: Card, variants: Mapping[str, int]) -> dict[str, Float[np.ndarray, "seeds settings"]]:
    """The error of the baselines and of the MAE."""
    scores = BASELINES | {"MAE": ERROR}
    return {name: by_variant(card, score, variants) for name, score in scores.items()}


def probes_of(card: Card, variants: Mapping[str, int]) -> dict[str, Float[np.ndarray, "seeds settings"]]:
    """The linear probe's accuracy by the number of labels."""
    return {labels: by_variant(card, f"accuracy, {labels}, linear probe", variants) for labels in LABELS}


def pixels_of(card: Card) -> dict[str, list[float]]:
    """The accuracy of logistic regression on pixels, by the number of labels: what needs no network."""
    return {labels: by_seed(card, f"accuracy, {labels}, pixels") for labels in LABELS}


def in_percent(found: Mapping[str, list[float]]) -> dict[str, float]:
    """The mean over seeds."""
    return {labels: 100 * float(np.mean(values)) for labels, values in found.items()}


def some_drawings(count: int = SHOWN) -> tuple[Float[Tensor, "B 3 H W"], Float[Tensor, "B N"]]:
    """Unseen drawings on white, and noise that hides their patches."""
    drawings = icons("test")
    step = len(drawings.names) // count
    pixels = drawings.take(torch.arange(step // 2, len(drawings.names), step)[:count]).on(1.0)
    return pixels, looking.noise_of("random", count, (8, 8), seed=1)


def on_grey(pixels: Float[Tensor, "B C H W"], masked: Tensor) -> Float[Tensor, "B C H W"]:
    """The visible pixels, and grey in place of the others."""
    return torch.where(masked, 0.6, pixels)


def opening(model: MAE, card: Card, *, predicted=None) -> Result:
    pixels, noise = some_drawings()
    filled, masked = looking.reconstructions(model, pixels, noise)
    rows = {
        "drawing": pixels,
        "visible": on_grey(pixels, masked),
        "interpolation": interpolation(pixels, masked),
        "MAE": filled,
    }
    errors = {name: float(np.mean(by_seed(card, score))) for name, score in (BASELINES | {"MAE": ERROR}).items()}
    came = 100 * errors["MAE"] / errors["interpolation"]
    return Result(
        figures.reconstructed(rows, errors, predicted),
        claims={"ahead": below(max(by_seed(card, ERROR)), 0.7 * errors["interpolation"])},
        came=came,
        values={"mae": came, "colour": 100 * errors["mean colour"] / errors["interpolation"]},
    )


def reconstructed(mine: nn.Module, shipped: MAE, *, predicted=None) -> Result:
    pixels, noise = some_drawings()
    filled, masked = looking.reconstructions(mine, pixels, noise)
    rows = {
        "drawing": pixels,
        "visible": on_grey(pixels, masked),
        "your MAE": filled,
        "15,000 steps": looking.reconstructions(shipped, pixels, noise)[0],
    }
    asked = icons("validation").on(1.0)
    noise = looking.noise_of("random", len(asked), (8, 8))
    errors = looking.errors({"your MAE": mine, "MAE": shipped}, asked, noise)
    errors.pop("mean colour")
    errors["15,000 steps"] = errors.pop("MAE")
    yours, longer = (errors[name] / errors["interpolation"] for name in ("your MAE", "15,000 steps"))
    return Result(
        figures.reconstructed(rows, errors, predicted),
        claims={"yours": below(yours, 1), "longer": below(longer, 0.7)},
        came=100 * yours,
    )


def ratios(card: Card, longer: Card, *, predicted=None) -> Result:
    """`longer` is the results file of the long training, which has the accuracy of pixels."""
    errors, accuracies, pixels = errors_of(card, RATIOS), probes_of(card, RATIOS), in_percent(pixels_of(longer))
    mean = {labels: 100 * values.mean(axis=0) for labels, values in accuracies.items()}
    deviation = 100 * by_variant(card, "accuracy, 300 labels, linear probe, spread", RATIOS)  # over draws of labels
    return Result(
        figures.ratios(list(RATIOS.values()), errors, accuracies, pixels, predicted),
        claims={
            "error": bool((np.diff(errors["MAE"]) > 0).all()),
            "probe": bool((accuracies["300 labels"].argmax(axis=1) == 2).all()),
        },
        came=float(mean["all labels"][-1]),
        values={
            f"probe_{ratio}": float(value) for ratio, value in zip(RATIOS.values(), mean["all labels"], strict=True)
        }
        | {f"few_{ratio}": float(value) for ratio, value in zip(RATIOS.values(), mean["300 labels"], strict=True)}
        | {
            "pixels_few": pixels["300 labels"],
            "pixels_all": pixels["all labels"],
            "ahead": float(mean["all labels"].max() - pixels["all labels"]),
            "least": float(deviation.min()),
            "most": float(deviation.max()),
        },
    )


def depth(card: Card, longer: Card, *, predicted=None) -> Result:
    """`longer`: see `ratios`."""
    errors, accuracies = errors_of(card, DEPTHS), probes_of(card, DEPTHS)
    mean = 100 * accuracies["all labels"].mean(axis=0)
    return Result(
        figures.depth(list(DEPTHS.values()), errors, accuracies, in_percent(pixels_of(longer))),
        values={f"probe_{depth}": float(value) for depth, value in zip(DEPTHS.values(), mean, strict=True)},
    )


def normalised(card: Card, longer: Card, *, predicted=None) -> Result:
    """`longer`: see `ratios`."""
    drawing = some_drawings()[0][:1]
    target = looking.normalised_patches(drawing)
    accuracies = {
        shown: {labels: by_seed(card, f"accuracy, {labels}, linear probe, {name}") for labels in LABELS}
        for shown, name in (("pixels", BASE), ("normalised", "normalised targets"))
    }
    accuracies = {"no network": pixels_of(longer)} | accuracies
    mean = {
        f"{name}_{which}": in_percent(found)[labels]
        for name, found in zip(("raw", "pixels", "normalised"), accuracies.values(), strict=True)
        for which, labels in zip(("few", "all"), LABELS, strict=True)
    }
    gains = np.subtract(*(accuracies[name]["all labels"] for name in ("normalised", "pixels")))
    return Result(
        figures.normalised(drawing[0], target[0], accuracies), claims={"gain": above(gains.min(), 0)}, values=mean
    )


def labels(card: Card, *, predicted=None) -> Result:
    names = {
        "from scratch": "scratch",
        "pixels, logistic regression": "pixels",
        "MAE, linear probe": "linear probe",
        "MAE, fine-tuned": "fine-tuned",
    }
    methods = {
        shown: {labels: by_seed(card, f"accuracy, {labels}, {name}") for labels in LABELS}
        for shown, name in names.items()
    }
    scratch, pixels, probe, tuned = methods.values()
    few, more = LABELS
    means = {
        f"{name}_{which}": 100 * float(np.mean(found[count]))
        for name, found in zip(("scratch", "pixels", "probe", "tuned"), methods.values(), strict=True)
        for which, count in (("few", few), ("all", more))
    }
    return Result(
        figures.labels(methods, predicted),
        claims={
            "fine-tuning": above(min(tuned[more]) - max(scratch[more]), 0),
            "probe": above(min(probe[more]) - max(pixels[more]), 0),
        },
        came=means["tuned_all"],
        values=means,
    )


def masks(model: MAE, *, predicted=None) -> Result:
    drawings = icons("test").on(1.0)
    errors = looking.by_kind(model, drawings)
    pixels, examples = some_drawings()[0][2:3], {}
    with looking.hiding(model, 0.5):
        for kind in looking.KINDS:
            filled, masked = looking.reconstructions(model, pixels, looking.noise_of(kind, 1, (8, 8), seed=3))
            examples[kind] = on_grey(pixels, masked)[0], filled[0]
    percent = {
        kind: {name: 100 * found[name] / found["mean colour"] for name in ("interpolation", "MAE")}
        for kind, found in errors.items()
    }
    relative = {kind: found["MAE"] for kind, found in percent.items()}
    return Result(
        figures.masks(examples, percent),
        claims={
            "order": (
                above(relative["random"] - relative["checkerboard"], 0),
                above(relative["block"] / relative["random"], 1.3),
            )
        },
        values=relative,
    )


RESULTS = {
    function.__name__: function for function in (opening, reconstructed, ratios, depth, normalised, labels, masks)
}
