"""Lesson 11, Vision Transformer: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.results import Result
from course_lib.data.digits import LabelledImages
from course_lib.functional.attention_maps import patch_distances, position_similarity
from course_lib.layers.patches import patchify, take_patches, unpatchify
from course_lib.lessons.lesson_11 import figures, looking, yours
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


def mechanism(model: ViT, picture: Float[Tensor, "1 1 S S"], *, bet=None) -> Result:
    size = model.config.patch_size
    patches = patchify(picture, size)[0].unflatten(1, (size, size))
    return Result(
        figures.mechanism(picture[0, 0], patches, predictions(model, picture)[0].softmax(dim=-1)),
        alt="Left: a bright three on dark ground, cut by yellow lines into 4 x 4 patches. Right: the patches in a row "
        "behind a class token, each times the matrix E, with a position from 0 to 16 added; all go into a "
        "Transformer's encoder. The class token alone is read at the end, and says 3.",
    )


def data(live: Mapping[str, float], digits: Card, by_data: Card, *, bet=None) -> Result:
    right = {
        net: {count: seeds(by_data, f"accuracy, {net}, {count:,} images") for count in (FEW, MANY)}
        for net in ("ViT", "ResNet")
    }
    vit, resnet = right["ViT"], right["ResNet"]
    return Result(
        figures.data(live, {net: seeds(digits, f"accuracy, {net}") for net in live}, right, bet),
        alt="Left: test digits named right by your ViT and your Mixer, stars, below those that were trained longer. "
        "Right, by the number of training pictures, three seeds each: with 500 the ViT is far below the ResNet; with "
        "20,000 they nearly meet.",
        claims=(
            ("after 300 steps your ViT and your Mixer name over 90 % right", above(min(live.values()), 0.9)),
            (f"with {FEW} pictures every ResNet is over 4 points ahead of every ViT, with {MANY:,} no one is over 2",
             min(resnet[FEW]) > max(vit[FEW]) + 0.04 and max(resnet[MANY]) < min(vit[MANY]) + 0.02),
        ),
        came=100 * float(np.mean(vit[FEW])),
        outcome="A convolution looks at neighbours, with the same weights everywhere: locality and translation "
        "equivariance are built in. A ViT has to find both in the pictures. With 500 there is too little to find them "
        "in; with 20,000 one point is left, which is still three times the errors. That is the paper in miniature: "
        "below ResNets on mid-size data, ahead with 14 to 300 million pictures (Dosovitskiy et al. 2021, section 4.3, "
        "figures 3 and 4). *Ahead* does not show here. On the left, where new digits are drawn in each step, the "
        "Mixer, without attention, does at least as well, in one run of yours and three seeds of the card.",
    )  # fmt: skip


def shuffled(model: ViT, pictures: LabelledImages, *, bet=None) -> Result:
    right = looking.right_shuffled(model, pictures)
    size = model.config.patch_size
    patches = patchify(pictures.pixels[:1], size)
    moved = unpatchify(take_patches(patches, looking.shuffles(1, patches.shape[1])), size, *pictures.pixels.shape[2:])
    return Result(
        figures.shuffled(pictures.pixels[0, 0], moved[0, 0], right, bet),
        alt="A nine, and the same patches in another order. Bars: as it is, and with each patch carrying its position "
        "along, nearly all digits are named right; with positions that stay, about a fifth; without positions, more "
        "than a third.",
        claims=(
            ("shuffled together with their positions the patches mean the same, to 0.2 points",
             below(abs(right["as it is"] - right["shuffled, each with its position"]), 0.002)),
            ("with positions that stay, or none, under half are right",
             below(max(right["shuffled, positions stay"], right["no positions"]), 0.5)),
        ),
        came=100 * right["shuffled, positions stay"],
        outcome="The order of the tokens means nothing, as in lesson 05: the position that is *added* says where a "
        "patch lies. A wrong place is worse than none. Our net was trained with positions and then robbed of them; one "
        "that is trained without any can make up for a part. On ImageNet, where a patch of fur says much by itself, "
        "that cost three points, 61.4 against 64.2 % (Dosovitskiy et al. 2021, appendix D.4, five examples a class): "
        "the two losses do not compare. Codes in two dimensions gained nothing over a plain list.",
    )  # fmt: skip


def textures(here: Sequence[float], card: Card, *, bet=None) -> Result:
    names = {"ViT, 6,000 steps": "ViT", "hybrid, 1,500 steps": "hybrid"}
    right = {
        name: np.array([[seed["test"][f"accuracy, {kind}, {net}"] for kind in CLUTTER] for seed in card["seeds"]])
        for name, net in names.items()
    }
    vit = next(iter(right.values()))
    return Result(
        figures.textures(here, right, list(CLUTTER)),
        alt="Digits named right on plain, weak and full textures, as bands over three seeds. The ViT falls by some ten "
        "points from plain to full, the hybrid by more; the stars of this run lie on the ViT's band.",
        claims=(("each ViT loses over 8 points from plain to full textures", (vit[:, 0] - vit[:, -1]).min() > 0.08),),
        outcome="Real ground is harder: edges that belong to no digit, on textures that no network has seen. The "
        "**hybrid** (the paper's section 3.1) has a small convolutional network in place of $E$, whose features become "
        "the tokens. After a quarter of the steps it is about three points behind on plain ground and seven on full. "
        "One ViT had 80 % on validation after 1,000 steps (the card's notes), so the hybrid seems to learn faster. "
        "Xiao et al. 2021 find on ImageNet, too, that convolutions at the bottom let a ViT learn faster and more "
        "steadily. The two did not train equally long: nobody has won.",
    )


def rollouts(
    model: ViT,
    picture: Float[Tensor, "1 1 S S"],
    pictures: LabelledImages,
    unpatchify: Callable[..., Tensor] = unpatchify,
    *,
    bet=None,
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
            picture[0, 0], found.unflatten(0, model.config.grid), half.float(), looking.DROPPED, curves, bet
        ),
        alt="Left: the three, its rollout, bright along the digit, and the half of its patches that is kept. Right: "
        "digits named right against the patches dropped. Smallest rollout first, the curve stays high until half are "
        "gone; at random it falls steadily; largest first it falls at once. The mean map of all pictures does as well "
        "up to half, and worse beyond.",
        claims=(
            ("half of the patches can go by rollout with over 85 % right, at random under 65 %",
             above(own[8], 0.85), below(chance[8], 0.65)),
            ("with ten gone a picture's own map keeps over 5 points more than the mean map",
             above(own[10] - mean[10], 0.05)),
        ),
        came=100 * own[8],
        outcome="A picture can spare half of its words, if one knows which. Two lessons in one plot. The map *means* "
        "something: what it calls important is missed. But see the green line: one and the same map for all pictures, "
        "the mean, does as well until half are gone. Most of a convincing map says *digits stand near the middle*. "
        "Only what a picture's own map adds beyond that was found in this very picture.",
    )  # fmt: skip


def inside(model: ViT, distances: Float[Tensor, "L H"], card: Card, *, bet=None) -> Result:
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
        alt="Left: 7 x 7 small maps, one for each patch, of how alike its position is to all others. Inside, each is "
        "bright at its own place and beside it; the patches along the border are all alike. Right: four heads in each "
        "of four blocks, all between 10 and 15 pixels, near the line of a head that looks evenly.",
        claims=(
            ("inside, positions side by side are more alike than those farther apart, those along the border most, "
             "in every seed",
             all(b > n > f + 0.1 for n, f, b in zip(near, far, border, strict=True))),
            ("no head of any seed, nor of this run, looks less than 10 pixels far",
             above(min(*nearest, distances.min().item()), 10)),
        ),
        outcome="Nobody told the network that a picture has two dimensions: that neighbours are alike, it learned "
        "(figure 7 of the paper shows rows and columns, too). The border taught us something: nothing is ever drawn "
        "there, so its codes became alike. What does **not** show is the right-hand figure of the paper, heads of "
        "the early blocks that look near. (A mean distance tells how far, not how sharply: a head that looks evenly "
        "has the same one as a head that picks a few patches, near and far.) Raghu et al. 2021 found that heads that "
        "look near come with 300 million pictures, and not with ImageNet alone. That may be our reason, too; a grid of "
        "7 x 7 with an empty border may be another.",
    )  # fmt: skip


def larger(
    fine: Mapping[int, float], coarse: Mapping[int, float], anew: Mapping[int, float], card: Card, *, bet=None
) -> Result:
    curves = {
        "49 patches,\ninterpolated": fine,
        "16 patches,\ninterpolated": coarse,
        "49 patches,\nnew positions": anew,
    }
    shipped = seeds(card, f"accuracy, {LARGER} pixels")
    small, large = (yours.test_digits(1, size).pixels[0, 0] for size in (28, LARGER))
    return Result(
        figures.larger(small, large, 4, {name: (list(c), list(c.values())) for name, c in curves.items()}, bet),
        alt="A nine of 28 and of 44 pixels, with 7 x 7 and 11 x 11 patches. Against the size of the picture: the net "
        "of 49 patches stays above 90 %, the one of 16 patches falls below 80, new positions are right for a third or "
        "less.",
        claims=(
            (f"at {LARGER} pixels, interpolated, over 90 % are right, here and in every seed; with new positions under "
             "50 %",
             above(min(fine[LARGER], *shipped), 0.9), below(max(anew.values()), 0.5)),
        ),
        came=100 * fine[LARGER],
        outcome="Smooth positions can be resized like a picture. Two things differ between the two nets: the grid, and "
        "how positions began, as large random numbers for 16 patches and as small ones for 49. Between rough codes "
        "lies nothing that was ever learned; but this run does not separate the two. Grey: the positions of the "
        "patches drawn anew at random, as large as the learned ones. In the paper the interpolation is a start: ViT is "
        "pretrained at 224 pixels and *fine-tuned* at 384 or 512 (its section 3.2).",
    )  # fmt: skip


def paper(*, bet=None) -> Result:
    return Result(
        figures.paper(TABLE_2),
        alt="ImageNet accuracy against the days of one TPUv3 core that pre-training took. ViT-L/16 on JFT is level "
        "with BiT-L for a fifteenth of the days, ViT-H/14 level with Noisy Student for a fifth; ViT-L/16 on "
        "ImageNet-21k is cheapest and below.",
    )


RESULTS = {
    function.__name__: function for function in (mechanism, data, shuffled, textures, rollouts, inside, larger, paper)
}
