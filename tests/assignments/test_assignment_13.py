"""Assignment 13: its references are what the library does, and its cells are what the grader has."""

import nbformat
import pytest
import torch
from torch.nn.functional import one_hot

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_13.assignment import Cloth, errors, holes
from course_lib.lessons.lesson_13.recipes import PretrainingSettings, build
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "13")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define."""
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "cloth"):
            exec(cell.source, names)
    return names


def test_a_reconstruction_is_that_of_the_library():
    model = build(PretrainingSettings(dim=16, depth=1, num_heads=2, decoder_dim=8, normalised=True))
    image, noise = Draw(0)(2, 1, 28, 28), Draw(1)(2, 49)
    painted, masked = model(image, noise)
    found = TABLES["reconstruct"].reference(image, painted, masked, 4)
    torch.testing.assert_close(found, model.reconstruct(image, noise))


def test_the_probe_has_the_least_error_with_its_penalty():
    draw = Draw(0)
    features, labels = draw(12, 3).double(), draw.integers(0, 2, 12)
    scores = TABLES["probe_scores"].reference(features, labels, features, 2, 1.5)
    z = (features - features.mean(0)) / (features.var(0, correction=0) + 1e-6).sqrt()
    # the penalty as three more examples, whose targets are 0; the constant belongs to the twelve real ones alone
    rows = torch.cat([torch.cat([z, torch.ones(12, 1)], 1), torch.eye(3, 4) * 1.5**0.5])
    targets = torch.cat([one_hot(labels, 2).double(), torch.zeros(3, 2)])
    torch.testing.assert_close(scores, rows[:12] @ torch.linalg.lstsq(rows, targets).solution)


def test_as_many_patches_are_hidden_as_were_asked_for():
    for case in TABLES["block_mask"].cases:
        for seed in range(20):
            blocks, grid, count = case.inputs(Draw(seed))
            masked = TABLES["block_mask"].reference(blocks, grid, count)
            assert masked.shape == grid and masked.sum() == count


def test_the_cloth_of_the_notebook_is_that_of_the_grader(cells):
    for pictures in (cells["Cloth"](seed=1).pictures(4_000), Cloth(Draw(1)).pictures(Draw(2), 4_000)):
        assert pictures.shape == (4_000, 16, 16) and torch.linalg.matrix_rank(pictures.flatten(1), rtol=1e-4) == 6
        assert abs(pictures.mean()) < 0.01 and abs(pictures.var() - 1) < 0.03  # "of mean 0 and variance 1"
    masked = Draw(0)(3, 16) > 0
    assert torch.equal(cells["holes"](masked), holes(masked))


def test_a_model_whose_dropout_is_left_on_is_told_that_it_depends_on_chance():
    class Grey(torch.nn.Dropout):
        def forward(self, pictures, masked):
            return super().forward(torch.ones_like(pictures)) - 1

    with pytest.raises(CheckFailed) as told:
        errors(ModuleProbe(Grey()), Cloth(Draw(0)).pictures(Draw(1), 9), 8, Draw(2))
    assert told.value.finding.misconception == RANDOM
    assert errors(ModuleProbe(Grey().eval()), Cloth(Draw(0)).pictures(Draw(1), 500), 8, Draw(2))[0] > 0.9


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("block_mask", "blocks wrapped around the edge"),
        ("block_mask", "too few where blocks run out"),
        ("reconstruct", "patches counted down the columns"),
        ("reconstruct", "channels not last"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


def test_a_model_that_loses_the_axis_of_a_single_picture_is_told():
    class Squeezed(torch.nn.Module):
        def forward(self, pictures, masked):
            return (0 * pictures).squeeze(0)

    with pytest.raises(CheckFailed, match="shape"):
        errors(ModuleProbe(Squeezed()), Cloth(Draw(0)).pictures(Draw(1), 9), 8, Draw(2))
