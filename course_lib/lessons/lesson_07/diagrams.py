"""Lesson 07: the architecture of BERT, drawn part by part, with the heads of its tasks."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Add, Box, Repeat, Residual, architecture

EACH = "(B, T, D)"


def bert() -> tuple[Figure, str]:
    """The masked language model, one of its blocks, and the three heads of fine-tuning."""
    model = [
        Box("tokens", "input", shape="(B, T)"),
        Box("token embedding", "embedding", shape=EACH),
        Add("segment vector", shape=EACH),
        Add("position vector", shape=EACH),
        Box("LayerNorm", "norm", shape=EACH),
        Repeat("N", [Box("block")], shape=EACH),
        Box("linear, GELU, norm", "head", shape=EACH),
        Box("tied matrix + bias", "head", shape="(B, T, V)"),
        Box("logits", "input"),
    ]
    block = [
        Box("x", "input"),
        Residual([Box("self-attention", "attention")], shape=EACH),
        Box("LayerNorm", "norm", shape=EACH),
        Residual([Box("MLP:  D → 4D → D", "mlp")], shape=EACH),
        Box("LayerNorm", "norm", shape=EACH),
        Box("", "input"),
    ]
    sentence = [
        Box("features", "input", shape=EACH),
        Box("first token", shape="(B, D)"),
        Box("pooler, tanh", "head", shape="(B, D)"),
        Box("classifier", "head", shape="(B, C)"),
        Box("logits", "input"),
    ]
    return architecture({"masked language model": model, "block": block, "sentence head": sentence})


DIAGRAMS = {"bert": bert}
