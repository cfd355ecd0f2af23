import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from course_lib.data import build_images
from course_lib.data.build_images import LONGEST_SIDE, original_picture, scaled
from course_lib.data.digits import FILE
from course_lib.data.files import data_path
from course_lib.data.photographs import FOLDER, PHOTOGRAPHS, photograph

FROM_JPEG = {"china", "flower", "hubble", "retina", "rocket"}  # whose decoders may round differently
each_picture = pytest.mark.parametrize("name", PHOTOGRAPHS)


def levels(name):
    with Image.open(data_path(FOLDER, f"{name}.png")) as file:
        return np.asarray(file)


@each_picture
def test_a_frozen_picture_is_its_packages_own(name):
    facts = PHOTOGRAPHS[name]
    original = original_picture(facts)
    frozen = levels(name)
    assert (frozen.ndim == 2) == facts.grey
    if max(original.shape) <= LONGEST_SIDE:
        np.testing.assert_array_equal(frozen, original)
    else:  # the recipe gives the same pixels again
        difference = np.abs(frozen.astype(int) - scaled(original))
        assert max(frozen.shape) == LONGEST_SIDE and difference.max() <= (2 if name in FROM_JPEG else 0)


def test_the_recipe_writes_what_is_frozen(tmp_path, monkeypatch):
    few = {name: PHOTOGRAPHS[name] for name in ("text", "cell")}
    monkeypatch.setattr(build_images, "PHOTOGRAPHS", few)
    build_images.build(tmp_path / "images")
    with np.load(tmp_path / "images" / FILE) as made, np.load(data_path(FOLDER, FILE)) as frozen:
        assert made.files == frozen.files
        assert all(np.array_equal(made[name], frozen[name]) for name in frozen.files)
    for name in few:
        with Image.open(tmp_path / "images" / f"{name}.png") as file:
            np.testing.assert_array_equal(np.asarray(file), levels(name))


def test_the_frozen_digits_are_scikit_learns():
    digits = load_digits()
    with np.load(data_path(FOLDER, FILE)) as frozen:
        np.testing.assert_array_equal(frozen["images"], digits.images)
        np.testing.assert_array_equal(frozen["labels"], digits.target)


def test_the_folder_holds_nothing_else_and_stays_small():
    files = {path.name: path.stat().st_size for path in data_path(FOLDER).iterdir() if path.is_file()}
    assert files.keys() == {f"{name}.png" for name in PHOTOGRAPHS} | {FILE, "README.md"}
    assert sum(files.values()) < 5_000_000


@each_picture
def test_title_credit_licence_and_source_of_each_picture_are_told(name):
    facts = PHOTOGRAPHS[name]
    (row,) = (line for line in readme().splitlines() if f"`{name}.png`" in line)
    _, title, credit, licence, source, origin, size = (cell.strip() for cell in row.strip("| ").split("|"))
    assert (title, credit, source.strip("<>")) == (facts.title, facts.credit, facts.source)
    assert licence == facts.licence or licence.startswith(f"[{facts.licence}](https://creativecommons.org/")
    assert origin == f"{facts.package}: `{facts.original}`"
    height, width = levels(name).shape[:2]
    assert size.partition(",")[0] == f"{width} x {height}"


def test_pictures_without_a_stated_licence_are_left_out():
    originals = {facts.original for facts in PHOTOGRAPHS.values()}
    assert not originals & {"moon", "page", "lfw_subset", "stereo_motorcycle", "shepp_logan_phantom", "colorwheel"}
    assert all(facts.licence == "CC BY 2.0" for facts in PHOTOGRAPHS.values() if facts.package == "scikit-learn")


def test_a_photograph_is_numbers_from_0_to_1_channels_first():
    picture = photograph("chelsea")
    assert picture.shape == (3, 300, 451) and picture.dtype == torch.float32
    torch.testing.assert_close(picture.permute(1, 2, 0) * 255, torch.from_numpy(levels("chelsea").astype(np.float32)))
    assert picture.is_contiguous()


def test_grey_is_the_luminance_of_the_colours():
    picture, grey = photograph("chelsea"), photograph("chelsea", grey=True)
    assert grey.shape == (1, 300, 451)
    luminance = (picture * torch.tensor([0.299, 0.587, 0.114])[:, None, None]).sum(0)
    torch.testing.assert_close(grey[0], luminance, atol=1 / 255, rtol=0)


def test_a_picture_without_colours_has_three_equal_channels():
    picture = photograph("grass")
    assert picture.shape == (3, 512, 512) and torch.equal(picture[0], picture[2])
    assert torch.equal(picture[:1], photograph("grass", grey=True))


def test_with_a_size_it_is_the_square_in_the_middle_scaled():
    middle = photograph("chelsea")[:, :, 75:375]  # 300 of 451 columns
    small = photograph("chelsea", size=30)
    assert small.shape == (3, 30, 30)
    assert (small - torch.nn.functional.avg_pool2d(middle, 10)).abs().mean() < 0.02
    torch.testing.assert_close(photograph("chelsea", size=300), middle)


def readme():
    return data_path(FOLDER, "README.md").read_text(encoding="utf-8")
