import pytest
import torch

from course_lib.data.real import DIGITS, ImageSet
from course_lib.lessons.real_data import images


def numbered(count):
    """Images whose first pixels tell their numbers."""
    pixels = torch.zeros(count, 1, 28, 28, dtype=torch.uint8)
    pixels[:, 0, 0, 0], pixels[:, 0, 0, 1] = torch.arange(count) // 256, torch.arange(count) % 256
    return ImageSet(pixels, torch.arange(count) % 10, DIGITS)


def numbers(images):
    return (images.pixels[:, 0, 0, 0].int() * 256 + images.pixels[:, 0, 0, 1].int()).tolist()


@pytest.fixture(autouse=True)
def no_cache():
    images.splits.cache_clear()
    yield
    images.splits.cache_clear()


def test_a_whole_set_keeps_its_published_test_images(monkeypatch):
    monkeypatch.setitem(images.WHOLE, "mnist", lambda split: numbered({"train": 5_007, "test": 11}[split]))
    parts = images.splits("mnist")
    assert numbers(parts["train"]) == list(range(7))
    assert numbers(parts["validation"]) == list(range(7, 5_007)) and numbers(parts["test"]) == list(range(11))


def test_of_a_part_validation_and_test_are_cut_from_the_end(monkeypatch):
    monkeypatch.setitem(images.PARTS, "mnist_part", lambda: numbered(100))
    parts = images.splits("mnist_part")
    assert numbers(parts["train"]) == list(range(70))
    assert numbers(parts["validation"]) == list(range(70, 85)) and numbers(parts["test"]) == list(range(85, 100))


@pytest.mark.parametrize("name", images.RECIPES)
def test_the_card_says_which_images_are_the_test(name):
    recipe = images.RECIPES[name]
    settings = recipe.variants[""]
    assert settings.data in recipe.data and name == f"{settings.model}_{settings.data}"
    assert ("not the published test images" in recipe.data) == (settings.data in images.PARTS)
