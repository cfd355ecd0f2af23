"""The exercises of lesson 14 ask for what the library does, and what passes runs inside the lesson's nets."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.functional.images import (
    fully_connected_as_convolution,
    max_unpool,
    readable_transposed_convolution,
)
from course_lib.functional.segmentation import (
    confusion_matrix,
    connected_components,
    intersection_over_union,
    mask_boxes,
)
from course_lib.lessons.lesson_14.tasks import TASKS
from course_lib.models.unet import UNet, UNetConfig
from course_lib.tasks import Draw

as_kernel, unpool, stamped, overlap, boxes = (task.reference for task in TASKS.values())


def drawn(name):
    """The inputs of each case of a task."""
    return [case.inputs(Draw(seed)) for case in TASKS[name].cases for seed in (1, 2)]


@pytest.mark.parametrize(
    ("name", "mine", "ours"),
    [
        ("fc_as_convolution", as_kernel, fully_connected_as_convolution),
        ("unpool", unpool, max_unpool),
        (
            "transposed_convolution",
            stamped,
            lambda image, kernel, stride: F.conv_transpose2d(image, kernel, stride=stride),
        ),
        (
            "overlap",
            lambda *given: overlap(*given)[0],
            lambda p, t, k: intersection_over_union(confusion_matrix(p, t, k)),
        ),
    ],
)
def test_the_references_do_what_the_library_does(name, mine, ours):
    for given in drawn(name):
        torch.testing.assert_close(mine(*given), ours(*given), check_dtype=False, equal_nan=True)


def test_boxes_are_those_of_the_connected_components():
    for mask, smallest in drawn("boxes")[:2]:
        numbers = connected_components(mask[None].long())[0]
        masks = numbers == torch.arange(1, int(numbers.max()) + 1)[:, None, None]
        masks = masks[masks.sum(dim=(1, 2)) >= smallest]
        assert boxes(mask, smallest) == [tuple(box) for box in mask_boxes(masks).tolist()] != []


def test_the_numbers_worked_out_in_the_lesson():
    image = torch.tensor([[[[120.0, 150, 120], [100, 50, 110], [25, 25, 10]]]])
    values, positions = F.max_pool2d(image, 2, stride=1, return_indices=True)
    assert values.tolist() == [[[[150, 150], [100, 110]]]]
    grown = unpool(torch.tensor([[[[300.0, 450], [100, 250]]]]), positions, 3, 3)
    assert grown.tolist() == [[[[0, 750, 0], [100, 0, 250], [0, 0, 0]]]]
    row, kernel = torch.tensor([[[[120.0, 150]]]]), torch.tensor([[[[1.0, -1], [2, -2]]]])
    assert stamped(row, kernel, 1).tolist() == [[[[120, 30, -150], [240, 60, -300]]]]
    assert torch.equal(stamped(row, kernel, 2), readable_transposed_convolution(row, kernel, stride=2))


class Up(nn.Module):
    """A transposed convolution of torch's, computed by a function."""

    def __init__(self, layer, function):
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x):
        return self.function(x, self.layer.weight, self.layer.stride[0]) + self.layer.bias[:, None, None]


def test_a_function_that_passes_runs_inside_the_decoder_and_learns():
    torch.manual_seed(0)
    model, pixels = UNet(UNetConfig(widths=(4, 6, 8))).eval(), torch.randn(2, 1, 16, 16)
    wanted = model(pixels)
    for block in model.decoder:
        block.up = Up(block.up, stamped)
    torch.testing.assert_close(model(pixels), wanted)
    model(pixels).sum().backward()
    assert all(block.up.layer.weight.grad.abs().sum() > 0 for block in model.decoder)
