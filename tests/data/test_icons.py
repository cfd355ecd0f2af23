from collections import Counter

import pytest
import torch

from course_lib.data.files import data_path
from course_lib.data.icons import CATEGORIES, DESIGNERS, NEW_DESIGNER, NEW_NAMES, SPLITS, icon_names, icons


@pytest.fixture(scope="module")
def splits():
    return {split: icons(split) for split in SPLITS}


def test_the_splits_have_the_promised_sizes_and_every_drawing_shows_something(splits):
    assert {split: len(each.names) for split, each in splits.items()} == {
        "train": 2951,
        "validation": 349,
        "test": 392,
        "new designer": 631,
        "new names": 571,
    }
    for each in splits.values():
        assert each.pixels.shape[1:] == (3, 32, 32) and each.alpha.shape[1:] == (1, 32, 32)
        assert 0 <= each.pixels.min() and each.pixels.max() <= 1 and each.alpha.max() == 1
        assert (each.alpha.flatten(1).mean(dim=1) > 0.02).all()
        assert (each.pixels * (each.alpha == 0) == 0).all()


def test_no_split_sees_what_another_holds_out(splits):
    drawings = {
        split: set(zip(each.names.tolist(), each.designers.tolist(), strict=True)) for split, each in splits.items()
    }
    assert sum(map(len, drawings.values())) == len(set.union(*drawings.values()))
    new = set(splits["new names"].names.tolist())
    assert len(new) == NEW_NAMES
    for split in ("train", "validation", "test", "new designer"):
        assert new.isdisjoint(splits[split].names.tolist())
    number = list(DESIGNERS).index(NEW_DESIGNER)
    assert set(splits["new designer"].designers.tolist()) == {number}
    for split in ("train", "validation", "test", "new names"):
        assert number not in splits[split].designers


def test_two_sets_of_one_family_are_held_out_together(splits):
    fluent = [list(DESIGNERS).index(name) for name in ("fluent", "fluent-flat")]
    names = [
        {split: set(each.names[each.designers == number].tolist()) for split, each in splits.items()}
        for number in fluent
    ]
    for split in ("validation", "test"):
        assert names[0][split].isdisjoint(names[1]["train"]) and names[1][split].isdisjoint(names[0]["train"])


def test_names_and_categories_are_those_of_the_drawings(splits):
    names, train = icon_names(), splits["train"]
    assert len(set(names)) == len(names)
    apple = train.take(train.names == names.index("red apple"))
    red, green, blue = (apple.pixels * apple.alpha).sum(dim=(2, 3)).unbind(dim=1)
    assert len(red) >= 3 and (red > 1.2 * green).all() and (red > 1.2 * blue).all()
    assert {list(CATEGORIES)[i] for i in apple.categories.tolist()} == {"food and drink"}
    assert min(Counter(train.categories.tolist()).values()) > 100


def test_a_drawing_stands_on_a_ground(splits):
    some = splits["test"].take(torch.arange(3))
    white = some.on(1.0)
    empty, covered = (some.alpha == level for level in (0, 1))
    assert empty.any() and covered.any()
    assert (white.masked_select(empty) == 1).all()
    torch.testing.assert_close(white.masked_select(covered), some.pixels.masked_select(covered))
    colours = torch.rand(3, 3, 1, 1)
    on_colours = some.on(colours)
    torch.testing.assert_close(on_colours.masked_select(empty), colours.expand_as(on_colours).masked_select(empty))


def test_the_readme_names_every_sheet_and_its_package():
    readme = data_path("images", "icons", "README.md").read_text(encoding="utf-8")
    assert all(
        f"| `{name}.webp` |" in readme and f"`@iconify-json/{facts.package}`" in readme
        for name, facts in DESIGNERS.items()
    )
