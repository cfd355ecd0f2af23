import pytest
import torch

from course_lib.layers.patches import random_mask, take_patches

COUNTS = [(49, 0.75, 12), (16, 0.5, 8), (9, 0.6, 3), (196, 0.75, 49), (5, 0.0, 5)]


@pytest.mark.parametrize(("num_patches", "ratio", "visible"), COUNTS)
def test_so_many_patches_stay_visible_as_the_ratio_leaves(num_patches, ratio, visible):
    mask = random_mask(torch.rand(3, num_patches), ratio)
    assert mask.keep.shape == (3, visible)
    assert ((~mask.masked).sum(dim=1) == visible).all()


def test_the_visible_patches_are_those_with_the_least_noise():
    mask = random_mask(torch.tensor([[0.3, 0.9, 0.1, 0.5], [0.8, 0.2, 0.4, 0.6]]), 0.5)
    assert mask.keep.tolist() == [[2, 0], [1, 2]]
    assert mask.masked.tolist() == [[False, True, False, True], [True, False, False, True]]


def test_restore_finds_each_patch_in_the_list_of_visible_then_hidden_ones():
    mask = random_mask(torch.rand(4, 11), 0.7)
    for keep, restore, masked in zip(*mask, strict=True):
        hidden = masked.nonzero()[:, 0]
        listed = torch.cat([keep, hidden])  # the order of the hidden ones is that of their noise
        assert torch.equal(listed[restore][~masked], torch.arange(11)[~masked])
        assert sorted(restore.tolist()) == list(range(11)) and (restore[masked] >= len(keep)).all()


def test_the_same_noise_hides_the_same_patches_and_all_are_hidden_equally_often():
    noise = torch.rand(4000, 9, generator=torch.Generator().manual_seed(0))
    mask = random_mask(noise, 2 / 3)
    assert torch.equal(random_mask(noise, 2 / 3).keep, mask.keep)
    often = mask.masked.float().mean(dim=0)
    assert (often - 2 / 3).abs().max() < 0.03  # four standard deviations of 4,000 draws


@pytest.mark.parametrize(("ratio", "visible"), [(0.95, 0), (1.0, 0), (-0.5, 13)])
def test_a_ratio_that_leaves_nothing_to_see_or_to_hide_is_named(ratio, visible):
    with pytest.raises(ValueError, match=f"ratio of {ratio:g} leaves {visible} of 9 patches .* from 0 to below 0.888"):
        random_mask(torch.rand(2, 9), ratio)
    with pytest.raises(ValueError, match="0 of 10 patches .* below 0.9$"):  # 10 (1 - 0.9) rounds below 1
        random_mask(torch.rand(2, 10), 0.9)


def test_each_image_gives_the_patches_at_its_own_places():
    patches = torch.arange(12.0).view(2, 3, 2)
    taken = take_patches(patches, torch.tensor([[2, 0], [1, 1]]))
    assert taken.tolist() == [[[4.0, 5.0], [0.0, 1.0]], [[8.0, 9.0], [8.0, 9.0]]]
