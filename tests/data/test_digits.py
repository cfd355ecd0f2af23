import numpy as np
import pytest
import torch

from course_lib.data.digits import INK, SPLITS, CleanDigits, draw_digits, handwritten_digits
from course_lib.data.files import data_path


def test_every_real_digit_is_in_one_split():
    splits = [handwritten_digits(split) for split in SPLITS]
    assert [len(split.labels) for split in splits] == [1100, 300, 397]
    levels = torch.cat([split.pixels for split in splits])[:, 0] * 16
    labels = torch.cat([split.labels for split in splits])
    with np.load(data_path("images", "digits.npz")) as frozen:
        images, answers = frozen["images"], frozen["labels"]
    found = {
        (row.tobytes(), label) for row, label in zip(levels.numpy().astype(np.uint8), labels.tolist(), strict=True)
    }
    # no digit occurs twice in the set, so equal sets say that the splits are disjoint
    assert found == {(row.tobytes(), label) for row, label in zip(images, answers.tolist(), strict=True)}
    assert len(found) == len(labels) == 1797


def test_every_split_has_every_digit_about_equally_often():
    for split in SPLITS:
        share = handwritten_digits(split).labels.bincount() / len(handwritten_digits(split).labels)
        assert len(share) == 10 and share.min() > 0.07 and share.max() < 0.13


def test_classes_keeps_only_some_digits():
    everything, some = handwritten_digits("test"), handwritten_digits("test", classes=(3, 8))
    kept = (everything.labels == 3) | (everything.labels == 8)
    assert torch.equal(some.pixels, everything.pixels[kept]) and torch.equal(some.labels, everything.labels[kept])


@pytest.mark.parametrize("size", [28, 32])
def test_clean_digits_are_white_on_black_and_in_the_middle(size):
    pixels = CleanDigits(split="validation", size=size).batch(200, 0).pixels
    assert pixels.shape == (200, 1, size, size) and pixels.min() == 0 and pixels.max() == 1
    rim = torch.cat([pixels[:, 0, [0, -1]].flatten(1), pixels[:, 0, :, [0, -1]].flatten(1)], dim=1)
    assert rim.mean() < 0.01
    place = torch.arange(size) + 0.5
    weight = pixels.sum(dim=(1, 2, 3))
    middle_x = (pixels * place).sum(dim=(1, 2, 3)) / weight
    middle_y = (pixels * place[:, None]).sum(dim=(1, 2, 3)) / weight
    assert ((middle_x - size / 2).abs() < size / 6).all() and ((middle_y - size / 2).abs() < size / 6).all()
    assert (pixels >= INK).float().mean(dim=(1, 2, 3)).min() > 0.05


def test_a_clean_digit_looks_like_the_real_one_of_its_label():
    """A test image's nearest training image shows the same digit: the labels are right, and the task is easy."""
    train, test = CleanDigits(split="train").batch(2000, 0), CleanDigits(split="test").batch(400, 0)
    nearest = torch.cdist(test.pixels.flatten(1), train.pixels.flatten(1)).argmin(dim=1)
    assert (train.labels[nearest] == test.labels).float().mean() > 0.92


def test_clean_digits_of_some_classes():
    labels = CleanDigits(split="train", classes=(2, 7)).batch(60, 0).labels
    assert set(labels.tolist()) == {2, 7}


def ramp():
    """A shape whose upper left is full of ink, its lower right a little."""
    shape = torch.zeros(1, 1, 32, 32)
    shape[..., :16, :16] = 1
    shape[..., 16:, 16:] = 0.45
    return shape


def drawn(shape, *, centre=(16.0, 16.0), side=32.0, degrees=0.0, slant=0.0):
    as_batch = [torch.tensor([value]) for value in (side, degrees, slant)]
    return draw_digits(
        shape, 32, centre=torch.tensor([centre]), side=as_batch[0], degrees=as_batch[1], slant=as_batch[2]
    )


def test_drawn_as_large_as_it_is_a_shape_is_itself():
    torch.testing.assert_close(drawn(ramp()), ((ramp() - INK) * 2 + INK).clamp(0, 1))


def test_a_shape_is_turned_clockwise():
    torch.testing.assert_close(drawn(ramp(), degrees=90.0), drawn(ramp()).rot90(-1, (2, 3)), atol=1e-4, rtol=0)


def test_a_shape_fills_the_square_that_it_is_given():
    ink = drawn(torch.ones(1, 1, 32, 32), centre=(12.0, 20.0), side=10.0) >= INK
    rows, columns = ink[0, 0].any(1).nonzero().flatten(), ink[0, 0].any(0).nonzero().flatten()
    assert (columns[0], columns[-1] + 1, rows[0], rows[-1] + 1) == (7, 17, 15, 25)


def test_slant_moves_the_top_to_the_right():
    bar = torch.zeros(1, 1, 32, 32)
    bar[..., 14:18] = 1
    ink = drawn(bar, slant=0.3)[0, 0]
    middles = (ink * torch.arange(32)).sum(1) / ink.sum(1)
    assert middles[2] - middles[29] == pytest.approx(0.3 * 27, abs=0.5)
    turned = drawn(bar, slant=0.3, degrees=90.0)  # first slanted, then turned
    torch.testing.assert_close(turned[0, 0], ink.rot90(-1), atol=1e-4, rtol=0)
