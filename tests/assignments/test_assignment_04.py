"""Assignment 04: its references are what torch's own layers do, and its cells are what the grader has."""

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_04.assignment import AT_CLOSED_GATES, CLOSED, NOT_LEARNED, messages, right
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "04")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_both_readings_are_those_of_a_packed_torch_layer():
    draw = Draw(0)
    x, lengths = draw(4, 6, 3), torch.tensor([6, 2, 5, 1])
    layer = nn.RNN(3, 2, bias=False, bidirectional=True, batch_first=True)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
    weights = (layer.weight_ih_l0, layer.weight_hh_l0, layer.weight_ih_l0_reverse, layer.weight_hh_l0_reverse)
    torch.testing.assert_close(TABLES["both_ways"].reference(x, lengths, *weights), expected)


def test_the_share_of_a_gradient_is_that_of_autograd():
    f = Draw(0)(1, 5, 3).sigmoid()
    start = torch.ones(1, 3, requires_grad=True)
    cells = [start]
    for gate in f.unbind(1):
        cells.append(gate * cells[-1])
    found = [torch.autograd.grad(cells[-1].sum(), cell, retain_graph=True)[0] for cell in cells[1:]]
    torch.testing.assert_close(TABLES["highway"].reference(f), torch.stack(found, dim=1))


def test_the_rows_of_the_notebook_are_those_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "messages"):
            exec(cell.source, names)
    for marker in (8, 3):
        of_the_grader = messages(Draw(0), 2_000, marker=marker)
        for rows, answers in (names["messages"](2_000, 30, seed=0, marker=marker), of_the_grader):
            place = (rows == marker).int().argmax(dim=1)
            assert ((rows == marker).sum(dim=1) == 1).all() and place.max() == 14 and place.min() == 0
            assert torch.equal(rows[torch.arange(2_000), place + 1], answers)
            assert answers.unique().tolist() == [symbol for symbol in range(9) if symbol != marker]


def test_a_rule_in_code_that_looks_for_the_marker_of_the_notebook_earns_nothing():
    class Looks(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Embedding.from_pretrained(torch.eye(9), freeze=False)

        def forward(self, rows):
            place = (rows[:, :-1] == 8).int().argmax(dim=1)
            return self.head(rows[torch.arange(len(rows)), place + 1])

    told = run_checks(lambda rows, answers: Looks(), TABLES["train"].all_checks, asks=TABLES["train"].asks)
    assert told.misconceptions == [NOT_LEARNED.misconception]


@pytest.mark.parametrize("power", [lambda f: f.log(), lambda f: f.clamp_min(1e-6).log()])
def test_logarithms_of_gates_have_no_gradient_where_a_gate_is_closed(power):
    def highway(f):
        later = power(torch.cat([f[:, 1:], torch.ones_like(f[:, :1])], dim=1))
        return later.flip(1).cumsum(1).flip(1).exp()

    assert CLOSED.misconception in run_checks(highway, [AT_CLOSED_GATES], asks="f").misconceptions
    assert run_checks(TABLES["highway"].reference, [AT_CLOSED_GATES], asks="f").passed


def test_a_model_whose_dropout_is_left_on_is_told_that_it_depends_on_chance():
    class Guess(nn.Dropout):
        def forward(self, rows):
            return super().forward(torch.ones(len(rows), 9))

    with pytest.raises(CheckFailed) as told:
        right(ModuleProbe(Guess()), *messages(Draw(0), 50, marker=8))
    assert told.value.finding.misconception == RANDOM
