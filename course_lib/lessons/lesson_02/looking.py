"""Lesson 02: what features keep and what they lose."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.augmentations import Augmentation, two_views
from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.draws import generator
from course_lib.data.icons import icons
from course_lib.lessons.lesson_02 import recipes
from course_lib.models.simclr import SimCLR
from course_lib.training.probes import Labelled, features_of, label_draw, tuned_probe

Encoder = Callable[[Tensor], Tensor]  # from pixels to features, (B, 1, H, W) to (B, D)
CHANGE = recipes.SETTINGS.augmentation  # of the training
NOTHING = Augmentation(**dict.fromkeys(vars(CHANGE), 0.0))
STEADY = 8  # seed of what is shown


def encoders(trained: SimCLR) -> dict[str, Encoder]:
    """What is compared on the page: pixels, the encoder before it learned anything, and after."""
    return {
        "pixels": lambda pixels: pixels.flatten(1),
        "before": recipes.encoder_of(recipes.build(recipes.SETTINGS)),
        "SimCLR": recipes.encoder_of(trained),
    }


def one_of_each(split: str = "test", seed: int = 0) -> LabelledImages:
    """Ten pictures, the digits 0 to 9 in this order."""
    pixels, labels = CleanDigits(split=split).batch(120, seed)
    first = [(labels == digit).nonzero()[0].item() for digit in range(10)]
    return LabelledImages(pixels[first], labels[first])


def changed_by(name: str, pixels: Float[Tensor, "B 1 H W"], seed: int = STEADY) -> Float[Tensor, "B 1 H W"]:
    """One group of the training's changes alone, as strong as there, but made to each picture; or all of them."""
    if name == "all":
        return CHANGE(pixels, generator("shown", seed))
    alone = {setting: getattr(CHANGE, setting) for setting in recipes.CHANGES[name]}
    always = {setting: 1.0 for setting in alone if setting in ("blur", "cutout")}  # in training half of them
    return replace(NOTHING, **alone | always)(pixels, generator(f"shown {name}", seed))


class Likeness(NamedTuple):
    """Cosines of two views of one picture, and of views of two pictures."""

    positives: Float[Tensor, " B"]
    negatives: Float[Tensor, " B*B-B"]


def likeness(model: SimCLR, pixels: Float[Tensor, "B 1 H W"]) -> Likeness:
    """Of the projections, where the loss looks."""
    views = two_views(pixels, generator("likeness", 0), CHANGE)
    first, second = (F.normalize(features_of(model, view), dim=1) for view in views)
    cosines = first @ second.T
    itself = torch.eye(len(pixels), dtype=torch.bool)
    return Likeness(cosines.diagonal(), cosines[~itself])


# what is kept -------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """Pictures, and three things to be asked of their features: which digit, bright or dark, turned to which side."""

    pixels: Float[Tensor, "B 1 H W"]
    digit: Int[Tensor, " B"]
    bright: Int[Tensor, " B"]
    right: Int[Tensor, " B"]


@lru_cache(maxsize=3)
def asked(split: str, count: int = 800) -> Asked:
    """Digits as bright as they were or darker, turned by 20 degrees to the left or to the right."""
    pixels, digit = CleanDigits(split=split).batch(count, seed=5)
    draws = generator("asked", 0)
    bright, right = (torch.rand(2, count, generator=draws) < 0.5).long()
    turned = torch.stack([_turned(pixels, -20.0), _turned(pixels, 20.0)])[right, torch.arange(count)]
    return Asked(turned * torch.where(bright == 1, 1.0, 0.7)[:, None, None, None], digit, bright, right)


def _turned(pixels: Float[Tensor, "B 1 H W"], degrees: float) -> Float[Tensor, "B 1 H W"]:
    angle = torch.tensor(degrees).deg2rad()
    matrix = torch.tensor([[angle.cos(), angle.sin(), 0], [-angle.sin(), angle.cos(), 0]]).expand(len(pixels), 2, 3)
    grid = F.affine_grid(matrix, list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)


def kept(encoder: Encoder, labels: int = 300) -> dict[str, float]:
    """Test accuracy of a linear probe for each question, from so many labels in all."""
    sets = {split: (asked(split), encoder(asked(split).pixels)) for split in ("train", "validation", "test")}
    found = {}
    for question in ("digit", "bright", "right"):
        train, validation, test = (Labelled(h, getattr(its, question)) for its, h in sets.values())
        few = label_draw(train.labels, labels // len(train.labels.unique()), seed=0)
        probe = tuned_probe(Labelled(train.features[few], train.labels[few]), validation)
        found[question] = probe.accuracy(*test)
    return found


# a shortcut ---------------------------------------------------------------------------------------------

BINS = 4  # of each of the three colours
DISTORTIONS = {
    "crop": {},
    "crop, brightness\nand contrast": {"brightness": 0.4, "contrast": 0.4},
    "crop and colour\ndistortion": {"brightness": 0.4, "contrast": 0.4, "colour": 0.8},
}


def colours(pixels: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B F"]:
    """The square roots of an image's histogram of colours: the cosine of two of these compares two histograms."""
    red, green, blue = (pixels * BINS).long().clamp(max=BINS - 1).unbind(dim=1)
    code = (red * BINS + green) * BINS + blue
    return F.one_hot(code.flatten(1), BINS**3).float().mean(dim=1).sqrt()


def icon_views(name: str, seed: int, count: int = 128) -> tuple[Float[Tensor, "B 3 H W"], Float[Tensor, "B 3 H W"]]:
    """Two views of some icons on white by one of DISTORTIONS."""
    draws = generator("shortcut", seed)
    drawings = icons("test")
    pixels = drawings.on(1.0)[torch.randperm(len(drawings.names), generator=draws)[:count]]
    return two_views(pixels, draws, replace(NOTHING, crop=0.7, **DISTORTIONS[name]))


def partner_by_colours(first: Float[Tensor, "B 3 H W"], second: Float[Tensor, "B 3 H W"]) -> float:
    """How often the view with the most similar histogram, of all others, is the partner."""
    z = colours(torch.cat([first, second]))
    partner = torch.arange(len(z)).roll(len(first))
    return ((z @ z.T).fill_diagonal_(-1).argmax(dim=1) == partner).double().mean().item()
