"""Lesson 14, Image to image: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping
from statistics import fmean

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.data.icons import CATEGORIES, icons
from course_lib.data.scenes import Scenes
from course_lib.functional.diffusion import NoiseSchedule, add_noise
from course_lib.functional.images import bilinear_kernel, max_pool, standardise
from course_lib.functional.segmentation import (
    average_precision,
    find_instances,
    mask_boxes,
    true_instances,
)
from course_lib.functional.visualisation import blurred
from course_lib.lessons.lesson_14 import figures, icon_recipes
from course_lib.lessons.lesson_14.diffusion_recipes import scaled
from course_lib.lessons.lesson_14.recipes import MASK_COUNTS, NUM_CLASSES, SMALLEST, STEPS, scenes, segment
from course_lib.models.unet import UNet
from course_lib.tasks.claims import above, below
from course_lib.training.vision import predictions

NETWORKS = ("U-Net", "FCN", "SegNet", "FCN without skips", "U-Net without skips")
ICON_SCENES = (57, 4, 53, 10)  # of the first 60 test scenes: among the better ones, all categories
BLURS = (0.4, 0.6, 0.8, 1.0, 1.2, 1.5)  # standard deviations of a Gaussian, pixels
SHOWN = 5  # drawings
SHOWN_STEPS, LATE = (0, 50, 100, 150, 199), 150
COPIED = 0.02  # a training drawing with noise or a slight blur differs by less: mean squared difference, -1 to 1
CHECKED = 0.05  # of the pixels
SURE = 0.9
OTHER = 7  # an image of a four
LARGE = 96  # pixels a side
CROWDS = (2, 4, 6, 9)  # digits in a large image


def mean_of(card: Mapping, score: str) -> float:
    """The mean over seeds of a score on test data, in %."""
    return 100 * fmean(by_seed(card, score))


def opening(model: nn.Module, card: Mapping, *, predicted=None) -> Result:
    """`model` and `card` are those of `unet_icons`."""
    asked = icon_recipes.drawn(icon_recipes.scenes("test"), 60, seed=0)
    masks = icon_recipes.segment(model, asked.pixels)
    wrong = ((masks != asked.semantic) & (asked.semantic > 0)).sum(dim=(1, 2)) / (asked.semantic > 0).sum(dim=(1, 2))
    wrong[list(ICON_SCENES)] = -1
    chosen = [*ICON_SCENES, int(wrong.argmax())]
    names = {
        "icon or background": "mean IoU, icon or background",
        f"{len(icon_recipes.CLASSES)} classes": "mean IoU",
        "unseen: icon or background": "mean IoU, icon or background, new names",
        f"unseen: {len(icon_recipes.CLASSES)} classes": "mean IoU, new names",
    }
    scores = {name: mean_of(card, score) for name, score in names.items()}
    came, classes, new, new_classes = scores.values()
    return Result(
        figures.opening(
            asked.pixels[chosen],
            {"ground truth": asked.semantic[chosen], "prediction": masks[chosen]},
            scores,
            predicted,
        ),
        came=came,
        values={"icon": came, "classes": classes, "new": new, "new_classes": new_classes},
    )


def ways_up(scene: Scenes, unpool: Callable, transposed: Callable, *, predicted=None) -> Result:
    pixels = scene.pixels
    height, width = pixels.shape[-2:]
    small, positions = max_pool(pixels)
    uneven = transposed(small, torch.ones(1, 1, 3, 3), 2)
    shown = {
        "pooled, 16 × 16": small,
        "unpooled": unpool(small, positions, height, width),
        "kernel 2 × 2": transposed(small, torch.ones(1, 1, 2, 2), 2),
        "kernel 3 × 3": uneven / uneven.max(),
        "bilinear kernel": transposed(small, bilinear_kernel(2)[None, None], 2)[..., 1:-1, 1:-1],
    }
    return Result(figures.ways_up({name: image[0, 0].numpy() for name, image in shown.items()}))


@torch.no_grad()
def sliding(classifier: nn.Module, kernel: Tensor, scene: Scenes, own: Scenes, *, predicted=None) -> Result:
    def answers(pixels: Tensor) -> Tensor:
        return F.conv2d(classifier.feature_maps(standardise(pixels))[-1], kernel, classifier.head.bias)

    same = (answers(own.pixels)[:, :, 0, 0] - classifier(standardise(own.pixels))).abs().max()
    probability, best = answers(scene.pixels).softmax(dim=1)[0].max(dim=0)
    named = set(best[probability > SURE].tolist())
    return Result(
        figures.sliding(scene.pixels[0, 0], best, probability, own.pixels.shape[-1], SURE),
        claims={"dense": (below(same, 1e-4), set(scene.labels[0].tolist()) <= named)},
    )


@torch.no_grad()
def yours(
    models: Mapping[str, nn.Module],
    images: Float[Tensor, "B 3 H W"],
    labels: Int[Tensor, "B H W"],
    overlap: Callable,
    *,
    predicted=None,
) -> Result:
    """`models` tell icons from background, classes 1 and 0 of `labels`; `images` are standardised."""
    masks = {
        name: torch.cat([model.eval()(part).argmax(dim=1) for part in images.split(50)])
        for name, model in models.items()
    } | {"background everywhere": 0 * labels}
    scores = {name: overlap(mask, labels, 2) for name, mask in masks.items()}
    table = "".join(
        f"<tr><td>{name}</td><td>{varies(f'{iou[1]:.2f}')}</td><td>{varies(f'{iou.mean():.2f}')}</td>"
        f"<td>{varies(f'{dice[1]:.2f}')}</td></tr>"
        for name, (iou, dice) in scores.items()
    )
    return Result(
        "<table><tr><th>test scenes</th><th>IoU of icons</th><th>mean IoU</th><th>Dice of icons</th></tr>"
        f"{table}</table>",
        claims={"IoU": above(next(iter(scores.values()))[0][1], 0.5)},
        values={"nothing": 100 * (labels == 0).double().mean()},
    )


def skips(scene: Scenes, models: Mapping[str, nn.Module], card: Mapping, *, predicted=None) -> Result:
    areas, outlines = (
        {name: by_seed(card, f"{name}, {measure}") for name in NETWORKS} for measure in ("mean IoU", "boundary F")
    )
    masks = {name: segment(model, scene.pixels)[0] for name, model in models.items()}
    masks = {"ground truth": scene.semantic[0]} | masks
    unet, fcn, segnet, fcn_without, without = areas.values()
    return Result(
        figures.skips(scene.pixels[0, 0], masks, {"Mean IoU": areas, "Boundary F": outlines}, predicted),
        claims={
            "ahead": min(unet) > max(without) + 0.05 and min(outlines["U-Net"]) > max(outlines["U-Net without skips"]),
            "SegNet": max(without) < min(segnet) < max(segnet) < min(unet + fcn) and min(unet) < max(fcn),
        },
        came=100 * fmean(without),
        values={
            "unet": 100 * fmean(unet),
            "fcn": 100 * fmean(fcn),
            "without": 100 * fmean(without),
            "fcn_without": 100 * fmean(fcn_without),
            "steps": STEPS["U-Net without skips"],
            "fcn_steps": STEPS["FCN without skips"],
        },
    )


@torch.no_grad()
def swap(model: UNet, scene: Scenes, asked: Scenes, *, predicted=None) -> Result:
    other = Scenes(*(part[OTHER : OTHER + 1] for part in asked))
    pair = torch.cat([scene.pixels, other.pixels])
    masks = {name: swapped(model, pair, level)[0] for name, level in (("4 x 4", 3), ("16 x 16", 1))}
    fractions = {}
    for level, name in enumerate(("32 x 32", "16 x 16", "8 x 8", "4 x 4")):
        mask, true = swapped(model, asked.pixels, level), asked.semantic
        guest = (asked.labels[:, 0].roll(1) + 1)[:, None, None]
        counted = (true > 0) & (true != guest)
        fractions[name] = [
            (which & counted).sum().item() / counted.sum().item() for which in (mask == true, mask == guest, mask == 0)
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
    in_order = wrong.flatten()[nats.flatten().argsort(descending=True)]
    found = in_order.cumsum(0) / wrong.sum()
    checked = torch.arange(1, len(found) + 1) / len(found)
    came = 100 * found[int(CHECKED * len(found))].item()
    worst = (wrong & (asked.semantic > 0)).sum(dim=(1, 2)).argsort(descending=True)[len(wrong) // 20]
    return Result(
        figures.uncertainty(
            asked.pixels[worst, 0],
            logits.argmax(dim=1)[worst],
            nats[worst],
            wrong[worst],
            checked[::500],
            found[::500],
            CHECKED,
            predicted,
        ),
        claims={"errors": above(area(nats, wrong), 0.95)},
        came=came,
        values={"wrong": 100 * wrong.float().mean(), "checked": 100 * CHECKED, "came": came},
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


def few(card: Mapping, *, predicted=None) -> Result:
    names = {"pretrained encoder, frozen": "frozen", "encoder from scratch": "scratch"}
    scores = {
        count: {name: by_seed(card, f"{count} masks, {encoder} backbone, mean IoU") for name, encoder in names.items()}
        for count in MASK_COUNTS
    }
    frozen, scratch = scores[MASK_COUNTS[-1]].values()
    rows = "".join(
        f"<tr><td>{count} masks, {name}</td>"
        f"<td>{', '.join(dict.fromkeys(f'{value:.2f}' for value in values))}</td></tr>"
        for count, by_encoder in scores.items()
        for name, values in by_encoder.items()
    )
    return Result(
        "<table><tr><th></th><th>mean IoU on test scenes, a number for each seed of the encoder</th></tr>"
        f"{rows}</table>",
        claims={"ahead": min(frozen) > max(scratch) + 0.4},
        came=100 * fmean(frozen),
    )


@torch.no_grad()
def denoised(
    model: nn.Module,
    images: Float[Tensor, "B 3 H W"],
    noisy: Float[Tensor, "B 3 H W"],
    *,
    predicted=None,
) -> Result:
    """`model` makes clean drawings of noisy ones, all from -1 to 1; `noisy` is `images` plus Gaussian noise."""
    level = (noisy - images).std().item()
    sigma = best_blur(level)
    restored = torch.cat([model.eval()(part) for part in noisy.split(50)])
    rows = {"clean": images, "noisy": noisy, "Gaussian blur": blurred(noisy, sigma), "your network": restored}
    errors = {name: F.mse_loss(pixels, images).item() for name, pixels in rows.items() if name != "clean"}
    step = max(1, len(images) // SHOWN)
    _, blur, network = errors.values()
    return Result(
        figures.denoised({name: pixels[::step][:SHOWN] for name, pixels in rows.items()}, errors, predicted),
        claims={"network": below(network, blur)},
        came=100 * network / blur,
        values={
            "level": level,
            "sigma": sigma,
            "network": varies(f"{100 * network / blur:.0f}"),
        },
    )


def noising(schedule: NoiseSchedule, drawing: Float[Tensor, "3 H W"], *, predicted=None) -> Result:
    """`drawing` goes from -1 to 1."""
    t, image = torch.tensor(SHOWN_STEPS), drawing.reshape(1, *drawing.shape[-3:])
    noise = torch.randn(image.shape, generator=torch.Generator().manual_seed(0))
    shown = add_noise(image.expand(len(t), -1, -1, -1), noise.expand(len(t), -1, -1, -1), t, schedule)
    signal, level = schedule.alpha_bars.sqrt(), (1 - schedule.alpha_bars).sqrt()
    equal = int((level > signal).nonzero()[0])
    return Result(
        figures.noising(dict(zip(SHOWN_STEPS, shown, strict=True)), signal, level, predicted),
        came=equal,
        values={"equal": equal, "late": signal[LATE].item(), "variance": 100 * schedule.alpha_bars[LATE].item()},
    )


def samples(images: Float[Tensor, "B 3 H W"], drawings: Float[Tensor, "N 3 H W"], *, predicted=None) -> Result:
    """Generated `images`, as many of each of CATEGORIES, in their order; training `drawings`; all from -1 to 1."""
    distances, nearest = nearest_of(images, drawings)
    unseen = nearest_of(scaled(icons("test")), drawings)[0].median().item()
    order, median = distances.argsort(), distances.median().item()
    ranks = {"closest": order[0], "median": order[(len(order) - 1) // 2], "farthest": order[-1]}
    pairs = {f"{name}, MSE {distances[at]:.3f}": (images[at], nearest[at]) for name, at in ranks.items()}
    by_category = images.reshape(len(CATEGORIES), -1, *images.shape[1:])
    return Result(
        figures.samples(by_category, pairs),
        claims={"copies": above(median, COPIED)},
        came=median,
        values={"median": varies(f"{median:.3f}"), "unseen": unseen, "copied": COPIED},
    )


def best_blur(level: float) -> float:
    """The blur of BLURS whose error is smallest on validation drawings with Gaussian noise of this level."""
    images = scaled(icons("validation"))
    noisy = images + level * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))
    return min(BLURS, key=lambda sigma: F.mse_loss(blurred(noisy, sigma), images).item())


def nearest_of(
    images: Float[Tensor, "B 3 H W"], drawings: Float[Tensor, "N 3 H W"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, "B 3 H W"]]:
    """The drawing that differs least from each image, mirrored ones included, and the mean squared difference."""
    known = torch.cat([drawings, drawings.flip(3)])
    least = torch.cdist(images.flatten(1), known.flatten(1)).min(dim=1)
    return least.values.square() / images[0].numel(), known[least.indices]


def swapped(model: UNet, pixels: Float[Tensor, "B 1 H W"], level: int) -> Int[Tensor, "B H W"]:
    """The masks where each image gets the feature map of the image before it, at one level (0: the finest)."""
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
    """The fraction of pairs, one positive and one not, in which the positive scores higher: the area under the ROC."""
    ranks = scores.flatten().argsort().argsort().double() + 1
    chosen = positive.flatten()
    count = int(chosen.sum())
    above = ranks[chosen].sum().item() - count * (count + 1) / 2
    return above / (count * (len(ranks) - count))


def crowded(crowd: int, *, count: int = 30) -> Scenes:
    """Large test images with so many digits of 16 to 22 pixels."""
    shrinks = crowd ** (2 / 3)
    scale = (16 * shrinks / LARGE, 22 * shrinks / LARGE)
    return scenes("test", size=LARGE, digits=(crowd, crowd), scale=scale).batch(count, seed=3)


RESULTS = {
    function.__name__: function
    for function in (
        opening,
        sliding,
        ways_up,
        yours,
        skips,
        swap,
        uncertainty,
        things,
        few,
        denoised,
        noising,
        samples,
    )
}
