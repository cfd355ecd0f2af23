"""What lesson 14 measures, on stand-ins for what is trained."""

import math

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icons
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_14 import diffusion_recipes, figures, icon_recipes, recipes, results
from course_lib.models.unet import UNet, UNetConfig
from tests.lessons.modern import holds, in_words


def test_the_opening_gives_the_means_over_the_seeds():
    names = {f"{name}{split}" for name in ("mean IoU", "mean IoU, icon or background") for split in ("", ", new names")}
    card = {"seeds": [{"test": dict.fromkeys(names, value)} for value in (0.6, 0.8)]}
    untrained = UNet(UNetConfig(in_channels=3, num_classes=len(icon_recipes.CLASSES), widths=(4, 6)))
    assert in_words("14", "opening", untrained, card, predicted=50).came == pytest.approx(70)


def test_a_denoiser_is_compared_with_the_blur_that_is_best_for_this_noise():
    images = diffusion_recipes.scaled(icons("test").take(torch.arange(12)))
    noisy = images + 0.3 * torch.randn(images.shape, generator=torch.Generator().manual_seed(0))

    class Perfect(torch.nn.Module):
        def forward(self, x):
            return images[: len(x)]

    perfect = in_words("14", "denoised", Perfect(), images, noisy)
    idle = in_words("14", "denoised", torch.nn.Identity(), images, noisy)
    assert holds(perfect) and perfect.came == 0
    assert not holds(idle) and idle.came > 100
    blurs = [results.best_blur(level) for level in (0.05, 0.3, 1.0)]
    assert blurs == sorted(set(blurs)) and set(blurs) <= set(results.BLURS)


def test_signal_and_noise_are_equal_where_half_of_the_variance_is_left():
    drawing = diffusion_recipes.scaled(icons("test").take(torch.tensor([3])))[0]
    equal = in_words("14", "noising", diffusion_recipes.SCHEDULE, drawing, predicted=60).came
    before, after = diffusion_recipes.SCHEDULE.alpha_bars[equal - 1 : equal + 1]
    assert before >= 0.5 > after


def test_a_mirrored_copy_has_distance_zero_and_copies_fail_the_claim():
    drawings = diffusion_recipes.scaled(icons("train").take(torch.arange(0, 600, 10)))
    copies = drawings.flip(3)
    distances, nearest = results.nearest_of(copies, drawings)
    assert distances.max() < 1e-5 and torch.equal(nearest, copies)
    assert not holds(in_words("14", "samples", copies, drawings))
    noise = torch.randn(copies.shape, generator=torch.Generator().manual_seed(0))
    assert holds(in_words("14", "samples", noise, drawings))


def test_the_results_of_the_digits_hold_for_the_shipped_networks():
    unet, scene = load_trained("unet"), recipes.scenes("test").batch(1, seed=0)
    assert holds(in_words("14", "skips", scene, {"U-Net": unet.model}, unet.card, predicted=80))
    assert holds(in_words("14", "few", unet.card))


def test_an_image_that_grows_has_three_panels_a_row():
    batch = icon_recipes.drawn(icon_recipes.scenes("validation"), 2, 1)
    fig = figures.growing(batch.pixels, torch.rand(2, 64, 64), batch.semantic > 0)
    assert [axes.get_title() for axes in fig.axes] == ["image", "p(icon)", "ground truth", "", "", ""]


def test_a_feature_map_of_the_same_image_changes_nothing_and_another_does():
    torch.manual_seed(0)
    model = UNet(UNetConfig(num_classes=4, widths=(4, 6, 8))).eval()
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
