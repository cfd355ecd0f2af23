import pytest
import torch

from course_lib.data import scenes
from course_lib.data.digits import INK, digit_shapes, handwritten_digits
from course_lib.data.photographs import PHOTOGRAPHS, photograph
from course_lib.data.scenes import ABSENT, TEXTURE_SIZE, TEXTURES, DigitScenes

CROWD = DigitScenes(split="validation", digits=(1, 3), clutter=(0.2, 1.0), size=48)


def anatomy(source, count, seed, monkeypatch):
    """The scenes, what is behind the digits, and the ink of each digit as it was drawn."""
    inks, draw = [], scenes.draw_digits

    def spy(*arguments, **settings):
        inks.append(draw(*arguments, **settings))
        return inks[-1]

    monkeypatch.setattr(scenes, "draw_digits", spy)
    batch = source.batch(count, seed)
    monkeypatch.setattr(scenes, "draw_digits", lambda *a, **s: torch.zeros_like(draw(*a, **s)))
    behind = source.batch(count, seed).pixels
    monkeypatch.setattr(scenes, "draw_digits", draw)
    most = source.digits[1]  # large batches are drawn in parts, each part digit by digit
    return batch, behind, [torch.cat(inks[digit::most]) for digit in range(most)]


def test_textures_of_the_splits_are_disjoint():
    named = [name for names in TEXTURES.values() for name in names]
    assert len(set(named)) == len(named) and set(named) <= set(PHOTOGRAPHS)


@pytest.mark.parametrize("split", TEXTURES)
def test_a_split_takes_its_own_textures_and_digits_only(split, monkeypatch):
    """With black textures of one split and white ones of the others, nothing but black is behind the digits."""

    def coded(name, **settings):
        return torch.full((1, TEXTURE_SIZE, TEXTURE_SIZE), 0.0 if name in TEXTURES[split] else 1.0)

    scenes.textures.cache_clear()
    monkeypatch.setattr(scenes, "photograph", coded)
    _, behind, _ = anatomy(DigitScenes(split=split, noise=0.0), 64, 0, monkeypatch)
    scenes.textures.cache_clear()
    assert (behind == 0).all()
    shapes, labels = digit_shapes(split, None)
    assert torch.equal(labels, handwritten_digits(split).labels)
    coarse = torch.nn.functional.avg_pool2d(shapes, 4)
    assert (coarse - handwritten_digits(split).pixels).abs().mean() < 0.05


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("contrast", [0.2, 0.35, 0.5])
def test_a_digit_contrasts_with_what_it_covers_in_every_channel(colour, contrast, monkeypatch):
    source = DigitScenes(split="test", colour=colour, contrast=contrast, noise=0.0)
    batch, behind, (ink,) = anatomy(source, 200, 1, monkeypatch)
    covered = (behind * ink).sum(dim=(2, 3)) / ink.sum(dim=(2, 3))
    shown = ((batch.pixels - behind) * ink).sum(dim=(2, 3)) / (ink**2).sum(dim=(2, 3))  # colour - behind, on average
    solid = (ink == 1).flatten(1).any(1)
    place = ink.flatten(1).argmax(dim=1)
    ink_colour = batch.pixels.flatten(2)[torch.arange(200), :, place][solid]
    assert solid.float().mean() > 0.95 and shown.abs().min() > 0.5 * contrast
    assert ((ink_colour - covered[solid]).abs() >= contrast - 1e-4).all()
    assert (ink_colour < covered[solid]).float().mean().item() == pytest.approx(0.5, abs=0.25)  # both polarities


def test_the_masks_follow_the_strokes(monkeypatch):
    batch, behind, (ink,) = anatomy(DigitScenes(split="train", noise=0.0), 100, 2, monkeypatch)
    changed = (batch.pixels - behind).abs() > 1e-4
    mask = (batch.instances == 1)[:, None]
    assert torch.equal(mask, ink >= INK)
    assert (changed | ~mask).float().mean() > 0.99  # the mask is where the digit is painted ...
    rim = torch.nn.functional.max_pool2d(mask.float(), 5, stride=1, padding=2) > 0
    assert (changed & ~rim).float().mean() < 0.002  # ... and hardly anything, faintly, elsewhere


def test_the_semantic_mask_names_the_instances():
    batch = CROWD.batch(120, 0)
    names = torch.cat([torch.zeros(120, 1, dtype=torch.long), batch.labels + 1], dim=1)
    expected = torch.stack([row[mask] for row, mask in zip(names, batch.instances, strict=True)])
    assert torch.equal(batch.semantic, expected)
    assert batch.semantic.min() == 0 and batch.semantic.max() == 10


def test_boxes_touch_what_is_to_be_seen_of_their_digit():
    batch = CROWD.batch(60, 0)
    for instances, boxes, present in zip(batch.instances, batch.boxes, batch.present, strict=True):
        for number, (box, is_there) in enumerate(zip(boxes.tolist(), present, strict=True), start=1):
            rows, columns = (instances == number).nonzero(as_tuple=True)
            if not is_there:
                assert box == [0, 0, 0, 0] and len(rows) == 0
            else:
                assert box == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_the_number_of_digits_is_drawn_from_its_range():
    batch = CROWD.batch(300, 0)
    number = batch.present.sum(dim=1)
    assert number.bincount().tolist()[1:] == pytest.approx([100] * 3, rel=0.3)
    assert torch.equal(batch.present, torch.arange(3) < number[:, None])
    assert torch.equal(batch.labels == ABSENT, ~batch.present)


@pytest.mark.parametrize(("digits", "size"), [(2, 32), (3, 48)])
def test_digits_hardly_cover_each_other(digits, size, monkeypatch):
    source = DigitScenes(split="train", digits=(digits, digits), size=size)
    batch, _, inks = anatomy(source, 110, 0, monkeypatch)
    painted = torch.stack([(ink[:, 0] >= INK).sum(dim=(1, 2)) for ink in inks], dim=1)
    seen = torch.stack([(batch.instances == n + 1).sum(dim=(1, 2)) for n in range(digits)], dim=1)
    covered = 1 - seen / painted
    assert covered.mean() < 0.02 and covered.max() < 0.4
    assert (painted > 12).all()


def test_clutter_is_the_share_of_the_texture_that_is_left(monkeypatch):
    spread = {}
    for clutter in (0.0, 0.5, 1.0):
        _, behind, _ = anatomy(DigitScenes(split="train", clutter=clutter, noise=0.0), 50, 0, monkeypatch)
        spread[clutter] = behind.std(dim=(1, 2, 3))
    assert (spread[0.0] < 1e-6).all()
    torch.testing.assert_close(spread[0.5], spread[1.0] / 2, atol=1e-5, rtol=1e-3)
    assert spread[1.0].mean() > 0.05


def test_a_range_of_clutter_gives_each_image_its_own(monkeypatch):
    _, full, _ = anatomy(DigitScenes(split="train", noise=0.0), 200, 0, monkeypatch)
    _, drawn, _ = anatomy(DigitScenes(split="train", clutter=(0.2, 0.8), noise=0.0), 200, 0, monkeypatch)
    share = (drawn.std(dim=(1, 2, 3)) / full.std(dim=(1, 2, 3)))[full.std(dim=(1, 2, 3)) > 0.01]
    assert 0.2 - 1e-3 < share.min() < 0.25 and 0.75 < share.max() < 0.8 + 1e-3


def test_the_texture_is_a_piece_of_a_photograph(monkeypatch):
    """Each background is found, pixel by pixel, in one of the split's photographs or its mirror image."""
    _, behind, _ = anatomy(DigitScenes(split="validation", noise=0.0), 8, 0, monkeypatch)
    for piece in behind[:, 0]:
        found = False
        for name in TEXTURES["validation"]:
            picture = photograph(name, grey=True, size=TEXTURE_SIZE)[0]
            for side in (picture, picture.flip(1)):
                corners = (side[: TEXTURE_SIZE - 31, : TEXTURE_SIZE - 31] - piece[0, 0]).abs() < 1e-5
                for row, column in corners.nonzero().tolist():
                    found |= torch.allclose(side[row : row + 32, column : column + 32], piece, atol=1e-5)
        assert found


def test_noise_has_its_standard_deviation(monkeypatch):
    quiet = DigitScenes(split="validation", clutter=0.0, noise=0.0).batch(100, 0).pixels
    loud = DigitScenes(split="validation", clutter=0.0, noise=0.05).batch(100, 0).pixels
    inside = (quiet > 0.1) & (quiet < 0.9)  # where nothing is cut off
    assert (loud - quiet)[inside].std().item() == pytest.approx(0.05, rel=0.02)
    assert loud.min() >= 0 and loud.max() <= 1


def test_scenes_of_some_classes_keep_the_digits_as_labels():
    batch = DigitScenes(split="train", classes=(6, 9)).batch(60, 0)
    assert set(batch.labels.flatten().tolist()) == {6, 9}
    pixels, labels = batch.classification()
    assert torch.equal(labels, batch.labels[:, 0]) and torch.equal(pixels, batch.pixels)
