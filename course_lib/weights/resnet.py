"""The layout of ResNet's official checkpoints at Hugging Face."""

from typing import Any

from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.weights.layout import (
    ACTIVATIONS,
    OFFICIAL_ACTIVATIONS,
    Layout,
    Settings,
    label_names,
    num_labels,
)

BARE, HEADED = "ResNetModel", "ResNetForImageClassification"


def build(settings: Settings, architecture: str) -> ResNet:
    """The model that a config.json describes."""
    return ResNet(
        ResNetConfig(
            in_channels=settings.integer("num_channels", 3),
            num_classes=None if architecture == BARE else num_labels(settings),
            stem_channels=settings.integer("embedding_size", 64),
            widths=settings.integers("hidden_sizes", (256, 512, 1024, 2048)),
            depths=settings.integers("depths", (3, 4, 6, 3)),
            block=settings.choice("layer_type", {"bottleneck": "bottleneck", "basic": "basic"}, "bottleneck"),
            activation=settings.choice("hidden_act", ACTIVATIONS, "relu"),
            stride_in_first_stage=settings.flag("downsample_in_first_stage", False),
            stride_first=settings.flag("downsample_in_bottleneck", False),
        )
    )


def describe(model: ResNet) -> dict[str, Any]:
    """The config.json of a model. Raises ValueError for one that is no official ResNet."""
    config = model.config
    require_official(config)
    labels = {} if config.num_classes is None else label_names(config.num_classes)
    return labels | {
        "architectures": [BARE if config.num_classes is None else HEADED],
        "num_channels": config.in_channels,
        "embedding_size": config.stem_channels,
        "hidden_sizes": list(config.widths),
        "depths": list(config.depths),
        "layer_type": config.block,
        "hidden_act": OFFICIAL_ACTIVATIONS[config.activation],
        "downsample_in_first_stage": config.stride_in_first_stage,
        "downsample_in_bottleneck": config.stride_first,
    }


def require_official(config: ResNetConfig) -> None:
    """Raises ValueError for what no official layout has: a stem for small images, a plain net, padded shortcuts."""
    if config.stem != "imagenet" or config.shortcut != "projection" or not config.residual:
        raise ValueError(
            f"the official layouts have no place for stem={config.stem!r}, shortcut={config.shortcut!r} and "
            f"residual={config.residual}: only for stem='imagenet', shortcut='projection' and residual=True. Save the "
            "model with course_lib.weights.own."
        )


LAYOUT = Layout(
    model_type="resnet",
    architectures=(BARE, HEADED),
    prefix="resnet.",
    trunk=[
        ("embedder.embedder.convolution", "stem.conv"),
        ("embedder.embedder.normalization", "stem.norm"),
        ("encoder.stages.#.layers.#.layer.#.convolution", "stages.#.#.convs.#.conv"),
        ("encoder.stages.#.layers.#.layer.#.normalization", "stages.#.#.convs.#.norm"),
        ("encoder.stages.#.layers.#.shortcut.convolution", "stages.#.#.shortcut.conv"),
        ("encoder.stages.#.layers.#.shortcut.normalization", "stages.#.#.shortcut.norm"),
    ],
    heads=[("classifier.1", "head")],
    absent=[(r"\.num_batches_tracked$", 0)],
    build=build,
    describe=describe,
)
