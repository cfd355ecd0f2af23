from dataclasses import fields, replace
from functools import partial

import pytest
import torch
from scipy.ndimage import gaussian_filter

from course_lib.data import augmentations as a
from course_lib.data.photographs import photograph

CHANGES = {
    "crop": a.random_crop,
    "flip": a.random_flip,
    "rotation": a.random_rotation,
    "brightness": a.random_brightness,
    "contrast": a.random_contrast,
    "colour": a.random_colour,
    "blur": a.random_blur,
    "cutout": a.cutout,
    "noise": a.random_noise,
}
OFF = a.Augmentation(**{field.name: 0.0 for field in fields(a.Augmentation)})
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def cats():
    return photograph("chelsea")[:, :40, 200:248].expand(64, -1, -1, -1).clone()  # (64, 3, 40, 48)


def ramp(count, height=32, width=32):
    """Brighter by 1/width per pixel to the right."""
    return ((torch.arange(width) + 0.5) / width).expand(count, 1, height, width).contiguous()


@each_change
def test_images_are_changed_each_in_its_own_way_and_stay_images(change, cats):
    before = cats.clone()
    after = change(cats, seeded())
    assert torch.equal(cats, before)
    assert after.shape == cats.shape and after.min() >= 0 and after.max() <= 1
    assert change(cats[:, :1], seeded()).shape == (64, 1, 40, 48)  # grey images, too
    different = (after != cats).flatten(1).any(1)
    assert different.float().mean() > 0.3
    assert len(torch.unique(after, dim=0)) > (1 if change is a.random_flip else 20)


@each_change
def test_a_generator_in_the_same_state_makes_the_same_changes(change, cats):
    assert torch.equal(change(cats, seeded(3)), change(cats, seeded(3)))
    assert not torch.equal(change(cats, seeded(3)), change(cats, seeded(4)))


def test_a_crop_of_everything_is_the_image(cats):
    same = a.random_crop(cats, seeded(), area=(1.0, 1.0), aspect=(1.0, 1.0))
    torch.testing.assert_close(same, cats, atol=1e-4, rtol=0)


def test_a_crop_has_a_share_of_the_area_and_lies_inside():
    across, down = ramp(500), ramp(500).transpose(2, 3)
    views = [a.random_crop(image, seeded(1), area=(0.25, 0.5)) for image in (across, down)]
    width, height = ((view.amax(dim=(1, 2, 3)) - view.amin(dim=(1, 2, 3))) * 32 / 31 for view in views)
    area, aspect = width * height, width / height
    assert 0.22 < area.min() < 0.28 and 0.47 < area.max() < 0.53
    assert 0.7 < aspect.min() < 0.8 and 1.25 < aspect.max() < 1.42
    assert views[0].min() < 0.05 and views[0].max() > 0.95  # anywhere, up to the border


def test_a_flip_mirrors_the_share_of_the_images_that_it_should(cats):
    after = a.random_flip(cats, seeded(), chance=0.25)
    mirrored = (after == cats.flip(3)).flatten(1).all(1)
    assert ((after == cats).flatten(1).all(1) ^ mirrored).all()
    assert mirrored.float().mean().item() == pytest.approx(0.25, abs=0.12)


def test_a_rotation_turns_by_at_most_its_angle():
    after = a.random_rotation(ramp(300), seeded(), degrees=20.0)[:, 0, 8:24, 8:24]
    slope_x, slope_y = after.diff(dim=2).mean(dim=(1, 2)), after.diff(dim=1).mean(dim=(1, 2))
    angle = torch.atan2(slope_y, slope_x).rad2deg()
    assert -20.1 < angle.min() < -19 and 19 < angle.max() < 20.1
    torch.testing.assert_close(slope_x**2 + slope_y**2, torch.full((300,), 1 / 32**2), atol=1e-5, rtol=1e-3)


def test_a_rotation_keeps_shapes_in_an_image_that_is_no_square():
    after = a.random_rotation(ramp(50, height=20, width=40), seeded(), degrees=30.0)[:, 0, 8:12, 16:24]
    slope = after.diff(dim=2).mean(dim=(1, 2)) ** 2 + after.diff(dim=1).mean(dim=(1, 2)) ** 2
    torch.testing.assert_close(slope, torch.full((50,), 1 / 40**2), atol=1e-5, rtol=1e-3)


def test_brightness_multiplies_an_image_by_one_number(cats):
    factor = a.random_brightness(cats / 2, seeded(), strength=0.3) / (cats / 2)
    per_image = factor.flatten(1)
    torch.testing.assert_close(per_image, per_image[:, :1].expand_as(per_image), atol=1e-3, rtol=0)
    assert 0.7 <= per_image.min() < 0.75 and 1.25 < per_image.max() <= 1.301


def test_contrast_keeps_the_mean_and_scales_the_rest(cats):
    soft = cats / 4 + torch.linspace(0.3, 0.5, len(cats))[:, None, None, None]
    after = a.random_contrast(soft, seeded(), strength=0.3)
    torch.testing.assert_close(after.mean(dim=(1, 2, 3)), soft.mean(dim=(1, 2, 3)))
    factor = after.std(dim=(1, 2, 3)) / soft.std(dim=(1, 2, 3))
    assert 0.7 <= factor.min() < 0.75 and 1.25 < factor.max() <= 1.301


def test_colour_tints_the_channels_and_makes_colours_stronger_or_weaker(cats):
    grey = torch.full((200, 3, 2, 2), 0.5)
    tinted = a.random_colour(grey, seeded(), strength=0.2)
    assert (tinted.std(dim=1) > 1e-3).float().mean() > 0.9  # grey gets a colour
    assert tinted.min() >= 0.5 * (0.8 - 0.2 * 0.4) and tinted.max() <= 0.5 * (1.2 + 0.2 * 0.4)
    brightness = a.random_colour(grey[:, :1], seeded(), strength=0.2) / 0.5
    assert 0.8 <= brightness.min() < 0.83 and 1.17 < brightness.max() <= 1.2001


def test_blur_is_a_gaussian(cats):
    after = a.random_blur(cats[:3], seeded(), chance=1.0, sigma=(1.2, 1.2))
    expected = gaussian_filter(cats[0].numpy(), sigma=(0, 1.2, 1.2), truncate=6)
    torch.testing.assert_close(after[1][:, 6:-6, 6:-6], torch.from_numpy(expected)[:, 6:-6, 6:-6], atol=2e-5, rtol=0)
    flat = torch.full((4, 1, 16, 16), 0.3)
    torch.testing.assert_close(a.random_blur(flat, seeded(), chance=1.0), flat)  # at the border, too


def test_images_that_are_not_blurred_stay_as_they_are(cats):
    after = a.random_blur(cats, seeded(), chance=0.25, sigma=(1.0, 1.0))
    changed = ((after - cats).abs() > 1e-6).flatten(1).any(1)
    assert changed.float().mean().item() == pytest.approx(0.25, abs=0.12)


def test_cutout_makes_one_square_grey_and_leaves_the_rest():
    white = torch.ones(400, 2, 30, 30)
    after = a.cutout(white, seeded(), chance=0.5, side=0.4)
    assert ((after == 1) | (after == a.GREY)).all() and torch.equal(after[:, 0], after[:, 1])
    cut = after[:, 0] == a.GREY
    assert cut.flatten(1).any(1).float().mean().item() == pytest.approx(0.5, abs=0.1)
    rows, columns = cut.any(2).sum(1), cut.any(1).sum(1)
    assert torch.equal(cut.sum(dim=(1, 2)), rows * columns) and rows.max() == columns.max() == 12


def test_noise_has_its_standard_deviation():
    after = a.random_noise(torch.full((20, 1, 32, 32), 0.5), seeded(), deviation=0.1)
    assert (after - 0.5).std().item() == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("name", CHANGES)
def test_each_part_can_be_switched_on_alone(name, cats):
    alone = {
        "crop": partial(a.random_crop, area=(0.5, 1.0)),
        "flip": partial(a.random_flip, chance=0.5),
        "rotation": partial(a.random_rotation, degrees=0.5),
        "blur": partial(a.random_blur, chance=0.5),
        "cutout": partial(a.cutout, chance=0.5),
        "noise": partial(a.random_noise, deviation=0.5),
    }.get(name, partial(CHANGES[name], strength=0.5))
    assert torch.equal(replace(OFF, **{name: 0.5})(cats, seeded()), alone(cats, seeded()))


def test_two_views_are_two_independent_changes_of_the_same_images(cats):
    first, second = a.two_views(cats, seeded(), a.Augmentation(blur=0.0))
    generator = seeded()
    change = a.Augmentation(blur=0.0)
    assert torch.equal(first, change(cats, generator)) and torch.equal(second, change(cats, generator))
    assert ((first - second).abs().mean(dim=(1, 2, 3)) > 0.01).float().mean() > 0.9
    assert torch.equal(a.two_views(cats, seeded())[1], a.two_views(cats, seeded(), a.Augmentation())[1])
