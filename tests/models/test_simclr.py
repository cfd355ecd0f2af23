import pytest
import torch

from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.vit import ViT, ViTConfig

RESNET = ResNetConfig(
    in_channels=1, num_classes=None, stem="small", stem_channels=4, widths=(4, 8), depths=(1, 1), block="basic"
)
VIT = ViTConfig(
    image_size=8, patch_size=4, in_channels=1, num_classes=None, dim=8, depth=1, num_heads=2, mlp_dim=16, pool="mean"
)


def tiny(encoder=RESNET, seed=0, **overrides):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SimCLR(SimCLRConfig(encoder=encoder, **{"projection_dim": 6} | overrides))


def images(count=5, seed=0):
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("encoder", "kind"), [(RESNET, ResNet), (VIT, ViT)])
@pytest.mark.parametrize("hidden_norm", [True, False])
@torch.no_grad()
def test_z_is_an_mlp_with_one_hidden_layer_of_h(encoder, kind, hidden_norm):
    model = tiny(encoder, hidden_norm=hidden_norm).eval()
    assert isinstance(model.encoder, kind)
    h, head = model.features(images()), model.projection
    assert h.shape == (5, 8)
    encoded = model.encoder(images())
    torch.testing.assert_close(h, encoded.mean(dim=1) if kind is ViT else encoded)
    hidden = h @ head.hidden_proj.weight.T
    if hidden_norm:
        assert head.hidden_proj.bias is None
        head.norm.running_mean.copy_(torch.arange(8) / 8)
        head.norm.running_var.copy_(torch.arange(1, 9))
        hidden = (hidden - head.norm.running_mean) / (head.norm.running_var + 1e-5).sqrt()
    else:
        hidden = hidden + head.hidden_proj.bias
    z = hidden.clamp(min=0) @ head.out_proj.weight.T
    torch.testing.assert_close(model(images()), z)
    assert z.shape == (5, 6)
