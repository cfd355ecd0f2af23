"""Lesson 08: the architecture of GPT-2, drawn part by part."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Add, Box, Repeat, Residual, architecture

EACH, PER_HEAD = "(B, T, D)", "(B, H, T, T)"


def gpt() -> tuple[Figure, str]:
    """The whole model, one block of it, and the attention in a block."""
    model = [
        Box("tokens", "input", shape="(B, T)"),
        Box("token embedding", "embedding", shape=EACH),
        Add("position embedding", shape=EACH),
        Repeat("N", [Box("block")], shape=EACH),
        Box("final LayerNorm", "norm", shape=EACH),
        Box("head (tied)", "head", shape="(B, T, V)"),
        Box("logits", "input"),
    ]
    block = [
        Box("x", "input"),
        Residual([Box("LayerNorm", "norm", EACH), Box("causal self-attention", "attention")], shape=EACH),
        Residual([Box("LayerNorm", "norm", EACH), Box("MLP:  D → 4D → D", "mlp")], shape=EACH),
        Box("", "input"),
    ]
    attention = [
        Box("x", "input", shape=EACH),
        Box("q, k, v projections", shape="3 × (B, H, T, d)"),
        Box("scores  q kᵀ / √d", "attention", PER_HEAD),
        Box("−∞ where key > query", shape=PER_HEAD),
        Box("softmax over keys", "attention", PER_HEAD),
        Box("weights · v", "attention", "(B, H, T, d)"),
        Box("join heads, o projection", shape=EACH),
        Box("", "input"),
    ]
    return architecture({"GPT": model, "block": block, "causal self-attention": attention})


DIAGRAMS = {"gpt": gpt}
