import pytest
import torch
import torch.nn.functional as F

from course_lib.models import mixer
from course_lib.models.mixer import Mixer, MixerConfig

TINY = {
    "image_size": 12,
    "patch_size": 4,
    "in_channels": 2,
    "num_classes": 5,
    "dim": 8,
    "depth": 2,
    "token_mlp_dim": 6,
    "mlp_dim": 10,
}


def tiny(seed=0, **overrides):
    """A small Mixer whose weights, biases and norms are all random."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Mixer(MixerConfig(**TINY | overrides)).double()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return model


def images(count=3, size=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 2, size, size, dtype=torch.float64, generator=generator)


def by_equation_1(model, x):
    """Tolstikhin et al. 2021, eq. (1), column by column and row by row."""
    for block in model.blocks:
        w1, b1 = block.token_mlp.up_proj.weight, block.token_mlp.up_proj.bias
        w2, b2 = block.token_mlp.down_proj.weight, block.token_mlp.down_proj.bias
        w3, b3 = block.channel_mlp.up_proj.weight, block.channel_mlp.up_proj.bias
        w4, b4 = block.channel_mlp.down_proj.weight, block.channel_mlp.down_proj.bias
        normed, u = block.norm1(x), x.clone()
        for i in range(x.shape[1]):
            u[:, i] = x[:, i] + w2 @ F.gelu(w1 @ normed[:, i] + b1, approximate="tanh") + b2
        normed, y = block.norm2(u), u.clone()
        for j in range(x.shape[0]):
            y[j] = u[j] + w4 @ F.gelu(w3 @ normed[j] + b3, approximate="tanh") + b4
        x = y
    return model.norm(x)


@torch.no_grad()
def test_the_blocks_are_equation_1_and_the_head_sees_the_mean_over_patches():
    model, image = tiny(), images()
    for n in range(len(image)):
        patches = model.patch_embed(image[n : n + 1])[0]
        expected = by_equation_1(model, patches)
        torch.testing.assert_close(model.features(image)[n], expected)
        torch.testing.assert_close(model(image)[n], model.head.weight @ expected.mean(dim=0) + model.head.bias)


@torch.no_grad()
def test_without_a_head_it_returns_the_features_of_all_patches():
    model, image = tiny(num_classes=None), images()
    assert model.head is None
    expected = torch.stack([by_equation_1(model, patches) for patches in model.patch_embed(image)])
    torch.testing.assert_close(model(image), expected)
    assert torch.equal(model(image), model.features(image))


def test_one_block_lets_every_patch_see_every_other():
    model = tiny(depth=1)
    x = torch.randn(1, 9, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.blocks[0](x)[0, 4].sum(), x)
    assert (gradient != 0).any(dim=-1).all()


def test_places_are_not_exchangeable():
    model, x = tiny(depth=1), torch.randn(1, 9, 8, dtype=torch.float64)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    assert (model.blocks[0](x[:, order]) - model.blocks[0](x)[:, order]).abs().max() > 0.1


def test_an_image_of_another_number_of_patches_is_refused():
    model = tiny()
    with pytest.raises(ValueError, match="mixes 9 patches, an image of 8 x 16 pixels has 8: resize it to 12 pixels"):
        model(torch.zeros(1, 2, 8, 16, dtype=torch.float64))
    with pytest.raises(ValueError, match="no whole number of patches"):
        model(torch.zeros(1, 2, 12, 14, dtype=torch.float64))
    for size in (10, 0):
        with pytest.raises(ValueError, match=f"multiple of patch_size, got {size} and 4"):
            Mixer(MixerConfig(**TINY | {"image_size": size}))


def test_weights_start_as_in_the_released_code():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Mixer(MixerConfig(**TINY | {"dim": 64, "mlp_dim": 128, "token_mlp_dim": 32}))
    assert (model.head.weight == 0).all()
    for part in (model.blocks[0].channel_mlp.up_proj, model.blocks[0].channel_mlp.down_proj):
        assert part.weight.std().item() == pytest.approx(part.in_features**-0.5, rel=0.05)
        assert (part.bias == 0).all()


@pytest.mark.parametrize(
    ("preset", "millions"),  # Tolstikhin et al. 2021, table 1: without the head
    [
        (mixer.mixer_small_patch32, 19),
        (mixer.mixer_small_patch16, 18),
        (mixer.mixer_base_patch32, 60),
        (mixer.mixer_base_patch16, 59),
        (mixer.mixer_large_patch32, 206),
        (mixer.mixer_large_patch16, 207),
        (mixer.mixer_huge_patch14, 431),
    ],
)
def test_presets_have_the_paper_s_number_of_parameters(preset, millions):
    with torch.device("meta"):
        model = preset(num_classes=None)
        assert preset(num_classes=10, depth=1).head.out_features == 10
    assert round(sum(p.numel() for p in model.parameters()) / 1e6) == millions


def test_it_learns_where_a_bright_patch_lies():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Mixer(MixerConfig(**TINY | {"num_classes": 9, "dim": 16, "mlp_dim": 32, "token_mlp_dim": 16}))
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for step in range(121):
            image, label = 0.3 * torch.randn(32, 2, 12, 12), torch.randint(9, (32,))
            for n, place in enumerate(label.tolist()):
                image[n, :, 4 * (place // 3) :, 4 * (place % 3) :][:, :4, :4] += 1
            logits = model(image)
            if step == 120:
                break
            optimizer.zero_grad()
            F.cross_entropy(logits, label).backward()
            optimizer.step()
    assert (logits.argmax(dim=-1) == label).float().mean() > 0.9
