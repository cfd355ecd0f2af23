"""Assignment 15: its references are those of the library, its cells are what the grader has, its faults are told."""

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.functional.positions import relative_buckets
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_15.assignment import FRAMES, NEIGHBOURS, SILENT, SYMBOLS, Code, heard
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "15")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_the_free_energy_is_the_logarithm_of_a_sum_over_all_hidden_states():
    v, W, b, c = TABLES["free_energy"].cases[0].inputs(Draw(0))
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * W.shape[1]).reshape(-1, W.shape[1])
    energies = -(v @ b)[:, None] - states @ c - v @ W @ states.T
    torch.testing.assert_close(TABLES["free_energy"].reference(v, W, b, c), -(-energies).logsumexp(dim=1))


@pytest.mark.parametrize("seed", range(20))
def test_the_buckets_are_those_of_t5_away_from_their_edges(seed):
    for case in TABLES["buckets"].cases:
        distance, num_buckets, max_distance = case.inputs(Draw(seed))
        theirs = relative_buckets(-distance, num_buckets=num_buckets, max_distance=max_distance, bidirectional=False)
        assert torch.equal(TABLES["buckets"].reference(distance, num_buckets, max_distance), theirs)


def test_each_token_sees_one_picture_at_most():
    tokens, picture, count = TABLES["last_picture"].cases[0].inputs(Draw(0))
    seen = TABLES["last_picture"].reference(tokens, picture, count)
    assert seen.sum(dim=2).max() == 1 and (seen.any(dim=2) == ((tokens == picture).cumsum(dim=1) > 0)).all()


def test_the_code_of_the_notebook_is_that_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "code"):
            exec(cell.source, names)
    theirs, ours = names["Code"](seed=3), Code(torch.Generator().manual_seed(3))
    for one, other in zip(theirs.batch(20), ours.batch(20), strict=True):
        assert torch.equal(one, other)


class Says(nn.Module):
    """Logits made of frames by a function."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def forward(self, frames):
        return self.says(frames)


SHAPE = (FRAMES, SYMBOLS + 1)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (lambda x: torch.rand(len(x), *SHAPE), RANDOM),
        (lambda x: (x - x.mean(0))[..., :7], NEIGHBOURS.misconception),
        (lambda x: torch.eye(7)[0].expand(len(x), *SHAPE), SILENT.misconception),
        (lambda x: x, "wrong shape"),
        (lambda x: torch.eye(8)[x.abs().argmax(-1)][..., :7].squeeze(0), "wrong shape"),
    ],
)
def test_chance_neighbours_silence_and_shapes_are_told(says, told):
    frames, _, _ = Code(torch.Generator().manual_seed(0)).batch(20)
    with pytest.raises(CheckFailed) as fault:
        heard(ModuleProbe(Says(says)), frames)
    assert fault.value.finding.misconception == told


@pytest.mark.parametrize(("name", "argument"), [("last_picture", 1), ("buckets", 1), ("buckets", 2)])
def test_marks_and_numbers_of_buckets_are_drawn(name, argument):
    assert len({TABLES[name].cases[0].inputs(Draw(seed))[argument] for seed in range(20)}) > 3


@pytest.mark.parametrize("mistake", ["exponential of a large number", "mean over hidden units"])
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(mistake):
    table = TABLES["free_energy"]
    assert 0 < sum(check.points for check in passed(table, mistake)) < table.points
