"""What a unit of a network responds to: the picture that excites it most, the patches that do, and what it misses.

Erhan, Bengio, Courville & Vincent, "Visualizing higher-layer features of a deep network", 2009 (activation
maximisation). Simonyan, Vedaldi & Zisserman, "Deep inside convolutional networks", 2014, arXiv 1312.6034 (of a class,
with an L2 penalty). Zeiler & Fergus, "Visualizing and understanding convolutional networks", ECCV 2014, arXiv 1311.2901
(patches, occlusion). Yosinski et al., "Understanding neural networks through deep visualization", 2015, arXiv
1506.06579 (blurring now and then).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


class Field(NamedTuple):
    """What one place of a map sees: `size` pixels a side; `stride` pixels on, the next place does."""

    size: int
    stride: int


def receptive_fields(layers: Iterable[tuple[int, int]]) -> list[Field]:
    """The field behind each of a chain of convolutions, given as (kernel, stride), first to last.

    A kernel of k reaches k - 1 steps further, and each step is as wide as all strides before it.
    Raises ValueError for a kernel or stride below 1.
    """
    size, stride, fields = 1, 1, []
    for kernel, step in layers:
        if kernel < 1 or step < 1:
            raise ValueError(f"kernel and stride must be at least 1, got ({kernel}, {step})")
        size, stride = size + (kernel - 1) * stride, stride * step
        fields.append(Field(size, stride))
    return fields


def cut_out(image: Float[Tensor, "C H W"], row: int, column: int, field: Field) -> Float[Tensor, "C S S"]:
    """What the place (row, column) of a map sees of an image; beyond its border stands NaN.

    The convolutions had odd kernels and a padding of half of them, so that place r is centred on pixel r * stride. A
    field larger than the image is cut down to it.
    """
    size = min(field.size, image.shape[-1])
    if size == image.shape[-1]:
        return image
    half = field.size // 2
    padded = F.pad(image, (half, half, half, half), value=math.nan)
    top, left = row * field.stride, column * field.stride
    return padded[:, top : top + field.size, left : left + field.size]


class Patches(NamedTuple):
    """The patches that excite a channel most, best first, and in which images they were."""

    pictures: list[Float[Tensor, "C S S"]]
    images: list[int]


def most_exciting(
    maps: Float[Tensor, "B h w"], images: Float[Tensor, "B C H W"], field: Field, *, count: int = 9
) -> Patches:
    """Of one channel's maps the `count` highest places, at most one in each image, cut to the receptive field.

    Raises ValueError if there are fewer images.
    """
    if not 1 <= count <= len(images) or len(maps) != len(images):
        raise ValueError(f"count must be from 1 to the number of images, {len(images)} of {len(maps)} maps: {count}")
    highest, position = maps.flatten(1).max(dim=1)
    best = highest.topk(count).indices.tolist()
    positions = [divmod(int(position[image]), maps.shape[2]) for image in best]
    return Patches([cut_out(images[image], *where, field) for image, where in zip(best, positions, strict=True)], best)


@dataclass(frozen=True, kw_only=True)
class Regularisers:
    """What keeps a maximised picture away from noise; with all of them 0 there is nothing."""

    variation: float = 0.01  # penalty on neighbours that differ
    l2: float = 0.002  # penalty on pixels away from middle grey, Simonyan et al. 2014, eq. (1)
    roll: int = 3  # pixels, at most, that the picture is shifted by before each look
    blur: float = 0.6  # standard deviation, in pixels, of a blur now and then, Yosinski et al. 2015
    blur_every: int = 4  # steps
    largest: float = 2.0  # a standardised pixel is kept between -largest and largest: black and white


NOTHING = Regularisers(variation=0, l2=0, roll=0, blur=0)


def total_variation(image: Float[Tensor, "B C H W"]) -> Float[Tensor, " B"]:
    """Sum of the absolute differences of neighbours, across and down."""
    across, down = image.diff(dim=3).abs(), image.diff(dim=2).abs()
    return across.sum(dim=(1, 2, 3)) + down.sum(dim=(1, 2, 3))


def blurred(image: Float[Tensor, "B C H W"], spread: float) -> Float[Tensor, "B C H W"]:
    """The image under a Gaussian of this standard deviation, its border continued; `spread` 0 changes nothing."""
    if spread == 0:
        return image
    reach = max(1, math.ceil(3 * spread))
    line = torch.exp(-0.5 * (torch.arange(-reach, reach + 1, dtype=image.dtype) / spread).square())
    line = line / line.sum()
    channels = image.shape[1]
    padded = F.pad(image, (reach, reach, reach, reach), mode="replicate")
    rows = F.conv2d(padded, line.view(1, 1, 1, -1).expand(channels, 1, 1, -1), groups=channels)
    return F.conv2d(rows, line.view(1, 1, -1, 1).expand(channels, 1, -1, 1), groups=channels)


def maximise(
    score: Callable[[Float[Tensor, "B C H W"]], Float[Tensor, " B"]],
    shape: tuple[int, int, int, int],
    *,
    regularisers: Regularisers = Regularisers(),
    steps: int = 200,
    rate: float = 0.1,
    start: float = 0.3,
    seed: int = 0,
) -> Float[Tensor, "B C H W"]:
    """Standardised images of this shape, each climbed by Adam to a high `score`, from noise of the spread `start`.

    It ascends score - variation * TV - l2 * |image|^2. Raises ValueError for a number of steps below 1.
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    draws = torch.Generator().manual_seed(seed)
    image = (start * torch.randn(shape, generator=draws)).requires_grad_(True)
    optimiser, most = torch.optim.Adam([image], lr=rate), regularisers.roll
    for step in range(1, steps + 1):
        shift = torch.randint(-most, most + 1, (2,), generator=draws).tolist()
        penalty = regularisers.variation * total_variation(image) + regularisers.l2 * image.square().sum(dim=(1, 2, 3))
        climbed = (score(image.roll(shift, dims=(2, 3))) - penalty).sum()
        (image.grad,) = torch.autograd.grad(-climbed, image)
        optimiser.step()
        with torch.no_grad():
            if step % regularisers.blur_every == 0:
                image.copy_(blurred(image, regularisers.blur))
            image.clamp_(-regularisers.largest, regularisers.largest)
    return image.detach()


@torch.no_grad()
def occlusion_map(
    score: Callable[[Float[Tensor, "B C H W"]], Float[Tensor, " B"]],
    image: Float[Tensor, "1 C H W"],
    *,
    size: int = 7,
    stride: int = 1,
    fill: float = 0.0,
) -> Float[Tensor, "h w"]:
    """By how much the score falls when a square of `size` pixels of `fill` covers the image, for each of its places.

    Raises ValueError for a square that does not fit.
    """
    _, _, height, width = image.shape
    if not 1 <= size <= min(height, width) or stride < 1:
        raise ValueError(f"a square of {size} pixels at a stride of {stride} does not fit into {height} x {width}")
    tops, lefts = range(0, height - size + 1, stride), range(0, width - size + 1, stride)
    covered = image.repeat(len(tops) * len(lefts), 1, 1, 1)
    for number, (top, left) in enumerate((top, left) for top in tops for left in lefts):
        covered[number, :, top : top + size, left : left + size] = fill
    fallen = score(image) - torch.cat([score(part) for part in covered.split(256)])
    return fallen.view(len(tops), len(lefts))
