"""Lesson 12, Swin Transformer: the figure and the claims of each result."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.digits import LabelledImages
from course_lib.functional.cost import count_flops
from course_lib.layers.windows import shifted_window_mask
from course_lib.lessons.lesson_11 import icon_recipes
from course_lib.lessons.lesson_12 import crossing, figures, looking
from course_lib.models.swin import Swin
from course_lib.tasks.claims import above, below
from course_lib.training.vision import accuracy, predictions

Card = Mapping


def hierarchy(model: Swin, coin: Float[Tensor, "1 1 S S"], digits: LabelledImages, *, predicted=None) -> Result:
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


def mechanism(*, predicted=None) -> Result:
    size, shift, side = 4, 2, 8
    band = (torch.arange(side) >= shift).int() + (torch.arange(side) >= size + shift).int()
    pieces = 3 * band[:, None] + band
    masks = shifted_window_mask(side, side, size, shift)
    return Result(
        figures.mechanism(pieces, size, shift, masks),
    )


def reads(model: nn.Module, steps: int, card: Card, pictures: LabelledImages, *, predicted=None) -> Result:
    probs = predictions(model, pictures.pixels).softmax(dim=-1)
    shown = torch.cat([torch.arange(5), probs.max(dim=-1).values.argsort()[:5]])
    few = LabelledImages(pictures.pixels[shown], pictures.labels[shown])
    yours, trained = accuracy(model, *pictures), by_seed(card, "accuracy")
    return Result(
        figures.reads(yours, trained, steps, card["steps"], few, probs[shown]),
        claims={"accuracy": (above(yours, 0.85), min(trained) > 0.96)},
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
    digits = {"shifted": by_seed(card, "accuracy, shifted"), "never shifted": by_seed(card, "accuracy, unshifted")}
    gains = [a - b for a, b in zip(digits["shifted"], digits["never shifted"], strict=True)]
    return Result(
        figures.shifted(
            crossing.marks(1, 1).pixels[0, 0],
            {"shifted": moved.losses, "never shifted": fixed.losses},
            {"shifted": moved.right, "never shifted": fixed.right},
            digits,
            predicted,
        ),
        claims={"marks": (above(moved.right, 0.95), below(fixed.right, 0.6)), "digits": min(gains) > 0},
        came=100 * float(np.mean(digits["never shifted"])),
        values={"lowest": 100 * min(gains), "highest": 100 * max(gains)},
    )


def effective(model: Swin, digits: LabelledImages, *, predicted=None) -> Result:
    positions = {"effective, stage 1, %": (0, (4, 4)), "effective, stage 2, %": (1, (2, 2))}
    pixels = digits.pixels[:200]
    fields = {name: looking.effective_field(model, pixels, stage, at) for name, (stage, at) in positions.items()}
    shown = {"effective, stage 1, %": (4.0, 4.0), "effective, stage 2, %": (4.5, 4.5)}
    fine = next(iter(fields.values()))
    largest = fine.flatten().sort(descending=True).values.cumsum(dim=0)
    half = int((largest < 50).sum()) + 1
    return Result(
        figures.effective(fields, shown, fine.numel()),
        claims={"half": (fine.numel() == 64, below(half, 16))},
        values={"half": half, "own": float(fine[4, 4])},
    )


def networks(by_data: Card, swin: Card, *, predicted=None) -> Result:
    cards = {"ResNet": (by_data, ", all drawings"), "ViT": (by_data, ", all drawings"), "Swin": (swin, "")}
    accuracies = {name: by_seed(card, f"accuracy, {name}{end}") for name, (card, end) in cards.items()}
    sizes = {"ResNet": "32², 16², 8², 4²", "ViT": "8²", "Swin": "16², 8²"}
    facts = {}
    for name in cards:
        model = icon_recipes.build(icon_recipes.NETWORKS[name]).eval()
        with torch.no_grad():
            work = count_flops(lambda model=model: model(torch.zeros(1, 3, 32, 32))) / 2
        weights = sum(parameter.numel() for parameter in model.parameters())
        facts[name] = (f"{weights / 1e3:.0f} thousand", f"{work / 1e6:.0f} million", sizes[name])
    means = {name.lower(): 100 * float(np.mean(values)) for name, values in accuracies.items()}
    known = {
        f"{name.lower()}_known": 100 * float(np.mean(by_seed(card, f"accuracy, training drawings, {name}{end}")))
        for name, (card, end) in cards.items()
    }
    return Result(
        figures.networks(accuracies, facts, ("parameters", "multiply-adds", "feature maps"), predicted),
        claims={"order": min(accuracies["ResNet"]) > max(*accuracies["ViT"], *accuracies["Swin"])},
        came=means["swin"],
        values=means | known,
    )


def bias(model: Swin, *, predicted=None) -> Result:
    tables, names = [], []
    for stage, blocks in enumerate(model.stages, start=1):
        for block, layer in enumerate(blocks, start=1):
            found = looking.offset_maps(layer.attn)
            tables += list(found)
            names += [f"stage {stage}, block {block}, head {head}" for head in range(1, len(found) + 1)]
    side = len(tables[0])
    positions = torch.arange(side) - side // 2
    steps = torch.maximum(positions[:, None].abs(), positions.abs())  # from the query, as a king moves
    rings = torch.tensor([[table[steps == ring].mean() for ring in range(side // 2 + 1)] for table in tables])
    return Result(
        figures.bias(tables, names, rings, (0, 3, 6)),
        claims={"near": (above((rings[:, 1] - rings[:, 3]).min(), 0), (rings[:, 0] < rings[:, 1]).sum() >= 10)},
    )


def switches(right: Mapping[str, float], *, predicted=None) -> Result:
    whole, needed = right["as trained"], ("no shift", "no absolute positions", "merged row by row")
    return Result(
        figures.switches(right, predicted),
        claims={
            "switches": (
                below(whole - min(right["no mask"], right["no relative position bias"]), 0.03),
                above(whole - max(right[name] for name in needed), 0.05),
            ),
        },
        came=100 * right["no mask"],
    )


RESULTS = {
    function.__name__: function
    for function in (hierarchy, cost, mechanism, reads, shifted, networks, reach, effective, bias, switches)
}
