"""Lesson 02: the trained SimCLR that the learner's own class opens."""

from torch import Tensor

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_02 import recipes
from course_lib.models.simclr import SimCLR

INSIDE = {
    "conv1": "convs.0.conv",
    "norm1": "convs.0.norm",
    "conv2": "convs.1.conv",
    "norm2": "convs.1.norm",
    "skip": "shortcut.conv",
    "skip_norm": "shortcut.norm",
}
NAMES = {
    "encoder.stem": "encoder.stem.conv",
    "encoder.norm": "encoder.stem.norm",
    "hidden": "projection.hidden_proj",
    "norm": "projection.norm",
    "out": "projection.out_proj",
}
NAMES |= {
    f"encoder.blocks.{stage}.{hers}": f"encoder.stages.{stage}.0.{ours}"
    for stage in range(4)
    for hers, ours in INSIDE.items()
}


def sizes(model: SimCLR) -> dict[str, int | tuple[int, ...]]:
    """The arguments of the learner's class."""
    encoder = model.config.encoder
    return {
        "in_channels": encoder.in_channels,
        "widths": encoder.widths,
        "projection_dim": model.config.projection_dim,
    }


def some_digits() -> tuple[Tensor]:
    """Eight digits as the network expects them."""
    return (standardise(recipes.images("test").pixels[:8]),)


MODELS = {"simclr": Shipped(model=lambda: load_trained("simclr").model, sizes=sizes, inputs=some_digits, names=NAMES)}
