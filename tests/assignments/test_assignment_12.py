"""Assignment 12: its references are what the library does, and its cells are what the grader has."""

import nbformat
import pytest
import torch

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.layers.windows import PatchMerging
from course_lib.lessons.lesson_12.assignment import lamps
from course_lib.models.swin import Swin, SwinConfig
from course_lib.tasks import Draw

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


def test_the_boards_of_the_notebook_follow_the_rule_of_the_grader():
    names = {}
    (source,) = (cell.source for cell in NOTEBOOK.cells if cell.id == "lamps")
    exec("import torch\nimport torch.nn.functional as F\n" + source, names)
    for boards, lit in (names["lamps"](40, seed=3), lamps(Draw(3), 40)):
        for row, column in ((0, 0), (3, 4), (11, 7)):
            near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
            seen = sum(boards[:, i, j] for i, j in near if 0 <= i < 12 and 0 <= j < 12)
            assert torch.equal(lit[:, row, column], (seen > 0).long())
        assert 0.15 < boards.float().mean() < 0.25
