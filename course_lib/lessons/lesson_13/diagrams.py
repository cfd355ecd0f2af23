"""Lesson 13: the architecture of a masked autoencoder."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Add, Box, Repeat, architecture


def mae() -> tuple[Figure, str]:
    """The network of icons: which tokens its encoder reads, and what its decoder adds."""
    tokens = [
        Box("images", "input", shape="(B, 3, 32, 32)"),
        Box("patches times E", "embedding", shape="(B, 64, 64)"),
        Box("add positions", "embedding", shape="(B, 64, 64)"),
        Box("drop what is hidden", shape="(B, 16, 64)"),
        Box("visible tokens", "input"),
    ]
    encoder = [
        Box("visible tokens", "input", shape="(B, 16, 64)"),
        Repeat("4", [Box("block, width 64", "attention", shape="(B, 16, 64)")]),
        Box("LayerNorm", "norm", shape="(B, 16, 64)"),
        Box("linear: 64 → 48", "embedding", shape="(B, 16, 48)"),
        Box("features", "input"),
    ]
    decoder = [
        Box("features", "input", shape="(B, 16, 48)"),
        Box("append mask tokens,\nrestore the order", "embedding", shape="(B, 64, 48)"),
        Add("positions", shape="(B, 64, 48)"),
        Repeat("2", [Box("block, width 48", "attention", shape="(B, 64, 48)")]),
        Box("LayerNorm, linear", "head", shape="(B, 64, 48)"),
        Box("predicted patches", "input"),
    ]
    return architecture({"tokens": tokens, "encoder, linear layer": encoder, "decoder": decoder})


DIAGRAMS = {"mae": mae}
