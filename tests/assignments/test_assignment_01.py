"""Assignment 01: its references are what torch and the library do, and its cells are what the grader has."""

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.data.signs import Script
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_01.assignment import KNOWN, NEIGHBOURS, NEW, pictures, right
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from tests.assignments.mistaken import mistaken

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "01")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_a_receptive_field_is_what_a_gradient_reaches():
    layers = torch.tensor([[3, 2], [5, 1], [3, 3], [3, 1]])
    net = nn.Sequential(*(nn.Conv2d(1, 1, kernel, stride, bias=False) for kernel, stride in layers.tolist()))
    side = int(TABLES["receptive_field"].reference(layers))
    image = torch.randn(1, 1, side + 9, side + 9, requires_grad=True)
    net(image)[0, 0, 0, 0].backward()
    seen = (image.grad[0, 0] != 0).nonzero()
    assert (seen.max(dim=0).values - seen.min(dim=0).values + 1).tolist() == [side, side]


@pytest.mark.parametrize("training", [True, False])
def test_the_norm_is_that_of_torch(training):
    x, mean, variance, gain, shift, _ = TABLES["batch_norm"].cases[0].inputs(Draw(0))
    expected = nn.functional.batch_norm(x, mean.clone(), variance.clone(), gain, shift, training, eps=1e-5)
    found = TABLES["batch_norm"].reference(x, mean, variance, gain, shift, training)
    torch.testing.assert_close(found, expected)


def test_the_mean_of_a_class_map_is_the_head_s_logit_without_its_bias():
    maps, weight, labels = TABLES["class_map"].cases[0].inputs(Draw(0))
    raw = mistaken(TABLES["class_map"], "below zero left in", "not scaled")
    whole = raw(maps, weight, labels).mean(dim=(1, 2))
    torch.testing.assert_close(whole, (maps.mean(dim=(2, 3)) * weight[labels]).sum(dim=1))


def test_the_script_of_the_notebook_is_that_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "script"):
            exec(cell.source, names)
    theirs, ours = names["Script"](seed=0), Script(KNOWN + NEW, Draw(0).generator)
    for pixels, labels in (theirs.pictures(500, new=True), pictures(ours, Draw(1), 500, new=True)):
        assert pixels.shape == (500, 16, 16) and labels.unique().tolist() == [0, 1, 2, 3]
        assert 0.03 < pixels.mean() < 0.3 and 0.2 < pixels.std() < 0.6
    assert torch.equal(theirs.signs, ours.signs) and 10 < ours.signs.sum(dim=(1, 2)).min()


class Says(nn.Module):
    """Scores made of pictures by a function."""

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, pictures):
        return self.scores(pictures[:, 0, :4])


@pytest.mark.parametrize(
    ("scores", "told"),
    [(lambda x: x + torch.rand_like(x), RANDOM), (lambda x: x - x.mean(0), NEIGHBOURS.misconception)],
)
def test_chance_and_neighbours_are_told(scores, told):
    shown = pictures(Script(KNOWN + NEW, Draw(0).generator), Draw(1), 50, new=True)
    with pytest.raises(CheckFailed) as fault:
        right(ModuleProbe(Says(scores)), *shown)
    assert fault.value.finding.misconception == told
    assert 0 <= right(ModuleProbe(Says(lambda x: x)), *shown) <= 1
