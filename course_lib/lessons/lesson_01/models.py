"""Lesson 01: the trained network of icons that the learner's own ResNet opens, and a released ResNet-18."""

import torch
from torch import Tensor, nn

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icons
from course_lib.functional.images import standardise
from course_lib.models.resnet import ResNet

BLOCK = {  # the learner's names of a block's parts -> the library's
    "conv1": "convs.0.conv",
    "norm1": "convs.0.norm",
    "conv2": "convs.1.conv",
    "norm2": "convs.1.norm",
    "shortcut.0": "shortcut.conv",
    "shortcut.1": "shortcut.norm",
}
MOST_STAGES, MOST_BLOCKS = 4, 6  # of ResNet-34, the largest of basic blocks
NAMES = {"stem.0": "stem.conv", "stem.1": "stem.norm"} | {
    f"stages.{stage}.{block}.{hers}": f"stages.{stage}.{block}.{ours}"
    for stage in range(MOST_STAGES)
    for block in range(MOST_BLOCKS)
    for hers, ours in BLOCK.items()
}


def sizes(model: ResNet) -> dict[str, object]:
    """The arguments of the learner's class."""
    config = model.config
    return {
        "num_classes": config.num_classes,
        "widths": config.widths,
        "depths": config.depths,
        "first_stride": 2 if config.stride_in_first_stage else 1,
    }


def some_icons() -> tuple[Tensor]:
    """Test drawings on white."""
    return (standardise(icons("test").take(torch.arange(32)).on(1.0)),)


def trained() -> nn.Module:
    """The shipped network of icon names."""
    return load_trained("icon_names").model


MODELS = {"resnet": Shipped(model=trained, sizes=sizes, inputs=some_icons, names=NAMES)}
