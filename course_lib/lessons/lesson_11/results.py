"""Lesson 11, Vision Transformer: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.digits import LabelledImages
from course_lib.data.icons import icons
from course_lib.functional.attention_maps import patch_distances, position_similarity
from course_lib.layers.patches import patchify, take_patches, unpatchify
from course_lib.lessons.lesson_11 import figures, learner, looking
from course_lib.lessons.lesson_11.icon_recipes import AUGMENTATION, FEW, SOME
from course_lib.lessons.lesson_11.recipes import LARGER
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


def mechanism(model: ViT, picture: Float[Tensor, "1 1 S S"], *, predicted=None) -> Result:
    size = model.config.patch_size
    patches = patchify(picture, size)[0].unflatten(1, (size, size))
    return Result(figures.mechanism(picture[0, 0], patches, predictions(model, picture)[0].softmax(dim=-1)))


def seen(model: nn.Module, card: Card, *, predicted=None) -> Result:
    drawings, count = icons("test"), 8
    probs = learner.probabilities(model, drawings)
    right = probs.argmax(dim=-1) == drawings.categories
    sure = probs.amax(dim=-1)
    any_of_them = torch.arange(0, len(right), len(right) // count)[:count]
    mistakes = sure.masked_fill(right, 0).argsort(descending=True)[:count]
    rows = {
        "Every 49th new drawing": learner.rows_of(drawings, probs, any_of_them),
        "The mistakes with the largest probability": learner.rows_of(drawings, probs, mistakes),
    }
    accuracy, unseen = (100 * float(np.mean(by_seed(card, name))) for name in ("accuracy", "accuracy, unseen things"))
    return Result(
        figures.seen(rows, learner.CATEGORY_NAMES),
        came=unseen,
        values={"accuracy": accuracy, "unseen": unseen, "majority": learner.majority(icons("new names"))},
    )


def data(card: Card, yours: Mapping[str, float], longer: Card, *, predicted=None) -> Result:
    counts = {f"{FEW}": f"{FEW}", f"{SOME:,}": f"{SOME:,}", "all": "all"}
    new, known = (
        {
            net: {shown: by_seed(card, f"{score}, {net}, {name} drawings") for shown, name in counts.items()}
            for net in ("ViT", "ResNet")
        }
        for score in ("accuracy", "accuracy, training drawings")
    )
    gaps = {count: 100 * (np.mean(new["ResNet"][count]) - np.mean(new["ViT"][count])) for count in counts}
    return Result(
        figures.data(new, known, yours, predicted),
        claims={"built in": above(min(new["ResNet"]["all"]) - max(new["ViT"]["all"]), 0)},
        came=100 * float(np.mean(new["ViT"][f"{FEW}"])),
        values={"few": gaps[f"{FEW}"], "some": gaps[f"{SOME:,}"], "all": gaps["all"]}
        | {f"{net}_known": 100 * float(np.mean(found["all"])) for net, found in known.items()}
        | {
            f"{net}_gain": 100 * float(np.mean(found["all"]) - np.mean(found[f"{SOME:,}"]))
            for net, found in new.items()
        }
        | {
            "longer": 100 * float(np.mean(by_seed(longer, "accuracy"))),
            "longer_known": 100 * float(np.mean(by_seed(longer, "accuracy, training drawings"))),
        },
    )


def augmentation(card: Card, *, predicted=None) -> Result:
    rows = {
        name: tuple(by_seed(card, f"{score}, {name}") for score in ("accuracy", "accuracy, training drawings"))
        for name in AUGMENTATION
    }
    (whole, whole_known), (mixup, _), (plain, plain_known) = rows.values()
    means = {"whole": whole, "mixup": mixup, "plain": plain, "known": whole_known}
    return Result(
        figures.augmentation(rows, predicted),
        claims={"memorised": (above(min(plain_known), 0.95), below(max(whole_known), 0.85))},
        came=100 * float(np.mean(plain_known)),
        values={name: 100 * float(np.mean(found)) for name, found in means.items()},
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
        claims={
            "removed": (above(own[8], 0.85), below(chance[8], 0.65)),
            "own rollout": above(own[10] - mean[10], 0.05),
        },
        came=100 * own[8],
    )


def inside(
    model: ViT, distances: Float[Tensor, "L H"], numbers: Float[Tensor, "L H"], card: Card, *, predicted=None
) -> Result:
    size, grid = model.config.patch_size, model.config.grid
    near, far, border = (by_seed(card, f"likeness, {name}") for name in ("side by side", "farther apart", "border"))
    nearest = [min(value for name, value in seed["test"].items() if "looks" in name) for seed in card["seeds"]]
    tokens = grid[0] * grid[1] + 1
    return Result(
        figures.inside(
            position_similarity(model.position_map().detach()),
            distances,
            numbers,
            uniform=(patch_distances(*grid, size).mean().item(), tokens),
            patch_size=size,
        ),
        claims={
            "positions": all(b > n > f + 0.1 for n, f, b in zip(near, far, border, strict=True)),
            "distance": above(min(*nearest, distances.min().item()), 10),
            "number": (below(numbers.min().item(), 10), below(numbers.max().item(), 40)),
        },
        values={"fewest": numbers.min().item(), "most": numbers.max().item(), "tokens": float(tokens)},
    )


def larger(
    interpolated: Mapping[int, float],
    as_a_list: Mapping[int, float],
    anew: Mapping[int, float],
    card: Card,
    *,
    predicted=None,
) -> Result:
    curves = {"as an image": interpolated, "as a list": as_a_list, "drawn anew": anew}
    shipped = by_seed(card, f"accuracy, {LARGER} pixels")
    small, large = (learner.test_digits(1, size).pixels[0, 0] for size in (28, LARGER))
    return Result(
        figures.larger(small, large, 4, {name: (list(c), list(c.values())) for name, c in curves.items()}, predicted),
        claims={
            "resolution": (
                above(min(interpolated[LARGER], *shipped), 0.9),
                below(as_a_list[LARGER], 0.75),
                below(anew[LARGER], 0.5),
            )
        },
        came=100 * interpolated[LARGER],
        values={"list": 100 * as_a_list[LARGER], "anew": 100 * anew[LARGER]},
    )


def paper(*, predicted=None) -> Result:
    return Result(figures.paper(TABLE_2))


RESULTS = {
    function.__name__: function
    for function in (seen, mechanism, shuffled, data, augmentation, rollouts, inside, larger, paper)
}
