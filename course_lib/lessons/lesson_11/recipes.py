"""Lesson 11: Vision Transformers of digits on any texture and of clean digits; `icon_recipes` has those of icons.

Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, arXiv 2010.11929. Tolstikhin et al., "MLP-Mixer",
NeurIPS 2021, arXiv 2105.01601. He et al., "Deep residual learning", CVPR 2016, arXiv 1512.03385.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.data.scenes import DigitScenes
from course_lib.functional.attention_maps import attention_distance, position_similarity
from course_lib.functional.images import standardise
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_11 import icon_recipes
from course_lib.models.mixer import Mixer, MixerConfig
from course_lib.models.resnet import resnet8
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, each
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

NETS = ("vit", "hybrid", "mixer", "resnet")
CLUTTER = {"plain": 0.0, "weak": 0.3, "full": 1.0}  # what scenes are scored on
LARGER = 44  # pixels a side: pictures of another size than those that were learned from
SPLIT_IMAGES = {"validation": 2000, "test": 4000}


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """A classifier of digits, and how it is trained."""

    net: str = "vit"  # of `NETS`
    scenes: bool = False  # on textures of clutter 0 to 1; otherwise clean digits
    images: int | None = None  # fixed training images; None: new ones in each step
    size: int = 28  # pixels a side
    patch_size: int = 7  # pixels a side; a ResNet has none
    depth: int = 4  # blocks of 64 channels, 4 heads, an MLP of 256; a ResNet has its own sizes
    position_std: float = 1.0  # of a ViT's first position embeddings, as large as a patch's embedding
    steps: int = 1500
    learning_rate: float = 2e-3
    batch_size: int = 64
    seed: int = 0


def build(settings: ImageSettings) -> nn.Module:
    """A fresh network; its first weights depend on the seed alone. Raises ValueError for an unknown `net`."""
    if settings.net not in NETS:
        raise ValueError(f"net must be one of {', '.join(NETS)}, got {settings.net!r}")
    shape = {"image_size": settings.size, "patch_size": settings.patch_size, "in_channels": 1, "num_classes": 10}
    shape |= {"dim": 64, "depth": settings.depth, "mlp_dim": 256}
    with seeded(settings.seed):
        if settings.net == "resnet":
            return resnet8(in_channels=1, num_classes=10)
        if settings.net == "mixer":
            return Mixer(MixerConfig(**shape, token_mlp_dim=32))
        model = ViT(ViTConfig(**shape, num_heads=4, stem="conv" if settings.net == "hybrid" else "patch"))
        nn.init.normal_(model.pos_embed, std=settings.position_std)
        return model


def source(settings: ImageSettings, split: str, clutter: float | None = None) -> Callable[[int, int], LabelledImages]:
    """Images of a split by their number and a seed; of scenes, those of one clutter or, without it, of all."""
    if settings.scenes:
        scenes = DigitScenes(split=split, size=settings.size, clutter=(0.0, 1.0) if clutter is None else clutter)
        return lambda count, seed: scenes.batch(count, seed=seed).classification()
    return CleanDigits(split=split, size=settings.size).batch


def batches(settings: ImageSettings) -> Callable[[int], tuple[Float[Tensor, "B 1 S S"], Int[Tensor, " B"]]]:
    """`batch_at(step)`, from new images in each step or from a fixed set; each seed has its own."""
    draw = source(settings, "train")
    if settings.images is None:
        return lambda step: tuple(draw(settings.batch_size, seed_of_step(settings.seed, step)))
    pixels, labels = draw(settings.images, seed_of_step(settings.seed, 0))
    indices_at = shuffled_batches(settings.images, settings.batch_size, settings.seed)
    return lambda step: (pixels[indices_at(step)], labels[indices_at(step)])


def train(settings: ImageSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains one network, which is left with the weights that validated best."""
    trained = fit_classifier(
        settings,
        build(settings),
        batches(settings),
        parts=10,
        warmup=min(100, settings.steps // 10),
        weight_decay=0.05,
        ema=0.995,
        validate=lambda model: mean(right(model, settings, "validation")),
        checkpoint=checkpoint,
    )
    trained.history.load_best(trained.model)
    return trained


def right(model: nn.Module, settings: ImageSettings, split: str) -> Scores:
    """Share of a split's images whose digit the model names right, from 0 to 1: of scenes, for each clutter."""
    kinds = (
        {f"accuracy, {name}": clutter for name, clutter in CLUTTER.items()} if settings.scenes else {"accuracy": None}
    )
    return {
        name: accuracy(model, *source(settings, split, clutter)(SPLIT_IMAGES[split], 0))
        for name, clutter in kinds.items()
    }


@torch.no_grad()
def head_distances(
    model: ViT, pixels: Float[Tensor, "B 1 S S"], distance: Callable[..., Tensor] = attention_distance
) -> Float[Tensor, "L H"]:
    """How far each head of each block looks, in pixels, on average over these images; pixels from 0 to 1."""
    with record_attention(model.eval()) as record:
        model(standardise(pixels))
    return distance(record.maps(), *model.config.grid, model.config.patch_size).mean(dim=0)


def likeness(model: ViT) -> Scores:
    """Mean cosine of the position embeddings of two patches: side by side inside, farther apart, both at the border."""
    similar = position_similarity(model.position_map().detach()).flatten(2).flatten(0, 1)
    height, width = model.config.grid
    position = torch.cartesian_prod(torch.arange(height), torch.arange(width))
    apart = (position[:, None] - position[None]).abs().sum(dim=-1)
    border = ((position == 0) | (position == torch.tensor([height, width]) - 1)).any(dim=-1)
    inner, outer = (~border[:, None] & ~border[None]), border[:, None] & border[None]
    kinds = {"side by side": inner & (apart == 1), "farther apart": inner & (apart > 1), "border": outer & (apart > 0)}
    return {f"likeness, {name}": similar[where].mean().item() for name, where in kinds.items()}


def inside(model: ViT, settings: ImageSettings, split: str) -> Scores:
    """`right`, also on larger images, `likeness`, and how far the heads of each block look: nearest and farthest."""
    larger = {f"accuracy, {LARGER} pixels": right(model, replace(settings, size=LARGER), split)["accuracy"]}
    far = head_distances(model, source(settings, split)(200, 0)[0])
    looks = {
        f"block {number} looks, {name}": value.item()
        for number, block in enumerate(far, start=1)
        for name, value in (("nearest", block.min()), ("farthest", block.max()))
    }
    return right(model, settings, split) | larger | likeness(model) | looks


def mean(scores: Scores) -> float:
    """Of all scores."""
    return sum(scores.values()) / len(scores)


SCENES = {
    "ViT": ImageSettings(scenes=True, size=32, patch_size=8, steps=6000),
    "hybrid": ImageSettings(net="hybrid", scenes=True, size=32, patch_size=8, steps=1500),
}
DIGITS = {"ViT": ImageSettings(), "Mixer": ImageSettings(net="mixer")}
FINE = ImageSettings(patch_size=4, position_std=0.02, steps=3000)  # 49 patches: what is learned has room to show
HELD_OUT = f"validation {SPLIT_IMAGES['validation']:,}, test {SPLIT_IMAGES['test']:,} images"
CLEAN = f"clean digits of 28 x 28 pixels by course_lib.data.digits; {HELD_OUT} of digits of their own"
SHARED = {
    "lesson": "11",
    "train": train,
    "scores": each(lambda one, split: right(one.model, one.settings, split)),
    "mode": "max",
}

RECIPES = {
    "vit": Recipe(
        title="ViT of digits on textures",
        data=(
            "one handwritten digit on a texture of any clutter from plain to full, 32 x 32 grey pixels, drawn afresh "
            f"in each step by course_lib.data.scenes; {HELD_OUT} of each clutter, with digits and textures of their own"
        ),
        minutes=4,
        variants=SCENES,
        ships="ViT",
        chosen_by="accuracy, weak, ViT",
        timed=tuple(SCENES),
        **SHARED,
    ),
    "vit_digits": Recipe(
        title="ViT of clean digits, beside a Mixer",
        data=f"new images in each step: {CLEAN}",
        minutes=2,
        variants=DIGITS,
        ships="ViT",
        chosen_by="accuracy, ViT",
        timed=tuple(DIGITS),
        **SHARED,
    ),
    "vit_fine": Recipe(
        title="ViT of clean digits with 49 patches",
        data=f"new images in each step: {CLEAN}",
        minutes=5,
        variants={"": FINE},
        scores=each(lambda one, split: inside(one.model, one.settings, split)),
        chosen_by="accuracy",
        **{name: value for name, value in SHARED.items() if name != "scores"},
    ),
} | icon_recipes.RECIPES
