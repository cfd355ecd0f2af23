import pytest
import torch
import torch.nn.functional as F

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


def test_weights_start_as_in_the_released_code():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Mixer(MixerConfig(**TINY | {"dim": 64, "mlp_dim": 128, "token_mlp_dim": 32}))
    assert (model.head.weight == 0).all()
    for part in (model.blocks[0].channel_mlp.up_proj, model.blocks[0].channel_mlp.down_proj):
        assert part.weight.std().item() == pytest.approx(part.in_features**-0.5, rel=0.05)
        assert (part.bias == 0).all()
