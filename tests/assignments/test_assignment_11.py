"""Assignment 11: its references are what the library does, and its digits are in pieces as it says."""

import pytest
import torch
from torch import nn

from course_lib.data.digits import CleanDigits
from course_lib.data.place import course_folder
from course_lib.functional.attention_maps import attention_rollout
from course_lib.functional.positions import sinusoidal_positions_2d
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.patches import patchify
from course_lib.lessons.lesson_11.assignment import names, scrambled_digits
from course_lib.tasks import Draw, run_checks
from tests.assignments.mistaken import passed

LOADED = load(read_assignment(Folders(root=course_folder() / "notebooks" / "assignments").root, "11"))
TABLES = {table.name: table for table in LOADED.assignment.tasks}


def drawn(name):
    return [case.inputs(Draw(seed)) for case in TABLES[name].cases for seed in (1, 2)]


def test_patches_without_overlap_or_frame_are_the_library_s():
    image = torch.randn(2, 3, 8, 12)
    assert torch.equal(TABLES["overlapping_patches"].reference(image, 4, 4, 0), patchify(image, 4))


def test_positions_are_the_library_s():
    for patches, height, width in drawn("add_positions"):
        wanted = patches + sinusoidal_positions_2d(height, width, patches.shape[-1])
        torch.testing.assert_close(TABLES["add_positions"].reference(patches, height, width), wanted)


def test_rollout_is_the_library_s():
    for weights, height, width in drawn("rollout_map"):
        row = attention_rollout(weights)[:, 0, 1:]
        wanted = (row / row.sum(dim=1, keepdim=True)).view(-1, height, width)
        torch.testing.assert_close(TABLES["rollout_map"].reference(weights, height, width), wanted)


def test_a_secret_is_one_order_of_the_patches_for_all_splits():
    for split in ("train", "test"):
        pixels, labels = CleanDigits(split=split, size=16).batch(20, 3)
        found = scrambled_digits(split, 20, secret=3)
        order = Draw(3)(16).argsort()
        assert torch.equal(patchify(found.pixels[:, None], 4), patchify(pixels, 4)[:, order])
        assert torch.equal(found.labels, labels) and not torch.equal(found.pixels, pixels[:, 0])


class Bag(nn.Module):
    """Scores that do not depend on where a patch stands."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 10)

    def forward(self, pictures):
        return self.layer(patchify(pictures[:, None], 4)).square().mean(dim=1)


class Squeezed(Bag):
    """Scores that lack the axis of the batch for a picture alone."""

    def forward(self, pictures):
        return super().forward(pictures).squeeze()


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Bag(), "places left out"),
        (nn.Sequential(nn.Flatten(), nn.Linear(256, 10), nn.Dropout(0.5)), "another result each time"),
        (nn.Sequential(nn.Flatten(), nn.Linear(256, 10), nn.Dropout(0.5)).eval(), "not learned"),
        (Squeezed(), "wrong shape"),
    ],
)
def test_what_went_wrong_in_training_is_told(model, told):
    report = run_checks(lambda pictures, labels: model, [names("named right", 1, level=0.6)], asks="pictures, labels")
    assert report.misconceptions == [told]


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("add_positions", "sines and cosines by turns"),
        ("rollout_map", "not the mean over the heads"),
        ("keep_tokens", "kept in order of attention"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 4 < sum(check.points for check in right) < table.points
