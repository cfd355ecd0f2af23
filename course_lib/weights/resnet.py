"""The layout of ResNet's official checkpoints at Hugging Face."""

from typing import Any

from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.weights.layout import ACTIVATIONS, FLAG, Layout, integer, integers

BARE, HEADED = "ResNetModel", "ResNetForImageClassification"


def build(ours: dict[str, Any], architecture: str, names: frozenset[str]) -> ResNet:
    """The model, with a head or bare."""
    return ResNet(ResNetConfig(**ours | ({"num_classes": None} if architecture == BARE else {})))


def describe(model: ResNet) -> tuple[str, dict[str, Any]]:
    """Architecture and settings.

    Raises ValueError for what no official layout has: a stem for small images, a plain net, padded shortcuts.
    """
    config = model.config
    if config.stem != "imagenet" or config.shortcut != "projection" or not config.residual:
        raise ValueError(
            f"the official layouts have no place for stem={config.stem!r}, shortcut={config.shortcut!r} and "
            f"residual={config.residual}: only for stem='imagenet', shortcut='projection' and residual=True. Save the "
            "model with course_lib.weights.own."
        )
    return BARE if config.num_classes is None else HEADED, vars(config)


LAYOUT = Layout(
    model_type="resnet",
    architectures=(BARE, HEADED),
    build=build,
    describe=describe,
    settings=[
        ("num_channels", "in_channels", integer, 3),
        ("embedding_size", "stem_channels", integer, 64),
        ("hidden_sizes", "widths", integers, (256, 512, 1024, 2048)),
        ("depths", "depths", integers, (3, 4, 6, 3)),
        ("layer_type", "block", {"bottleneck": "bottleneck", "basic": "basic"}, "bottleneck"),
        ("hidden_act", "activation", ACTIVATIONS, "relu"),
        ("downsample_in_first_stage", "stride_in_first_stage", FLAG, False),
        ("downsample_in_bottleneck", "stride_first", FLAG, False),
        ("num_labels", "num_classes", integer, 2),
    ],
    prefix="resnet.",
    backbone=[
        ("embedder.embedder.{convolution,normalization}", "stem.{conv,norm}"),
        ("encoder.stages.#.layers.#.layer.#.{convolution,normalization}", "stages.#.#.convs.#.{conv,norm}"),
        ("encoder.stages.#.layers.#.shortcut.{convolution,normalization}", "stages.#.#.shortcut.{conv,norm}"),
    ],
    heads=[("classifier.1", "head")],
    absent=[(r"\.num_batches_tracked$", 0)],  # in files from before it was counted
)
