"""Lesson 12: a Swin of two stages, its block, and attention in shifted windows; then the four stages."""

from matplotlib.figure import Figure

from course_lib.viz.architecture import Box, Mask, Residual, architecture
from course_lib.viz.marks import HERO, arrow, bare, box
from course_lib.viz.style import GREY, figure

MAP = "(B, h, w, C)"


def swin() -> tuple[Figure, str]:
    """The whole model, its block, and what SW-MSA does."""
    model = [
        Box("images", "input", shape="(B, c, H, W)"),
        Box("embed patches, norm", "embedding", MAP),
        Box("stage 1: pairs of blocks", "attention", MAP),
        Box("patch merging\nto (B, h/2, w/2, 2C)"),
        Box("stage 2: pairs of blocks", "attention"),
        Box("norm, mean, head", "head", shape="(B, classes)"),
        Box("logits", "input"),
    ]
    block = [
        Box("z", "input", shape=MAP),
        Residual([Box("LayerNorm", "norm"), Box("W-MSA or SW-MSA", "attention")], shape=MAP),
        Residual([Box("LayerNorm", "norm"), Box("MLP:  C → 4C → C", "mlp")], shape=MAP),
        Box("", "input"),
    ]
    inside = [
        Box("x", "input", shape=MAP),
        Box("roll, cut windows", shape="(B nW, M², C)"),
        Box("q kᵀ / √d + offset bias", "attention", "(…, M², M²)"),
        Mask("−∞ across borders", ("##..", "##..", "..##", "..##")),
        Box("softmax, · v, projection", "attention", "(B nW, M², C)"),
        Box("put back, roll back", shape=MAP),
        Box("", "input"),
    ]
    return architecture({"Swin of two stages": model, "block": block, "SW-MSA": inside})


STAGES = ((56, 96, 2, 3), (28, 192, 2, 6), (14, 384, 6, 12), (7, 768, 2, 24))


def stages() -> tuple[Figure, str]:
    """The stages of Swin-T as feature maps of falling size."""
    fig, axes = figure(12, 3.9, layout=None)
    fig.subplots_adjust(0, 0, 1, 1)
    bare(axes, (0, 12), (-0.1, 3.8))
    box(axes, 0.85, 2.2, "image\n224 x 224\n3", "#E4E4E4", width=1.5, height=1.4, ink="black", edge=GREY)
    colours = ("#BFDDF2", "#A9DFC8", "#F6F1A7", "#F6C28B")
    for number, ((side, channels, depth, heads), colour) in enumerate(zip(STAGES, colours, strict=True), 1):
        x, height = 3.45 + 2.5 * (number - 1), (2.3, 1.75, 1.3, 0.95)[number - 1]
        box(axes, x, 2.2, f"{side} x {side}\n{channels}", colour, width=1.25, height=height, ink="black", edge=GREY)
        before = 1.6 if number == 1 else x - 2.5 + 0.63
        arrow(axes, (before, 2.2), (x - 0.65, 2.2), HERO)
        words = "4 x 4\npatches" if number == 1 else "merge\n2 x 2"
        axes.text((before + x - 0.65) / 2, 2.45, words, ha="center", va="bottom")
        axes.text(x, 0.85, f"stage {number}", ha="center", va="top", weight="bold")
        axes.text(x, 0.53, f"{depth} blocks\n{heads} heads", ha="center", va="top", color=GREY)
    told = "; ".join(
        f"stage {number}: {side} x {side} positions, {channels} channels, {depth} blocks, {heads} heads"
        for number, (side, channels, depth, heads) in enumerate(STAGES, 1)
    )
    return fig, (
        f"An image of 224 x 224 pixels becomes a feature map of 4 x 4 patches, and patch merging halves its sides and "
        f"doubles its channels between stages. {told}."
    )


DIAGRAMS = {"swin": swin, "stages": stages}
