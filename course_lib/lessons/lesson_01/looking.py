"""Lesson 01: what each depth of a network responds to, and what a probe finds there."""

from collections.abc import Callable, Sequence
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.scenes import DigitScenes, Scenes
from course_lib.functional.images import restore, standardise
from course_lib.functional.visualisation import (
    NOTHING,
    Field,
    Patches,
    Regularisers,
    maximise,
    most_exciting,
    occlusion_map,
    receptive_fields,
)
from course_lib.layers.convolution import ConvNorm
from course_lib.models.resnet import ResNet
from course_lib.training.probes import Labelled, LinearProbe, tuned_probe

STAGES = ("stem", "stage 1", "stage 2", "stage 3")
PROBED = ("pixels", *STAGES)
FLAT = 0.1  # spread of a patch that shows nothing but one brightness
STAGE_PROBES = {"train": 1000, "validation": 500}  # scenes
SCENES = 2000  # among which exciting patches are sought


def fields_of(model: ResNet) -> list[Field]:
    """The receptive field behind the stem and behind each stage of a small ResNet."""
    chain, ends = [], []
    for part in (model.stem, *model.stages):
        convs = [m.conv for m in part.modules() if isinstance(m, ConvNorm)]
        chain += [(conv.kernel_size[0], conv.stride[0]) for conv in convs]
        ends.append(len(chain) - 1)
    fields = receptive_fields(chain)
    return [fields[end] for end in ends]


@torch.no_grad()
def maps_of(model: ResNet, pixels: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B _ _ _"]]:
    """The maps of the stem and of each stage, of pixels from 0 to 1, in evaluation mode."""
    parts = [standardise(part) for part in pixels.split(500)]
    model.eval()
    every = [[model.stem(part), *model.feature_maps(part)] for part in parts]
    return [torch.cat(maps) for maps in zip(*every, strict=True)]


def exciting(model: ResNet, pixels: Float[Tensor, "B C H W"], channels: int = 2, count: int = 6) -> list[list[Patches]]:
    """Of each depth the patches of lively channels: maxima that vary much, and not all alike."""
    found = []
    for maps, field in zip(maps_of(model, pixels), fields_of(model), strict=True):
        highest = maps.amax(dim=(2, 3))
        lively = (highest.std(dim=0) / (highest.mean(dim=0) + 1e-6)).where(highest.mean(dim=0) > 0.2, -1.0)
        best = [most_exciting(maps[:, channel], pixels, field, count=1).pictures[0] for channel in range(maps.shape[1])]
        flat = torch.tensor([bool(patch[~patch.isnan()].std() < FLAT) for patch in best])
        lively = lively.where(~flat, -1.0)
        chosen = [int(lively.argmax())]
        while len(chosen) < channels:  # next, of the livelier quarter, the one that is least like those
            alike = torch.corrcoef(highest.T).nan_to_num(1.0)[chosen].amax(dim=0)
            chosen.append(int(alike.where(lively >= lively.quantile(0.75), 2.0).argmin()))
        found.append([most_exciting(maps[:, channel], pixels, field, count=count) for channel in chosen])
    return found


def commonest_share(model: ResNet, scenes: Scenes, top: int = 100) -> list[float]:
    """Of each depth, the share of the commonest digit among a channel's `top` scenes; the mean over all channels."""
    fractions, digits = [], scenes.labels[:, 0]
    for maps in maps_of(model, scenes.pixels):
        best = maps.amax(dim=(2, 3)).topk(top, dim=0).indices
        counts = torch.nn.functional.one_hot(digits[best], 10).sum(dim=0)
        fractions.append(float((counts.amax(dim=1) / top).mean()))
    return fractions


def scoring(model: ResNet, classes: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """The logit of `classes[i]` for image i of a batch, or of the one class for all."""
    model.eval().requires_grad_(False)
    asked = torch.tensor(list(classes))

    def score(image: Tensor) -> Tensor:
        return model(image).gather(1, asked.expand(len(image))[:, None])[:, 0]

    return score


def dreams(model: ResNet, classes: Sequence[int]) -> dict[str, tuple[Tensor, Tensor]]:
    """A picture for each class with and without regularisers, and how probable the class then is."""
    found = {}
    for name, regularisers in (("nothing", NOTHING), ("regularised", Regularisers(variation=0.008))):
        pictures = maximise(scoring(model, classes), (len(classes), 1, 32, 32), regularisers=regularisers)
        probable = model(pictures).softmax(dim=1)[torch.arange(len(classes)), list(classes)]
        found[name] = (restore(pictures)[:, 0].clamp(0, 1), probable)
    return found


def occluded(model: ResNet, pixels: Float[Tensor, "1 1 H W"], label: int, *, size: int = 7) -> Float[Tensor, "h w"]:
    """By how much the probability of a digit falls under a grey square at each place."""
    return occlusion_map(lambda image: model.eval()(image).softmax(dim=1)[:, label], standardise(pixels), size=size)


@torch.no_grad()
def peak_on_digit(model: ResNet, scenes: Scenes, *, size: int = 7, stride: int = 3) -> tuple[float, float]:
    """How often the square that hurts the logit most is centred in the digit's box, and how often a random one is."""
    hits, chances = [], []
    for number in range(len(scenes.labels)):
        label, box = int(scenes.labels[number, 0]), scenes.boxes[number, 0]
        fallen = occlusion_map(
            lambda image, label=label: model.eval()(image)[:, label],
            standardise(scenes.pixels[number : number + 1]), size=size, stride=stride,
        )  # fmt: skip
        row, column = divmod(int(fallen.argmax()), fallen.shape[1])
        rows, columns = (stride * torch.arange(length) + size // 2 for length in fallen.shape)
        inside = ((box[1] <= rows) & (rows < box[3]))[:, None] & ((box[0] <= columns) & (columns < box[2]))
        hits.append(bool(inside[row, column]))
        chances.append(float(inside.float().mean()))
    return sum(hits) / len(hits), sum(chances) / len(chances)


def ink_is_brighter(scenes: Scenes) -> Bool[Tensor, " B"]:
    """Whether the digit is brighter than the ground, in the mean."""
    ink, pixels = (scenes.semantic > 0).float(), scenes.pixels[:, 0]
    brightness = [(pixels * part).sum((1, 2)) / part.sum((1, 2)) for part in (ink, 1 - ink)]
    return brightness[0] > brightness[1]


def probes(model: ResNet, classes: tuple[int, ...] | None = None, labels: int = 300) -> dict[str, list[float]]:
    """Accuracies of linear probes on the pixels and on the feature maps of each depth: digit, and brighter ink.

    Pixels and maps are pooled alike, to the mean of each channel in 4 x 4 fields. Penalties are chosen on validation
    scenes, scores are those on test scenes.
    """
    sizes = {"train": labels, "validation": 500, "test": 1000}
    scenes = {split: DigitScenes(split=split, classes=classes).batch(count, 0) for split, count in sizes.items()}
    depths = {split: _pooled(model, some.pixels) for split, some in scenes.items()}
    asked = {"digit": lambda some: some.labels[:, 0], "brighter": lambda some: ink_is_brighter(some).long()}
    found: dict[str, list[float]] = {}
    for name, answer in asked.items():
        answers: dict[str, Int[Tensor, " B"]] = {split: answer(some) for split, some in scenes.items()}
        for depth in range(len(PROBED)):
            fitted, chosen, test = (Labelled(depths[split][depth], answers[split]) for split in sizes)
            found.setdefault(name, []).append(tuned_probe(fitted, chosen, scales=("each",)).accuracy(*test))
        found[f"{name}, always the commonest"] = [answers["test"].bincount().max().item() / sizes["test"]]
    return found


@cache
def stage_probes(model: ResNet) -> list[LinearProbe]:
    """A linear probe for the digit on the mean of each depth's maps, from 1,000 scenes."""
    train, validation = (DigitScenes(split=split).batch(count, 0) for split, count in STAGE_PROBES.items())
    depths = (_means(model, scenes.pixels)[1:] for scenes in (train, validation))
    return [
        tuned_probe(Labelled(some, train.labels[:, 0]), Labelled(chosen, validation.labels[:, 0]))
        for some, chosen in zip(*depths, strict=True)
    ]


def _means(model: ResNet, pixels: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B D"]]:
    return [pixels.flatten(1), *(maps.mean(dim=(2, 3)) for maps in maps_of(model, pixels))]


def _pooled(model: ResNet, pixels: Float[Tensor, "B C H W"], side: int = 4) -> list[Float[Tensor, "B D"]]:
    """Pixels and maps of each depth, all pooled to the same resolution."""
    return [
        torch.nn.functional.adaptive_avg_pool2d(maps, side).flatten(1) for maps in (pixels, *maps_of(model, pixels))
    ]
