"""Lesson 06: the Transformer, encoder beside decoder, and the two places of the norm."""

from matplotlib.figure import Figure

from course_lib.lessons.lesson_06 import figures
from course_lib.viz.architecture import Add, Box, Link, Mask, Repeat, Residual, architecture


def transformer() -> tuple[Figure, str]:
    """Encoder and decoder, pre-norm."""
    mlp = [Box("LayerNorm", "norm"), Box("MLP  D → 4D → D", "mlp")]
    encoder = [
        Box("source words", "input", shape="(B, Tₖ)"),
        Box("embedding · √D", "embedding", shape="(B, Tₖ, D)"),
        Add("PE(pos)", shape="(B, Tₖ, D)", name="source positions"),
        Repeat(
            "N",
            [
                Residual([Box("LayerNorm", "norm", "Q, K, V"), Box("self-attention", "attention")]),
                Residual(mlp),
            ],
        ),
        Box("LayerNorm", "norm", shape="(B, Tₖ, D)"),
        Box("encoder output", name="context"),
    ]
    decoder = [
        Box("previous target words", "input", shape="(B, T)"),
        Box("embedding · √D", "embedding", shape="(B, T, D)"),
        Add("PE(pos)", shape="(B, T, D)", name="target positions"),
        Repeat(
            "N",
            [
                Residual(
                    [
                        Box("LayerNorm", "norm"),
                        Mask("causal", ("#...", "##..", "###.", "####"), "Q, K, V"),
                        Box("self-attention", "attention"),
                    ]
                ),
                Residual([Box("LayerNorm", "norm", "Q"), Box("cross-attention", "attention", name="cross")]),
                Residual(mlp),
            ],
        ),
        Box("LayerNorm", "norm", shape="(B, T, D)"),
        Box("linear, tied weights", "head", shape="(B, T, V)"),
        Box("logits of the next words", "input"),
    ]
    return architecture({"encoder": encoder, "decoder": decoder}, [Link("context", "cross", "K, V")])


def norms() -> tuple[Figure, str]:
    """One sublayer, post-norm and pre-norm."""
    return figures.two_norms()


DIAGRAMS = {"transformer": transformer, "norms": norms}
