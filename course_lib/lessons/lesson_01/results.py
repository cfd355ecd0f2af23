"""Lesson 01, Transfer learning: its results, each with figure, alt text, claims and what it means."""

import textwrap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.icons import icon_names
from course_lib.data.scenes import DigitScenes, Scenes
from course_lib.lessons.lesson_01 import figures, learner, looking
from course_lib.lessons.lesson_01.measuring import PER_NAME, percent
from course_lib.lessons.lesson_01.recipes.transfer import SOURCE, TARGET
from course_lib.models.resnet import ResNet
from course_lib.tasks.claims import above, below

NETWORKS = ("plain, 8 layers", "plain, 20 layers", "plain, 44 layers")
NETWORKS += ("residual, 8 layers", "residual, 20 layers", "residual, 44 layers")
KINDS = {  # of drawings -> as the card calls them
    "training drawings": ", training drawings",
    "new drawings": "",
    "unseen designer": ", new designer",
    "new drawings, coloured ground": ", coloured ground",
}
WAYS = {"random views": "augmented", "as drawn, on white": "plain"}  # of training -> variant of the recipe
SHOWN = 16  # drawings of the unseen designer
PARTS = ("stem", "stage 1", "stage 2", "stage 3")


def unseen(model: nn.Module, *, predicted=None) -> Result:
    (old, old_labels), (drawings, labels) = learner.known("test"), learner.known("new designer")
    both = [torch.isin(some, others) for some, others in ((old_labels, labels), (labels, old_labels))]
    known, new = (
        percent(model, some.take(rows), right[rows])
        for some, right, rows in ((old, old_labels, both[0]), (drawings, labels, both[1]))
    )
    rows = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[:SHOWN]
    some = drawings.take(rows)
    best = [names[0][0] for names in learner.names_of(model, some.on(1.0))]
    right = [name == icon_names()[number] for name, number in zip(best, some.names.tolist(), strict=True)]
    titles = ["\n".join(textwrap.wrap(name, 11, break_long_words=False)[:2]) for name in best]
    return Result(
        figures.drawings(some.on(1.0), titles, right),
        claims={"no shift": below(abs(known - new), 5)},
        came=new,
        values={
            "known": known,
            "new": new,
            "count": int(both[1].sum()),
            "error": (new * (100 - new) / int(both[1].sum())) ** 0.5,
        },
    )


def views(augment: Callable[..., Tensor], *, predicted=None) -> Result:
    some = learner.known("test")[0].take(torch.tensor([3, 60, 150]))
    torch.manual_seed(1)
    rows = [some.on(1.0), *(augment(learner.rgba(some), *learner.draws(3)) for _ in range(7))]
    return Result(figures.views(torch.stack(rows, dim=1)))


def depth(losses: Mapping[str, Sequence[float]], card: Mapping, *, predicted=None) -> Result:
    right = {name: by_seed(card, f"{name}, accuracy on training digits") for name in NETWORKS}
    twice = by_seed(card, "plain, 44 layers, twice the steps, accuracy on training digits")
    last = {name: float(np.mean(values[-10:])) for name, values in losses.items()}
    return Result(
        figures.depth(losses, right, predicted),
        claims={
            "training set": (
                above(last["plain, 44 layers"] / max(last["plain, 8 layers"], last["residual, 44 layers"]), 2),
                max(right["plain, 44 layers"]) < min(right["plain, 8 layers"] + right["residual, 44 layers"]),
            )
        },
        came=100 * float(np.min(right["plain, 44 layers"])),
        values={"errors": ", ".join(f"{100 * (1 - value):.0f}" for value in twice)},
    )


def augmentation(card: Mapping, *, predicted=None) -> Result:
    found = {
        kind: {
            way: np.array([100 * seed["test"][f"accuracy{of}, {variant}"] for seed in card["seeds"]])
            for way, variant in WAYS.items()
        }
        for kind, of in KINDS.items()
    }
    with_views, as_drawn = ({kind: ways[way] for kind, ways in found.items()} for way in WAYS)
    coloured = as_drawn["new drawings, coloured ground"]
    gains = [with_views[kind].min() - as_drawn[kind].max() for kind in list(KINDS)[1:]]
    return Result(
        figures.augmentation(found),
        claims={
            "better": (above(min(gains), 0), above((as_drawn["new drawings"] - coloured).min(), 20)),
        },
        came=float(coloured.mean()),
        values={
            "coloured": float(coloured.mean()),
            "views": float(with_views["new drawings, coloured ground"].mean()),
        },
    )


def few_labels(measured: Mapping[str, Mapping], yours: Mapping[str, float], *, predicted=None) -> Result:
    def table(of: str) -> dict[str, np.ndarray]:
        """Of each way an array: draws x numbers of labels."""
        rows = measured[of]
        return {way: np.array([rows[f"{count} a thing, {way}"] for count in PER_NAME]).T for way in figures.COLOURS}

    def ahead(one: str, other: str) -> int:
        """The draws, of all numbers of labels, in which one way is better than the other."""
        return int((found[one] > found[other]).sum())

    found, moved = table("accuracy (%)"), {way: values.mean(0) for way, values in table("features moved").items()}
    baselines = ("scratch", "frozen, random weights")
    best = np.max([found[way].mean(0) for way in baselines], axis=0)
    worst = np.min([values.mean(0) for way, values in found.items() if way not in baselines], axis=0)
    behind = (found["frozen"] - found["fine-tuned"])[:, -1]
    return Result(
        figures.few_labels(found, PER_NAME, yours, predicted),
        claims={
            "scratch": above(float((worst - best).min()), 10),
            "distortion": (
                below(float((moved["head first, then all"] / moved["fine-tuned"]).max()), 0.7),
                above(float(behind.min()), 0),
            ),
        },
        came=float(found["frozen"].mean(0)[1]),
        values={
            "less": float((worst - best).min()),
            "more": float((np.max([found[way].mean(0) for way in found], axis=0) - best).max()),
            "random": float(100 * moved["fine-tuned"].mean()),
            "fitted": float(100 * moved["head first, then all"].mean()),
            "layers": float(100 * moved["learning rates by layer"].mean()),
            "ahead": ahead("fine-tuned", "frozen"),
            "behind": ahead("frozen", "fine-tuned"),
            "fitted_ahead": ahead("head first, then all", "frozen"),
            "fitted_behind": ahead("frozen", "head first, then all"),
            "plain_behind": ahead("fine-tuned", "fine-tuned, not augmented"),
        },
    )


def depths(measured: Mapping[str, Sequence], *, predicted=None) -> Result:
    found = {name: np.array(rows) for name, rows in measured.items()}
    own, other = (found[f"from {half}, frozen"].mean(0) for half in "BA")
    return Result(
        figures.by_depth(found, PARTS),
        values={
            "fall": float(own[0] - own[-1]),
            "gap": float((own - other).mean()),
            "further": float(found["from A, trained, too"].mean()),
            "scratch": float(found["B, from scratch"].mean()),
        },
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
        claims={"in the box": (above(hits, 0.85), below(chance, 0.55))},
    )


def probes(everything: ResNet, six: ResNet, *, predicted=None) -> Result:
    found = looking.probes(everything)
    tasks = {name: looking.probes(six, classes)["digit"] for name, classes in (("source", SOURCE), ("target", TARGET))}
    digit, brighter = found["digit"], found["brighter"]
    return Result(
        figures.probes(found, tasks, looking.PROBED, predicted),
        claims={
            "last": (above(np.diff(digit).min(), 0), above(min(brighter[:-1]) - brighter[-1], 0.1)),
        },
        came=100 * brighter[-1],
        values={"first": 100 * brighter[0], "before": 100 * brighter[-2], "last": 100 * brighter[-1]},
    )


def accidents(found: Mapping[str, Mapping], *, predicted=None) -> Result:
    norms, pixels, rates = (list(found[key].values()) for key in ("norms", "pixels", "rates"))
    return Result(
        figures.accidents(found),
        claims={
            "costs": (
                above(norms[0] - norms[1], 1),
                above(pixels[0] - pixels[1], 5),
                above(rates[0][0] - rates[2][0], 10),
            )
        },
    )


RESULTS = {
    one.__name__: one
    for one in (unseen, views, depth, augmentation, few_labels, depths, patches, dreams, occlusion, probes, accidents)
}
