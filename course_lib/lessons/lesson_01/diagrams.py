"""Lesson 01: the architecture of a small ResNet and of its block, drawn part by part."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Residual, architecture


def resnet() -> tuple[Figure, str]:
    """The network of three stages, one of its blocks, and the block's skip connection."""
    whole = [
        Box("images", "input", shape="(B, 3, 32, 32)"),
        Box("stem: 3 x 3, norm, ReLU", "convolution", shape="(B, 32, 32, 32)"),
        Box("stage 1", "convolution", shape="(B, 32, 16, 16)"),
        Box("stage 2", "convolution", shape="(B, 64, 8, 8)"),
        Box("stage 3", "convolution", shape="(B, 128, 4, 4)"),
        Box("mean, then head: linear", "head", shape="(B, 647)"),
        Box("logits", "input"),
    ]
    block = [
        Box("x", "input", shape="(B, C, H, W)"),
        Residual(
            [
                Box("3 x 3, stride s,\nnorm, ReLU", "convolution", shape="(B, C′, H/s, W/s)"),
                Box("3 x 3, norm", "convolution", shape="(B, C′, H/s, W/s)"),
            ]
        ),
        Box("ReLU", shape="(B, C′, H/s, W/s)"),
        Box("", "input"),
    ]
    bottleneck = [
        Box("x", "input", shape="(B, 4C, H, W)"),
        Residual(
            [
                Box("1 x 1, norm, ReLU", "convolution", shape="(B, C, H, W)"),
                Box("3 x 3, norm, ReLU", "convolution", shape="(B, C, H, W)"),
                Box("1 x 1, norm", "convolution", shape="(B, 4C, H, W)"),
            ]
        ),
        Box("ReLU", shape="(B, 4C, H, W)"),
        Box("", "input"),
    ]
    return architecture({"a small ResNet": whole, "basic block": block, "bottleneck": bottleneck})


def transfer() -> tuple[Figure, str]:
    """Three ways to use a trained network for another task."""

    def column(backbone: str) -> list:
        return [
            Box("images of the new task", "input", shape="(B, 3, 32, 32)"),
            Box(backbone, "convolution", shape="(B, 128)"),
            Box("new head", "head", shape="(B, 50)"),
            Box("logits", "input"),
        ]

    return architecture(
        {
            "scratch": column("random, trained"),
            "feature extraction": column("pre-trained, frozen"),
            "fine-tuning": column("pre-trained, trained"),
        }
    )


DIAGRAMS = {"resnet": resnet, "transfer": transfer}
