"""Lesson 12: a small Swin Transformer that reads digits, the same without shifts, and one that sorts icons.

Liu et al., "Swin Transformer: hierarchical vision Transformer using shifted windows", ICCV 2021, arXiv 2103.14030,
table 4: shifted windows against unshifted ones.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from course_lib.data.digits import CleanDigits
from course_lib.lessons.lesson_11 import icon_recipes
from course_lib.models.swin import Swin, SwinConfig
from course_lib.training.recipe import Recipe, Trained, common, each, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

SPLIT_IMAGES = {"validation": 2000, "test": 4000}  # by which a model is scored


@dataclass(frozen=True, kw_only=True)
class SwinSettings:
    """A small Swin, and how it learns clean digits."""

    size: int = 32  # pixels
    patch_size: int = 4  # pixels
    window_size: int = 4  # patches
    dim: int = 32
    depths: tuple[int, ...] = (2, 2)
    num_heads: tuple[int, ...] = (2, 4)
    positions: bool = True  # learned absolute ones, beside the relative ones inside a window
    shifted: bool = True
    drop_path: float = 0.1
    steps: int = 3000
    batch_size: int = 32
    learning_rate: float = 2e-3
    weight_decay: float = 0.05
    ema: float = 0.995
    seed: int = 0


def build(settings: SwinSettings) -> Swin:
    """A fresh model; its first weights depend on the seed alone, with and without shifts."""
    image_size = settings.size if settings.positions else None
    config = SwinConfig(image_size=image_size, in_channels=1, num_classes=10, **common(settings, SwinConfig))
    with seeded(settings.seed):
        return Swin(config)


def train(settings: SwinSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains on digits that are drawn afresh in each step."""
    source = CleanDigits(split="train", size=settings.size)
    return fit_classifier(
        settings,
        build(settings),
        lambda step: source.batch(settings.batch_size, seed_of_step(settings.seed, step)),
        parts=6,
        warmup=min(100, settings.steps // 10),
        validate=lambda model: right(model, settings, "validation"),
        checkpoint=checkpoint,
    )


def right(model: nn.Module, settings: SwinSettings, split: str) -> float:
    """The accuracy on a split's digits, from 0 to 1."""
    return accuracy(model, *CleanDigits(split=split, size=settings.size).batch(SPLIT_IMAGES[split], seed=0))


SETTINGS = SwinSettings()

# Windows of 8 x 8 pixels, smaller than a digit, and nothing but the shifts leads from one to the next before the head:
# no merging. Learning rates were chosen for each of the two, see the card's notes.
COMPARED = SwinSettings(
    window_size=2,
    dim=48,
    depths=(4,),
    num_heads=(3,),
    positions=False,
    drop_path=0.0,
    weight_decay=0.01,
    steps=2500,
)
VARIANTS = {"shifted": COMPARED, "unshifted": replace(COMPARED, shifted=False)}

SHARED = {
    "lesson": "12",
    "data": (
        f"clean digits, {SETTINGS.size} x {SETTINGS.size} grey pixels, drawn afresh in each step by "
        f"course_lib.data.digits; validation {SPLIT_IMAGES['validation']:,}, test {SPLIT_IMAGES['test']:,} images, of "
        "handwritten digits of their own"
    ),
    "train": train,
    "scores": each(lambda one, split: {"accuracy": right(one.model, one.settings, split)}),
    "mode": "max",
}

RECIPES = {
    "swin": Recipe(
        title="A small Swin Transformer reads digits",
        minutes=1,
        variants={"": SETTINGS},
        chosen_by="accuracy",
        settings=plain(SETTINGS, "shifted"),
        **SHARED,
    ),
    "shifted_windows": Recipe(
        title="Shifted windows against unshifted ones",
        minutes=3,
        variants=VARIANTS,
        ships="shifted",
        chosen_by="accuracy, shifted",
        timed=tuple(VARIANTS),
        settings=plain(COMPARED, "shifted", "learning_rate")
        | {"learning_rates": {name: settings.learning_rate for name, settings in VARIANTS.items()}},
        **SHARED,
        weights=False,
    ),
    "swin_icons": Recipe(
        title="Swin of icons, to stand beside the ViT and the ResNet of lesson 11",
        lesson="12",
        minutes=5,
        variants={"Swin": icon_recipes.NETWORKS["Swin"]},
        ships="Swin",
        scores=each(icon_recipes.score),
        chosen_by="accuracy, Swin",
        weights=False,
        **icon_recipes.SHARED,
    ),
}
