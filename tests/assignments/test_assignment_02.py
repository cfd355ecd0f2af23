"""Assignment 02: its references are what torch does, its cells are what the grader has, its faults are told."""

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.data.signs import Script
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_02.assignment import COLLAPSED, FEW, KINDS, NEIGHBOURS, features, named, some
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "02")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_the_twins_loss_is_that_of_correlation_coefficients():
    first, second, weight = TABLES["twin_loss"].cases[0].inputs(Draw(0))
    width = first.shape[1]
    C = torch.corrcoef(torch.cat([first, second], dim=1).T)[:width, width:]
    diagonal = torch.eye(width, dtype=torch.bool)
    expected = (1 - C[diagonal]).square().sum() + weight * C[~diagonal].square().sum()
    torch.testing.assert_close(TABLES["twin_loss"].reference(first, second, weight), expected)


def test_recall_grows_with_k_up_to_1():
    queries, keys, _ = TABLES["recall_at"].cases[0].inputs(Draw(0))
    found = [TABLES["recall_at"].reference(queries, keys, k) for k in (1, 4, len(keys))]
    assert 0.2 < found[0] < found[1] < found[2] == 1


def test_the_variances_and_covariances_are_those_of_torch():
    first, second, *weights = TABLES["vicreg_loss"].cases[0].inputs(Draw(0))
    expected = weights[0] * (first - second).norm(dim=1).square().mean()
    for z in (first, second):
        C = torch.cov(z.T)
        below = (1 - (z.var(dim=0) + 1e-4).sqrt()).clamp(min=0)
        pairs = C[~torch.eye(len(C), dtype=torch.bool)]
        expected += weights[1] * below.mean() + weights[2] * pairs.square().sum() / len(C)
        assert 0 < (below > 0).sum() < len(C)  # some features are above the threshold, others are not
    torch.testing.assert_close(TABLES["vicreg_loss"].reference(first, second, *weights), expected)


def test_map_at_r_is_1_for_separate_classes_and_precision_at_1_for_pairs():
    labels = torch.tensor([0, 1, 0, 2, 1, 2, 0])
    reference = TABLES["map_at_r"].reference
    assert reference(F.one_hot(labels, 3) + 0.01 * Draw(0)(7, 3), labels) == 1
    pixels, labels = TABLES["map_at_r"].cases[1].inputs(Draw(0))
    nearest = torch.cosine_similarity(pixels[:, None], pixels, dim=2).fill_diagonal_(-1).argmax(dim=1)
    assert reference(pixels, labels) == pytest.approx(labels[nearest].eq(labels).double().mean().item())


def test_at_a_small_temperature_the_nearest_neighbour_has_the_votes():
    stored, labels, asked, kinds, k, temperature = TABLES["neighbour_votes"].cases[0].inputs(Draw(0))
    votes = TABLES["neighbour_votes"].reference(stored, labels, asked, kinds, k, temperature)
    torch.testing.assert_close(votes.sum(dim=1), torch.ones(len(asked)))
    nearest = labels[torch.cosine_similarity(asked[:, None], stored, dim=2).argmax(dim=1)]
    votes = TABLES["neighbour_votes"].reference(stored, labels, asked, kinds, k, 1e-6)
    torch.testing.assert_close(votes, F.one_hot(nearest, kinds).float())


def test_the_script_of_the_notebook_is_that_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "script"):
            exec(cell.source, names)
    theirs, ours = names["Script"](seed=0), Script(KINDS, Draw(0).generator)
    assert torch.equal(theirs.signs, ours.signs)
    for pixels, labels in (theirs.pictures(500), some(ours, Draw(1), 500)):
        assert pixels.shape == (500, 16, 16) and labels.unique().tolist() == list(range(KINDS))
        assert 0.03 < pixels.mean() < 0.3 and 0.2 < pixels.std() < 0.6


class Says(nn.Module):
    """Features made of pictures by a function."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def forward(self, pictures):
        return self.says(pictures)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (lambda x: torch.rand(len(x), 4), RANDOM),
        (lambda x: x[:, 0, :4] - x[:, 0, :4].mean(0), NEIGHBOURS.misconception),
        (lambda x: torch.ones(len(x), 4) + 1e-4 * x[:, 0, :4], COLLAPSED.misconception),
        (lambda x: x, "wrong shape"),
    ],
)
def test_chance_neighbours_collapse_and_shapes_are_told(says, told):
    pixels, _ = some(Script(KINDS, Draw(0).generator), Draw(1), 50)
    with pytest.raises(CheckFailed) as fault:
        features(ModuleProbe(Says(says)), pixels)
    assert fault.value.finding.misconception == told


def test_pixels_name_few_signs_and_the_signs_themselves_name_all():
    script, draw = Script(KINDS, Draw(0).generator), Draw(1)
    kinds = torch.arange(KINDS).repeat(FEW)
    few, asked = (script.pictures(kinds, draw.generator), kinds), some(script, draw, 300)

    def found(pixels):  # how well each sign fits where it fits best
        return F.conv2d(pixels[:, None], script.signs[:, None] - script.signs.mean()).flatten(2).amax(dim=2)

    assert 0.05 < named(ModuleProbe(Says(lambda x: x.flatten(1))), few, asked) < 0.3
    assert named(ModuleProbe(Says(found)), few, asked) > 0.8
