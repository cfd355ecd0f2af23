"""Lesson 14, Image to image: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

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


def machine(*, bet=None) -> Result:
    return Result(
        figures.machine(),
        alt="Four nets, each a way down over maps of 32, 16, 8 and 4 pixels a side, and a way up again. From way to "
        "way U-Net hands the maps themselves, SegNet the places of the maxima, FCN scores of the classes; in a net "
        "without skips everything goes through the smallest map.",
    )


def ways_up(scene: Scenes, unpool: Callable, transposed: Callable, *, bet=None) -> Result:
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
        alt="The picture of a three on a coin at 16 by 16 pixels, and four ways back to 32 by 32: unpooled, a starry "
        "sky of bright pixels on black; blocks of four equal pixels; a regular checkerboard over the whole picture; "
        "and a soft picture.",
        claims=(
            ("the stamp of 3 x 3 falls once, twice or four times on a pixel",
             stamps[1:-1, 1:-1].unique().tolist() == [1, 2, 4]),
        ),
        outcome="All stamps stand 2 pixels apart. Unpooling knows *where* each maximum stood, and nothing in between. "
        "A stamp of 2 x 2 tiles the plane. One of 3 x 3 overlaps unevenly, and prints a **checkerboard** (Odena et al. "
        "2016): a net can learn weights against it, but it has to. The soft one, 4 x 4, interpolates between "
        "neighbours: with it FCN begins its training.",
    )  # fmt: skip


@torch.no_grad()
def sliding(classifier: nn.Module, kernel: Tensor, scene: Scenes, own: Scenes, *, bet=None) -> Result:
    def answers(pixels: Tensor) -> Tensor:
        return F.conv2d(classifier.feature_maps(standardise(pixels))[-1], kernel, classifier.head.bias)

    same = (answers(own.pixels)[:, :, 0, 0] - classifier(standardise(own.pixels))).abs().max()
    share, best = answers(scene.pixels).softmax(dim=1)[0].max(dim=0)
    named = set(best[share > 0.9].tolist())
    return Result(
        figures.sliding(scene.pixels[0, 0], best, share, own.pixels.shape[-1], "surely a"),
        alt="Left: a picture of 128 by 128 pixels with four handwritten digits, a square marks a window of 32. Right: "
        "25 by 25 answers in the colours of the digits, dark where the classifier is unsure. Each digit has a patch of "
        "its own; where there is none, the answer is mostly 1.",
        claims=(
            ("on 32 pixels it says what the classifier says; on 128 it names all four digits with over 0.9",
             below(same, 1e-4), set(scene.labels[0].tolist()) <= named),
        ),
        outcome="The classifier has never seen more than 32 pixels a side, and was never told *where*. Read as a "
        "convolution, its last layer answers for every window, 4 pixels apart. It knows ten digits and no background: "
        "empty ground becomes a 1. And 25 x 25 answers about windows are no mask yet.",
    )  # fmt: skip


def yours(model: nn.Module, asked: Scenes, overlap: Callable, *, bet=None) -> Result:
    true = (asked.semantic > 0).long()
    iou, dice = overlap(segment(model, asked.pixels), true, 2)
    ground = overlap(torch.zeros_like(true), true, 2)[0]
    rows = [("your U-Net", iou, dice)]
    table = "".join(f"<tr><td>{name}</td><td>{a[1]:.2f}</td><td>{b[1]:.2f}</td></tr>" for name, a, b in rows)
    nothing = 1 - (true > 0).double().mean()
    return Result(
        f"<table><tr><th>digit or background</th><th>IoU of the digit</th><th>Dice</th></tr>{table}"
        f"<tr><td>background everywhere</td><td>{ground[1]:.2f}</td><td>0.00</td></tr></table>",
        alt="A table: intersection over union and Dice of the digit's pixels, for your net and for a guess that sees "
        "background everywhere.",
        claims=(("your net's IoU is above 0.8", above(iou[1], 0.8)),),
        outcome=f"The guess has {100 * nothing:.0f} % of the pixels right, and an IoU of 0 where it matters: accuracy "
        "counts ground, IoU asks for each class. (Dice is never the smaller of the two: 2 IoU / (1 + IoU).)",
    )


def skips(scene: Scenes, nets: Mapping[str, nn.Module], card: Mapping, *, bet=None) -> Result:
    areas, outlines = (
        {name: [seed["test"][f"{name}, {measure}"] for seed in card["seeds"]] for name in NETS}
        for measure in ("mean IoU", "boundary F")
    )
    masks = {"true": scene.semantic[0]} | {name: segment(net, scene.pixels)[0] for name, net in nets.items()}
    unet, fcn, segnet, _, without = areas.values()
    return Result(
        figures.skips(scene.pixels[0, 0], masks, {"Mean IoU": areas, "Boundary F": outlines}, bet),
        alt="Left: the three on a coin, its true mask, and the masks of U-Net with and without skips; without them the "
        "outline is off. Right: mean IoU and boundary F of five nets, three seeds each. U-Net and FCN lead in both, "
        "SegNet follows, then FCN without skips; U-Net without skips is last.",
        claims=(
            ("each seed with skips is ahead of each without, in areas and outlines",
             min(unet) > max(without) + 0.05 and min(outlines["U-Net"]) > max(outlines["U-Net without skips"])),
            ("SegNet lies between them; in areas U-Net and FCN cannot be told apart",
             max(without) < min(segnet) < max(segnet) < min(unet + fcn) and min(unet) < max(fcn)),
        ),
        came=100 * fmean(without),
        outcome="Without skips the net still finds out *what* is there. *Where* it ends has to pass through a map of 4 "
        "x 4, and suffers: lesson 05's bottleneck, in a picture. Of a thin stroke, a pixel too much or too little is a "
        "large share. With skips the mean IoU is "
        f"{100 * fmean(unet):.0f} %, without {100 * fmean(without):.0f}. "
        "What does **not** show: that U-Net's way is the best. In areas "
        "FCN, which hands over nothing but scores of classes, is ahead with one seed of three; in outlines U-Net "
        "leads, by a hair. What counts is that something fine arrives, not how. Nor do skips win at any length: in a "
        "trial of 1,000 steps, one seed, the net without them was not behind (notes of `course train unet`).",
    )  # fmt: skip


@torch.no_grad()
def swap(model: UNet, scene: Scenes, asked: Scenes, *, bet=None) -> Result:
    other = Scenes(*(part[OTHER : OTHER + 1] for part in asked))
    pair = torch.cat([scene.pixels, other.pixels])
    masks = {name: swapped(model, pair, level)[0] for name, level in (("4 x 4", 3), ("16 x 16", 1))}
    shares = {}
    for level, name in enumerate(("32 x 32", "16 x 16", "8 x 8", "4 x 4")):
        said, true = swapped(model, asked.pixels, level), asked.semantic
        guest = (asked.labels[:, 0].roll(1) + 1)[:, None, None]
        counted = (true > 0) & (true != guest)
        shares[name] = [
            (which & counted).sum().item() / counted.sum().item() for which in (said == true, said == guest, said == 0)
        ]
    own, guest, lost = shares["4 x 4"]
    return Result(
        figures.swap(scene.pixels[0, 0], other.pixels[0, 0], masks, shares),
        alt="The three on a coin, a picture of a four, and two masks of the three: with the four's 4 x 4 map the "
        "outline of the three is labelled four; with the four's 16 x 16 map the label is three and the outline is "
        "out of shape. Right, over many pictures: the smallest map decides the label, the finer ones whether a pixel "
        "is digit at all.",
        claims=(
            ("with another picture's 4 x 4 map most digit pixels get its label, and few get lost",
             above(guest, 0.5), below(lost, 1 / 6), below(own, 0.3)),
        ),
        came=1,
        outcome="The smallest map says *what*, the skips say *where*: the net divided the work by itself, probably "
        "since each part does what it can do best. So a U-Net's mistakes come in two kinds, wrong outlines and wrong "
        "labels; boundary F sees only the first, mean IoU both. (The bars count the pixels of the digit; what one "
        "lacks to 100 % got a third label.)",
    )  # fmt: skip


@torch.no_grad()
def uncertainty(model: nn.Module, asked: Scenes, *, bet=None) -> Result:
    logits = predictions(model, asked.pixels, batch_size=100)
    nats, wrong = entropy(logits), logits.argmax(dim=1) != asked.semantic
    surest_last = wrong.flatten()[nats.flatten().argsort(descending=True)]
    found = surest_last.cumsum(0) / wrong.sum()
    looked = torch.arange(1, len(found) + 1) / len(found)
    came = found[int(LOOK * len(found))].item()
    worst = (wrong & (asked.semantic > 0)).sum(dim=(1, 2)).argsort(descending=True)[len(wrong) // 20]
    return Result(
        figures.uncertainty(
            asked.pixels[worst, 0], logits.argmax(dim=1)[worst], nats[worst], wrong[worst], looked[::500],
            found[::500], LOOK, bet,
        ),
        alt="Left: a digit, its mask, the entropy, bright along the outline, and the wrong pixels, which lie where the "
        "entropy is high. Right: looking at the most uncertain pixels first, the share of all mistakes that is found "
        "climbs steeply and bends far above the diagonal.",
        claims=(
            ("a wrong pixel is more uncertain than a right one in over 95 of 100 pairs",
             above(area(nats, wrong), 0.95)),
        ),
        came=100 * came,
        outcome=f"{100 * wrong.float().mean():.0f} % of the pixels are wrong; looking at the {100 * LOOK:.0f} % that "
        f"it doubts most finds {100 * came:.0f} % of them. "
        "The entropy $-\\sum_k p_k \\ln p_k$ of each pixel costs nothing and says where "
        "to look twice: mostly "
        "along outlines, where people, too, might disagree. What it cannot see is a mistake that the net is sure of.",
    )  # fmt: skip


@torch.no_grad()
def things(model: nn.Module, *, bet=None) -> Result:
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
        alt="Two pictures with boxes around the digits that were found. Among few digits every box holds one; among "
        "many a box may hold several that touch. Right: average precision falls as there are more digits in a picture.",
        claims=(
            (f"with {CROWDS[-1]} digits in a picture the average precision is over 0.05 lower than with {CROWDS[0]}",
             above(precision[CROWDS[0]] - precision[CROWDS[-1]], 0.05)),
        ),
        outcome="A box is right if its thing's mask has an IoU of 0.5 or more with a true one of the same class; "
        "average precision asks for few wrong boxes among the surest, down to the last thing found. The digits are of "
        "one size: what changes is how close they stand. Two that touch become one thing. A mask per pixel has no word "
        "for *which*: detectors such as Mask R-CNN (He et al. 2017) therefore find boxes first, and a mask in each.",
    )  # fmt: skip


@torch.no_grad()
def tiles(model: nn.Module, *, bet=None) -> Result:
    asked = crowded(CROWDS[2])
    seam = torch.zeros(LARGE, LARGE, dtype=torch.bool)
    for place in range(TILE, LARGE, TILE):
        seam[place - 4 : place + 4] = seam[:, place - 4 : place + 4] = True
    pixels, masks, near, away = standardise(asked.pixels), {}, {}, {}
    for name, overlap in {"overlap 0": 0, "overlap 8": 8, "overlap 16": 16, "whole": None}.items():
        logits = model(pixels) if overlap is None else in_tiles(model, pixels, tile=TILE, overlap=overlap)
        mask = masks[name] = logits.argmax(dim=1)
        near[name] = mean_iou(mask[:, seam], asked.semantic[:, seam], NUM_CLASSES)
        away[name] = mean_iou(mask[:, ~seam], asked.semantic[:, ~seam], NUM_CLASSES)
    return Result(
        figures.tiles(asked.pixels[0, 0], {name: mask[0] for name, mask in masks.items()}, near, away),
        alt="A picture of 96 by 96 pixels, its masks from tiles of 32 with an overlap of 0, 8 and 16, and from the "
        "whole picture. Digits that a seam cuts change colour there. Mean IoU near the seams rises from far below that "
        "elsewhere up to it.",
        claims=(
            ("near the seams an overlap of 8 gains over 0.15 in mean IoU, and the whole picture is best",
             above(near["overlap 8"] - near["overlap 0"], 0.15), above(near["whole"] - near["overlap 8"], 0)),
        ),
        outcome="Near a seam means four pixels either side. A tile that cuts a digit in two has to guess each half. "
        "Elsewhere suffers, too: the net sees further than that. (Whole pictures are no better than this since the net "
        "learned from single digits.) U-Net's authors cut their pictures since the memory of their graphics card was "
        "the limit.",
    )  # fmt: skip


def few(card: Mapping, *, bet=None) -> Result:
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
        alt="A table of the mean IoU with 20 and with 100 masks. With a trunk that learned to "
        "classify it is about 0.3 and 0.7; with a fresh one it stays below 0.2.",
        claims=(("with 100 masks the trained trunk is over 0.4 ahead, every seed", min(frozen) > max(fresh) + 0.4),),
        came=100 * fmean(frozen),
        outcome="The classifier has seen the digit of many images and the mask of none. What its trunk knows about "
        "strokes is most of the work, and a label is drawn up much faster than a mask. Not all of the lead is due to "
        "few masks: in a trial of 600 steps a fresh trunk did not learn eleven classes from any number of them. It "
        "needs masks *and* time, a frozen one neither. (Each number is the mean of two draws of the masks.)",
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
