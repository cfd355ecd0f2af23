"""Lesson 13: the architecture of a masked autoencoder."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Link, architecture


def mae() -> tuple[Figure, str]:
    """The network of icons: what its encoder reads, what its decoder adds, and which patches the loss counts."""
    encoder = [
        Box("images", "input", shape="(B, 3, 32, 32)"),
        Box("patches times E", "embedding", shape="(B, 64, 64)"),
        Box("add positions p", "embedding", shape="(B, 64, 64)"),
        Box("keep visible patches", name="keep", shape="(B, 16, 64)"),
        Box("4 blocks, width 64", "attention", shape="(B, 16, 64)"),
        Box("LayerNorm", "norm", shape="(B, 16, 64)"),
        Box("features h", "input"),
    ]
    masking = [
        Box("noise", "input", shape="(B, 64)"),
        Box("sort by noise:\nthe first 16 stay", name="sort"),
    ]
    decoder = [
        Box("features h", "input", shape="(B, 16, 64)"),
        Box("linear W, append mask\ntokens m, restore order", "embedding", name="restore", shape="(B, 64, 48)"),
        Box("add positions q", "embedding", shape="(B, 64, 48)"),
        Box("2 blocks, width 48", "attention", shape="(B, 64, 48)"),
        Box("LayerNorm, linear", "head", shape="(B, 64, 48)"),
        Box("loss: predicted minus\ntrue patches in M", name="loss"),
    ]
    links = [Link("sort", name) for name in ("keep", "restore", "loss")]
    return architecture({"encoder": encoder, "masking": masking, "decoder": decoder}, links)


DIAGRAMS = {"mae": mae}
