"""Lessons 14 to 17: words for all results, and diagrams that fit and show the shapes of their models."""

import re

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_14 import icon_recipes
from course_lib.lessons.lesson_16.recipes import control
from course_lib.models.cnn import CNNConfig
from course_lib.models.conformer import Conformer, ConformerConfig
from course_lib.models.fcn import FCN, FCNConfig
from course_lib.models.segnet import SegNet, SegNetConfig
from course_lib.models.t5 import T5, T5Config
from tests.lessons.modern import page_of

LESSONS = ("14", "15", "16", "17")
SHEETS = {"14": (8.2, 4.05)}  # inches
CLASSES = len(icon_recipes.CLASSES)
WIDTHS, DEPTHS = (16, 32, 64, 128), (2, 2, 2, 2)
ENCODER = CNNConfig(in_channels=3, num_classes=None, widths=WIDTHS, depths=DEPTHS)
CONFORMER = ConformerConfig(frame_dim=8, num_classes=9, dim=12, depth=1, num_heads=3, mlp_dim=48, kernel_size=5)
ICONS = (torch.zeros(1, 3, 64, 64),), {"B": 1}
SHAPES = {  # of a diagram: its model, inputs and letters, shapes that only functions make, and some that it has to show
    ("14", "fcn"): (
        lambda: FCN(FCNConfig(backbone=ENCODER, window=8, num_classes=CLASSES, num_skips=2)),
        *ICONS,
        set(),
        {(1, CLASSES, 64, 64)},
    ),
    ("14", "segnet"): (
        lambda: SegNet(SegNetConfig(num_classes=CLASSES, widths=WIDTHS, depths=DEPTHS)),
        *ICONS,
        {(1, 128, 4, 4)},  # pooling is a function there
        {(1, CLASSES, 64, 64)},
    ),
    ("14", "unet"): (
        lambda: icon_recipes.build(icon_recipes.IconSegmentation()),
        *ICONS,
        set(),
        {(1, CLASSES, 64, 64)},
    ),
    ("15", "t5"): (
        lambda: T5(T5Config(vocab_size=23, dim=12, depth=1, num_heads=3, head_dim=4, mlp_dim=8)),
        (torch.ones(2, 5).long(), torch.ones(2, 7).long()),
        {"B": 2, "S": 5, "T": 7, "D": 12, "V": 23, "H": 3},
        {(1, 3, 5, 5), (1, 3, 7, 7)},  # biases are computed once for all blocks
        {(2, 5, 12), (2, 7, 23)},
    ),
    ("15", "conformer"): (
        lambda: Conformer(CONFORMER),
        (torch.randn(2, 16, 8),),
        {"B": 2, "T": 16, "F": 8, "D": 12, "V": 9},
        set(),
        {(2, 12, 8, 4), (2, 12, 4, 2), (2, 4, 24), (2, 4, 9)},
    ),
}


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_result_has_its_words_and_there_are_ten_claims_at_most(lesson):
    page = page_of(lesson)
    assert page.texts.keys() == page.results.keys()
    assert sum(len(text.claims) for text in page.texts.values()) <= 10


@pytest.mark.parametrize(
    ("lesson", "name"), [(lesson, name) for lesson in LESSONS for name in page_of(lesson).diagrams]
)
def test_a_diagram_lies_inside_its_sheet_and_is_told_in_short_sentences(lesson, name):
    fig, alt = page_of(lesson).diagrams[name]()
    assert len(alt) > 200 and max(len(sentence.split()) for sentence in re.split(r"(?<=[.:;])\s", alt)) <= 32
    (width, height), (widest, highest) = fig.get_size_inches(), SHEETS.get(lesson, (12, 5.5))
    assert width <= widest and height <= highest
    fig.draw_without_rendering()
    texts = [text for axes in fig.axes for text in axes.texts if text.get_text()]  # an arrow has none
    assert min(text.get_fontsize() for text in texts) >= 12
    for inner in (part.get_window_extent() for part in (*texts, *fig.axes[0].patches)):
        assert fig.bbox.x0 <= inner.x0 and inner.x1 <= fig.bbox.x1
        assert fig.bbox.y0 <= inner.y0 and inner.y1 <= fig.bbox.y1


def shapes_of(model, inputs):
    """The shapes of everything that goes into or comes out of a part of a model."""
    made = {tuple(x.shape) for x in inputs}

    def note(_, given, output):
        made.update(tuple(x.shape) for x in (*given, output) if isinstance(x, torch.Tensor))

    for module in model.modules():
        module.register_forward_hook(note)
    with torch.no_grad():
        model.eval()(*inputs)
    return made


def drawn_shapes(fig, sizes):
    """The shapes on a diagram as numbers, such as (B, T/4, 2D)."""
    texts = {shape for text in fig.axes[0].texts for shape in re.findall(r"\(\w+(?:, [\w/]+)+\)", text.get_text())}

    def number(factor):
        whole, _, divisor = factor.partition("/")
        times, letter = re.fullmatch(r"(\d*)([A-Z]?)", whole).groups()
        return int(times or 1) * (sizes[letter] if letter else 1) // int(divisor or 1)

    return {tuple(number(factor) for factor in text[1:-1].split(", ")) for text in texts}


@pytest.mark.parametrize(("lesson", "name"), SHAPES)
def test_a_diagram_shows_the_shapes_that_its_model_makes(lesson, name):
    build, inputs, sizes, by_functions, needed = SHAPES[lesson, name]
    shown = drawn_shapes(page_of(lesson).diagrams[name]()[0], sizes)
    assert needed <= shown <= shapes_of(build(), inputs) | by_functions


def test_the_diagrams_of_lesson_16_have_the_sizes_of_the_shipped_models():
    alts = {name: diagram()[1] for name, diagram in page_of("16").diagrams.items()}
    model = control.build(control.DECISION)
    sizes = model.state_embed.in_features, model.state_embed.out_features, model.head.out_features, len(model.blocks)
    assert sizes == (150, 64, 4, 2)
    clip, flamingo = (load_trained(name).model.config for name in ("icon_clip", "pictures_and_words"))
    for name, words in (
        ("decision_transformer", ("(B, 150)", "(B, 3K, 64)", "(B, 4)", "2 causal blocks")),
        ("clip", (f"(B, {clip.image_dim})", f"(B, {clip.joint_dim})")),
        ("flamingo", (f"(B, {flamingo.num_latents}, {flamingo.vision_dim})", f"(B, T, {flamingo.language.dim})")),
    ):
        assert all(word in alts[name] for word in words)
