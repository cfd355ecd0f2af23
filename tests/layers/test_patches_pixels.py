import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.layers.patches import PatchEmbed, patch_statistics, patchify, unpatchify

sizes = st.integers(1, 4)


@settings(max_examples=25, deadline=None)
@given(rows=sizes, columns=sizes, patch_size=sizes, channels=sizes)
def test_putting_patches_together_undoes_cutting(rows, columns, patch_size, channels):
    image = torch.rand(2, channels, rows * patch_size, columns * patch_size)
    patches = patchify(image, patch_size)
    assert patches.shape == (2, rows * columns, patch_size**2 * channels)
    assert torch.equal(unpatchify(patches, patch_size, *image.shape[-2:]), image)


def test_patches_go_row_by_row_and_a_pixels_channels_stay_together():
    image = torch.arange(2 * 4 * 6).view(1, 2, 4, 6).float()
    patches = patchify(image, 2)
    for number, (top, left) in enumerate([(0, 0), (0, 2), (0, 4), (2, 0), (2, 2), (2, 4)]):
        places = [(top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)]
        assert patches[0, number].tolist() == [image[0, c, y, x].item() for y, x in places for c in range(2)]


def test_patches_stand_in_the_order_of_their_embeddings():
    image = torch.randn(2, 3, 6, 8)
    embed = PatchEmbed(2, 3, 5)
    matrix = embed.proj.weight.permute(2, 3, 1, 0).flatten(0, 2)  # (p p C, D)
    torch.testing.assert_close(patchify(image, 2) @ matrix + embed.proj.bias, embed(image))


@pytest.mark.parametrize(("height", "width", "patch_size"), [(6, 7, 2), (5, 8, 4), (0, 4, 2), (4, 4, 0)])
def test_a_size_that_is_no_whole_number_of_patches_is_named(height, width, patch_size):
    with pytest.raises(ValueError, match=f"{height} x {width} pixels .* {patch_size} x {patch_size}"):
        patchify(torch.zeros(1, 1, height, width), patch_size)
    with pytest.raises(ValueError, match=f"{height} x {width} pixels .* {patch_size} x {patch_size}"):
        unpatchify(torch.zeros(1, 1, 4), patch_size, height, width)


@pytest.mark.parametrize(("count", "length"), [(5, 12), (6, 11)])
def test_patches_of_another_image_are_refused(count, length):
    with pytest.raises(ValueError, match=f"has 6 patches .* 4 numbers each, got {count} patches with {length}"):
        unpatchify(torch.zeros(1, count, length), 2, 4, 6)


def test_a_patchs_spread_is_the_unbiased_one():
    patches = torch.tensor([[[1.0, 2.0, 6.0], [5.0, 5.0, 5.0]]])
    mean, spread = patch_statistics(patches)
    assert mean.flatten().tolist() == [3.0, 5.0]
    torch.testing.assert_close(spread.flatten(), torch.tensor([(14 / 2 + 1e-6) ** 0.5, 1e-3]))
