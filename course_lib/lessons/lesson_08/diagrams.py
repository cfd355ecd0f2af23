"""Lesson 08: the architecture of GPT-2, drawn part by part, the labels of its loss, and its cache."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Add, Box, Mask, Repeat, Residual, architecture
from course_lib.viz.marks import HERO, OTHER, arrow, bare, box
from course_lib.viz.style import GREY, PALETTE, figure

EACH, PER_HEAD = "(B, T, D)", "(B, H, T, T)"


def gpt() -> tuple[Figure, str]:
    """The whole model, one block of it, and the attention in a block."""
    model = [
        Box("tokens", "input", shape="(B, T)"),
        Box("token embedding", "embedding", shape=EACH),
        Add("positions", shape=EACH),
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
        Box("3 projections: q, k, v", shape="(B, H, T, d)"),
        Box("scores  q kᵀ / √d", "attention", PER_HEAD),
        Mask("−∞ if key > query", ("#...", "##..", "###.", "####"), shape=PER_HEAD),
        Box("softmax over keys", "attention", PER_HEAD),
        Box("weights · v", "attention", "(B, H, T, d)"),
        Box("join heads, o projection", shape=EACH),
        Box("", "input"),
    ]
    return architecture({"GPT": model, "block": block, "causal self-attention": attention})


def llama() -> tuple[Figure, str]:
    """A block of Llama 3, its attention with fewer heads for keys and values, and its MLP."""
    block = [
        Box("x", "input"),
        Residual([Box("RMSNorm", "norm", EACH), Box("grouped-query\nattention", "attention")], shape=EACH),
        Residual([Box("RMSNorm", "norm", EACH), Box("SwiGLU", "mlp")], shape=EACH),
        Box("", "input"),
    ]
    attention = [
        Box("x", "input", shape=EACH),
        Box("q, k, v projections", shape="q: H heads; k, v: G"),
        Box("rotate q, k by position", "embedding"),
        Box("repeat k, v  H/G times", shape="3 × (B, H, T, d)"),
        Box("causal attention", "attention", "(B, H, T, d)"),
        Box("join heads, o projection", shape=EACH),
        Box("", "input"),
    ]
    swiglu = [
        Box("x", "input", shape=EACH),
        Box("gate, up:  D → F", "mlp", "2 × (B, T, F)"),
        Box("SiLU(gate) · up", "mlp", "(B, T, F)"),
        Box("down:  F → D", "mlp", EACH),
        Box("", "input"),
    ]
    return architecture({"block": block, "grouped-query attention": attention, "SwiGLU": swiglu})


ENTRY = ("line feed", "dog", "(noun):", "an", "animal")


def shift() -> tuple[Figure, str]:
    """Each prediction, the token with which the loss compares it, and the two ends that are left over."""
    fig, axes = figure(11, 4.2)
    bare(axes, (-1.9, len(ENTRY) - 0.4), (-0.4, 3.4))
    for row, name in enumerate(("tokens", "logits of the\nnext token", "labels")):
        axes.text(-1.8, 1.5 * row, name, va="center", color=GREY)
    for position, token in enumerate(ENTRY):
        last = position == len(ENTRY) - 1
        box(axes, position, 0, token, PALETTE["sky"], width=0.84, ink="black")
        box(
            axes,
            position,
            1.5,
            f"after {position + 1}",
            "none" if last else HERO,
            width=0.84,
            edge=GREY,
            ink="black" if last else "white",
        )
        arrow(axes, (position, 0.27), (position, 1.23))
        if last:
            axes.text(position, 2.1, "no label", ha="center", color=GREY)
            continue
        arrow(axes, (position + 0.12, 1.77), (position + 0.88, 2.73), OTHER)
        box(axes, position + 1, 3, ENTRY[position + 1], PALETTE["green"], width=0.84)
    axes.text(0, 3, "no prediction", ha="center", va="center", color=GREY)
    pairs = ", ".join(f"{token} after {position}" for position, token in enumerate(ENTRY[1:], 1))
    return fig, (
        f"Three rows. At the bottom five tokens: {', '.join(ENTRY)}. Above each token the logits of the next one. "
        f"At the top the labels with which the loss compares them: {pairs} tokens. The first token is no label, and "
        "the last logits have none."
    )


def cache() -> tuple[Figure, str]:
    """What is computed for the fifth token, with and without a cache."""
    fig, panels = figure(12, 4.2, columns=2)
    count = 5
    for axes, cached in zip(panels, (False, True), strict=True):
        bare(axes, (-1.8, count - 0.4), (-1.2, 2.7))
        axes.set_title("with a cache" if cached else "without a cache", loc="center")
        for row, name in enumerate(("values", "keys", "queries")):
            axes.text(-1.7, row, name, va="center", color=GREY)
            for position in range(count):
                new = position == count - 1
                if name == "queries" and cached and not new:
                    continue
                kept = cached and not new
                text = f"{name[0]}{position + 1}"
                box(
                    axes,
                    position,
                    row,
                    text,
                    "none" if kept else HERO,
                    width=0.7,
                    edge=GREY,
                    ink="black" if kept else "white",
                )
        axes.text(-1.7, -0.6, "token", va="center", color=GREY)
        for position in range(count):
            axes.text(position, -0.6, f"{position + 1}", ha="center", va="center", color=GREY)
            if cached:
                arrow(axes, (count - 1 - 0.1, 1.73), (position + 0.1, 1.27), OTHER, width=1.2)
        note = "kept: outlined; computed: filled" if cached else "everything is computed again"
        axes.text((count - 1) / 2, -1.1, note, ha="center", va="center")
    return fig, (
        "Two panels for the step that processes token 5. Without a cache the queries, keys and values of all five "
        "tokens are computed. With a cache the keys and values of tokens 1 to 4 are kept; only the query, key and "
        "value of token 5 are computed, and the query is compared with all five keys."
    )


DIAGRAMS = {"gpt": gpt, "llama": llama, "shift": shift, "cache": cache}
