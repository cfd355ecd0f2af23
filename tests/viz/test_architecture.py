"""The architecture diagram holds every part, in its order, inside its frame, and tells it in words."""

import pytest
from matplotlib.patches import Rectangle

from course_lib.viz.architecture import Add, Box, Link, Mask, Repeat, Residual, architecture, describe

BLOCK = [
    Residual([Box("LayerNorm", "norm"), Box("self-attention", "attention")], shape="(B, T, D)"),
    Residual([Box("LayerNorm", "norm"), Box("MLP", "mlp")]),
]
MODEL = {
    "model": [
        Box("tokens", "input", shape="(B, T)"),
        Box("token embedding", "embedding", shape="(B, T, D)"),
        Add("positions", shape="(B, T, D)"),
        Repeat("L", BLOCK, "block", shape="(B, T, D)"),
        Box("head", "head", shape="(B, T, V)", name="head"),
        Box("", "input"),
    ],
    "other": [Box("x", "input", name="x"), Box("two\nlines")],
}


def drawn():
    fig, alt = architecture(MODEL, [Link("head", "x", "the logits")])
    return fig, alt, {text.get_text(): text for text in fig.axes[0].texts if text.get_text()}


def test_every_part_and_every_shape_is_drawn_upwards():
    _, _, texts = drawn()
    order = ["tokens", "token embedding", "positions", "self-attention", "MLP", "head"]
    heights = [texts[name].get_position()[1] for name in order]
    assert heights == sorted(heights)
    assert {"(B, T)", "(B, T, D)", "(B, T, V)", "block\n× L", "+", "the logits", "model", "other"} <= texts.keys()


def test_everything_lies_inside_the_figure_and_no_text_is_wider_than_its_box():
    fig, _, texts = drawn()
    fig.draw_without_rendering()
    patches = [patch.get_window_extent() for patch in fig.axes[0].patches]
    boxes = [extent for patch, extent in zip(fig.axes[0].patches, patches, strict=True) if patch.get_linestyle() == "-"]
    extents = [text.get_window_extent() for text in texts.values()]
    for inner in patches + extents:
        assert (
            fig.bbox.x0 <= inner.x0 and inner.x1 <= fig.bbox.x1 and fig.bbox.y0 <= inner.y0 <= inner.y1 <= fig.bbox.y1
        )
        middle = (inner.x0 + inner.x1) / 2, (inner.y0 + inner.y1) / 2
        assert all(box.x0 <= inner.x0 and inner.x1 <= box.x1 for box in boxes if box.contains(*middle))


def test_two_skip_connections_are_two_lines_and_two_sums():
    fig, _, _ = drawn()
    axes = fig.axes[0]
    assert sum(len(line.get_xdata()) == 3 for line in axes.lines) == 2
    assert sum(text.get_text() == "+" for text in axes.texts) == 3


def test_the_words_tell_what_the_picture_shows():
    assert describe(MODEL, [Link("head", "x", "the logits")]) == (
        "model, from bottom to top: tokens (B, T); token embedding (B, T, D); plus positions (B, T, D); "
        "L times [a skip connection around [LayerNorm, self-attention] (B, T, D), a skip connection around "
        "[LayerNorm, MLP]] (B, T, D); head (B, T, V). other, from bottom to top: x; two lines. "
        "the logits leads from head to x."
    )


@pytest.mark.parametrize(
    ("links", "columns", "problem"),
    [
        ([Link("head", "nowhere")], MODEL, "finds no 'nowhere'; the names are head, x"),
        ([], {"model": [Box("x", "strange")]}, "the kind of a box must be one of"),
    ],
)
def test_a_slip_of_the_author_is_told(links, columns, problem):
    with pytest.raises(ValueError, match=problem):
        architecture(columns, links)


def test_a_mask_is_a_grid_whose_cells_are_told():
    mask = Mask("later keys\nare hidden", ("#..", "##.", "###"))
    fig, alt = architecture({"attention": [Box("scores"), mask]})
    cells = [patch for patch in fig.axes[0].patches if isinstance(patch, Rectangle)]
    dark = [cell.get_xy() for cell in cells if cell.get_facecolor()[:3] != (1, 1, 1)]
    assert len(cells) == 9 and len(dark) == 6
    columns = [sum(x == column for x, _ in dark) for column in sorted({x for x, _ in dark})]
    assert columns == [3, 2, 1]
    assert "later keys are hidden, a grid of queries and keys (query 1 to 1, 2 to 2, 3 to 3 keys)" in alt
