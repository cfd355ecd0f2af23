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


def maps(model: Swin, coin: Float[Tensor, "1 1 S S"], digits: LabelledImages, *, bet=None) -> Result:
    right = predictions(model, digits.pixels).argmax(dim=-1) == digits.labels
    three = (right & (digits.labels == 3)).nonzero()[0]
    pictures = torch.cat([digits.pixels[three], coin])
    stages = [looking.stirred(model, picture[None]) for picture in pictures]
    shares = predictions(model, pictures).softmax(dim=-1)
    return Result(
        figures.maps(list(pictures[:, 0]), stages, list(shares), ("a clean three", "a three on a coin")),
        alt="Two rows. A clean three, cut into 2 x 2 windows of 4 x 4 patches; its map of 8 x 8 places is "
        "brightest along the digit, that of 4 x 4 is coarse, and the class is 3. The three on the coin: the maps are "
        "bright at the rim of the coin, too, and the class is wrong.",
        claims=(
            ("it names the clean three, and not the one on the coin",
             shares[0].argmax() == 3 and shares[1].argmax() != 3),
        ),
        outcome="Bright is what differs from an empty picture. The coin's rim and its face are as strange to this "
        "network as a digit: it has only ever seen clean ground. Two maps of two grains, not one list of tokens: a "
        "network that marks pixels (lesson 14) or finds objects can read them as it reads those of a ResNet.",
    )  # fmt: skip


def cost(
    sides: Sequence[int], operations: Mapping[str, Sequence[float]], seconds: Mapping[str, Sequence[float]], *, bet=None
) -> Result:
    grows = {name: values[sides.index(256)] / values[sides.index(64)] for name, values in operations.items()}
    return Result(
        figures.cost(sides, operations, seconds, bet),
        alt="Two panels on logarithmic axes, against the side of the picture. Operations: both lines rise, Swin's with "
        "slope 2, ViT's ever steeper, towards 4. Milliseconds: Swin begins as dear as ViT or dearer, and is far below "
        "it on large pictures.",
        claims=(
            ("sixteen times the pixels: 16 times the work for Swin, over 100 times for ViT",
             below(abs(grows["Swin"] - 16), 0.2), above(grows["ViT"], 100)),
        ),
        came=grows["ViT"],
        outcome="Between 192 and 256 pixels ViT's line has a slope of nearly 4, Swin's of 2, as eqs. (1) and (2) say. "
        f"Over the whole way it is {grows['ViT']:.0f} times, half of the 256 of attention alone: the maps and "
        "the MLP of each place grow 16-fold, and have their part in the sum. (Compare slopes, not heights: the two "
        "networks differ in width and stages, too.) The clock tells a milder story on small pictures, "
        "where cutting, rolling and masking take time that no count of products sees. Where the two lines cross "
        "depends on the machine; *that* they cross does not.",
    )  # fmt: skip


def mechanism(picture: Float[Tensor, "1 1 S S"], *, bet=None) -> Result:
    size, shift, patches = 4, 2, 8
    pixels = shift * picture.shape[-1] // patches
    came = (torch.arange(patches) >= patches - shift).int()
    masks = TASKS["shift_mask"].reference(patches, patches, size, shift)
    return Result(
        figures.mechanism(
            picture[0, 0], picture[0, 0].roll((-pixels, -pixels), dims=(0, 1)), 2 * came[:, None] + came, masks
        ),
        alt="The three on the coin, first in four windows; then with windows moved by two patches, which leaves nine "
        "pieces; then rolled up and to the left, so that there are four whole windows again, with strangers side by "
        "side in three of them. Four squares show which pairs may attend: all 256 in the first, 128 in the next two, "
        "64 in the last.",
        claims=(("of 4 x 256 pairs 576 stay after the shift", [int(m.sum()) for m in masks] == [256, 128, 128, 64]),),
    )


def reads(model: Swin, steps: int, card: Card, pictures: LabelledImages, *, bet=None) -> Result:
    shares = predictions(model, pictures.pixels).softmax(dim=-1)
    shown = torch.cat([torch.arange(5), shares.max(dim=-1).values.argsort()[:5]])
    few = LabelledImages(pictures.pixels[shown], pictures.labels[shown])
    yours, trained = accuracy(model, *pictures), seeds(card, "accuracy")
    return Result(
        figures.reads(yours, trained, steps, card["steps"], few, shares[shown]),
        alt="Left: your training's share of test digits named right, a star, below three seeds that trained longer. "
        "Right: ten digits with what your network takes them for; the five of which it is least sure are odd ones.",
        claims=(
            (
                "after so few steps over 75 % of new digits are right, of every full training over 96 %",
                above(yours, 0.75),
                min(trained) > 0.96,
            ),
        ),
        outcome="No place ever met more than fifteen others at once, and yet the whole digit was read: two blocks in "
        "stage 1, the second of them with windows that move, then one merging; in stage 2 the map of 4 x 4 places *is* "
        "one window. Is it the shift's merit? Not proven: stage 2 brings all together anyway, and a network may know a "
        "digit by its pieces. So we have to ask by taking the shift away.",
    )


def reach(*, bet=None) -> Result:
    plain, shifted = ([looking.reach(count, shifted=moved) for count in (1, 2, 3, 4)] for moved in (False, True))
    counts = [[int(found.sum()) for found in row] for row in (plain, shifted)]
    return Result(
        figures.reach(plain, shifted, bet),
        alt="Two rows of four maps of 8 x 8 patches. Windows that never move: four patches reach the marked one after "
        "1, 2, 3 and 4 blocks. Windows that move in every second block: 4, then 16, 36 and all 64.",
        claims=(("never moved: 4, 4, 4, 4 patches; moved: 4, 16, 36, 64", counts == [[4, 4, 4, 4], [4, 16, 36, 64]]),),
        came=counts[1][2],
        outcome="Measured by gradient, in blocks of random weights: a patch counts if changing it changes anything at "
        "the white dot. The place's own window in the *last* block decides: it gathers what each of its places "
        "could see before. So the square grows by one window, in height and in width, now to one side, now to the "
        "other. Like a recurrent layer or a stack of small kernels: far, but not "
        "at once (lesson 05, the column *longest path*).",
    )


def shifted(moved: crossing.Learned, fixed: crossing.Learned, card: Card, *, bet=None) -> Result:
    digits = {"moved": seeds(card, "accuracy, shifted"), "never moved": seeds(card, "accuracy, unshifted")}
    gains = [a - b for a, b in zip(digits["moved"], digits["never moved"], strict=True)]
    return Result(
        figures.shifted(
            crossing.marks(1, 1).pixels[0, 0],
            {"moved": moved.losses, "never moved": fixed.losses},
            {"moved": moved.right, "never moved": fixed.right},
            digits,
            bet,
        ),
        alt="Left: a grey picture with two marks on either side of a border between windows. Middle: the loss of two "
        "trainings; with windows that move it falls to zero, with fixed ones it stays at that of guessing. Right: "
        "digits named right, three seeds; each is better with windows that move, by very different amounts.",
        claims=(
            ("marks: over 95 % right with windows that move, under 60 % with fixed ones",
             above(moved.right, 0.95), below(fixed.right, 0.6)),
            ("digits: each seed is better with the shift", min(gains) > 0),
        ),
        came=100 * float(np.mean(digits["never moved"])),
        outcome="On the marks it is a matter of principle: the scores are a mean over the windows, f(left) + g(right), "
        f"and no such sum says *alike*. On digits it is a matter of degree. The shift gains {100 * min(gains):.0f} to "
        f"{100 * max(gains):.0f} points; the seeds differ as much, and the weakest one with the shift is below the "
        "best one without. Three seeds show the direction and leave the size open. The set-up was chosen so that the "
        "shift matters; with windows of 16 x 16 pixels, or with absolute positions, it hardly did (one seed each, in "
        "the notes of `course train shifted_windows`).",
    )  # fmt: skip


def bias(model: Swin, *, bet=None) -> Result:
    tables, names = [], []
    for stage, blocks in enumerate(model.stages, start=1):
        for block, layer in enumerate(blocks, start=1):
            found = looking.offset_maps(layer.attn)
            tables += list(found)
            names += [f"stage {stage}, block {block}"] * len(found)
    side = len(tables[0])
    places = torch.arange(side) - side // 2
    steps = torch.maximum(places[:, None].abs(), places.abs())  # from the query, as a king walks
    rings = torch.tensor([[table[steps == ring].mean() for ring in range(side // 2 + 1)] for table in tables])
    return Result(
        figures.bias(tables, names),
        alt="Twelve small maps of 7 x 7 offsets, four of stage 1 and eight of stage 2, each another pattern. In most "
        "of them the outermost ring is orange, less attended, the ring around the middle purple, the middle itself "
        "pale or orange.",
        claims=(
            ("each head adds more to neighbours than to places three steps away, and at least ten of the twelve less "
             "to the place itself than to its neighbours",
             above((rings[:, 1] - rings[:, 3]).min(), 0), (rings[:, 0] < rings[:, 1]).sum() >= 10),
        ),
        outcome="Read them as a wish: *what lies there, seen from me?* The dot is the query; purple is added to the "
        "score, orange taken off. Nobody asked for it, but on average each head takes more off three steps away than "
        "at its neighbours, and most of them like the place itself less; single entries break the rule. The wish is a "
        "slight one: a bias of 0.25 makes a weight 1.3 times as large. Directions differ from head to head, as with "
        "small kernels; but a kernel is nothing but its weights, and here the content has its say on top.",
    )  # fmt: skip


def switches(right: Mapping[str, float], *, bet=None) -> Result:
    whole, moved = right["as it is"], ("shift off", "absolute positions off", "merged row by row")
    return Result(
        figures.switches(right, bet),
        alt="Bars of test digits named right: as it is, nearly all; without the mask or without the relative bias "
        "almost as many; with the shift off about nine in ten; without absolute positions about seven; with the four "
        "patches merged in another order under half.",
        claims=(
            ("without the mask, or the relative bias, it loses under 3 points",
             below(whole - min(right["mask off"], right["relative bias off"]), 0.03)),
            ("without shift, positions or the right order of merging it loses over 5",
             above(whole - max(right[name] for name in moved), 0.05)),
        ),
        came=100 * right["mask off"],
        outcome="Without the mask, top and bottom of the picture meet in the windows at the border, and a good part of "
        "their attention goes to strangers. It hardly matters: only one of the four blocks moves its windows, and the "
        "next stage is one window that sees everything. Why the net bears it so well, this does not show. A forgotten "
        "mask would cost next to nothing here, and no test of accuracy would find it. That is why you checked it by "
        "its definition. The relative bias is hardly missed, since this small net has absolute positions, too, which "
        "the paper's has not. And merging in another order is a silent disaster: all shapes fit. A caution: a part "
        "taken from a trained net shows what it leaned on, not what it could learn without.",
    )  # fmt: skip


RESULTS = {function.__name__: function for function in (maps, cost, mechanism, reads, reach, shifted, bias, switches)}
