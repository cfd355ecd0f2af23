"""Lesson 12, Swin Transformer: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.data.digits import LabelledImages
from course_lib.lessons.lesson_12 import crossing, figures, looking
from course_lib.lessons.lesson_12.tasks import TASKS
from course_lib.models.swin import Swin
from course_lib.tasks.claims import above, below
from course_lib.training.vision import accuracy, predictions

Card = Mapping


def seeds(card: Card, score: str) -> list[float]:
    """A score on test images, for each seed."""
    return [seed["test"][score] for seed in card["seeds"]]


def maps(model: Swin, coin: Float[Tensor, "1 1 S S"], digits: LabelledImages, *, predicted=None) -> Result:
    right = predictions(model, digits.pixels).argmax(dim=-1) == digits.labels
    three = (right & (digits.labels == 3)).nonzero()[0]
    pictures = torch.cat([digits.pixels[three], coin])
    stages = [looking.stirred(model, picture[None]) for picture in pictures]
    probs = predictions(model, pictures).softmax(dim=-1)
    return Result(
        figures.maps(list(pictures[:, 0]), stages, list(probs), ("a clean three", "a three on a coin")),
        claims={"named": probs[0].argmax() == 3 and probs[1].argmax() != 3},
    )


def cost(
    sides: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    *,
    predicted=None,
) -> Result:
    grows = {name: values[sides.index(256)] / values[sides.index(64)] for name, values in operations.items()}
    return Result(
        figures.cost(sides, operations, seconds, predicted),
        claims={"grows": (below(abs(grows["Swin"] - 16), 0.2), above(grows["ViT"], 100))},
        came=grows["ViT"],
        values={"growth": grows["ViT"]},
    )


def mechanism(picture: Float[Tensor, "1 1 S S"], *, predicted=None) -> Result:
    size, shift, patches = 4, 2, 8
    pixels = shift * picture.shape[-1] // patches
    came = (torch.arange(patches) >= patches - shift).int()
    masks = TASKS["shift_mask"].reference(patches, patches, size, shift)
    return Result(
        figures.mechanism(
            picture[0, 0], picture[0, 0].roll((-pixels, -pixels), dims=(0, 1)), 2 * came[:, None] + came, masks
        ),
        claims={"pairs": [int(m.sum()) for m in masks] == [256, 128, 128, 64]},
    )


def reads(model: Swin, steps: int, card: Card, pictures: LabelledImages, *, predicted=None) -> Result:
    probs = predictions(model, pictures.pixels).softmax(dim=-1)
    shown = torch.cat([torch.arange(5), probs.max(dim=-1).values.argsort()[:5]])
    few = LabelledImages(pictures.pixels[shown], pictures.labels[shown])
    yours, trained = accuracy(model, *pictures), seeds(card, "accuracy")
    return Result(
        figures.reads(yours, trained, steps, card["steps"], few, probs[shown]),
        claims={"accuracy": (above(yours, 0.75), min(trained) > 0.96)},
    )


def reach(*, predicted=None) -> Result:
    plain, shifted = ([looking.reach(count, shifted=moved) for count in (1, 2, 3, 4)] for moved in (False, True))
    counts = [[int(found.sum()) for found in row] for row in (plain, shifted)]
    return Result(
        figures.reach(plain, shifted, predicted),
        claims={"squares": counts == [[4, 4, 4, 4], [4, 16, 36, 64]]},
        came=counts[1][2],
    )


def shifted(moved: crossing.Learned, fixed: crossing.Learned, card: Card, *, predicted=None) -> Result:
    digits = {"moved": seeds(card, "accuracy, shifted"), "never moved": seeds(card, "accuracy, unshifted")}
    gains = [a - b for a, b in zip(digits["moved"], digits["never moved"], strict=True)]
    return Result(
        figures.shifted(
            crossing.marks(1, 1).pixels[0, 0],
            {"moved": moved.losses, "never moved": fixed.losses},
            {"moved": moved.right, "never moved": fixed.right},
            digits,
            predicted,
        ),
        claims={"marks": (above(moved.right, 0.95), below(fixed.right, 0.6)), "digits": min(gains) > 0},
        came=100 * float(np.mean(digits["never moved"])),
        values={"lowest": 100 * min(gains), "highest": 100 * max(gains)},
    )


def bias(model: Swin, *, predicted=None) -> Result:
    tables, names = [], []
    for stage, blocks in enumerate(model.stages, start=1):
        for block, layer in enumerate(blocks, start=1):
            found = looking.offset_maps(layer.attn)
            tables += list(found)
            names += [f"stage {stage}, block {block}"] * len(found)
    side = len(tables[0])
    positions = torch.arange(side) - side // 2
    steps = torch.maximum(positions[:, None].abs(), positions.abs())  # from the query, as a king walks
    rings = torch.tensor([[table[steps == ring].mean() for ring in range(side // 2 + 1)] for table in tables])
    return Result(
        figures.bias(tables, names),
        claims={"near": (above((rings[:, 1] - rings[:, 3]).min(), 0), (rings[:, 0] < rings[:, 1]).sum() >= 10)},
    )


def switches(right: Mapping[str, float], *, predicted=None) -> Result:
    whole, moved = right["as it is"], ("shift off", "absolute positions off", "merged row by row")
    return Result(
        figures.switches(right, predicted),
        claims={
            "small": below(whole - min(right["mask off"], right["relative bias off"]), 0.03),
            "large": above(whole - max(right[name] for name in moved), 0.05),
        },
        came=100 * right["mask off"],
    )


RESULTS = {function.__name__: function for function in (maps, cost, mechanism, reads, reach, shifted, bias, switches)}
