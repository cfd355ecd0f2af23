"""Assignment 12: its references are what the library does, and its cells are what the grader has."""

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.windows import PatchMerging
from course_lib.lessons.lesson_12.assignment import lamps, secret_reach
from course_lib.models.swin import Swin, SwinConfig
from course_lib.tasks import Draw, run_checks
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "12")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


@pytest.mark.parametrize(("blocks", "place"), [(1, (2, 3)), (2, (1, 7)), (3, (8, 0)), (4, (5, 6))])
def test_the_reach_is_where_the_gradient_of_a_swin_comes_from(blocks, place):
    config = SwinConfig(
        patch_size=1, in_channels=1, num_classes=None, dim=8, depths=(blocks,), num_heads=(2,), window_size=3
    )
    torch.manual_seed(0)
    stage = Swin(config).double().stages[0].eval()
    for parameter in stage.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(1, 9, 12, 8, dtype=torch.double, requires_grad=True)
    found = TABLES["reach"].reference(torch.tensor(place), 9, 12, 3, 1, blocks)
    stage(x)[0, *place].sum().backward()
    assert torch.equal(x.grad[0].abs().amax(-1) > 0, found)


def test_unmerging_undoes_merging():
    x, merging = torch.randn(2, 5, 3, 6), PatchMerging(6)
    merging.norm, merging.proj = torch.nn.Identity(), torch.nn.Identity()  # leaves the four of 6 side by side: 24
    found = TABLES["unmerge"].reference(merging(x), torch.eye(24), 5, 3)
    assert torch.equal(found, x)


@pytest.mark.parametrize("reach", [(1, 1, 1, 1), (2, 1, 1, 2), (1, 2, 1, 1)])
def test_the_boards_of_the_notebook_follow_the_rule_of_the_grader(reach):
    names = {}
    (source,) = (cell.source for cell in NOTEBOOK.cells if cell.id == "lamps")
    exec("import torch\nimport torch.nn.functional as F\n" + source, names)
    up, down, left, right = reach
    for boards, lit in (names["lamps"](40, seed=3, reach=reach), lamps(Draw(3), 40, reach=reach)):
        for row, column in ((0, 0), (3, 4), (11, 7)):
            near = [(row + up, column), (row - down, column), (row, column + left), (row, column - right)]
            seen = sum(boards[:, i, j] for i, j in near if 0 <= i < 12 and 0 <= j < 12)
            assert torch.equal(lit[:, row, column], (seen > 0).long())
        assert 0.15 < boards.float().mean() < 0.25


def test_the_secret_rule_is_never_that_of_the_notebook():
    drawn = {secret_reach(Draw(seed)) for seed in range(200)}
    assert {reach.count(2) for reach in drawn} == {1, 2} and len(drawn) == 10


class Says(nn.Module):
    """Scores made of boards by a function."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def forward(self, boards):
        return self.says(boards)


def by_the_notebook(boards):
    """The rule of the notebook's own boards, without anything learned."""
    edged = F.pad(boards, (1, 1, 1, 1))
    near = edged[:, :-2, 1:-1] + edged[:, 2:, 1:-1] + edged[:, 1:-1, :-2] + edged[:, 1:-1, 2:]
    return torch.stack([near == 0, near > 0], dim=-1).float()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (by_the_notebook, "a rule of one's own"),
        (lambda boards: by_the_notebook(boards).squeeze(0), "wrong shape"),
        (lambda boards: 0 * by_the_notebook(boards), "not learned"),
    ],
)
def test_an_answer_without_a_training_earns_nothing_and_is_told_why(says, told):
    table = TABLES["train"]
    for check in table.scored:
        report = run_checks(lambda boards, lit: Says(says), [check], asks=table.asks)
        assert report.misconceptions == [told]


def test_a_convolution_is_forbidden_where_windows_are_asked_for():
    assert {"Conv2d", "conv2d", "unfold"} <= set(TABLES["train"].forbids)


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("reach", "cut on the other side"),
        ("continuous_bias", "bias of the first map forgotten"),
        ("unmerge", "both sides cropped"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert 0 < sum(check.points for check in right) < table.points
