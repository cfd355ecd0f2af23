import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.losses import nt_xent
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.simclr import SimCLR, SimCLRConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.weights import own

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


def test_the_default_is_the_paper_s_resnet_50_with_128_dimensions():
    with torch.device("meta"):
        model = SimCLR(SimCLRConfig())
    count = sum(p.numel() for p in model.encoder.parameters())
    assert count == 23_508_032  # ResNet-50 without its head
    assert model.projection.hidden_proj.weight.shape == (2048, 2048)
    assert model.projection.out_proj.weight.shape == (128, 2048)


def test_the_loss_reaches_every_parameter():
    model = tiny()
    nt_xent(model(images()), model(images(seed=1))).backward()
    assert all(p.grad is not None and (p.grad != 0).any() for p in model.parameters())


def test_an_encoder_with_a_head_is_refused():
    with pytest.raises(ValueError, match="head of 10 classes"):
        tiny(ResNetConfig(num_classes=10))


@pytest.mark.parametrize("encoder", [RESNET, VIT])
@torch.no_grad()
def test_a_saved_model_comes_back_with_its_encoder(encoder, tmp_path):
    model = tiny(encoder, seed=3).eval()
    own.save(model, tmp_path / "simclr.safetensors")
    loaded = own.load(tmp_path / "simclr.safetensors")
    assert loaded.config == model.config and loaded.config.encoder == encoder
    torch.testing.assert_close(loaded(images()), model(images()), rtol=0, atol=0)


def test_it_learns_to_recognise_an_image_through_noise():
    base = images(32)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = SimCLR(SimCLRConfig(encoder=RESNET, projection_dim=6))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(60):
            first, second = (model(base + 0.3 * torch.randn_like(base)) for _ in range(2))
            losses.append(nt_xent(first, second, temperature=0.2))
            optimizer.zero_grad()
            losses[-1].backward()
            optimizer.step()
    similarity = F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).T
    assert (similarity.argmax(dim=-1) == torch.arange(32)).float().mean() > 0.7
    assert losses[-1] < 0.5 * losses[0]
