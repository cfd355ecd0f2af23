"""Our U-Net beside the plainest one that torch.nn's layers make."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.bench.race import Race, race
from course_lib.models.unet import UNet, UNetConfig

LESSON = UNetConfig(num_classes=11, widths=(16, 32, 64, 128))
CASES = (  # config, B images, pixels a side
    ("U-Net, lesson size (32 px, 16 to 128 channels)", LESSON, 32, 32),
    ("U-Net, 16 to 256 channels, 224 px", UNetConfig(in_channels=3, widths=(16, 32, 64, 128, 256)), 2, 224),
    ("U-Net of 2015 with batch norm, 64 to 1,024 channels, 96 px", UNetConfig(), 1, 96),
)


class PlainUNet(nn.Module):
    """A U-Net as one would write it down at once; its weights are in the order of ours."""

    def __init__(self, config: UNetConfig):
        super().__init__()
        widths = config.widths
        ins = (config.in_channels, *widths)
        self.encoder = nn.ModuleList(plain_convs(a, b) for a, b in zip(ins, widths, strict=False))
        ups = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.decoder = nn.ModuleList(
            nn.ModuleList((nn.ConvTranspose2d(a, b, 2, stride=2), plain_convs(2 * b, b))) for a, b in ups
        )
        self.head = nn.Conv2d(widths[0], config.num_classes, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
        x, maps = image, []
        for convs in self.encoder:
            x = convs(self.pool(x) if maps else x)
            maps.append(x)
        for skip, (up, convs) in zip(maps[-2::-1], self.decoder, strict=True):
            x = convs(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


def plain_convs(in_channels: int, out_channels: int) -> nn.Sequential:
    """Two 3 x 3 convolutions with batch norm and ReLU."""
    layers: list[nn.Module] = []
    for channels in (in_channels, out_channels):
        conv = nn.Conv2d(channels, out_channels, 3, padding=1, bias=False)
        layers += [conv, nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def pair(config: UNetConfig) -> tuple[UNet, PlainUNet]:
    """Our U-Net and the plain one with the same weights, in training mode."""
    torch.manual_seed(0)
    ours, plain = UNet(config), PlainUNet(config)
    weights = zip(plain.state_dict(), ours.state_dict().values(), strict=True)
    plain.load_state_dict(dict(weights))
    return ours, plain


def measure(config: UNetConfig, B: int, size: int, *, backward: bool, seconds: float) -> Race:
    """Races passes forward, in evaluation mode, or with `backward` there and back, in training mode."""
    generator = torch.Generator().manual_seed(1)
    image = torch.randn(B, config.in_channels, size, size, generator=generator)

    def run(model: nn.Module) -> None:
        if backward:
            model.zero_grad()
            model(image).square().mean().backward()
        else:
            with torch.no_grad():
                model(image)

    ours, plain = (model.train(backward) for model in pair(config))
    return race({"ours": lambda: run(ours), "theirs": lambda: run(plain)}, fewest=7, seconds=seconds)
