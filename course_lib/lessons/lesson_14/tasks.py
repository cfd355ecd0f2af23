"""Lesson 14, Image to image: what its exercises are tried with; their text and their mistakes are in tasks.md.

Where all sizes are one, each input is that of the hardest case: there every mistake changes the result.
"""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks

GROUPS = 8  # of channels, in the group normalisation


def weight_of_a_layer(draw: Draw) -> tuple[Tensor, int, int]:
    """The weight of a layer that reads a flattened feature map of drawn height and width."""
    D_out, C, height, width = draw.sizes(4)
    return draw(D_out, C * height * width), height, width


def pooled(draw: Draw, *, overlapping: bool = True) -> tuple[Tensor, Tensor, int, int]:
    """Values instead of the maxima of a drawn image, where these were, and the image's size."""
    B, C, height, width = draw.sizes(4, 4, 9)
    square = draw.same is not None
    height = height + square  # where all sizes are one, this one differs
    image = draw(B, C, height, width)
    if square:  # no maximum where a wrong row or column would lie outside the image
        number = torch.arange(height * width).view(height, width)
        image = image.masked_fill((number % height >= width) | (number // width >= width), -9.0)
    _, positions = F.max_pool2d(image, 2, stride=1 if overlapping or square else 2, return_indices=True)
    return draw(*positions.shape), positions, height, width


def image_and_kernel(draw: Draw, *, overlapping: bool = True) -> tuple[Tensor, Tensor, int]:
    """An image, a kernel that is larger than the stride or not, and the stride."""
    B, C_in, C_out, height, width = draw.sizes(5, high=7)
    rows, columns = draw.sizes(2, 3, 5) if overlapping or draw.same else (2, 2)
    stride = draw.integers(1, 3, 1).item() if overlapping else draw.integers(2, 4, 1).item()
    stride = 2 if draw.same else stride
    return draw(B, C_in, height, width), draw(C_in, C_out, rows, columns), stride


def channels(draw: Draw, count: int) -> list[int]:
    """Numbers of channels that have groups of two or more, no two alike."""
    return [2 * GROUPS] * count if draw.same else [GROUPS * size for size in draw.sizes(count, 2, 4)]


def features(draw: Draw, *, conditioned: bool) -> TaskInput:
    """A feature map, perhaps a condition, and the sizes of a block."""
    B, C_in, H, W, dim = draw.sizes(5, 3, 8)
    (C_out,) = channels(draw, 1)
    x, condition = 2 * draw(B, C_in, H, W), draw(B, dim)
    if conditioned or draw.same:
        return TaskInput((x, condition), build=(C_in, C_out, dim))
    return TaskInput((x,), build=(C_in, C_out))


def images_and_widths(draw: Draw, *, levels: int = 3) -> tuple[Tensor, int, int, list[int]]:
    """Images, their channels, those of the result, and the widths at each resolution.

    Where all sizes are one, images have as many channels as feature maps, so that these can be confused.
    """
    B, rows, columns, C, K = draw.sizes(5, 2, 6)
    widths, stride = channels(draw, levels), 2 ** (levels - 1)
    rows, columns, C = (2, 3, widths[0]) if draw.same else (rows, columns, C)
    return 2 * draw(B, C, stride * rows, stride * columns), C, K, widths


def of_an_fcn(draw: Draw, *, levels: int = 3) -> TaskInput:
    """Images, and the sizes of an FCN."""
    images, *sizes = images_and_widths(draw, levels=levels)
    return TaskInput((images,), build=tuple(sizes))


def of_a_unet(draw: Draw, *, levels: int = 3, conditioned: bool = False) -> TaskInput:
    """Images, perhaps a condition, and the sizes of a U-Net."""
    images, *sizes = images_and_widths(draw, levels=levels)
    if conditioned or draw.same:
        return TaskInput((images, draw(len(images), 5)), build=(*sizes, 5))
    return TaskInput((images,), build=tuple(sizes))


def labelled_images(draw: Draw, *, mirrored: bool, shifted: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
    """Images and labels, which of them are mirrored, and by how much each is shifted."""
    B, C, H, W = draw.sizes(4, 3, 8)
    flip = draw(B) > 0
    flip[:2] = torch.tensor([True, False])[:B]
    shift = torch.stack([draw.integers(1, size - 1, B) for size in (H, W)], dim=1) * draw(B, 2).sign().long()
    shift[:2] = shift[:2].abs() * torch.tensor([[1, -1], [-1, 1]])[:B]
    labels = draw.integers(1, 6, B, H, W)
    mirrored, shifted = mirrored or bool(draw.same), shifted or bool(draw.same)
    return draw(B, C, H, W), labels, flip & mirrored, shift * shifted, draw.integers(100, 256, 1).item()


def logits_and_labels(draw: Draw, *, unlabelled: bool) -> tuple[Tensor, Tensor, int]:
    """Logits of some classes, labels, and the value that says that there is none."""
    B, K, H, W = draw.sizes(4, 3, 8)
    ignore = draw.integers(100, 256, 1).item()
    labels = draw.integers(0, K - 1, B, H, W)  # no pixel has the last class
    if unlabelled or draw.same:
        labels = labels.masked_fill(draw(B, H, W) > 0.5 * draw(B, 1, 1).abs(), ignore)
        labels[:, 0, 0] = 0
    return 2 * draw(B, K, H, W), labels, ignore


def predicted_and_true(draw: Draw, *, absent: bool = False) -> tuple[Tensor, Tensor, int]:
    """Predicted and true labels of some images; of two more classes one is only predicted, one occurs nowhere."""
    B, K, H, W = draw.sizes(4, 3, 8)
    absent = absent or bool(draw.same)
    true = draw.integers(0, K, B, H, W)
    true.flatten()[:K] = torch.arange(K)
    predicted = torch.where(draw(B, H, W) > 0.3 * draw(B, 1, 1), true, draw.integers(0, K, B, H, W))
    predicted[0, 0, 0] = K if absent else 0
    return predicted, true, K + 2 * absent


def schedule(draw: Draw, steps: int) -> Tensor:
    """The variances of the noise that each step adds."""
    return 0.02 + 0.3 * torch.rand(steps, generator=draw.generator)


def images_and_steps(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images, noise, and another step for each image."""
    B, C, H, W, more = draw.sizes(5, 3, 8)
    t = draw(B + more).argsort()[:B]
    return draw(B, C, H, W), draw(B, C, H, W), t, (1 - schedule(draw, B + more)).cumprod(dim=0)


def noisy_images(draw: Draw, *, last: bool) -> tuple[Tensor, Tensor, Tensor, int, Tensor]:
    """Noisy images, predicted and fresh noise, a step, and the schedule."""
    B, C, H, W, T = draw.sizes(5, 3, 8)
    t = 0 if last else draw.integers(1, T, 1).item()
    return draw(B, C, H, W), draw(B, C, H, W), draw(B, C, H, W), t, schedule(draw, T)


def speckled(draw: Draw, *, empty: bool = False) -> tuple[Tensor, int]:
    """A mask with objects that touch at corners, some of them small."""
    height, width = draw.sizes(2, 9, 13)
    empty = empty and not draw.same
    smallest = draw.integers(2, 4, 1).item()
    mask = draw(height, width) > 0.3
    mask[:5, :5] = False
    mask[0, 0] = mask[2, 1 : 1 + smallest] = mask[3, 1 + smallest : 3 + smallest] = not empty  # corner to corner
    return (mask & False if empty else mask), smallest


def conv_block(*sizes: int, **more: int) -> nn.Module:
    """What a learner's networks take if she has no block of her own: that of the solution."""
    return TASKS["conv_block"].module(*sizes, **more)


PARTS: dict[str, Callable[..., nn.Module]] = {"ConvBlock": conv_block}
CASES = {
    "fc_as_convolution": (
        Case("on a feature map of its own size the convolution computes the layer", weight_of_a_layer),
    ),
    "unpool": (
        Case("every value returns to its position", lambda draw: pooled(draw, overlapping=False)),
        Case("where windows overlap, values add", pooled),
    ),
    "transposed_convolution": (
        Case("copies that do not overlap", lambda draw: image_and_kernel(draw, overlapping=False)),
        Case("where copies overlap they add", image_and_kernel),
    ),
    "conv_block": (
        Case("without a condition", lambda draw: features(draw, conditioned=False), tolerance=1e-3),
        Case("with a condition", lambda draw: features(draw, conditioned=True), tolerance=1e-3),
    ),
    "fcn": (
        Case("the scores of three resolutions", of_an_fcn, tolerance=1e-3),
        Case("of two resolutions", lambda draw: of_an_fcn(draw, levels=2), tolerance=1e-3),
    ),
    "unet": (
        Case("images without a condition", of_a_unet, tolerance=1e-3),
        Case("images with a condition", lambda draw: of_a_unet(draw, conditioned=True), tolerance=1e-3),
        Case("two resolutions", lambda draw: of_a_unet(draw, levels=2), tolerance=1e-3),
    ),
    "augment": (
        Case("mirrored", lambda draw: labelled_images(draw, mirrored=True, shifted=False)),
        Case("shifted", lambda draw: labelled_images(draw, mirrored=False, shifted=True)),
        Case("mirrored and shifted", lambda draw: labelled_images(draw, mirrored=True, shifted=True)),
    ),
    "segmentation_loss": (
        Case("every pixel has a class", lambda draw: logits_and_labels(draw, unlabelled=False)),
        Case("some pixels without a class", lambda draw: logits_and_labels(draw, unlabelled=True)),
    ),
    "overlap": (
        Case("each class, over all pixels", predicted_and_true),
        Case("a class that occurs nowhere is undefined", lambda draw: predicted_and_true(draw, absent=True)),
    ),
    "add_noise": (Case("image and noise, each scaled for its step", images_and_steps),),
    "denoise_step": (
        Case("a step", lambda draw: noisy_images(draw, last=False)),
        Case("the last step adds no noise", lambda draw: noisy_images(draw, last=True)),
    ),
    "boxes": (
        Case("a box for each connected component", speckled),
        Case("no object, no box", lambda draw: speckled(draw, empty=True)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS)
