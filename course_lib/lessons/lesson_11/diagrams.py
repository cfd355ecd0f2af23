"""Lesson 11: the architectures of a Vision Transformer, of its block, of a hybrid and of an MLP-Mixer."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Repeat, Residual, architecture


def vit() -> tuple[Figure, str]:
    """The network of icons: its tokens, encoder and head; and its block."""
    tokens = [
        Box("images", "input", shape="(B, 3, 32, 32)"),
        Box("cut into 4 x 4 patches", shape="(B, 64, 48)"),
        Box("times E", "embedding", shape="(B, 64, D)"),
        Box("class token in front", "embedding", shape="(B, 65, D)"),
        Box("plus positions", "embedding", shape="(B, 65, D)"),
        Box("z₀", "input"),
    ]
    encoder = [
        Box("z₀", "input", shape="(B, 65, D)"),
        Repeat("L", [Box("block", "attention", shape="(B, 65, D)")]),
        Box("LayerNorm", "norm", shape="(B, 65, D)"),
        Box("class token alone", shape="(B, D)"),
        Box("head: linear", "head", shape="(B, 6)"),
        Box("logits", "input"),
    ]
    block = [
        Box("x", "input", shape="(B, T, D)"),
        Residual([Box("LayerNorm", "norm"), Box("self-attention", "attention")], shape="(B, T, D)"),
        Residual([Box("LayerNorm", "norm"), Box("MLP:  D → 4D → D", "mlp")], shape="(B, T, D)"),
        Box("", "input"),
    ]
    return architecture({"tokens": tokens, "encoder and head": encoder, "block": block})


def relatives() -> tuple[Figure, str]:
    """What a hybrid and an MLP-Mixer have in place of E and of attention."""
    hybrid = [
        Box("images", "input", shape="(B, 3, 32, 32)"),
        Box("3 x 3, stride 2, twice", "convolution", shape="(B, D, 8, 8)"),
        Box("1 x 1, one token a pixel", "embedding", shape="(B, 64, D)"),
        Box("class token, positions", "embedding", shape="(B, 65, D)"),
        Box("ViT from here on", "attention", shape="(B, 65, D)"),
        Box("", "input"),
    ]
    mixer = [
        Box("x", "input", shape="(B, N, D)"),
        Residual([Box("LayerNorm", "norm"), Box("MLP across patches", "mlp")], shape="(B, N, D)"),
        Residual([Box("LayerNorm", "norm"), Box("MLP across channels", "mlp")], shape="(B, N, D)"),
        Box("", "input"),
    ]
    return architecture({"hybrid": hybrid, "block of an MLP-Mixer": mixer})


DIAGRAMS = {"vit": vit, "relatives": relatives}
