"""Assignment 14: its references are what the library does, and its cells are what the grader has."""

import contextlib
import io

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.functional.diffusion import add_noise, clean_estimate, denoise_step, linear_schedule
from course_lib.functional.segmentation import Instances, average_precision, mean_iou
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.segmentation import bilinear_upsampling
from course_lib.lessons.lesson_14.assignment import (
    COARSE,
    KINDS,
    NO_CONTEXT,
    NOT_LEARNED,
    TOGETHER,
    _why,
    drawings,
    inside_iou,
    labelled,
    near_borders,
)
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from course_lib.tasks.trained import ELSEWHERE
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "14")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
CELLS = {cell.id: cell.source for cell in nbformat.reads(FILES.source_notebook.decode(), as_version=4).cells}


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define, with the references of two tasks."""
    names = {}
    for name in ("setup", "ddim_step", "drawings", "train"):
        exec(CELLS[name], names)
    return names


@pytest.mark.parametrize("factor", [1, 2, 3, 5, 8])
def test_feature_maps_are_enlarged_as_in_the_library(factor):
    x = torch.randn(2, 3, 4, 5)
    ours = bilinear_upsampling(3, factor)(x)
    torch.testing.assert_close(TABLES["upsample"].reference(x, factor), ours)
    assert ours.shape == (2, 3, 4 * factor, 5 * factor)


def test_the_features_of_boxes_are_those_of_a_sampling_grid():
    for case in TABLES["roi_align"].cases:
        x, boxes, stride, size = case.inputs(Draw(3))
        part = (torch.arange(2 * size) + 0.5) / (2 * size)
        sides = torch.tensor([x.shape[2], x.shape[1]]) * stride
        for box, found in zip(boxes, TABLES["roi_align"].reference(x, boxes, stride, size), strict=True):
            points = box[:2] + part[:, None] * (box[2:] - box[:2])  # (2 size, 2): from the left, from the top
            right, down = (2 * points / sides - 1).T
            grid = torch.stack(torch.meshgrid(right, down, indexing="xy"), dim=-1)
            samples = F.grid_sample(x[None], grid[None], padding_mode="border", align_corners=False)
            torch.testing.assert_close(found, F.avg_pool2d(samples[0], 2), atol=1e-5, rtol=1e-5)


# a step of DDIM ----------------------------------------------------------------------------------------------

SCHEDULE = linear_schedule(200)


@pytest.mark.parametrize(("t", "before"), [(199, 0), (120, 40), (7, 6)])
def test_with_the_true_noise_a_step_leads_to_the_noisy_image_of_the_earlier_step(t, before):
    images, noise = Draw(0)(3, 2, 5, 4).double(), Draw(1)(3, 2, 5, 4).double()
    noisy, wanted = (add_noise(images, noise, torch.full((3,), step), SCHEDULE) for step in (t, before))
    found = TABLES["ddim_step"].reference(noisy, noise, t, before, SCHEDULE.alpha_bars.double())
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)


def test_the_step_to_clean_images_is_the_estimate_of_the_library():
    noisy, predicted = Draw(0)(2, 1, 4, 4), Draw(1)(2, 1, 4, 4)
    found = TABLES["ddim_step"].reference(noisy, predicted, 60, -1, SCHEDULE.alpha_bars)
    torch.testing.assert_close(found, clean_estimate(noisy, predicted, torch.full((2,), 60), SCHEDULE))


def test_the_mean_of_ddpm_which_is_named_as_a_mistake_is_that_of_the_library():
    table = TABLES["ddim_step"]
    (way,) = {known.name: known for known in table.mistakes}["mean of DDPM"].ways
    noisy, predicted = Draw(0)(2, 1, 4, 4), Draw(1)(2, 1, 4, 4)
    mean = denoise_step(noisy, predicted, torch.zeros_like(noisy), 60, SCHEDULE)
    torch.testing.assert_close(
        table.reference.changed(way)(noisy, predicted, 60, 59, SCHEDULE.alpha_bars), mean, atol=1e-4, rtol=1e-4
    )


def test_the_cell_below_the_step_shows_that_20_steps_are_enough_and_5_are_not(cells):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS["try-ddim"], dict(cells))
    shown = [float(line.split()[-1]) for line in said.getvalue().splitlines()]
    assert len(shown) == 5 and max(shown[:2]) < 0.01 and 0.2 < shown[3] < 0.3 and shown[4] > 0.98
    for number in shown:  # as the answer that is graded by hand says
        assert f"{number:.3f}" in CELLS["in-your-own-words"]


# the Lovász-Softmax loss --------------------------------------------------------------------------------------


def test_the_loss_of_decisions_is_one_minus_the_mean_iou():
    labels = Draw(0).integers(0, 3, 2, 8, 8)
    decided = torch.where(Draw(1)(2, 8, 8) > 0, labels, labels.roll(1))
    probs = F.one_hot(decided, 3).movedim(-1, 1).float()
    found = TABLES["lovasz_softmax"].reference(probs, labels)
    assert found.item() == pytest.approx(1 - mean_iou(decided, labels, 3))


def test_the_loss_is_the_mean_loss_of_the_sets_of_errors_above_a_random_threshold():
    for case in TABLES["lovasz_softmax"].cases:
        probs, labels = case.inputs(Draw(3))
        kept, losses = labels != 255, []
        for c in labels[kept].unique():
            target, p = (labels == c)[kept], probs[:, c][kept]
            errors = torch.where(target, 1 - p, p)
            levels = torch.cat([torch.zeros(1), errors.sort().values])
            iou = [(target & (errors < top)).sum() / (target | (errors >= top)).sum() for top in levels[1:]]
            losses.append((levels.diff() * (1 - torch.stack(iou))).sum())
        torch.testing.assert_close(TABLES["lovasz_softmax"].reference(probs, labels), sum(losses) / len(losses))


# average precision -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_average_precision_is_that_of_the_library(seed):
    table = TABLES["average_precision"]
    for case in table.cases:
        masks, scores, true, threshold = case.inputs(Draw(seed))
        found, there = (
            Instances(masks=things, classes=torch.ones(len(things), dtype=torch.int64), scores=sure)
            for things, sure in ((masks, scores), (true, torch.ones(len(true))))
        )
        wanted = average_precision([found], [there], threshold=threshold)[1]
        assert table.reference(masks, scores, true, threshold) == pytest.approx(wanted) and 0 <= wanted <= 1


# panoptic quality --------------------------------------------------------------------------------------------


def quality(predicted, true, void):
    """The quality of one class by its segments, which are sets of pixels."""
    pairs = [(len((p - void) & t) / len((p - void) | t), i, j) for i, p in predicted for j, t in true]
    matches = [pair for pair in pairs if pair[0] > 0.5]
    found, hit = {i for _, i, _ in matches}, {j for *_, j in matches}
    wrong = [i for i, p in predicted if i not in found and 2 * len(p & void) <= len(p)]
    total = len(matches) + len(wrong) / 2 + (len(true) - len(hit)) / 2
    return sum(iou for iou, *_ in matches) / total if total else None


@pytest.mark.parametrize("seed", range(4))
def test_the_panoptic_quality_is_that_of_sets_of_pixels(seed):
    table = TABLES["panoptic_quality"]
    for case in table.cases:
        predicted, predicted_classes, true, true_classes = case.inputs(Draw(seed))
        void, ours, theirs = (
            [{*map(tuple, (numbers == n).nonzero().tolist())} for n in which]
            for numbers, which in (
                (true, [-1]),
                (predicted, range(len(predicted_classes))),
                (true, range(len(true_classes))),
            )
        )
        sides = [(ours, predicted_classes.tolist()), (theirs, true_classes.tolist())]
        assert all(part for parts, _ in sides for part in parts)  # no segment is without a pixel
        values = []
        for c in {*predicted_classes.tolist(), *true_classes.tolist()}:
            of_class = ([(i, p) for i, p in enumerate(parts) if kinds[i] == c] for parts, kinds in sides)
            values.append(quality(*of_class, *void))
        counted = [value for value in values if value is not None]
        found = table.reference(predicted, predicted_classes, true, true_classes)
        assert found == pytest.approx(sum(counted) / len(counted)) and 0 < found < 1


# mistakes ----------------------------------------------------------------------------------------------------


FUNCTIONS = [name for name, table in TABLES.items() if table.cases]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("roi_align", "zeros beyond the outermost centres"),
        ("ddim_step", "the index -1"),
        ("border_weights", "distance along rows and columns"),
        ("lovasz_softmax", "divided by the number of all classes"),
        ("average_precision", "the threshold itself is not enough"),
        ("average_precision", "second best object matched"),
        ("average_precision", "not in the order of the scores"),
        ("average_precision", "divided by the number of found objects"),
        ("panoptic_quality", "half void is enough"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


# outlines ----------------------------------------------------------------------------------------------------


def test_the_images_of_the_notebook_are_those_of_the_grader(cells):
    images, labels = cells["drawings"](40, 96, seed=3)
    for mine, ours in zip((images, labels), drawings(40, 96, torch.Generator().manual_seed(3)), strict=True):
        assert torch.equal(mine, ours)
    assert images.shape == (40, 1, 96, 96) and labels.unique().tolist() == [0, 1, 2]
    near, other = near_borders(labels), labels.roll(1, dims=0)
    assert torch.equal(cells["near_borders"](labels), near)
    assert cells["mean_iou"](other, labels, 3) == pytest.approx(mean_iou(other, labels, 3))
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS["look-at-one"], dict(cells))
    assert "images (300, 1, 64, 64) labels (300, 64, 64)" in said.getvalue()


def test_pixels_near_a_border_are_two_pixels_or_less_away_from_it():
    labels = torch.zeros(1, 1, 12, dtype=torch.int64)
    labels[..., 6:] = 2
    assert near_borders(labels)[0, 0].nonzero().flatten().tolist() == [4, 5, 6, 7]


def blocks(true, side):
    """The most frequent label of each block of pixels."""
    found = true.unfold(1, side, side).unfold(2, side, side).flatten(3).mode(dim=3).values
    return found.repeat_interleave(side, dim=1).repeat_interleave(side, dim=2)


@pytest.mark.parametrize(
    ("found", "near", "everywhere"),
    [
        (lambda true: blocks(true, 4), COARSE, KINDS),
        (lambda true: true.clamp(max=1), COARSE, KINDS),
        (lambda true: torch.where(near_borders(true), true, 0), NO_CONTEXT, NO_CONTEXT),
        (torch.zeros_like, NOT_LEARNED, NOT_LEARNED),
        (lambda true: true.roll(1, dims=0), NOT_LEARNED, NOT_LEARNED),
    ],
)
def test_labels_that_are_not_good_enough_are_told_why(found, near, everywhere):
    true = drawings(60, 64, torch.Generator().manual_seed(0))[1]
    assert (_why(found(true), true, borders=True), _why(found(true), true)) == (near, everywhere)


def test_labels_in_blocks_of_four_pixels_are_not_good_enough_near_the_borders():
    true = drawings(60, 64, torch.Generator().manual_seed(0))[1]
    best, near = blocks(true, 4), near_borders(true)
    assert mean_iou(best, true, 3) > 0.8 and inside_iou(best[near], true[near]) < 0.7


# answers -----------------------------------------------------------------------------------------------------

IMAGES = drawings(12, 64, torch.Generator().manual_seed(0))


def test_a_network_in_training_mode_is_told_that_it_depends_on_the_batch(cells):
    torch.manual_seed(0)
    network = cells["UNet"](1, 3, [4, 8])
    with pytest.raises(CheckFailed) as told:
        labelled(ModuleProbe(network), IMAGES[0])
    assert told.value.finding == TOGETHER
    assert labelled(ModuleProbe(network.eval()), IMAGES[0]).shape == IMAGES[1].shape


def test_a_network_with_dropout_in_training_mode_is_told_that_it_depends_on_chance():
    network = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.Dropout())
    with pytest.raises(CheckFailed) as told:
        labelled(ModuleProbe(network), IMAGES[0])
    assert told.value.finding.misconception == RANDOM


def test_a_network_that_loses_the_axis_of_a_single_image_is_told():
    class Squeezed(nn.Conv2d):
        def forward(self, images):
            return super().forward(images).squeeze(0)

    with pytest.raises(CheckFailed, match="shape"):
        labelled(ModuleProbe(Squeezed(1, 3, 3, padding=1)), IMAGES[0])


def test_what_is_inside_has_to_be_learned_not_computed():
    answers = {}  # what an image's labels are, found without a training

    def known(random):
        images, labels = drawings(60, 64, random)
        answers.update({image.sum().item(): label for image, label in zip(images, labels, strict=True)})
        return images, labels

    class Table(nn.Module):
        def forward(self, images):
            labels = torch.stack([answers[image.sum().item()] for image in images])
            return nn.functional.one_hot(labels, 3).movedim(-1, 1).float()

    check = TABLES["train"].scored[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_lib.lessons.lesson_14.assignment.drawings", lambda count, size, random: known(random))
        report = run_checks(lambda images, labels: Table(), [check], asks="images, labels")
    assert report.misconceptions == [ELSEWHERE]
