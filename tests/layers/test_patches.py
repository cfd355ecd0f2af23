import jaxtyping
import pytest
import torch
from torch import nn

from course_lib.layers.patches import ConvStem, PatchEmbed, block_noise, random_mask

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


def test_a_convolutional_stem_sees_beyond_its_patch_and_a_patch_does_not():
    picture = image(1, 1, 16, 16).requires_grad_()
    for embed, beyond in ((ConvStem(4, 1, 64).eval(), True), (PatchEmbed(4, 1, 64), False)):
        (gradient,) = torch.autograd.grad(embed(picture)[0, 5].sum(), picture)  # the patch in row 1, column 1
        outside = gradient[0, 0].clone()
        outside[4:8, 4:8] = 0
        assert bool((outside != 0).any()) is beyond


@EMBEDDINGS
def test_an_image_that_does_not_fit_is_refused_with_its_size(kind, monkeypatch):
    embed = kind(4, 3, 8)
    with pytest.raises(ValueError, match=r"8 x 10 pixels is no whole number of patches of 4 x 4"):
        embed(image(1, 3, 8, 10))
    with pytest.raises(ValueError, match=r"image of 3 channel\(s\) was expected, got 1: shape \(2, 1, 8, 8\)"):
        embed(image(2, 1, 8, 8))
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"got shape \(3, 8, 8\): one is image\[None\]"):
        embed(image(3, 8, 8))


@pytest.mark.parametrize(("patch_size", "dim"), [(1, 8), (6, 8), (8, 6)])
def test_a_convolutional_stem_needs_sizes_that_can_be_halved(patch_size, dim):
    with pytest.raises(ValueError, match=rf"2, 4, 8 .* got patch_size={patch_size}, dim={dim}"):
        ConvStem(patch_size, 3, dim)


def test_a_block_is_hidden_ring_by_ring_around_its_middle():
    noise = block_noise(torch.tensor([[1.0, 1.0], [3.0, 4.0]]), (4, 5))
    square, corner = random_mask(noise, 0.45).masked.unflatten(1, (4, 5))
    assert square.nonzero().tolist() == [[row, column] for row in range(3) for column in range(3)]
    assert corner[2:, 3:].all()
    assert corner.sum() == 9
    assert random_mask(noise, 0.95).masked.sum(dim=1).tolist() == [19, 19]
