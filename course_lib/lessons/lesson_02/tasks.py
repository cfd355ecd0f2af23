"""Lesson 02, Representation learning: what its exercises are tried with; tasks.md has their text and mistakes."""

import math
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.functional.losses import nt_xent
from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks

# --------------------------------------------------- what a learner's code takes if she has nothing of her own


def random_crop(images: Tensor, noise: Tensor, smallest: float, degrees: float) -> Tensor:
    """A turned square of each image, as large as the whole."""
    side = (smallest + (1 - smallest) * noise[0]).sqrt()
    centre = (2 * noise[1:3] - 1) * (1 - side)
    angle = (2 * noise[3] - 1) * degrees * math.pi / 180
    cos, sin = side * angle.cos(), side * angle.sin()
    theta = torch.stack([cos, -sin, centre[0], sin, cos, centre[1]], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


class Block(nn.Module):
    """The residual block that stands on the page."""

    def __init__(self, in_channels: int, out_channels: int, stride: int):
        super().__init__()
        conv = partial(nn.Conv2d, out_channels=out_channels, bias=False)
        self.conv1 = conv(in_channels, kernel_size=3, stride=stride, padding=1)
        self.conv2 = conv(out_channels, kernel_size=3, padding=1)
        self.skip = conv(in_channels, kernel_size=1, stride=stride)
        self.norm1, self.norm2, self.skip_norm = (nn.BatchNorm2d(out_channels) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip_norm(self.skip(x)))


class Encoder(nn.Module):
    """What a learner's SimCLR takes if she has no encoder of her own."""

    def __init__(self, in_channels: int, widths: tuple[int, ...]):
        super().__init__()
        self.stem = nn.Conv2d(in_channels, widths[0], 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        pairs = zip((widths[0], *widths), widths, strict=False)
        self.blocks = nn.ModuleList(Block(channels, width, stride=2) for channels, width in pairs)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return x.mean(dim=(-2, -1))


def loss_of_views(z: Tensor, temperature: float) -> Tensor:
    """NT-Xent of all first views before all second ones."""
    return nt_xent(*z.chunk(2), temperature=temperature)


class SmallProjection(nn.Module):
    """A network with a batch norm and drawn weights: what a training loop is tried on."""

    def __init__(self, draw: Draw, inputs: int, width: int):
        super().__init__()
        self.hidden, self.norm, self.out = nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.Linear(width, width)
        with torch.no_grad():
            for layer in (self.hidden, self.out):
                layer.weight.copy_(draw(*layer.weight.shape) / layer.weight.shape[1] ** 0.5)
                layer.bias.copy_(draw(*layer.bias.shape))

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.relu(self.norm(self.hidden(x.flatten(1)))))


# ------------------------------------------------------------------------------------------------------- inputs


def images_and_noise(draw: Draw, *, rows: int = 4, views: int | None = None) -> tuple[Tensor, Tensor]:
    """Images of mixed grey, and uniform noise for each."""
    B, S = draw.integers(3, 6, 1).item(), draw.integers(9, 13, 1).item()
    images = torch.rand(B, 1, S, S, generator=draw.generator)
    shape = (rows, B) if views is None else (views, rows, B)
    return images, torch.rand(*shape, generator=draw.generator)


def for_a_crop(draw: Draw, *, degrees: float = 30.0) -> tuple[Tensor, Tensor, float, float]:
    """Colour images, and what a crop needs."""
    images, noise = images_and_noise(draw)
    return images.expand(-1, 2, -1, -1) * torch.tensor([1.0, 0.5])[:, None, None], noise, 0.25, degrees


def for_views(draw: Draw) -> tuple[Tensor, Tensor]:
    """Images, and noise of which the last row decides both ways in each view."""
    images, noise = images_and_noise(draw, rows=7, views=2)
    noise[:, 6, 0], noise[:, 6, 1] = 0.2, 0.8
    return images, noise


def sizes_and_images(draw: Draw, *, projected: bool = False) -> TaskInput:
    """The sizes of an encoder, and images for it."""
    B, C = draw.integers(3, 6, 1).item(), draw.integers(1, 4, 1).item()
    widths = tuple(draw.integers(3, 7, 3).tolist())
    build = (C, widths, draw.integers(3, 7, 1).item()) if projected else (C, widths)
    return TaskInput((draw(B, C, 14, 14),), build=build)


def pairs(draw: Draw, temperature: float | None = None) -> tuple[Tensor, float]:
    """Two views each, alike but not equal, of unequal lengths."""
    count, width = draw.sizes(2, low=3)
    first = draw(count, width)
    lengths = 0.5 + torch.arange(count)[:, None] / count
    drawn = 0.2 + 0.1 * int(draw.integers(0, 5, 1))
    both = torch.cat([first, lengths * (first + draw(count, width))])
    return both, drawn if temperature is None else temperature


def model_and_batches(draw: Draw) -> tuple[nn.Module, list[Tensor], float, float]:
    """A network, batches of views whose first ones are brighter than the second ones, a temperature and a peak."""
    B, S = draw.integers(4, 7, 1).item(), 4
    model, batches = SmallProjection(draw, S * S, 6), []
    for _ in range(12):
        first = draw(B, 1, S, S)
        batches.append(torch.cat([first + 1, 0.7 * first + 0.5 * draw(B, 1, S, S)]))
    return model, batches, 0.5, 0.05


def clouds(draw: Draw, k: int = 5) -> tuple[Tensor, Tensor, Tensor, int]:
    """Stored rows in four directions, of very different lengths; a third of the labels are wrong, so that one
    neighbour is not to be trusted.
    """
    width, per_class = 6, 9
    centres = 4 * draw(4, width)
    labels = torch.arange(4).repeat(per_class)
    stored = centres[labels] + draw(len(labels), width)
    stored = stored * (0.2 + 3 * draw(len(labels), 1).abs())
    wrong = torch.arange(len(labels)) % 3 == 2
    asked = centres[torch.arange(12) % 4] + draw(12, width)
    return asked, stored, torch.where(wrong, (labels + 1) % 4, labels) + 3, k


def labelled_features(draw: Draw, decay: float) -> tuple[Tensor, Tensor, int, float]:
    """Representations in unequally many examples of some classes."""
    D, classes = draw.integers(4, 7, 1).item(), draw.integers(3, 5, 1).item()
    labels = torch.cat([torch.arange(classes), draw.integers(0, classes, 9), torch.zeros(6, dtype=torch.long)])
    return draw(classes, D)[labels] + draw(len(labels), D) + 0.5, labels, classes, decay


def some_views(draw: Draw) -> tuple[Tensor, Tensor]:
    """Views that are alike, not of length 1."""
    count, width = draw.sizes(2, low=4)
    first = 0.7 * draw(count, width) + 0.6
    return first, 1.7 * (first + 0.4 * draw(count, width))


CASES = {
    "random_crop": (
        Case("a square of each image, turned and enlarged", for_a_crop),
        Case("without turning", lambda draw: for_a_crop(draw, degrees=0.0)),
    ),
    "views": (Case("all first views, then all second ones", for_views),),
    "encoder": (Case("stem, blocks, mean over height and width", sizes_and_images),),
    "simclr": (
        Case("encoder and projection head", lambda draw: sizes_and_images(draw, projected=True), tolerance=1e-3),
    ),
    "nt_xent": (
        Case("the mean over all views of minus the log-probability of the partner", pairs),
        Case("a high temperature", lambda draw: pairs(draw, 3.0)),
    ),
    "train": (Case("the losses of 12 batches", model_and_batches),),
    "knn": (
        Case("the most frequent label among the five nearest", clouds, tolerance=1e-6),
        Case("one neighbour decides alone", lambda draw: clouds(draw, 1), tolerance=1e-6),
    ),
    "linear_probe": (
        Case("weights and bias after 200 steps", lambda draw: labelled_features(draw, 0.1)),
        Case("without a penalty", lambda draw: labelled_features(draw, 0.0)),
    ),
    "clip_loss": (Case("the mean of both cross-entropies", lambda draw: (*some_views(draw), 3.0)),),
    "alignment_uniformity": (Case("alignment and uniformity of directions", some_views),),
}
EXAMPLES = {
    "nt_xent": ((([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 3.0]], 1.0), 0.5514),),
    "knn": (
        (
            (
                [[1.0, 0.0]],
                [[2.0, 0.1], [9.0, 9.0], [1.0, 0.2], [3.0, -0.9], [0.0, 4.0]],
                torch.tensor([7, 3, 4, 4, 3]),
                3,
            ),
            [4],
        ),
    ),
}
PARTS = {"my_random_crop": random_crop, "Block": Block, "Encoder": Encoder, "my_nt_xent": loss_of_views}
TASKS = read_tasks(
    Path(__file__).with_name("tasks.md"),
    CASES,
    PARTS,
    **{name: {"example": example} for name, example in EXAMPLES.items()},
)
