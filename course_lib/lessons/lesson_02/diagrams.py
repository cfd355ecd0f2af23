"""Lesson 02: the architecture of SimCLR, drawn part by part, with shapes on its arrows."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Repeat, architecture


def simclr() -> tuple[Figure, str]:
    """SimCLR, its encoder with one residual block, and what a probe keeps of it."""
    whole = [
        Box("2B views", "input", shape="(2B, C, S, S)"),
        Box("encoder f", "convolution", shape="h: (2B, D)"),
        Box("linear, BatchNorm, ReLU", "head", shape="(2B, D)"),
        Box("linear", "head", shape="z: (2B, P)"),
        Box("NT-Xent", "input"),
    ]
    encoder = [
        Box("x", "input", shape="(2B, C, S, S)"),
        Box("3 x 3 convolution", "convolution", shape="(2B, w, S, S)"),
        Box("BatchNorm, ReLU", "norm", shape="(2B, w, S, S)"),
        Repeat("4", [Box("residual block, stride 2", "convolution")], shape="(2B, D, S/16, S/16)"),
        Box("mean over\nheight and width", shape="(2B, D)"),
        Box("h", "input"),
    ]
    probe = [
        Box("images with labels", "input", shape="(N, C, S, S)"),
        Box("encoder f, frozen", "convolution", shape="h: (N, D)"),
        Box("linear classifier", "head", shape="(N, classes)"),
        Box("cross-entropy", "input"),
    ]
    return architecture({"SimCLR": whole, "encoder f": encoder, "linear probe": probe})


def without_negatives() -> tuple[Figure, str]:
    """BYOL: one branch is trained, the other one follows as a moving average and gets no gradient."""
    online = [
        Box("first view", "input", shape="(B, C, S, S)"),
        Box("encoder and head", "convolution", shape="z: (B, P)"),
        Box("predictor q", "mlp", shape="q(z): (B, P)"),
        Box("cosine with the other branch", "input"),
    ]
    target = [
        Box("second view", "input", shape="(B, C, S, S)"),
        Box("moving average of both", "convolution", shape="z': (B, P)"),
        Box("stop-gradient", shape="(B, P)"),
        Box("target", "input"),
    ]
    return architecture({"online branch (trained)": online, "target branch (not trained)": target})


DIAGRAMS = {"simclr": simclr, "without_negatives": without_negatives}
