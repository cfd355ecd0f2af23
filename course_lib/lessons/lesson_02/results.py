"""Lesson 02, Representation learning: its results, each with figure, alt text, claims and what it means."""

import html
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.lessons.lesson_02 import across, figures, learner, looking, recipes
from course_lib.models.simclr import SimCLR
from course_lib.tasks.claims import above, below
from course_lib.training.probes import features_of
from course_lib.viz.style import PALETTE

Card = Mapping[str, Any]
SHOWN_DESIGNER = 2  # whose drawings are asked about
SHOWN = {"crop": "crop", "rotation": "rotation", "light": "brightness, contrast", "blur": "blur", "cutout": "cutout"}


def mechanism(*, predicted=None) -> Result:
    pictures = looking.one_of_each().pixels[[2, 5]]
    views = torch.stack([looking.changed_by("all", pictures, seed) for seed in (1, 2)], dim=1)
    return Result(figures.mechanism(pictures[:, 0], views[:, :, 0]))


def augmented(*, predicted=None) -> Result:
    pictures = looking.one_of_each().pixels[[2, 5, 7, 9]]
    rows = {"the image": pictures} | {words: looking.changed_by(name, pictures) for name, words in SHOWN.items()}
    rows |= {f"all, {time}": looking.changed_by("all", pictures, seed) for seed, time in ((1, "once"), (2, "again"))}
    return Result(figures.views({name: several[:, 0] for name, several in rows.items()}))


def shortcut(*, predicted=None) -> Result:
    views = {name: [looking.icon_views(name, seed) for seed in range(3)] for name in looking.DISTORTIONS}
    found = {name: [looking.partner_by_colours(*pair) for pair in pairs] for name, pairs in views.items()}
    crop, _, distorted = found.values()
    return Result(
        figures.shortcut({name: torch.stack(pairs[0])[:, :5] for name, pairs in views.items()}, found, 1 / 255),
        claims={"found": (above(min(crop), 0.85), below(max(distorted), 0.05))},
    )


def rising(log: learner.Log, vote: learner.Vote, *, predicted=None) -> Result:
    pixels = learner.asked_neighbours(learner.pixels_alone, vote)
    guess = math.log(2 * recipes.SETTINGS.batch_size - 1)
    return Result(
        figures.rising(log.steps, log.votes, log.losses, pixels, guess, predicted),
        claims={
            "first loss": below(abs(log.losses[0] - guess), 0.5),
            "after 100 steps": above(log.votes[-1] - pixels, 0.05),
        },
        came=100 * log.votes[-1],
    )


def labels(card: Card, *, predicted=None) -> Result:
    names = {
        "untrained": "random",
        "pixels": "pixels",
        "SimCLR, h": "SimCLR",
        "SimCLR, z": "SimCLR's projection",
        "trained with all labels": "supervised",
    }
    ways = {
        shown: {count: by_seed(card, f"linear probe, {count} labels, {name}") for count in recipes.COUNTS}
        for shown, name in names.items()
    }
    before, pixels, ours, _, supervised = ways.values()
    return Result(
        figures.labels(ways, predicted),
        claims={
            "fewer labels": min(supervised[10]) > max(ours[50]) > min(ours[10]) > max(pixels[50]) > max(before[50])
        },
        came=100 * float(np.mean(ours[10])),
    )


def bars(reached: Mapping[str, list[float]]) -> str:
    """A table of accuracies with bars, the first row before all others."""
    complete, rows = 100 * float(np.mean(next(iter(reached.values())))), ""
    for number, (name, values) in enumerate(reached.items()):
        mean = 100 * float(np.mean(values))
        colour = PALETTE["vermilion" if number else "blue"]
        less = f" ({mean - complete:+.0f})" if number else ""
        spread = f"{100 * min(values):.0f} to {100 * max(values):.0f}"
        rows += (
            f'<tr><th scope="row" style="text-align:left;white-space:nowrap">{html.escape(name)}</th>'
            f'<td style="width:14em"><div style="width:{mean:.0f}%;height:1em;background-color:{colour}"></div></td>'
            f'<td style="text-align:right;white-space:nowrap">{mean:.0f} %{less}</td>'
            f'<td style="text-align:right">{spread}</td></tr>'
        )
    head = "<th></th><th></th><th>10 labels</th><th>three seeds</th>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def changes(card: Card, *, predicted=None) -> Result:
    reached = {"all augmentations": by_seed(card, "linear probe, 10 labels, short training, all changes")}
    for name, words in SHOWN.items():
        reached[f"without {words}"] = by_seed(card, f"linear probe, 10 labels, short training, without {name}")
    means = [float(np.mean(values)) for values in reached.values()]
    crop = list(reached.values())[1]
    return Result(
        bars(reached),
        claims={"crops": max(crop) + 0.1 < min(min(values) for values in list(reached.values())[2:])},
        came=int(np.argmin(means[1:])),
    )


def pairs(fresh: SimCLR, shipped: SimCLR, alone: SimCLR, pixels: Float[Tensor, "B 1 H W"], *, predicted=None) -> Result:
    found = {
        name: looking.likeness(model, pixels)
        for name, model in (("Untrained", fresh), ("SimCLR", shipped), ("Without negatives", alone))
    }
    means = {name: (float(its.positives.mean()), float(its.negatives.mean())) for name, its in found.items()}
    alike = [means["Untrained"], means["Without negatives"]]
    return Result(
        figures.pairs({name: (its.positives.numpy(), its.negatives.numpy()) for name, its in found.items()}),
        claims={
            "cosines": (
                above(min(map(min, alike)), 0.9),
                below(max(abs(one - two) for one, two in alike), 0.05),
                above(means["SimCLR"][0], 0.85),
                below(means["SimCLR"][1], 0.1),
            )
        },
    )


def losses(card: Card, fresh: SimCLR, *, predicted=None) -> Result:
    names = [f"temperature {t:g}" for t in recipes.TEMPERATURES]
    probe = np.array([by_seed(card, f"linear probe, 10 labels, {name}") for name in names]).T
    alone = by_seed(card, f"linear probe, 10 labels, {recipes.ALONE}")
    positions = {
        name.removeprefix("temperature "): tuple(
            float(np.mean(by_seed(card, f"{score}, {name}"))) for score in ("uniformity", "alignment")
        )
        for name in (*names, recipes.ALONE)
    }
    start = recipes.sphere_of(fresh, "test", recipes.SETTINGS.augmentation)
    positions["untrained"] = (start.uniformity, start.alignment)
    best = probe.argmax(axis=1)
    return Result(
        figures.losses(recipes.TEMPERATURES, probe, alone, positions),
        claims={
            "temperature": (
                bool(((best > 1) & (best < len(names) - 1)).all()),
                bool(min(probe.max(axis=1)) > max(alone) + 0.3),
            )
        },
    )


def kept(shipped: SimCLR, *, predicted=None) -> Result:
    every = looking.encoders(shipped) | {"z": partial(features_of, shipped)}
    names = {"pixels": "pixels", "before": "untrained", "SimCLR": "SimCLR, h", "z": "SimCLR, z"}
    found = {names[name]: looking.kept(encoder) for name, encoder in every.items()}
    pixels, before, h, z = found.values()
    return Result(
        figures.kept(found, predicted),
        claims={
            "lost": (
                above(pixels["bright"] - h["bright"], 0.15),
                above(h["bright"] - z["bright"], 0),
                below(abs(h["right"] - pixels["right"]), 0.05),
                above(h["right"] - z["right"], 0.05),
            )
        },
        came=100 * z["bright"],
    )


def across_designers(encoder: looking.Encoder, *, predicted=None) -> Result:
    new = across.drawings("new names")
    queries = new.take((new.designers == SHOWN_DESIGNER).nonzero()[:, 0][::12][:6])
    found = {}
    for name, its in (("nearest by pixels", across.pixels_alone), ("nearest by your features", encoder)):
        nearest = across.ranked(queries, new, its, 3)
        drawings = torch.stack([new.take(rows).on(across.WHITE) for rows in nearest])
        found[name] = (drawings, new.names[nearest] == queries.names[:, None])
    yours, stored = across.recall_of_new_things(encoder), across.measured()
    pixels, _, same, two = stored.values()
    return Result(
        figures.across(queries.on(across.WHITE), found, stored, yours),
        claims={
            "stored": (above(min(two) - max(pixels), 0.03), above(min(two) - max(same), 0.1)),
            "yours": above(yours - max(same), 0.05),
        },
        values={
            name: f"{100 * value:.0f}"
            for name, value in zip(("pixels", "untrained", "same", "two"), across.means(stored).values(), strict=True)
        },
    )


RESULTS = {
    function.__name__: function
    for function in (
        mechanism,
        augmented,
        shortcut,
        rising,
        labels,
        changes,
        across_designers,
        pairs,
        losses,
        kept,
    )
}
