"""Random changes that leave what is on an image as it is; each image of a batch gets its own.

Every function takes pixels from 0 to 1 and a generator, and returns new pixels from 0 to 1. `two_views` makes the pairs
of Chen et al. 2020, "A simple framework for contrastive learning of visual representations" (arXiv:2002.05709), sec. 3.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from course_lib.data.draws import uniform_noise

GREY = 0.5  # what cutout leaves


def random_crop(
    pixels: Float[Tensor, "B C H W"],
    generator: Generator,
    *,
    area: tuple[float, float] = (0.3, 1.0),
    aspect: tuple[float, float] = (3 / 4, 4 / 3),
) -> Float[Tensor, "B C H W"]:
    """A rectangle of each image, scaled to the size of the whole.

    It has a share of the area, and a ratio of width to height, out of these ranges; where it would be wider or higher
    than the image, it ends at the image's border. Raises ValueError for a range that is not 0 < low <= high, or an
    area above 1.
    """
    if not (0 < area[0] <= area[1] <= 1 and 0 < aspect[0] <= aspect[1]):
        raise ValueError(f"area needs 0 < low <= high <= 1 and aspect 0 < low <= high, got {area} and {aspect}.")
    count = len(pixels)
    share = _uniform(count, *area, generator)
    ratio = _uniform(count, math.log(aspect[0]), math.log(aspect[1]), generator).exp()  # as often wide as high
    width, height = (share * ratio).sqrt().clamp(max=1), (share / ratio).sqrt().clamp(max=1)
    x = _uniform(count, -1, 1, generator) * (1 - width)
    y = _uniform(count, -1, 1, generator) * (1 - height)
    zero = torch.zeros(count)
    return _sample(pixels, torch.stack([width, zero, x, zero, height, y], dim=1).view(-1, 2, 3))


def random_flip(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, chance: float = 0.5
) -> Float[Tensor, "B C H W"]:
    """Some of the images mirrored, left for right."""
    flipped = torch.rand(len(pixels), generator=generator) < chance
    return torch.where(_per_image(flipped), pixels.flip(3), pixels)


def random_rotation(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, degrees: float = 10.0
) -> Float[Tensor, "B C H W"]:
    """Each image turned about its middle, by at most so much to either side; the rim is repeated outwards."""
    angle = _uniform(len(pixels), -degrees, degrees, generator) * (math.pi / 180)
    height, width = pixels.shape[2:]
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    matrix = [cosine, sine * height / width, zero, -sine * width / height, cosine, zero]
    return _sample(pixels, torch.stack(matrix, dim=1).view(-1, 2, 3))


def random_brightness(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, strength: float = 0.4
) -> Float[Tensor, "B C H W"]:
    """All pixels of an image multiplied by the same number, between 1 - strength and 1 + strength."""
    factor = _uniform(len(pixels), 1 - strength, 1 + strength, generator)
    return (pixels * _per_image(factor)).clamp_(0, 1)


def random_contrast(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, strength: float = 0.4
) -> Float[Tensor, "B C H W"]:
    """The deviations from an image's mean multiplied by a number between 1 - strength and 1 + strength."""
    factor = _uniform(len(pixels), 1 - strength, 1 + strength, generator)
    return torch.lerp(pixels.mean(dim=(1, 2, 3), keepdim=True), pixels, _per_image(factor)).clamp_(0, 1)


def random_colour(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, strength: float = 0.4
) -> Float[Tensor, "B C H W"]:
    """Each channel of an image multiplied by its own number, and the colours made stronger or weaker.

    Both numbers lie between 1 - strength and 1 + strength. Without colours, with one channel, only the first is done.
    """
    count, channels = pixels.shape[:2]
    tints = _uniform(count * channels, 1 - strength, 1 + strength, generator).view(count, channels, 1, 1)
    strengths = _per_image(_uniform(count, 1 - strength, 1 + strength, generator))
    tinted = pixels * tints
    return torch.lerp(tinted.mean(dim=1, keepdim=True), tinted, strengths).clamp_(0, 1)


def random_blur(
    pixels: Float[Tensor, "B C H W"],
    generator: Generator,
    *,
    chance: float = 0.5,
    sigma: tuple[float, float] = (0.1, 1.5),
) -> Float[Tensor, "B C H W"]:
    """Some of the images blurred by a Gaussian of a random width sigma, in pixels.

    A Gaussian blurs rows and columns one after the other: two products with matrices whose rows are bell curves.
    """
    blurred = torch.rand(len(pixels), generator=generator) < chance
    width = _uniform(len(pixels), *sigma, generator).masked_fill(~blurred, 1e-2)  # so narrow that nothing happens
    across, down = (_bell_curves(length, width) for length in (pixels.shape[3], pixels.shape[2]))
    return (down @ pixels @ across.transpose(2, 3)).clamp_(0, 1)


def cutout(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, chance: float = 0.5, side: float = 0.4
) -> Float[Tensor, "B C H W"]:
    """A square of some of the images made grey: DeVries & Taylor 2017 (arXiv:1708.04552).

    `side` is a share of the image's side; the square's middle lies anywhere, so that a part of it may be outside.
    """
    count, _, height, width = pixels.shape
    cut = torch.rand(count, generator=generator) < chance
    inside = []
    for length in (height, width):
        middle = _uniform(count, 0, length, generator)
        inside.append(((torch.arange(length) + 0.5 - middle[:, None]).abs() < side * length / 2) & cut[:, None])
    return pixels.masked_fill((inside[0][:, :, None] & inside[1][:, None, :])[:, None], GREY)


def random_noise(
    pixels: Float[Tensor, "B C H W"], generator: Generator, *, deviation: float = 0.05
) -> Float[Tensor, "B C H W"]:
    """Independent even noise of this standard deviation in each pixel."""
    return (pixels + uniform_noise(pixels.shape, deviation, generator)).clamp_(0, 1)


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Which changes are made, in this order, and how strong they are; 0 switches a change off.

    The defaults are those of a pair for contrastive learning. Raises ValueError for a strength that cannot be.
    """

    crop: float = 0.7  # at most this share of the area is cut off
    flip: float = 0.5  # chance
    rotation: float = 0.0  # degrees
    brightness: float = 0.4
    contrast: float = 0.4
    colour: float = 0.2
    blur: float = 0.5  # chance
    cutout: float = 0.0  # chance
    noise: float = 0.0  # standard deviation

    def __post_init__(self):
        for name, value in vars(self).items():
            highest = {"crop": 0.99, "rotation": 180.0}.get(name, 1.0)
            if not 0 <= value <= highest:
                raise ValueError(f"{name} must be from 0 (off) to {highest:g}, got {value}.")

    def __call__(self, pixels: Float[Tensor, "B C H W"], generator: Generator) -> Float[Tensor, "B C H W"]:
        """The images with their random changes."""
        changes = [
            (self.crop, lambda x: random_crop(x, generator, area=(1 - self.crop, 1.0))),
            (self.flip, lambda x: random_flip(x, generator, chance=self.flip)),
            (self.rotation, lambda x: random_rotation(x, generator, degrees=self.rotation)),
            (self.brightness, lambda x: random_brightness(x, generator, strength=self.brightness)),
            (self.contrast, lambda x: random_contrast(x, generator, strength=self.contrast)),
            (self.colour, lambda x: random_colour(x, generator, strength=self.colour)),
            (self.blur, lambda x: random_blur(x, generator, chance=self.blur)),
            (self.cutout, lambda x: cutout(x, generator, chance=self.cutout)),
            (self.noise, lambda x: random_noise(x, generator, deviation=self.noise)),
        ]
        for strength, change in changes:
            if strength > 0:
                pixels = change(pixels)
        return pixels


def two_views(
    pixels: Float[Tensor, "B C H W"], generator: Generator, augmentation: Augmentation | None = None
) -> tuple[Float[Tensor, "B C H W"], Float[Tensor, "B C H W"]]:
    """Two independently changed copies of each image: the positive pairs of SimCLR."""
    change = augmentation or Augmentation()
    return change(pixels, generator), change(pixels, generator)


def _uniform(count: int, low: float, high: float, generator: Generator) -> Float[Tensor, " B"]:
    return low + (high - low) * torch.rand(count, generator=generator)


def _per_image(values: Tensor) -> Tensor:
    return values[:, None, None, None]


def _sample(pixels: Float[Tensor, "B C H W"], matrix: Float[Tensor, "B 2 3"]) -> Float[Tensor, "B C H W"]:
    """The images seen through affine maps of their coordinates, which run from -1 to 1."""
    x, y = ((torch.arange(length) * 2 + 1) / length - 1 for length in (pixels.shape[3], pixels.shape[2]))
    # (B, 2, H, W)
    grid = matrix[:, :, :1, None] * x + (matrix[:, :, 1:2] * y + matrix[:, :, 2:])[:, :, :, None]
    return F.grid_sample(pixels, grid.permute(0, 2, 3, 1), padding_mode="border", align_corners=False)


def _bell_curves(length: int, sigma: Float[Tensor, " B"]) -> Float[Tensor, "B 1 n n"]:
    """Row i holds the weights with which the pixels of a line are mixed into pixel i."""
    position = torch.arange(length)
    curves = (-0.5 * ((position[:, None] - position) / sigma[:, None, None]) ** 2).exp()
    return (curves / curves.sum(dim=2, keepdim=True))[:, None]
