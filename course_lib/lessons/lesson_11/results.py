"""Lesson 11, Vision Transformer: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.data.digits import LabelledImages
from course_lib.functional.attention_maps import patch_distances, position_similarity
from course_lib.layers.patches import patchify, take_patches, unpatchify
from course_lib.lessons.lesson_11 import figures, learner, looking
from course_lib.lessons.lesson_11.recipes import CLUTTER, FEW, LARGER, MANY
from course_lib.models.vit import ViT
from course_lib.tasks.claims import above, below
from course_lib.training.vision import predictions

Card = Mapping
TABLE_2 = (  # name, TPUv3-core-days, ImageNet accuracy, whether it is a ViT: Dosovitskiy et al. 2021
    ("ViT-H/14, JFT", 2500, 88.55, True),
    ("ViT-L/16, JFT", 680, 87.76, True),
    ("ViT-L/16, ImageNet-21k", 230, 85.30, True),
    ("BiT-L (ResNet152x4)", 9900, 87.54, False),
    ("Noisy Student (EfficientNet-L2)", 12_300, 88.4, False),
)


def seeds(card: Card, score: str) -> list[float]:
    """A score on test images, for each seed."""
    return [seed["test"][score] for seed in card["seeds"]]


def mechanism(model: ViT, picture: Float[Tensor, "1 1 S S"], *, predicted=None) -> Result:
    size = model.config.patch_size
    patches = patchify(picture, size)[0].unflatten(1, (size, size))
    return Result(figures.mechanism(picture[0, 0], patches, predictions(model, picture)[0].softmax(dim=-1)))


def data(live: Mapping[str, float], digits: Card, by_data: Card, *, predicted=None) -> Result:
    right = {
        net: {count: seeds(by_data, f"accuracy, {net}, {count:,} images") for count in (FEW, MANY)}
        for net in ("ViT", "ResNet")
    }
    vit, resnet = right["ViT"], right["ResNet"]
    return Result(
        figures.data(live, {net: seeds(digits, f"accuracy, {net}") for net in live}, right, predicted),
        claims={
            "yours": above(min(live.values()), 0.9),
            "crossing": min(resnet[FEW]) > max(vit[FEW]) + 0.04 and max(resnet[MANY]) < min(vit[MANY]) + 0.02,
        },
        came=100 * float(np.mean(vit[FEW])),
    )


def shuffled(model: ViT, pictures: LabelledImages, *, predicted=None) -> Result:
    right = looking.right_shuffled(model, pictures)
    size = model.config.patch_size
    patches = patchify(pictures.pixels[:1], size)
    moved = unpatchify(take_patches(patches, looking.shuffles(1, patches.shape[1])), size, *pictures.pixels.shape[2:])
    return Result(
        figures.shuffled(pictures.pixels[0, 0], moved[0, 0], right, predicted),
        claims={
            "together": below(abs(right["as it is"] - right["shuffled, each with its position"]), 0.002),
            "apart": below(max(right["shuffled, positions stay"], right["no positions"]), 0.5),
        },
        came=100 * right["shuffled, positions stay"],
    )


def textures(here: Sequence[float], card: Card, *, predicted=None) -> Result:
    names = {"ViT, 6,000 steps": "ViT", "hybrid, 1,500 steps": "hybrid"}
    right = {
        name: np.array([[seed["test"][f"accuracy, {kind}, {net}"] for kind in CLUTTER] for seed in card["seeds"]])
        for name, net in names.items()
    }
    vit = next(iter(right.values()))
    return Result(figures.textures(here, right, list(CLUTTER)), claims={"lost": (vit[:, 0] - vit[:, -1]).min() > 0.08})


def rollouts(
    model: ViT,
    picture: Float[Tensor, "1 1 S S"],
    pictures: LabelledImages,
    unpatchify: Callable[..., Tensor] = unpatchify,
    *,
    predicted=None,
) -> Result:
    curves = {
        name: looking.right_without(model, pictures, order) for name, order in looking.orders(model, pictures).items()
    }
    own, mean, chance, _ = (dict(zip(looking.DROPPED, curve, strict=True)) for curve in curves.values())
    found, size = looking.rollout(model, picture)[0], model.config.patch_size
    half = patchify(picture, size)
    half[0, found.argsort()[: len(found) // 2]] = 0.5
    half = unpatchify(half, size, *picture.shape[2:])[0, 0]
    return Result(
        figures.rollouts(
            picture[0, 0], found.unflatten(0, model.config.grid), half.float(), looking.DROPPED, curves, predicted
        ),
        claims={"removed": (above(own[8], 0.85), below(chance[8], 0.65)), "own map": above(own[10] - mean[10], 0.05)},
        came=100 * own[8],
    )


def inside(model: ViT, distances: Float[Tensor, "L H"], card: Card, *, predicted=None) -> Result:
    size, grid = model.config.patch_size, model.config.grid
    near, far, border = (seeds(card, f"likeness, {name}") for name in ("side by side", "farther apart", "border"))
    nearest = [min(value for name, value in seed["test"].items() if "looks" in name) for seed in card["seeds"]]
    return Result(
        figures.inside(
            position_similarity(model.position_map().detach()),
            distances,
            uniform=patch_distances(*grid, size).mean().item(),
            patch_size=size,
        ),
        claims={
            "positions": all(b > n > f + 0.1 for n, f, b in zip(near, far, border, strict=True)),
            "distance": above(min(*nearest, distances.min().item()), 10),
        },
    )


def larger(
    fine: Mapping[int, float], coarse: Mapping[int, float], anew: Mapping[int, float], card: Card, *, predicted=None
) -> Result:
    curves = {
        "49 patches,\ninterpolated": fine,
        "16 patches,\ninterpolated": coarse,
        "49 patches,\nnew positions": anew,
    }
    shipped = seeds(card, f"accuracy, {LARGER} pixels")
    small, large = (learner.test_digits(1, size).pixels[0, 0] for size in (28, LARGER))
    return Result(
        figures.larger(small, large, 4, {name: (list(c), list(c.values())) for name, c in curves.items()}, predicted),
        claims={"resolution": (above(min(fine[LARGER], *shipped), 0.9), below(max(anew.values()), 0.5))},
        came=100 * fine[LARGER],
    )


def paper(*, predicted=None) -> Result:
    return Result(figures.paper(TABLE_2))


RESULTS = {
    function.__name__: function for function in (mechanism, data, shuffled, textures, rollouts, inside, larger, paper)
}
