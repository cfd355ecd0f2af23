"""A ResNet that finds a digit on any texture, and a plain convolutional network beside it.

He et al., "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385, section 4.2.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from course_lib.data.scenes import DigitScenes
from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.resnet import small_resnet
from course_lib.training.recipe import Recipe, Trained, each, plain
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy, fit_classifier, seed_of_step

NETS = ("resnet", "cnn")
SPLIT_SCENES = {"validation": 2000, "test": 4000}  # by which a net is scored


@dataclass(frozen=True, kw_only=True)
class SceneSettings:
    """A classifier of digit scenes, and how it is trained."""

    net: str = "resnet"  # of `NETS`
    num_layers: int = 8  # 6n + 2; of the plain CNN, too, 6n are 3 x 3 convolutions, after a first one in the ResNet
    width: int = 16  # channels of the first of three stages; each has twice as many as the one before
    size: int = 32  # pixels
    clutter: float = 1.0  # of `DigitScenes`: textures as they are
    steps: int = 2400
    batch_size: int = 64
    learning_rate: float = 8e-3  # chosen on the validation split for both nets, among this one and 3e-3
    weight_decay: float = 0.01
    ema: float = 0.99
    seed: int = 0


def build(settings: SceneSettings) -> nn.Module:
    """A fresh network; its first weights depend on the seed alone. Raises ValueError for an unknown `net`."""
    if settings.net not in NETS:
        raise ValueError(f"net must be one of {', '.join(NETS)}, got {settings.net!r}")
    widths = tuple(settings.width * 2**stage for stage in range(3))
    with seeded(settings.seed):
        if settings.net == "resnet":
            return small_resnet(settings.num_layers, in_channels=1, stem_channels=settings.width, widths=widths)
        return CNN(CNNConfig(image_size=settings.size, widths=widths, depths=3 * ((settings.num_layers - 2) // 3,)))


def scenes(settings: SceneSettings, split: str) -> DigitScenes:
    """One digit on a texture; those of each split are its own."""
    return DigitScenes(split=split, size=settings.size, clutter=settings.clutter)


def train(settings: SceneSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains on scenes that are drawn afresh in each step."""
    source = scenes(settings, "train")
    return fit_classifier(
        settings,
        build(settings),
        lambda step: source.batch(settings.batch_size, seed_of_step(settings.seed, step)).classification(),
        parts=6,
        warmup=min(50, settings.steps // 10),
        validate=lambda model: right(model, settings, "validation"),
        checkpoint=checkpoint,
    )


def right(model: nn.Module, settings: SceneSettings, split: str) -> float:
    """Share of a split's scenes whose digit the model names right, from 0 to 1."""
    return accuracy(model, *scenes(settings, split).batch(SPLIT_SCENES[split], seed=0).classification())


SETTINGS = SceneSettings()

RECIPE = Recipe(
    title="ResNet-8 of digits on textures",
    lesson="01",
    data=(
        f"one handwritten digit on a photograph's texture, {SETTINGS.size} x {SETTINGS.size} grey pixels, drawn afresh "
        f"in each step by course_lib.data.scenes; validation {SPLIT_SCENES['validation']:,}, test "
        f"{SPLIT_SCENES['test']:,} scenes, with digits and textures of their own"
    ),
    minutes=3,
    variants={"": SETTINGS, "plain CNN": replace(SETTINGS, net="cnn")},
    train=train,
    scores=each(lambda one, split: {"accuracy": right(one.model, one.settings, split)}),
    chosen_by="accuracy",
    mode="max",
    timed=("plain CNN",),
    settings=plain(SETTINGS, "net"),
)
