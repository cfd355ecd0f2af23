import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.layers.patches import (
    ConvStem,
    PatchEmbed,
    block_noise,
    patch_statistics,
    patchify,
    random_mask,
    take_patches,
    unpatchify,
)

EMBEDDINGS = pytest.mark.parametrize("kind", [PatchEmbed, ConvStem])


def image(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_token_is_a_matrix_times_the_pixels_of_its_patch():
    embed, picture = PatchEmbed(3, 2, 5), image(2, 2, 6, 9)
    torch.nn.init.normal_(embed.proj.bias)
    matrix, tokens = embed.proj.weight.flatten(1), embed(picture)
    assert tokens.shape == (2, 6, 5)
    for n, (row, column) in enumerate((r, c) for r in (0, 3) for c in (0, 3, 6)):
        patch = picture[:, :, row : row + 3, column : column + 3].flatten(1)
        torch.testing.assert_close(tokens[:, n], patch @ matrix.T + embed.proj.bias)


def test_a_patch_keeps_the_variance_of_its_pixels():
    torch.manual_seed(0)
    assert PatchEmbed(8, 3, 64)(image(20, 3, 32, 32)).var().item() == pytest.approx(1.0, rel=0.1)


@EMBEDDINGS
@pytest.mark.parametrize("patch_size", [2, 4, 8])
def test_both_stems_make_one_token_of_each_patch(kind, patch_size):
    embed = kind(patch_size, 3, 12 * patch_size)
    assert embed(image(1, 3, 2 * patch_size, 3 * patch_size)).shape == (1, 6, 12 * patch_size)


def test_a_convolutional_stem_doubles_its_channels_up_to_the_width():
    stem = ConvStem(8, 1, 64)
    convs = [part for part in stem.modules() if isinstance(part, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels, c.kernel_size, c.stride) for c in convs] == [
        (1, 16, (3, 3), (2, 2)),
        (16, 32, (3, 3), (2, 2)),
        (32, 64, (3, 3), (2, 2)),
        (64, 64, (1, 1), (1, 1)),
    ]


def test_a_convolutional_stem_reads_its_map_row_by_row():
    stem, picture = ConvStem(2, 1, 4).eval(), image(2, 1, 4, 6)
    features, tokens = stem.proj(stem.convs(picture)), stem(picture)
    for n, (row, column) in enumerate((r, c) for r in range(2) for c in range(3)):
        assert torch.equal(tokens[:, n], features[:, :, row, column])


def test_a_block_is_hidden_ring_by_ring_around_its_middle():
    noise = block_noise(torch.tensor([[1.0, 1.0], [3.0, 4.0]]), (4, 5))
    square, corner = random_mask(noise, 0.45).masked.unflatten(1, (4, 5))
    assert square.nonzero().tolist() == [[row, column] for row in range(3) for column in range(3)]
    assert corner[2:, 3:].all()
    assert corner.sum() == 9
    assert random_mask(noise, 0.95).masked.sum(dim=1).tolist() == [19, 19]


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


def test_each_image_gives_the_patches_at_its_own_places():
    patches = torch.arange(12.0).view(2, 3, 2)
    taken = take_patches(patches, torch.tensor([[2, 0], [1, 1]]))
    assert taken.tolist() == [[[4.0, 5.0], [0.0, 1.0]], [[8.0, 9.0], [8.0, 9.0]]]


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


def test_a_patchs_spread_is_the_unbiased_one():
    patches = torch.tensor([[[1.0, 2.0, 6.0], [5.0, 5.0, 5.0]]])
    mean, spread = patch_statistics(patches)
    assert mean.flatten().tolist() == [3.0, 5.0]
    torch.testing.assert_close(spread.flatten(), torch.tensor([(14 / 2 + 1e-6) ** 0.5, 1e-3]))
