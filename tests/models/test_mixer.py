import torch
import torch.nn.functional as F

from course_lib.models.mixer import Mixer, MixerConfig

TINY = {"image_size": 12, "patch_size": 4, "in_channels": 2, "num_classes": 5}
TINY |= {"dim": 8, "depth": 2, "token_mlp_dim": 6, "mlp_dim": 10}


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
    model, image = Mixer(MixerConfig(**TINY)).double(), torch.randn(3, 2, 12, 12, dtype=torch.float64)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    for n in range(len(image)):
        patches = model.patch_embed(image[n : n + 1])[0]
        expected = by_equation_1(model, patches)
        torch.testing.assert_close(model.features(image)[n], expected)
        torch.testing.assert_close(model(image)[n], model.head.weight @ expected.mean(dim=0) + model.head.bias)
