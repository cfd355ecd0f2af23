"""Lesson 14, Image to image: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.scenes import Scenes
from course_lib.functional.images import bilinear_kernel, max_pool, standardise
from course_lib.functional.segmentation import (
    average_precision,
    find_instances,
    mask_boxes,
    mean_iou,
    true_instances,
)
from course_lib.functional.tiles import in_tiles
from course_lib.lessons.lesson_14 import figures
from course_lib.lessons.lesson_14.recipes import MASK_COUNTS, NUM_CLASSES, SMALLEST, scenes, segment
from course_lib.models.unet import UNet
from course_lib.tasks.claims import above, below
from course_lib.training.vision import predictions

NETS = ("U-Net", "FCN", "SegNet", "FCN without skips", "U-Net without skips")
LOOK = 0.05  # of the pixels
OTHER = 7  # a picture of a four
LARGE, TILE = 96, 32  # pixels a side
CROWDS = (2, 4, 6, 9)  # digits in a large picture


def machine(*, predicted=None) -> Result:
    return Result(figures.machine())


def ways_up(scene: Scenes, unpool: Callable, transposed: Callable, *, predicted=None) -> Result:
    picture = scene.pixels
    height, width = picture.shape[-2:]
    small, positions = max_pool(picture)
    sparse = unpool(small, positions, height, width)
    blocks = transposed(small, torch.ones(1, 1, 2, 2), 2)
    uneven = transposed(small, torch.ones(1, 1, 3, 3), 2)
    stamps = transposed(torch.ones_like(small), torch.ones(1, 1, 3, 3), 2)[0, 0]
    smooth = transposed(small, bilinear_kernel(2)[None, None], 2)[..., 1:-1, 1:-1]
    shown = {
        "pooled, 16 x 16": small,
        "unpooled": sparse,
        "stamp 2 x 2": blocks,
        "stamp 3 x 3": uneven / uneven.max(),
        "bilinear stamp": smooth,
    }
    return Result(
        figures.ways_up({name: image[0, 0].numpy() for name, image in shown.items()}),
        claims={"overlap": stamps[1:-1, 1:-1].unique().tolist() == [1, 2, 4]},
    )


@torch.no_grad()
def sliding(classifier: nn.Module, kernel: Tensor, scene: Scenes, own: Scenes, *, predicted=None) -> Result:
    def answers(pixels: Tensor) -> Tensor:
        return F.conv2d(classifier.feature_maps(standardise(pixels))[-1], kernel, classifier.head.bias)

    same = (answers(own.pixels)[:, :, 0, 0] - classifier(standardise(own.pixels))).abs().max()
    share, best = answers(scene.pixels).softmax(dim=1)[0].max(dim=0)
    named = set(best[share > 0.9].tolist())
    return Result(
        figures.sliding(scene.pixels[0, 0], best, share, own.pixels.shape[-1], "surely a"),
        claims={"dense": (below(same, 1e-4), set(scene.labels[0].tolist()) <= named)},
    )


def yours(model: nn.Module, asked: Scenes, overlap: Callable, *, predicted=None) -> Result:
    true = (asked.semantic > 0).long()
    iou, dice = overlap(segment(model, asked.pixels), true, 2)
    ground = overlap(torch.zeros_like(true), true, 2)[0]
    rows = [("your U-Net", iou, dice)]
    told = [(name, varies(f"{a[1]:.2f}"), varies(f"{b[1]:.2f}")) for name, a, b in rows]
    table = "".join(f"<tr><td>{name}</td><td>{a}</td><td>{b}</td></tr>" for name, a, b in told)
    nothing = 1 - (true > 0).double().mean()
    return Result(
        f"<table><tr><th>digit or background</th><th>IoU of the digit</th><th>Dice</th></tr>{table}"
        f"<tr><td>background everywhere</td><td>{ground[1]:.2f}</td><td>0.00</td></tr></table>",
        claims={"IoU": above(iou[1], 0.8)},
        values={"nothing": 100 * nothing},
    )


def skips(scene: Scenes, nets: Mapping[str, nn.Module], card: Mapping, *, predicted=None) -> Result:
    areas, outlines = (
        {name: [seed["test"][f"{name}, {measure}"] for seed in card["seeds"]] for name in NETS}
        for measure in ("mean IoU", "boundary F")
    )
    masks = {"true": scene.semantic[0]} | {name: segment(net, scene.pixels)[0] for name, net in nets.items()}
    unet, fcn, segnet, _, without = areas.values()
    return Result(
        figures.skips(scene.pixels[0, 0], masks, {"Mean IoU": areas, "Boundary F": outlines}, predicted),
        claims={
            "ahead": min(unet) > max(without) + 0.05 and min(outlines["U-Net"]) > max(outlines["U-Net without skips"]),
            "SegNet": max(without) < min(segnet) < max(segnet) < min(unet + fcn) and min(unet) < max(fcn),
        },
        came=100 * fmean(without),
        values={"unet": 100 * fmean(unet), "without": 100 * fmean(without)},
    )


@torch.no_grad()
def swap(model: UNet, scene: Scenes, asked: Scenes, *, predicted=None) -> Result:
    other = Scenes(*(part[OTHER : OTHER + 1] for part in asked))
    pair = torch.cat([scene.pixels, other.pixels])
    masks = {name: swapped(model, pair, level)[0] for name, level in (("4 x 4", 3), ("16 x 16", 1))}
    fractions = {}
    for level, name in enumerate(("32 x 32", "16 x 16", "8 x 8", "4 x 4")):
        said, true = swapped(model, asked.pixels, level), asked.semantic
        guest = (asked.labels[:, 0].roll(1) + 1)[:, None, None]
        counted = (true > 0) & (true != guest)
        fractions[name] = [
            (which & counted).sum().item() / counted.sum().item() for which in (said == true, said == guest, said == 0)
        ]
    own, guest, lost = fractions["4 x 4"]
    return Result(
        figures.swap(scene.pixels[0, 0], other.pixels[0, 0], masks, fractions),
        claims={"label": (above(guest, 0.5), below(lost, 1 / 6), below(own, 0.3))},
        came=1,
    )


@torch.no_grad()
def uncertainty(model: nn.Module, asked: Scenes, *, predicted=None) -> Result:
    logits = predictions(model, asked.pixels, batch_size=100)
    nats, wrong = entropy(logits), logits.argmax(dim=1) != asked.semantic
    surest_last = wrong.flatten()[nats.flatten().argsort(descending=True)]
    found = surest_last.cumsum(0) / wrong.sum()
    looked = torch.arange(1, len(found) + 1) / len(found)
    came = found[int(LOOK * len(found))].item()
    worst = (wrong & (asked.semantic > 0)).sum(dim=(1, 2)).argsort(descending=True)[len(wrong) // 20]
    return Result(
        figures.uncertainty(
            asked.pixels[worst, 0],
            logits.argmax(dim=1)[worst],
            nats[worst],
            wrong[worst],
            looked[::500],
            found[::500],
            LOOK,
            predicted,
        ),
        claims={"errors": above(area(nats, wrong), 0.95)},
        came=100 * came,
        values={"wrong": 100 * wrong.float().mean(), "looked": 100 * LOOK, "came": 100 * came},
    )


@torch.no_grad()
def things(model: nn.Module, *, predicted=None) -> Result:
    precision, shown = {}, []
    for crowd in CROWDS:
        asked = crowded(crowd)
        found = find_instances(predictions(model, asked.pixels, batch_size=10), smallest=SMALLEST)
        true = true_instances(asked.instances, asked.semantic, NUM_CLASSES)
        precision[crowd] = fmean(average_precision(found, true).values())
        if crowd in (CROWDS[1], CROWDS[-1]):
            boxes = zip(mask_boxes(found[0].masks).tolist(), (found[0].classes - 1).tolist(), strict=True)
            shown.append((asked.pixels[0, 0], list(boxes)))
    return Result(
        figures.things(shown, precision),
        claims={"crowds": above(precision[CROWDS[0]] - precision[CROWDS[-1]], 0.05)},
    )


@torch.no_grad()
def tiles(model: nn.Module, *, predicted=None) -> Result:
    asked = crowded(CROWDS[2])
    seam = torch.zeros(LARGE, LARGE, dtype=torch.bool)
    for position in range(TILE, LARGE, TILE):
        seam[position - 4 : position + 4] = seam[:, position - 4 : position + 4] = True
    pixels, masks, near, away = standardise(asked.pixels), {}, {}, {}
    for name, overlap in {"overlap 0": 0, "overlap 8": 8, "overlap 16": 16, "whole": None}.items():
        logits = model(pixels) if overlap is None else in_tiles(model, pixels, tile=TILE, overlap=overlap)
        mask = masks[name] = logits.argmax(dim=1)
        near[name] = mean_iou(mask[:, seam], asked.semantic[:, seam], NUM_CLASSES)
        away[name] = mean_iou(mask[:, ~seam], asked.semantic[:, ~seam], NUM_CLASSES)
    return Result(
        figures.tiles(asked.pixels[0, 0], {name: mask[0] for name, mask in masks.items()}, near, away),
        claims={
            "seams": (above(near["overlap 8"] - near["overlap 0"], 0.15), above(near["whole"] - near["overlap 8"], 0))
        },
    )


def few(card: Mapping, *, predicted=None) -> Result:
    names = {"a trunk that learned to classify, frozen": "frozen", "a fresh trunk": "scratch"}
    scores = {
        count: {
            name: [seed["test"][f"{count} masks, {trunk} trunk, mean IoU"] for seed in card["seeds"]]
            for name, trunk in names.items()
        }
        for count in MASK_COUNTS
    }
    frozen, fresh = scores[MASK_COUNTS[-1]].values()
    rows = "".join(
        f"<tr><td>{count} masks, {name}</td>"
        f"<td>{', '.join(dict.fromkeys(f'{value:.2f}' for value in values))}</td></tr>"
        for count, by_trunk in scores.items()
        for name, values in by_trunk.items()
    )
    return Result(
        f"<table><tr><th></th><th>mean IoU on test scenes, a number for each seed of the trunk</th></tr>{rows}</table>",
        claims={"ahead": min(frozen) > max(fresh) + 0.4},
        came=100 * fmean(frozen),
    )


def swapped(model: UNet, pixels: Float[Tensor, "B 1 H W"], level: int) -> Int[Tensor, "B H W"]:
    """The masks when every picture gets the encoder's map of the picture before it, at one level (0: the finest)."""
    maps = model.feature_maps(standardise(pixels))
    maps[level] = maps[level].roll(1, dims=0)
    *finer, x = maps
    for block, skip in zip(model.decoder, reversed(finer), strict=True):
        x = block(x, skip)
    return model.head(x).argmax(dim=1)


def entropy(logits: Float[Tensor, "B K H W"]) -> Float[Tensor, "B H W"]:
    """-sum_k p_k ln p_k of every pixel, in nats."""
    return -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1)


def area(scores: Float[Tensor, "..."], positive: Bool[Tensor, "..."]) -> float:
    """The share of pairs, one positive and one not, in which the positive has the higher score (area under the ROC)."""
    ranks = scores.flatten().argsort().argsort().double() + 1
    chosen = positive.flatten()
    count = int(chosen.sum())
    above = ranks[chosen].sum().item() - count * (count + 1) / 2
    return above / (count * (len(ranks) - count))


def crowded(crowd: int, *, count: int = 30) -> Scenes:
    """Large test pictures with so many digits of 16 to 22 pixels."""
    shrinks = crowd ** (2 / 3)
    scale = (16 * shrinks / LARGE, 22 * shrinks / LARGE)
    return scenes("test", size=LARGE, digits=(crowd, crowd), scale=scale).batch(count, seed=3)


RESULTS = {
    function.__name__: function
    for function in (machine, sliding, ways_up, yours, skips, swap, uncertainty, things, tiles, few)
}
