"""Lesson 02: icons across designers. Which drawing is nearest, and is it of the same thing in another hand?

The loss is that of SimCLR. What differs is the positive: another view of the same drawing, or a view of the same thing
as another designer has drawn it, as in Tian, Krishnan & Isola, "Contrastive multiview coding", ECCV 2020,
arXiv 1906.05849, where the two views come from two sensors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.augmentations import Augmentation
from course_lib.data.draws import generator
from course_lib.data.icons import DESIGNERS, Icons, icons
from course_lib.functional.images import standardise
from course_lib.functional.losses import nt_xent
from course_lib.models.resnet import ResNetConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.training.probes import features_of
from course_lib.training.recipe import Recipe, Scores, Trained, fit_by, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import seed_of_step

WHITE = 1.0  # the ground on which drawings are compared
RECALLS = (1, 5)
Encoder = Callable[[Tensor], Tensor]  # from pixels to features, (B, 3, H, W) to (B, D)


@dataclass(frozen=True, kw_only=True)
class AcrossSettings:
    """An encoder, which two drawings are a positive pair, and how their views are changed."""

    encoder: ResNetConfig = ResNetConfig(
        num_classes=None,
        stem="small",
        stem_channels=16,
        block="basic",
        widths=(16, 32, 64, 128),
        depths=(1, 1, 1, 1),
        stride_in_first_stage=True,
    )
    two_designers: bool = True  # the positive is the same thing by another designer, else the same drawing
    grounds: bool = True  # of a random colour each, else white
    augmentation: Augmentation = Augmentation(crop=0.5, rotation=15.0, colour=0.4, blur=0.2)
    projection_dim: int = 64
    temperature: float = 0.2
    steps: int = 600
    batch_size: int = 128  # things; two views of each
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    seed: int = 0


class Drawn(NamedTuple):
    """Which drawings each thing has, as rows of `icons("train")`, and the family of their designers."""

    rows: tuple[Int[Tensor, " K"], ...]
    families: tuple[Int[Tensor, " K"], ...]


FAMILIES = sorted({designer.family for designer in DESIGNERS.values()})
FAMILY_OF = torch.tensor([FAMILIES.index(designer.family) for designer in DESIGNERS.values()])


@cache
def drawings(split: str) -> Icons:
    """The drawings of a split, read once."""
    return icons(split)


@cache
def things() -> Drawn:
    """All things that designers of two families have drawn for the training split."""
    names, families = drawings("train").names, FAMILY_OF[drawings("train").designers]
    every = [(names == name).nonzero()[:, 0] for name in names.unique()]
    several = [rows for rows in every if len(families[rows].unique()) > 1]
    return Drawn(tuple(several), tuple(families[rows] for rows in several))


# --------------------------------------------------------------------------------------------- learning


def build(settings: AcrossSettings) -> SimCLR:
    """A fresh model; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        return SimCLR(SimCLRConfig(encoder=settings.encoder, projection_dim=settings.projection_dim))


def chosen(settings: AcrossSettings, draws: torch.Generator) -> tuple[Int[Tensor, " B"], Int[Tensor, " B"]]:
    """For each of B different things a drawing and its partner: the same drawing, or one by another family."""
    drawn, first, second = things(), [], []
    for thing in torch.randperm(len(drawn.rows), generator=draws)[: settings.batch_size].tolist():
        rows, families = drawn.rows[thing], drawn.families[thing]
        one = int(torch.randint(len(rows), (), generator=draws))
        others = (families != families[one]).nonzero()[:, 0] if settings.two_designers else torch.tensor([one])
        first.append(rows[one])
        second.append(rows[others[int(torch.randint(len(others), (), generator=draws))]])
    return torch.stack(first), torch.stack(second)


def views_at(settings: AcrossSettings, step: int) -> Float[Tensor, "2B 3 H W"]:
    """The batch of a step: all first views, then all second ones, each drawing on a ground of one random colour."""
    number = seed_of_step(settings.seed, step)
    draws, views = generator("across", number), []
    for rows in chosen(settings, draws):
        ground = torch.rand(len(rows), 3, 1, 1, generator=draws) if settings.grounds else torch.tensor(WHITE)
        views.append(settings.augmentation(drawings("train").take(rows).on(ground), draws))
    return torch.cat(views)


def contrastive_loss(model: SimCLR, views: Float[Tensor, "2B 3 H W"], temperature: float) -> Float[Tensor, ""]:
    """NT-Xent of the projections."""
    first, second = model(standardise(views)).chunk(2)
    return nt_xent(first, second, temperature=temperature)


def train(settings: AcrossSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns to find the partner of each view."""
    return fit_by(
        settings,
        build(settings),
        lambda step: views_at(settings, step),
        lambda model, views: contrastive_loss(model, views, settings.temperature),
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
    )


# --------------------------------------------------------------------------------------------- retrieval


def encoder_of(model: SimCLR) -> Encoder:
    """A function from pixels to the features h of a model."""
    return lambda pixels: features_of(model, pixels, encode=model.features)


def pixels_alone(pixels: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B D"]:
    """Pixels as their own features, white counted as 0."""
    return (WHITE - pixels).flatten(1)


def ranked(
    queries: Icons, stored: Icons, encoder: Encoder, mean: Float[Tensor, " D"] | None = None
) -> Int[Tensor, "N M"]:
    """For each query all stored drawings by other families, the most similar first; -1 where there are no more.

    Similar is a large cosine, after the `mean` feature of the stored drawings is subtracted: the cosines of all
    features are alike otherwise.
    """
    h, g = encoder(queries.on(WHITE)).double(), encoder(stored.on(WHITE)).double()
    mean = g.mean(dim=0) if mean is None else mean
    cosines = F.normalize(h - mean, dim=1) @ F.normalize(g - mean, dim=1).T
    same = FAMILY_OF[queries.designers][:, None] == FAMILY_OF[stored.designers]
    order = cosines.masked_fill(same, -2).argsort(dim=1, descending=True)
    return order.masked_fill(same.gather(1, order), -1)


def recall(queries: Icons, stored: Icons, encoder: Encoder, k: int = 1) -> float:
    """The fraction of queries that have a drawing of the same thing among their k nearest; others are not asked."""
    there = queries.names[:, None] == stored.names
    there &= FAMILY_OF[queries.designers][:, None] != FAMILY_OF[stored.designers]
    asked = there.any(dim=1)
    nearest = ranked(queries, stored, encoder)[asked, :k]
    return (stored.names[nearest] == queries.names[asked][:, None]).any(dim=1).double().mean().item()


def retrieval_scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Recall across designers: on the test things that no training has seen, on validation other drawings."""
    encoders = {name: encoder_of(each.model) for name, each in trained.items()}
    encoders |= {"random": encoder_of(build(next(iter(trained.values())).settings)), "pixels": pixels_alone}
    if split == "validation":
        sets = {"known things": (drawings("validation"), drawings("train"))}
    else:
        sets = {
            "new things": (drawings("new names"), drawings("new names")),
            "new designer": (drawings("new designer"), drawings("train")),
        }
    return {
        f"recall at {k}, {words}, {name}": recall(*both, encoder, k)
        for words, both in sets.items()
        for k in RECALLS
        for name, encoder in encoders.items()
    }


SETTINGS = AcrossSettings()
ONE, TWO = "views of one drawing", "drawings by two designers"
RECIPES = {
    "simclr_icons": Recipe(
        title="SimCLR of icons, with two kinds of positives",
        lesson="02",
        data="drawings of the training split of course_lib.data.icons, 32 x 32 pixels, on grounds of random colours; "
        "retrieval is tuned on other drawings of the same things, and scored on 100 things and a designer that no "
        "training has seen",
        minutes=6,
        variants={TWO: SETTINGS, ONE: replace(SETTINGS, two_designers=False)},
        ships=TWO,
        train=train,
        scores=retrieval_scores,
        chosen_by=f"recall at 1, known things, {TWO}",
        mode="max",
        settings=plain(SETTINGS, "two_designers"),
    ),
}
