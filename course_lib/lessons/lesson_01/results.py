"""Lesson 01, Transfer learning: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

import numpy as np

from course_lib.classroom.results import Result
from course_lib.data.scenes import DigitScenes, Scenes
from course_lib.lessons.lesson_01 import figures, learner, looking
from course_lib.lessons.lesson_01.recipes import transfer as task
from course_lib.lessons.lesson_01.recipes.transfer import SOURCE, TARGET
from course_lib.models.resnet import ResNet
from course_lib.tasks.claims import above, below
from course_lib.training.recipe import Trained

NETS = ("plain, 8 layers", "plain, 20 layers", "plain, 44 layers")
NETS += ("residual, 8 layers", "residual, 20 layers", "residual, 44 layers")
CARD_NAMES = {"scratch": "scratch", "frozen": "frozen", "fine-tuned": "fine-tuned"}
CARD_NAMES |= {"rates by layer": "fine-tuned, rates by layer"}


def block(*, predicted=None) -> Result:
    return Result(figures.block())


def depth(losses: Mapping[str, Sequence[float]], card: Mapping, *, predicted=None) -> Result:
    right = {name: [seed["test"][f"{name}, accuracy on training digits"] for seed in card["seeds"]] for name in NETS}
    twice = [seed["test"]["plain, 44 layers, twice the steps, accuracy on training digits"] for seed in card["seeds"]]
    last = {name: float(np.mean(values[-10:])) for name, values in losses.items()}
    return Result(
        figures.depth(losses, right, predicted),
        claims={
            "yours": above(last["plain, 44 layers"] / max(last["plain, 8 layers"], last["residual, 44 layers"]), 2),
            "training set": max(right["plain, 44 layers"])
            < min(right["plain, 8 layers"] + right["residual, 44 layers"]),
        },
        came=100 * float(np.min(right["plain, 44 layers"])),
        values={"errors": ", ".join(f"{100 * value:.0f}" for value in twice)},
    )


def transfer(found: Mapping[int, Mapping[str, float]], card: Mapping, *, predicted=None) -> Result:
    counts = [len(TARGET) * count for count in task.PER_CLASS]
    table, spread = (
        {
            way: np.array(
                [[seed["test"][f"{what}, {count} labels, {name}"] for count in counts] for seed in card["seeds"]]
            )
            for way, name in CARD_NAMES.items()
        }
        for what in ("accuracy", "spread over draws")
    )
    forty = counts.index(40)
    scratch, frozen, tuned, layered = table.values()
    mine = {len(TARGET) * count: ways for count, ways in found.items()}
    return Result(
        figures.transfer(table, spread, counts, mine, predicted),
        claims={
            "yours": above(
                min(mine[n][way] - mine[n]["scratch"] for n in (8, 40) for way in CARD_NAMES if way != "scratch"),
                0.15,
            ),
            "frozen or not": bool((tuned[:, 0] < frozen[:, 0]).all() and (tuned[:, 1:] > frozen[:, 1:]).all()),
            "rates by layer": bool(
                (layered[:, forty] > tuned[:, forty]).all() and (layered[:, -1] < tuned[:, -1]).all()
            ),
        },
        came=100 * float(frozen[:, forty].mean()),
    )


def patches(model: ResNet, scenes: Scenes, *, predicted=None) -> Result:
    fractions = looking.commonest_share(model, scenes)
    return Result(
        figures.patches(
            model.stem.conv.weight.detach()[:, 0],
            looking.exciting(model, scenes.pixels),
            looking.STAGES,
            looking.fields_of(model),
            fractions,
        ),
        claims={"specialised": above(min(fractions[2] - fractions[1], fractions[3] - fractions[2]), 0)},
    )


def dreams(model: ResNet, *, predicted=None) -> Result:
    found = looking.dreams(model, SOURCE)
    noise, smooth = (found[kind][1] for kind in ("nothing", "regularised"))
    return Result(
        figures.dreams(found, [str(digit) for digit in SOURCE]),
        claims={"certain": (above(noise.min(), 0.95), above(smooth.min(), 0.95))},
    )


def occlusion(model: ResNet, scene: Scenes, *, predicted=None) -> Result:
    label, size = int(scene.labels[0, 0]), 7
    fallen = looking.occluded(model, scene.pixels, label, size=size)
    hits, chance = looking.peak_on_digit(model, DigitScenes(split="test").batch(60, seed=0))
    return Result(
        figures.occlusion(scene.pixels[0, 0], fallen, size, hits, chance),
        claims={"in the box": (above(hits, 0.85), below(chance, 0.5))},
    )


def probes(everything: ResNet, six: ResNet, *, predicted=None) -> Result:
    found = looking.probes(everything)
    tasks = {name: looking.probes(six, classes)["digit"] for name, classes in (("source", SOURCE), ("target", TARGET))}
    digit, brighter = found["digit"], found["brighter"]
    return Result(
        figures.probes(found, tasks, looking.PROBED, predicted),
        claims={"rises": (above(np.diff(digit).min(), 0), above(brighter[0] - brighter[-1], 0.2))},
        came=100 * brighter[-1],
    )


def accidents(source: Trained, *, predicted=None) -> Result:
    found = learner.accidents(source)
    norms, pixels, rates = (list(found[key].values()) for key in ("norms", "pixels", "rates"))
    return Result(
        figures.accidents(found),
        claims={
            "costs": (
                above(norms[0] - norms[2], 0.01),
                above(pixels[0] - pixels[1], 0.1),
                above(rates[0][0] - rates[2][0], 0.15),
            )
        },
    )


RESULTS = {one.__name__: one for one in (block, depth, transfer, patches, dreams, occlusion, probes, accidents)}
