"""Lesson 02: three ways to use a pretrained encoder with few labels, and training from scratch, over draws of labels.

`measures.json` has what came out, and the page only reads the file. To measure again takes some four minutes on one
core: `python -m course_lib.lessons.lesson_02.measures`.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_02 import recipes
from course_lib.models.simclr import SimCLR
from course_lib.training.probes import Labelled, label_draw, tuned_neighbours, tuned_probe
from course_lib.training.seeding import seeded

FILE = Path(__file__).with_name("measures.json")
COUNTS = (10, 50, 200)  # labels in all
RATES = (3e-4, 1e-3, 3e-3)  # learning rates, of which each method and count takes the best on validation
STEPS, BATCH, DRAWS = 100, 32, 5


def fine_tune(
    encoder: nn.Module,
    images: Float[Tensor, "N 1 28 28"],
    labels: Int[Tensor, " N"],
    rate: float,
    *,
    steps: int = STEPS,
    seed: int = 0,
) -> nn.Module:
    """A copy of an encoder with a new linear head, all trained; AdamW, the learning rate falls linearly to 0."""
    with seeded(seed):
        model = nn.Sequential(copy.deepcopy(encoder), nn.Linear(recipes.SETTINGS.encoder.widths[-1], recipes.CLASSES))
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        model.train()
        for step in range(steps):
            rows = torch.randperm(len(labels))[:BATCH]
            optimizer.param_groups[0]["lr"] = rate * (1 - step / steps)
            loss = F.cross_entropy(model(standardise(images[rows])), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The fraction of images that a classifier gets right."""
    return (model(standardise(images)).argmax(dim=1) == labels).double().mean().item()


def compare(
    model: SimCLR, *, split: str = "test", counts: Sequence[int] = COUNTS, draws: int = DRAWS, steps: int = STEPS
) -> dict[str, list[float]]:
    """Accuracy on a split for each count and method, one number for each draw of the labels."""
    sets = {name: recipes.images(name) for name in ("train", "validation", split)}
    encode = recipes.encoder_of(model)
    features = {name: Labelled(encode(its.pixels), its.labels) for name, its in sets.items()}
    fresh = recipes.build(recipes.SETTINGS).encoder
    starts = {"fine-tuned": model.encoder, "from scratch": fresh}
    found: dict[str, list[float]] = {}
    for count, draw in product(counts, range(draws)):
        rows = label_draw(sets["train"].labels, count // recipes.CLASSES, seed=draw)
        few = Labelled(features["train"].features[rows], features["train"].labels[rows])
        for name, tuned in (("neighbours", tuned_neighbours), ("linear probe", tuned_probe)):
            probe = tuned(few, features["validation"])
            found.setdefault(f"{name}, {count} labels", []).append(probe.accuracy(*features[split]))
        images, labels = sets["train"].pixels[rows], sets["train"].labels[rows]
        for name, encoder in starts.items():
            models = [fine_tune(encoder, images, labels, rate, steps=steps, seed=draw) for rate in RATES]
            best = max(models, key=lambda each: accuracy(each, *sets["validation"]))
            found.setdefault(f"{name}, {count} labels", []).append(accuracy(best, *sets[split]))
    return found


def settings() -> Mapping[str, Any]:
    """How it was measured, as plain values."""
    return {"labels": list(COUNTS), "draws": DRAWS, "steps": STEPS, "batch": BATCH, "learning rates": list(RATES)}


def measured() -> Mapping[str, Sequence[float]]:
    """What `compare` found, by "method, so many labels"."""
    return json.loads(FILE.read_text(encoding="utf-8"))["test accuracy"]


def show() -> None:
    """Print the mean accuracy of each method and number of labels, with the lowest and the highest of the draws."""
    found = measured()
    print("labels in all" + "".join(f"{count:>17}" for count in COUNTS))
    for name in dict.fromkeys(key.split(",")[0] for key in found):
        cells = []
        for count in COUNTS:
            draws = [100 * value for value in found[f"{name}, {count} labels"]]
            cells.append(f"{mean(draws):.0f} % ({min(draws):.0f} to {max(draws):.0f})")
        print(f"{name:13}" + "".join(f"{cell:>17}" for cell in cells))


if __name__ == "__main__":
    scores = {
        name: [round(value, 4) for value in values] for name, values in compare(load_trained("simclr").model).items()
    }
    FILE.write_text(json.dumps({"settings": settings(), "test accuracy": scores}, indent=1) + "\n", encoding="utf-8")
