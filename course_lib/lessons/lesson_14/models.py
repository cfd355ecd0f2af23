"""Lesson 14: the trained U-Nets that the learner's own class opens, for segmentation and for diffusion."""

import torch
from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icons
from course_lib.functional.diffusion import add_noise
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_14 import diffusion_recipes, icon_recipes
from course_lib.models.unet import UNet

MOST_LEVELS = 5  # of the paper's U-Net
FEW = 8  # images


def names(first: str, second: str) -> dict[str, str]:
    """The learner's names of parts -> the library's, whose blocks have their two convolutions under these names."""
    blocks = {f"down.{level}": f"encoder.{level}" for level in range(MOST_LEVELS)}
    blocks |= {f"merge.{level}": f"decoder.{level}.convs" for level in range(MOST_LEVELS - 1)}
    inside = {"conv1": f"{first}.conv", "norm1": f"{first}.norm", "conv2": f"{second}.conv", "norm2": f"{second}.norm"}
    parts = {f"{hers}.{part}": f"{ours}.{name}" for hers, ours in blocks.items() for part, name in inside.items()}
    return blocks | parts | {f"up.{level}": f"decoder.{level}.up" for level in range(MOST_LEVELS - 1)}


def sizes(model: UNet) -> dict[str, int | list[int]]:
    """The arguments of the learner's class."""
    config = model.config
    return {
        "in_channels": config.in_channels,
        "out_channels": config.num_classes,
        "widths": list(config.widths),
        "condition_dim": config.condition_dim,
    }


def in_order(images: Tensor) -> Tensor:
    """The images in the memory order of the library's blocks.

    In the other order PyTorch's group normalisation rounds differently, by up to 1e-4 of its largest number.
    """
    return images.contiguous(memory_format=torch.channels_last)


def unseen_scenes() -> tuple[Tensor]:
    """Unseen scenes, standardised."""
    return (in_order(standardise(icon_recipes.scenes("test").batch(FEW, seed=0).pixels)),)


def noisy_drawings() -> tuple[Tensor, Tensor]:
    """Unseen drawings with noise of several steps, and the condition of each: its step and its category."""
    generator = torch.Generator().manual_seed(0)
    batch = diffusion_recipes.batch_of(icons("test").take(torch.arange(FEW)), generator, mirrored=False)
    noisy = add_noise(batch.images, batch.noise, batch.t, diffusion_recipes.SCHEDULE)
    return in_order(noisy), diffusion_recipes.condition(batch.t, batch.categories)


MODELS = {
    "unet": Shipped(
        model=lambda: load_trained("unet_icons").model, sizes=sizes, inputs=unseen_scenes, names=names("0", "1")
    ),
    "diffusion": Shipped(
        model=lambda: load_trained("diffusion_icons").model,
        sizes=sizes,
        inputs=noisy_drawings,
        names=names("first", "second"),
    ),
}
