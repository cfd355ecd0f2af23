"""Lesson 02: icons across designers. Which drawing is nearest, and is it of the same thing in another hand?

Loss and loop are those of the page. Only the positive differs: the same drawing again, or the same thing as another
designer has drawn it. Tian, Krishnan & Isola, "Contrastive multiview coding", ECCV 2020, arXiv 1906.05849, made such
pairs of two sensors. `across.json` has what came out of three seeds; to measure again takes about ten minutes on one
core: `python -m course_lib.lessons.lesson_02.across`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.augmentations import random_colour
from course_lib.data.draws import generator
from course_lib.data.icons import DESIGNERS, Icons, icon_names, icons
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_02.learner import encoder_of

FILE = Path(__file__).with_name("across.json")
WHITE = 1.0  # the ground of all drawings
WIDTHS, PROJECTION, TEMPERATURE, PEAK = (16, 32, 64, 128), 64, 0.2, 2e-3
THINGS = 128  # of a batch; two views of each
SMALLEST, DEGREES = 0.7, 10.0  # of the crops
SAME, OTHER = "the same drawing twice", "two designers' drawings"  # the two kinds of positives
VIEWS = {  # smallest fraction of the area, strength of the colour distortion
    "weak": (0.7, 0.0),
    "weak, colours": (0.7, 0.4),
    "strong, colours": (0.4, 0.4),
}
STEPS, TUNED_FOR, SEEDS = 400, 200, (0, 1, 2)
TUNED_ON = 8  # every eighth thing of the training split is kept for choosing the views

Encoder = Callable[[Tensor], Tensor]  # from pixels to features, (B, 3, H, W) to (B, D)
Crop = Callable[[Tensor, Tensor, float, float], Tensor]

FAMILIES = sorted({designer.family for designer in DESIGNERS.values()})
FAMILY_OF = torch.tensor([FAMILIES.index(designer.family) for designer in DESIGNERS.values()])


@cache
def drawings(split: str) -> Icons:
    """The drawings of a split, read once."""
    return icons(split)


@cache
def kept_for_tuning() -> frozenset[int]:
    """The things of the training split by which the views are chosen."""
    return frozenset(drawings("train").names.unique().tolist()[::TUNED_ON])


class Drawn(NamedTuple):
    """The drawings of a thing, as rows of the training split, and the family of each one's designer."""

    rows: Int[Tensor, " K"]
    families: Int[Tensor, " K"]


@cache
def things(tuning: bool) -> tuple[Drawn, ...]:
    """What designers of two families have drawn for the training split, if `tuning` without what is kept for it."""
    names, families = drawings("train").names, FAMILY_OF[drawings("train").designers]
    left_out = kept_for_tuning() if tuning else frozenset()
    every = [(names == name).nonzero()[:, 0] for name in names.unique().tolist() if name not in left_out]
    return tuple(Drawn(rows, families[rows]) for rows in every if len(families[rows].unique()) > 1)


# --------------------------------------------------------------------------------------------- learning


def chosen(draws: torch.Generator, positives: str = OTHER, *, count: int = THINGS, tuning: bool = False) -> Tensor:
    """The rows of as many different things, (2B,): one drawing of each, then the partner of each."""
    every, first, second = things(tuning), [], []
    for thing in torch.randperm(len(every), generator=draws)[:count].tolist():
        rows, families = every[thing]
        one = int(torch.randint(len(rows), (), generator=draws))
        others = (families != families[one]).nonzero()[:, 0] if positives == OTHER else torch.tensor([one])
        first.append(rows[one])
        second.append(rows[others[int(torch.randint(len(others), (), generator=draws))]])
    return torch.stack(first + second)


class Batches:
    """So many batches of 2B views of icons, for the page's loop; `views` says how they are changed."""

    def __init__(self, crop: Crop, positives: str = OTHER, *, steps: int, seed: int = 0, views: str = "weak",
                 tuning: bool = False):  # fmt: skip
        self.crop, self.positives, self.steps, self.seed = crop, positives, steps, seed
        self.views, self.tuning = VIEWS[views], tuning

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Float[Tensor, "2B 3 H W"]]:
        draws, (smallest, colours) = generator("across", self.seed), self.views
        for _ in range(self.steps):
            rows = chosen(draws, self.positives, tuning=self.tuning)
            pixels = drawings("train").take(rows).on(WHITE)
            pixels = self.crop(pixels, torch.rand(4, len(rows), generator=draws), smallest, DEGREES)
            if colours:
                pixels = random_colour(pixels, draws, strength=colours)
            yield standardise(pixels).contiguous(memory_format=torch.channels_last)


# --------------------------------------------------------------------------------------------- retrieval


def pixels_alone(pixels: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B D"]:
    """Pixels as their own features, white counted as 0."""
    return (WHITE - pixels).flatten(1)


def directions(encoder: Encoder, *several: Icons) -> list[Float[Tensor, "N D"]]:
    """Features of unit length, less the mean of the last drawings: without this, all cosines are close to 1."""
    h = [encoder(its.on(WHITE)).double() for its in several]
    return [F.normalize(each - h[-1].mean(dim=0), dim=1) for each in h]


def ranked(queries: Icons, stored: Icons, encoder: Encoder, k: int) -> Int[Tensor, "N k"]:
    """For each query the k most similar stored drawings by designers of other families."""
    h, g = directions(encoder, queries, stored)
    same = FAMILY_OF[queries.designers][:, None] == FAMILY_OF[stored.designers]
    return (h @ g.T).masked_fill(same, -torch.inf).topk(k, dim=1).indices


def recall(queries: Icons, stored: Icons, encoder: Encoder) -> float:
    """How often the nearest drawing by another family is of the same thing; only where there is one."""
    there = queries.names[:, None] == stored.names
    there &= FAMILY_OF[queries.designers][:, None] != FAMILY_OF[stored.designers]
    asked = there.any(dim=1)
    nearest = ranked(queries, stored, encoder, 1)[asked, 0]
    return (stored.names[nearest] == queries.names[asked]).double().mean().item()


def recall_of_new_things(encoder: Encoder) -> float:
    """The same among the drawings of the 100 things that no training sees."""
    return recall(drawings("new names"), drawings("new names"), encoder)


def called(name: str) -> Int[Tensor, " K"]:
    """The rows of the new things' drawings that are of this name. Raises ValueError with some names that exist."""
    names = icon_names()
    its = (drawings("new names").names == names.index(name)).nonzero()[:, 0] if name in names else torch.empty(0)
    if len(its) == 0:
        some = [names[n] for n in drawings("new names").names.unique().tolist()]
        raise ValueError(f"No new thing is called {name!r}. There are: {', '.join(some)}.")
    return its


# --------------------------------------------------------------------------------------------- measuring


def trained(positives: str, views: str, seed: int, *, steps: int, tuning: bool = False) -> nn.Module:
    """The solutions of the page's exercises, trained on pairs of icons."""
    from course_lib.lessons.lesson_02.tasks import TASKS

    torch.manual_seed(seed)
    model = TASKS["simclr"].module(3, WIDTHS, PROJECTION)
    batches = Batches(TASKS["random_crop"].reference, positives, steps=steps, seed=seed, views=views, tuning=tuning)
    TASKS["train"].reference(model, batches, TEMPERATURE, PEAK)
    return model


def measure() -> Mapping[str, Any]:
    """Choose the views of both kinds of positives on things kept for it, then measure all seeds on the new things."""
    from course_lib.lessons.lesson_02.tasks import TASKS

    known = drawings("train")
    kept = known.take(torch.tensor([name in kept_for_tuning() for name in known.names.tolist()]))
    tuned: dict[str, Any] = {"pixels": round(recall(kept, kept, pixels_alone), 3)}
    found: dict[str, list[float]] = {"pixels": [round(recall_of_new_things(pixels_alone), 3)], "untrained": []}
    for seed in SEEDS:
        torch.manual_seed(seed)
        fresh = TASKS["simclr"].module(3, WIDTHS, PROJECTION)
        found["untrained"].append(round(recall_of_new_things(encoder_of(fresh)), 3))
    for positives in (SAME, OTHER):
        scores = {}
        for views in VIEWS:
            model = trained(positives, views, 0, steps=TUNED_FOR, tuning=True)
            scores[views] = round(recall(kept, kept, encoder_of(model)), 3)
            print(positives, views, scores[views], flush=True)
        best, tuned[positives], found[positives] = max(scores, key=scores.get), scores, []
        for seed in SEEDS:
            encoder = encoder_of(trained(positives, best, seed, steps=STEPS))
            found[positives].append(round(recall_of_new_things(encoder), 3))
            print(positives, best, seed, found[positives][-1], flush=True)
    return {"settings": settings(), "recall at 1, tuning": tuned, "recall at 1, new things": found}


def settings() -> Mapping[str, Any]:
    """How it was measured, as plain values."""
    return {
        "steps": STEPS,
        "steps of the search": TUNED_FOR,
        "things in a batch": THINGS,
        "temperature": TEMPERATURE,
        "seeds": list(SEEDS),
        "views": "the best of those listed, on things that are kept for this choice",
    }


def measured() -> Mapping[str, Sequence[float]]:
    """How often the nearest drawing by another designer was of the same thing, for each method and seed."""
    return json.loads(FILE.read_text(encoding="utf-8"))["recall at 1, new things"]


def means(found: Mapping[str, Sequence[float]]) -> Mapping[str, float]:
    """The mean over the seeds."""
    return {name: mean(values) for name, values in found.items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
