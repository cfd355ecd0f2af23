"""Assignment 11: its references agree with the library and autograd, and its digits are in pieces as it says."""

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
from course_lib.lessons.lesson_11.assignment import (
    MEMORISED,
    NEIGHBOURS,
    NOT_LEARNED,
    ONLY_COMPLETE,
    WITHOUT_POSITIONS,
    classifies,
    digits_in_pieces,
)
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.findings import RANDOM, WRONG_SHAPE
from course_lib.tasks.trained import ELSEWHERE
from tests.assignments.mistaken import passed

LOADED = load(read_assignment(Folders(root=course_folder() / "notebooks" / "assignments").root, "11"))
TABLES = {table.name: table for table in LOADED.assignment.tasks}


def drawn(name):
    return [case.inputs(Draw(seed)) for case in TABLES[name].cases for seed in (1, 2)]


def test_patches_without_overlap_or_padding_are_the_library_s():
    image = torch.randn(2, 3, 8, 12)
    assert torch.equal(TABLES["overlapping_patches"].reference(image, 4, 4, 0), patchify(image, 4))


def test_overlapping_patches_times_a_matrix_are_a_convolution():
    for image, p, stride, padding in drawn("overlapping_patches"):
        kernel = torch.randn(6, image.shape[1], p, p)
        wanted = nn.functional.conv2d(image, kernel, stride=stride, padding=padding).flatten(2).mT
        found = TABLES["overlapping_patches"].reference(image, p, stride, padding)
        torch.testing.assert_close(found @ kernel.permute(2, 3, 1, 0).flatten(0, 2), wanted, atol=1e-3, rtol=1e-3)


def test_positions_are_the_library_s():
    for patches, height, width in drawn("add_positions"):
        wanted = patches + sinusoidal_positions_2d(height, width, patches.shape[-1])
        torch.testing.assert_close(TABLES["add_positions"].reference(patches, height, width), wanted)


def test_with_gradients_of_one_the_rollout_is_the_library_s():
    for weights, gradients, height, width in drawn("rollout_map"):
        row = attention_rollout(weights)[:, 0, 1:]
        wanted = (row / row.sum(dim=1, keepdim=True)).view(-1, height, width)
        found = TABLES["rollout_map"].reference(weights, torch.ones_like(gradients), height, width)
        torch.testing.assert_close(found, wanted)


def test_without_the_copies_shifted_patches_are_the_library_s():
    for image, p, shift in drawn("shifted_patches"):
        found = TABLES["shifted_patches"].reference(image, p, shift).unflatten(-1, (p * p, 5, image.shape[1]))
        assert torch.equal(found[:, :, :, 0].flatten(2), patchify(image, p))
        moved = torch.zeros_like(image)
        moved[..., :-shift, :-shift] = image[..., shift:, shift:]
        assert torch.equal(found[:, :, :, 1].flatten(2), patchify(moved, p))


def test_scores_of_rotated_vectors_depend_on_the_distance_alone():
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.double)
    rotate = TABLES["rotate_by_position"].reference
    scores = (rotate(query.expand(1, 1, 12, 8), 3, 4) @ rotate(key.expand(1, 1, 12, 8), 3, 4).mT)[0, 0]
    scores = scores.view(3, 4, 3, 4)  # row and column of the query, then of the key
    torch.testing.assert_close(scores[0, 0, 1, 2], scores[1, 1, 2, 3])
    assert (scores[0, 0, 1, 2] - scores[0, 0, 2, 1]).abs() > 1e-3


def test_with_values_of_one_and_no_residual_the_contributions_are_those_of_the_weights():
    for weights, values, inputs, height, width in drawn("contribution_map"):
        rolled = torch.eye(weights.shape[-1])
        for block in weights.mean(dim=2).unbind(dim=1):
            rolled = block @ rolled
        row = rolled[:, 0, 1:]
        wanted = (row / row.sum(dim=1, keepdim=True)).view(-1, height, width)
        found = TABLES["contribution_map"].reference(weights, 0 * values + 1, 0 * inputs, height, width)
        torch.testing.assert_close(found, wanted)


def test_merged_tokens_are_those_of_a_loop():
    for tokens, keys, sizes, count in drawn("merge_tokens"):
        found = TABLES["merge_tokens"].reference(tokens, keys, sizes, count)
        for image in range(len(tokens)):
            unit = nn.functional.normalize(keys[image].mean(dim=0), dim=-1)
            best = {
                even: max((float(unit[even] @ unit[odd]), odd) for odd in range(1, len(unit), 2))
                for even in range(2, len(unit), 2)
            }
            joins = sorted(best, key=lambda even: best[even])[-count:]
            wanted = []
            for token in (token for token in range(len(unit)) if token not in joins):
                group = [token, *(even for even in joins if best[even][1] == token)]
                weights = sizes[image, group]
                wanted.append(weights @ tokens[image, group] / weights.sum())
            torch.testing.assert_close(found[image], torch.stack(wanted))


def test_a_secret_is_one_numbering_of_the_positions_for_all_splits():
    numbers = Draw(3)(16).argsort()
    for split in ("train", "test"):
        digits = CleanDigits(split=split, size=20, scale=(0.6, 0.85), rotation=15.0, shift=0.1)
        pixels, labels = digits.batch(20, 3)
        found = digits_in_pieces(split, 20, secret=3)
        in_order = found.patches[torch.arange(20)[:, None], found.positions.argsort(dim=1)]
        assert torch.equal(in_order[:, numbers], patchify(pixels, 5))
        assert torch.equal(found.labels, labels) and (found.positions[0] != found.positions[1]).any()
        assert torch.equal(found.first(10).patches, found.patches[:, :10])


class Answer(nn.Module):
    """Logits by a linear layer from what a function makes of patches and positions."""

    def __init__(self, seen, width, *more):
        super().__init__()
        self.seen, self.layers = seen, nn.Sequential(nn.Linear(width, 10), *more)

    def forward(self, patches, positions):
        return self.layers(self.seen(patches, positions))


def in_table(patches, positions):
    table = torch.zeros(len(patches), 16, 25)
    return table.scatter(1, positions[:, :, None].expand(-1, -1, 25), patches).flatten(1)


def bag(patches, positions):
    return patches.square().mean(dim=1)


class Known(nn.Module):
    """Right for the digits that it is made of, if so many of their patches are given at least; else always 0."""

    def __init__(self, digits, *, fewest=1, trained=True):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10)) if trained else 1.0
        self.keys, self.labels, self.fewest = self.key(digits.patches), digits.labels, fewest

    def key(self, patches):
        return patches[:, :10].sum(dim=1)

    def forward(self, patches, positions):
        nearest = torch.cdist(self.key(patches), self.keys).argmin(dim=1)
        labels = self.labels[nearest] * (patches.shape[1] >= self.fewest)
        return (nn.functional.one_hot(labels, 10) + 0.01 * positions[:, :1]) * self.scale


SECRET = Draw(0).integers(0, 2**31, 1).item()
NEW = digits_in_pieces("test", 1000, secret=SECRET)
TRAINING = digits_in_pieces("train", 4000, secret=SECRET)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Answer(bag, 25), [WITHOUT_POSITIONS.misconception]),
        (Answer(in_table, 400, nn.Dropout(0.5)), [RANDOM]),
        (Answer(in_table, 400, nn.Dropout(0.5)).eval(), [NOT_LEARNED.misconception]),
        (Answer(in_table, 400, nn.BatchNorm1d(10)), [NEIGHBOURS.misconception]),
        (Answer(lambda *given: bag(*given)[:, None], 25), [WRONG_SHAPE]),
        (Answer(lambda patches, _: torch.zeros(len(patches), 25), 25), [NOT_LEARNED.misconception]),
        (Known(TRAINING), [MEMORISED.misconception]),
        (Known(NEW, fewest=16), [ONLY_COMPLETE.misconception]),
        (Known(NEW, trained=False), [ELSEWHERE]),
        (Known(NEW), []),
    ],
)
def test_what_went_wrong_in_training_is_told(model, told):
    check = classifies("upper", 1, above=0.6, given=10)
    report = run_checks(lambda patches, positions, labels: model, [check], asks=TABLES["train"].asks)
    assert report.misconceptions == told


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("overlapping_patches", "padding left out"),
        ("shifted_patches", "half a patch instead of the shift"),
        ("add_positions", "sines and cosines alternate"),
        ("rotate_by_position", "pairs half a vector apart"),
        ("rollout_map", "positive part after the mean"),
        ("contribution_map", "mean over the heads"),
        ("keep_tokens", "kept in order of attention"),
        ("merge_tokens", "class token joins a patch"),
    ],
)
def test_a_mistake_that_not_all_cases_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert 1 < sum(check.points for check in right) < table.points
