import pytest
import torch

from course_lib.data.icon_scenes import IconScenes, captions, with_article
from course_lib.data.icons import CATEGORIES, icon_names, icons
from course_lib.data.scenes import ABSENT


@pytest.fixture(scope="module")
def scenes():
    return IconScenes(split="train", size=48).batch(60, 1)


def test_masks_boxes_and_classes_agree(scenes):
    assert scenes.pixels.shape == (60, 3, 48, 48) and 0 <= scenes.pixels.min() and scenes.pixels.max() <= 1
    assert set(scenes.present.sum(dim=1).tolist()) == {1, 2, 3}
    assert torch.equal(scenes.present, scenes.names != ABSENT)
    for row in range(60):
        for k in range(3):
            mask = scenes.instances[row] == k + 1
            x0, y0, x1, y1 = scenes.boxes[row, k].tolist()
            assert mask.any() == (x1 > x0)
            if mask.any():
                assert scenes.present[row, k]
                assert (scenes.semantic[row][mask] == scenes.categories[row, k] + 1).all()
                assert mask[y0:y1, x0:x1].sum() == mask.sum()
                assert mask[y0].any() and mask[y1 - 1].any() and mask[:, x0].any() and mask[:, x1 - 1].any()
    assert torch.equal(scenes.semantic == 0, scenes.instances == 0)


def test_an_icon_as_large_as_the_image_is_the_drawing_itself():
    wanted = icons("test")
    name = icon_names()[int(wanted.names[0])]
    config = IconScenes(split="test", size=32, things=(1, 1), names=(name,), clutter=0.0, scale=(1.0, 1.0))
    scene, drawings = config.batch(1, 0), config.icons()
    ground = scene.pixels[0][:, scene.instances[0] == 0].median(dim=1).values
    differences = (drawings.on(ground[:, None, None]) - scene.pixels).abs().mean(dim=(1, 2, 3))
    assert differences.min() < 0.03


def test_things_are_those_asked_for():
    scenes = IconScenes(split="new designer", things=(2, 2), categories=("food and drink",)).batch(20, 0)
    assert set(scenes.categories.flatten().tolist()) == {list(CATEGORIES).index("food and drink")}
    scenes = IconScenes(split="train", names=("rocket", "red apple")).batch(20, 0)
    names = {icon_names()[n] for n in scenes.names[scenes.present].tolist()}
    assert names == {"rocket", "red apple"}


def test_captions_say_what_is_there_and_where():
    scenes = IconScenes(split="train", things=(2, 2), names=("rocket", "red apple")).batch(40, 3)
    for text, names, boxes in zip(captions(scenes), scenes.names.tolist(), scenes.boxes.tolist(), strict=True):
        if not all(map(any, boxes)):
            continue
        first, second = (with_article(icon_names()[n]) for n in names)
        assert text.startswith(f"{first} ") and text.endswith(f" {second}")
        (x0, y0, x1, y1), (u0, v0, u1, v1) = boxes
        across, down = x0 + x1 - u0 - u1, y0 + y1 - v0 - v1
        if abs(across) > abs(down):
            assert ("left of" in text) == (across < 0) and ("right of" in text) == (across > 0)
        elif abs(down) > abs(across):
            assert ("above" in text) == (down < 0) and ("below" in text) == (down > 0)
    assert set(captions(IconScenes(split="train", things=(1, 1), names=("elephant",)).batch(3, 0))) == {"an elephant"}


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("unicorn", "a unicorn"),
        ("hourglass done", "an hourglass done"),
        ("grapes", "grapes"),
        ("dress", "a dress"),
        ("cat with tears of joy", "a cat with tears of joy"),
        ("smiling face with heart eyes", "a smiling face with heart eyes"),
    ],
)
def test_an_article_is_put_before_one_thing(name, spoken):
    assert with_article(name) == spoken
