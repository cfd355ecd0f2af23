"""Lesson 11: the trained ViT of icons that the learner's own class opens, or a released one."""

import torch
from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icons
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_11 import official
from course_lib.models.vit import ViT

MOST_BLOCKS = 32  # of ViT-H/14, the largest of the paper
NAMES = {"patch_embed": "patch_embed.proj"} | {
    f"blocks.{block}.{part}": f"blocks.{block}.ffn.{part}"
    for block in range(MOST_BLOCKS)
    for part in ("up_proj", "down_proj")
}


def sizes(model: ViT) -> dict[str, int]:
    """The arguments of the learner's class."""
    names = ("image_size", "patch_size", "in_channels", "num_classes", "dim", "depth", "num_heads", "mlp_dim")
    return {name: getattr(model.config, name) for name in names}


def some_images() -> tuple[Tensor]:
    """Unseen drawings on white, standardised."""
    return (standardise(icons("test").take(torch.arange(16)).on(1.0)),)


def large_images() -> tuple[Tensor]:
    """Of the size of the released models, 224 pixels a side."""
    return (torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0)),)


MODELS = {
    "vit": Shipped(model=lambda: load_trained("vit_icons").model, sizes=sizes, inputs=some_images, names=NAMES),
    "released": Shipped(model=official.in_its_layout, sizes=sizes, inputs=large_images, names=NAMES),
}
