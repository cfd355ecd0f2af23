"""Assignment 14: its references are what the library does, and its cells are what the grader has."""

import contextlib
import io

import nbformat
import pytest
import torch

from course_lib.data.place import course_folder
from course_lib.functional.segmentation import Instances, average_precision
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.segmentation import bilinear_upsampling
from course_lib.lessons.lesson_14.assignment import TOGETHER, drawings, labelled
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.trained import ELSEWHERE
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "14")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
CELLS = {cell.id: cell.source for cell in nbformat.reads(FILES.source_notebook.decode(), as_version=4).cells}


@pytest.mark.parametrize("factor", [1, 2, 3, 5, 8])
def test_maps_grow_as_in_the_library(factor):
    maps = torch.randn(2, 3, 4, 5)
    ours = bilinear_upsampling(3, factor)(maps)
    torch.testing.assert_close(TABLES["upsample"].reference(maps, factor), ours)
    assert ours.shape == (2, 3, 4 * factor, 5 * factor)


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


def test_the_pictures_of_the_notebook_are_those_of_the_grader():
    names = {}
    exec("import torch\n" + CELLS["drawings"], names)
    pictures, labels = names["drawings"](40, 48, seed=3)
    for mine, ours in zip((pictures, labels), drawings(40, 48, torch.Generator().manual_seed(3)), strict=True):
        assert torch.equal(mine, ours)
    assert pictures.shape == (40, 1, 48, 48) and labels.unique().tolist() == [0, 1, 2]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS["look-at-one"], names)
    assert "pictures (300, 1, 32, 32) labels (300, 32, 32)" in said.getvalue()


def test_a_net_that_is_left_in_training_mode_is_told_that_it_depends_on_the_batch():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.BatchNorm2d(3))
    pictures, labels = drawings(12, 32, torch.Generator().manual_seed(0))
    with pytest.raises(CheckFailed) as told:
        labelled(ModuleProbe(net), pictures)
    assert told.value.finding == TOGETHER
    assert labelled(ModuleProbe(net.eval()), pictures).shape == labels.shape


def test_the_threshold_cannot_be_ignored():
    assert list(ignored(TABLES["average_precision"])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("border_weights", "distance in steps"),
        ("average_precision", "the threshold itself is not enough"),
        ("average_precision", "second best thing taken"),
        ("average_precision", "not in the order of the scores"),
        ("average_precision", "divided by what was found"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


def test_a_net_that_loses_the_axis_of_a_single_picture_is_told():
    class Squeezed(torch.nn.Conv2d):
        def forward(self, pictures):
            return super().forward(pictures).squeeze(0)

    with pytest.raises(CheckFailed, match="shape"):
        labelled(ModuleProbe(Squeezed(1, 3, 3, padding=1)), drawings(12, 32, torch.Generator().manual_seed(0))[0])


def test_what_is_inside_has_to_be_learned_not_computed():
    answers = {}  # what a picture's labels are, found without a training

    def known(random):
        pictures, labels = drawings(120, 32, random)
        answers.update({picture.sum().item(): label for picture, label in zip(pictures, labels, strict=True)})
        return pictures, labels

    class Table(torch.nn.Module):
        def forward(self, pictures):
            labels = torch.stack([answers[picture.sum().item()] for picture in pictures])
            return torch.nn.functional.one_hot(labels, 3).movedim(-1, 1).float()

    check = TABLES["train"].scored[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_lib.lessons.lesson_14.assignment.drawings", lambda count, size, random: known(random))
        report = run_checks(lambda pictures, labels: Table(), [check], asks="pictures, labels")
    assert report.misconceptions == [ELSEWHERE]
