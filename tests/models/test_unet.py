from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models.resnet import ResNet, ResNetConfig, resnet8
from course_lib.models.unet import UNet, UNetConfig, unet_from_classifier

TINY = UNetConfig(in_channels=2, num_classes=3, widths=(4, 6, 8))


def randomised(model, seed=0):
    """Weights and running statistics that show every fault."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.2 + (tensor.ndim == 1))
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
    return model


class PlainUNet(nn.Module):
    """Figure 1 of Ronneberger et al. 2015 written out with torch.nn, for three resolutions."""

    def __init__(self, skips):
        super().__init__()
        self.skips, self.pool = skips, nn.MaxPool2d(2)
        sizes = [(2, 4), (4, 6), (6, 8), (12 if skips else 6, 6), (8 if skips else 4, 4)]
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1, bias=False),
                nn.BatchNorm2d(b),
                nn.ReLU(),
                nn.Conv2d(b, b, 3, padding=1, bias=False),
                nn.BatchNorm2d(b),
                nn.ReLU(),
            )
            for a, b in sizes
        )
        self.up1, self.up2 = nn.ConvTranspose2d(8, 6, 2, stride=2), nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.last = nn.Conv2d(4, 3, 1)

    def forward(self, image):
        fine = self.blocks[0](image)
        middle = self.blocks[1](self.pool(fine))
        coarse = self.blocks[2](self.pool(middle))
        x = self.up1(coarse)
        x = self.blocks[3](torch.cat([middle, x], dim=1) if self.skips else x)
        x = self.up2(x)
        return self.last(self.blocks[4](torch.cat([fine, x], dim=1) if self.skips else x))


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_it_is_the_net_of_figure_1(skips, training):
    ours, theirs = randomised(UNet(replace(TINY, skips=skips))), PlainUNet(skips)
    order = [k for part in ("encoder", "decoder", "head") for k in ours.state_dict() if k.startswith(part)]
    ups = [k for k in order if ".up." in k]
    convolutions = [k for k in order if k not in ups and not k.startswith("head")]
    names = [k for k in theirs.state_dict() if k.startswith("blocks")]
    weights = dict(zip(names, convolutions, strict=True))
    weights |= dict(zip(["up1.weight", "up1.bias", "up2.weight", "up2.bias"], ups, strict=True))
    weights |= {"last.weight": "head.weight", "last.bias": "head.bias"}
    theirs.load_state_dict({k: ours.state_dict()[v] for k, v in weights.items()})
    x = torch.randn(2, 2, 12, 8, generator=torch.Generator().manual_seed(1))
    results, gradients = [], []
    for model in (ours, theirs):
        image = x.clone().requires_grad_()
        results.append(model.train(training)(image))
        results[-1].square().sum().backward()
        gradients.append(image.grad)
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-5 * gradients[1].abs().max().item())


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("up", ["transposed", "bilinear"])
@pytest.mark.parametrize("size", [(8, 8), (1, 1), (13, 7), (6, 21)])
def test_every_pixel_of_any_image_gets_its_logits(skips, up, size):
    model = UNet(replace(TINY, skips=skips, up=up, norm=False))
    assert model(torch.randn(2, 2, *size)).shape == (2, 3, *size)


def test_an_odd_image_is_seen_as_if_its_last_row_and_column_went_on():
    model, image = randomised(UNet(TINY)).eval(), torch.randn(1, 2, 10, 7)
    padded = F.pad(image, (0, 1, 0, 2), mode="replicate")
    assert torch.equal(model(image), model(padded)[:, :, :10, :7])


@pytest.mark.parametrize(
    ("backbone", "stride"),
    [
        (resnet8(in_channels=1).config, 4),
        (ResNetConfig(in_channels=1, block="basic", widths=(8, 8, 16), depths=(1, 1, 1), stem_channels=8), 16),
        (replace(resnet8(in_channels=1).config, stride_in_first_stage=True), 8),
    ],
)
@pytest.mark.parametrize("skips", [True, False])
def test_a_trained_classifier_becomes_the_backbone(backbone, stride, skips):
    classifier = randomised(ResNet(backbone)).eval()
    model = unet_from_classifier(classifier, num_classes=5, skips=skips).eval()
    image = torch.randn(2, 1, 37, 18)
    assert model.stride == stride and model(image).shape == (2, 5, 37, 18)
    for ours, theirs in zip(model.feature_maps(image), classifier.feature_maps(image), strict=True):
        assert torch.equal(ours, theirs)
    classifier.stem.conv.weight.data.zero_()  # the backbone is a copy
    assert model.backbone.stem.conv.weight.abs().min() > 0


def test_all_parts_of_a_net_on_a_backbone_learn():
    model = unet_from_classifier(resnet8(in_channels=1), num_classes=5)
    model(torch.randn(2, 1, 16, 16)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())
