import pytest
import torch

from course_lib.data import crops
from course_lib.data.crops import BLANK, CLASSES, GAP, TILE, PhotoCrops, tile_corners, tiles
from course_lib.data.photographs import photograph

SPLITS = ("train", "validation", "test")


@pytest.fixture
def made_of(monkeypatch):
    """Sets the tiles of both kinds: `number` of them for each class, made by `tile(index)`."""

    def use(tile, number=2):
        cut = torch.stack([tile(index) for index in range(number * len(CLASSES))])
        counts = torch.full((len(CLASSES),), number)
        monkeypatch.setattr(crops, "tiles", lambda split, colour: (cut, counts.cumsum(0) - number, counts))

    return use


@pytest.mark.parametrize(("height", "width"), [(512, 512), (172, 448), (303, 384), (60, 60)])
def test_tiles_of_different_splits_do_not_touch(height, width):
    corners = {split: tile_corners(height, width, split) for split in SPLITS}
    every = [corner for split in SPLITS for corner in corners[split]]
    assert all(0 <= top <= height - TILE and 0 <= left <= width - TILE for top, left in every)
    assert len(every) == (height + GAP) // (TILE + GAP) * ((width + GAP) // (TILE + GAP))
    for index, (top, left) in enumerate(every):
        for other_top, other_left in every[:index]:
            assert max(abs(top - other_top), abs(left - other_left)) >= TILE + GAP


def test_each_split_has_tiles_of_each_photograph():
    totals = {}
    for split in SPLITS:
        cut, first, number = tiles(split, False)
        assert len(number) == len(CLASSES) >= 16 and number.min() >= 1
        assert torch.equal(first[1:], first[:-1] + number[:-1]) and len(cut) == first[-1] + number[-1]
        totals[split] = len(cut)
    assert totals["train"] > 2 * max(totals["validation"], totals["test"])


@pytest.mark.parametrize("split", SPLITS)
def test_a_tile_is_a_piece_of_its_photograph_that_shows_something(split):
    cut, first, number = tiles(split, True)
    for label in (0, 3, 15):
        picture = photograph(CLASSES[label])
        pieces = {
            picture[:, top : top + TILE, left : left + TILE].numpy().tobytes()
            for top, left in tile_corners(*picture.shape[1:], split)
        }
        for tile in cut[first[label] : first[label] + number[label]]:
            assert tile.numpy().tobytes() in pieces
    assert cut.flatten(1).std(dim=1).min() > BLANK


def test_a_crop_never_leaves_a_tile_of_its_label(made_of):
    made_of(lambda index: torch.full((1, TILE, TILE), (index + 1) / 64))
    batch = PhotoCrops(split="train", brightness=0.0, contrast=0.0).batch(400, 0)
    code = (batch.pixels * 64).round()
    torch.testing.assert_close(batch.pixels * 64, code, atol=1e-3, rtol=0)
    assert torch.equal(code.amin(dim=(1, 2, 3)), code.amax(dim=(1, 2, 3)))
    index = code[:, 0, 0, 0].long() - 1
    assert torch.equal(index // 2, batch.labels)
    assert index.unique().tolist() == list(range(2 * len(CLASSES)))  # every tile is used


def test_every_photograph_is_as_likely_as_any_other():
    count = PhotoCrops(split="test").batch(3200, 0).labels.bincount()
    assert count.tolist() == pytest.approx([200] * 16, rel=0.25)


def test_crops_are_mirrored_and_scaled_within_the_zoom(made_of):
    made_of(lambda index: torch.linspace(0, 1, TILE).expand(1, TILE, TILE))
    batch = PhotoCrops(split="train", zoom=(0.9, 1.5), brightness=0.0, contrast=0.0).batch(400, 0)
    slope = (batch.pixels[:, 0, 16, 24] - batch.pixels[:, 0, 16, 8]) / 16 * (TILE - 1)  # pixels of the photograph
    zoom, mirrored = slope.abs(), slope < 0
    assert zoom.min() >= 0.9 - 1e-3 and zoom.max() <= 1.5 + 1e-3
    assert zoom.min() < 0.93 and zoom.max() > 1.45
    assert mirrored.float().mean().item() == pytest.approx(0.5, abs=0.1)
    assert batch.pixels.min() < 0.05 and batch.pixels.max() > 0.95  # from one end of the tile to the other


def test_a_large_crop_is_zoomed_no_further_than_its_tile_reaches(made_of):
    made_of(lambda index: torch.linspace(0, 1, TILE).expand(1, TILE, TILE))
    batch = PhotoCrops(split="train", size=48, zoom=(1.0, 5.0), brightness=0.0, contrast=0.0).batch(200, 0)
    steps = batch.pixels[:, 0, 0, 1:-1].diff(dim=1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), atol=1e-4, rtol=0)  # the rim is not repeated
    zoom = steps[:, 0].abs() * (TILE - 1)
    assert zoom.min() >= 1.0 - 1e-3 and 1.22 < zoom.max() <= TILE / 48 + 1e-3


def test_brightness_and_contrast_change_within_their_range(made_of):
    made_of(lambda index: torch.linspace(0.35, 0.65, TILE).expand(1, TILE, TILE))
    settings = {"split": "train", "size": 32, "zoom": (1.0, 1.0)}
    plain = PhotoCrops(**settings, brightness=0.0, contrast=0.0).batch(300, 0).pixels
    changed = PhotoCrops(**settings, brightness=0.1, contrast=0.2).batch(300, 0).pixels
    shift = changed.mean(dim=(1, 2, 3)) - plain.mean(dim=(1, 2, 3))
    factor = changed.std(dim=(1, 2, 3)) / plain.std(dim=(1, 2, 3))
    assert -0.1 - 1e-4 < shift.min() < -0.09 and 0.09 < shift.max() < 0.1 + 1e-4
    assert 0.8 - 1e-3 < factor.min() < 0.82 and 1.18 < factor.max() < 1.2 + 1e-3
