"""What lesson 14 measures, on stand-ins for what is trained; and its diagrams beside the models that they draw."""

import math
import re
from pathlib import Path

import pytest
import torch

from course_lib.classroom.texts import read_results
from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icons
from course_lib.functional.images import readable_transposed_convolution, standardise
from course_lib.lessons.lesson_14 import diffusion_recipes, figures, icon_recipes, recipes, results
from course_lib.lessons.lesson_14.diagrams import DIAGRAMS
from course_lib.models.cnn import CNNConfig
from course_lib.models.fcn import FCN, FCNConfig
from course_lib.models.segnet import SegNet, SegNetConfig
from course_lib.models.unet import UNet, UNetConfig

CLASSES = len(icon_recipes.CLASSES)
TEXTS = read_results(Path(results.__file__).parent / "results.md")
WIDTHS, DEPTHS = (16, 32, 64, 128), (2, 2, 2, 2)
ENCODER = CNNConfig(in_channels=3, num_classes=None, widths=WIDTHS, depths=DEPTHS)
MODELS = {
    "fcn": lambda: FCN(FCNConfig(backbone=ENCODER, window=8, num_classes=CLASSES, num_skips=2)),
    "segnet": lambda: SegNet(SegNetConfig(num_classes=CLASSES, widths=WIDTHS, depths=DEPTHS)),
    "unet": lambda: icon_recipes.build(icon_recipes.IconSegmentation()),
}


@pytest.fixture
def model():
    torch.manual_seed(0)
    return UNet(UNetConfig(num_classes=4, widths=(4, 6, 8))).eval()


def told(name, *arguments, **options):
    """A result in its words; no slot is left."""
    result = results.RESULTS[name](*arguments, **options).told(name, TEXTS)
    assert not re.search(r"\{\w+(:[^}]*)?\}", re.sub(r"\$[^$]*\$", "", result.alt + result.outcome))
    return result


def test_every_result_has_its_words_and_there_are_ten_claims_at_most():
    assert TEXTS.keys() == results.RESULTS.keys()
    assert sum(len(text.claims) for text in TEXTS.values()) <= 10


def test_the_opening_gives_the_means_over_the_seeds():
    names = {f"{name}{split}" for name in ("mean IoU", "mean IoU, icon or background") for split in ("", ", new names")}
    card = {"seeds": [{"test": dict.fromkeys(names, value)} for value in (0.6, 0.8)]}
    untrained = UNet(UNetConfig(in_channels=3, num_classes=CLASSES, widths=(4, 6)))
    assert told("opening", untrained, card, predicted=50).came == pytest.approx(70)


def test_a_denoiser_is_compared_with_the_blur_that_is_best_for_this_noise():
    images = diffusion_recipes.scaled(icons("test").take(torch.arange(12)))
    noisy = images + 0.3 * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))

    class Perfect(torch.nn.Module):
        def forward(self, x):
            return images[: len(x)]

    perfect, idle = told("denoised", Perfect(), images, noisy), told("denoised", torch.nn.Identity(), images, noisy)
    assert all(all(held) for _, held in perfect.conditions()) and perfect.came == 0
    assert not all(all(held) for _, held in idle.conditions()) and idle.came > 100
    blurs = [results.best_blur(level) for level in (0.05, 0.3, 1.0)]
    assert blurs == sorted(set(blurs)) and set(blurs) <= set(results.BLURS)


def test_signal_and_noise_are_equal_where_half_of_the_variance_is_left():
    drawing = diffusion_recipes.scaled(icons("test").take(torch.tensor([3])))[0]
    equal = told("noising", diffusion_recipes.SCHEDULE, drawing, predicted=60).came
    before, after = diffusion_recipes.SCHEDULE.alpha_bars[equal - 1 : equal + 1]
    assert before >= 0.5 > after


def test_a_mirrored_copy_has_distance_zero_and_copies_fail_the_claim():
    drawings = diffusion_recipes.scaled(icons("train").take(torch.arange(0, 600, 10)))
    copies = drawings.flip(3)
    distances, nearest = results.nearest_of(copies, drawings)
    assert distances.max() < 1e-5 and torch.equal(nearest, copies)
    assert not all(all(held) for _, held in told("samples", copies, drawings).conditions())
    noise = torch.randn(copies.shape, generator=torch.Generator().manual_seed(0))
    assert all(all(held) for _, held in told("samples", noise, drawings).conditions())


def test_the_results_of_the_digits_hold_for_the_shipped_networks():
    unet, scene = load_trained("unet"), recipes.scenes("test").batch(1, seed=0)
    for result in (told("skips", scene, {"U-Net": unet.model}, unet.card, predicted=80), told("few", unet.card)):
        assert all(all(held) for _, held in result.conditions())


def test_an_image_that_grows_has_three_panels_a_row():
    batch = icon_recipes.drawn(icon_recipes.scenes("validation"), 2, 1)
    fig = figures.growing(batch.pixels, torch.rand(2, 64, 64), batch.semantic > 0)
    assert [axes.get_title() for axes in fig.axes] == ["image", "p(icon)", "ground truth", "", "", ""]


def test_copies_of_a_3_x_3_kernel_overlap_once_twice_or_four_times():
    counts = readable_transposed_convolution(torch.ones(1, 1, 6, 6), torch.ones(1, 1, 3, 3), stride=2)
    assert counts[0, 0, 1:-1, 1:-1].unique().tolist() == [1, 2, 4]


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_shows_the_shapes_that_its_network_makes(name):
    fig, alt = DIAGRAMS[name]()
    texts = [text for text in fig.axes[0].texts if text.get_text()]  # an arrow has none
    shown = {shape for text in texts for shape in re.findall(r"\(B, \d+, \d+, \d+\)", text.get_text())}
    made, network = {"(B, 3, 64, 64)"}, MODELS[name]().eval()

    def note(_, inputs, output):
        if isinstance(output, torch.Tensor) and output.ndim == 4:
            made.update(f"(B, {', '.join(map(str, x.shape[1:]))})" for x in (inputs[0], output))

    for module in network.modules():
        module.register_forward_hook(note)
    with torch.no_grad():
        network(torch.randn(1, 3, 64, 64))
    assert shown <= made | ({"(B, 128, 4, 4)"} if name == "segnet" else set())  # pooling is a function there
    assert f"(B, {CLASSES}, 64, 64)" in shown and min(text.get_fontsize() for text in texts) >= 12
    assert max(len(sentence.split()) for sentence in re.split(r"(?<=[.:;])\s", alt)) <= 32


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_lies_inside_its_sheet(name):
    fig, _ = DIAGRAMS[name]()
    width, height = fig.get_size_inches()
    assert width <= 8.2 and height <= 4.05
    fig.draw_without_rendering()
    for inner in (part.get_window_extent() for part in (*fig.axes[0].texts, *fig.axes[0].patches)):
        assert fig.bbox.x0 <= inner.x0 and inner.x1 <= fig.bbox.x1
        assert fig.bbox.y0 <= inner.y0 and inner.y1 <= fig.bbox.y1


def test_a_feature_map_of_the_same_image_changes_nothing_and_another_does(model):
    same = recipes.scenes("test").batch(1, seed=0).pixels.expand(3, -1, -1, -1)
    other = recipes.scenes("test").batch(3, seed=0).pixels
    for level in range(3):
        alone = model(standardise(same)).argmax(dim=1)
        assert torch.equal(results.swapped(model, same, level), alone)
        assert not torch.equal(results.swapped(model, other, level), model(standardise(other)).argmax(dim=1))


def test_entropy_is_that_of_every_pixel():
    logits = torch.zeros(1, 8, 1, 2)
    logits[0, 3, 0, 1] = 1000.0
    torch.testing.assert_close(results.entropy(logits), torch.tensor([[[math.log(8), 0.0]]]))


def test_the_area_is_the_fraction_of_pairs_in_the_right_order():
    generator = torch.Generator().manual_seed(0)
    scores, positive = torch.rand(4, 30, generator=generator), torch.rand(4, 30, generator=generator) < 0.3
    pairs = scores[positive][:, None] > scores[~positive]
    assert results.area(scores, positive) == pytest.approx(pairs.double().mean().item())
    assert results.area(positive.double(), positive) == 1


def test_digits_in_crowded_images_have_one_size_however_many_there_are():
    for crowd in results.CROWDS:
        boxes = results.crowded(crowd, count=20).boxes
        sides = (boxes[..., 2:] - boxes[..., :2]).amax(dim=2).double()
        assert boxes.shape[1] == crowd and 14 < sides.mean() < 22
