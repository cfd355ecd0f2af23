"""Assignment 17: its references are what the library does, and its cells are what the grader has."""

import contextlib
import io
import re

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_17.assignment import (
    ALL_PAIRS,
    FEW_UNITS,
    LARGER_LAYER,
    NOT_JOINED,
    NOT_LEARNED,
    ONE_POSITION,
    Bars,
    Trained,
    log_likelihood,
    machine,
    measured,
    states,
    why,
)
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import OTHER_PARAMETERS, WRONG_SHAPE, CheckFailed
from course_lib.tasks.wrong import ignored, made_by
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "17")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
CELLS = {cell.id: cell.source for cell in nbformat.reads(FILES.source_notebook.decode(), as_version=4).cells}


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define, with the references of two tasks."""
    names = {}
    for name in ("setup", "dispatch", "log_partition", "bars", "train"):
        exec(CELLS[name], names)
    return names


def printed(name, names):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS[name], dict(names))
    return said.getvalue()


def told(name, answer):
    table = TABLES[name]
    return run_checks(answer, table.checks, asks=table.asks).misconceptions


# retention ---------------------------------------------------------------------------------------------------


def one_by_one(q, k, v, decay, size):
    S, outputs = 0, []
    for t in range(q.shape[2]):
        S = decay[:, None, None] * S + k[:, :, t, :, None] * v[:, :, t, None]
        outputs.append((q[:, :, t, None] @ S)[:, :, 0])
    return torch.stack(outputs, dim=2)


def all_at_once(q, k, v, decay, size):
    i = torch.arange(q.shape[2])
    powers = decay[:, None, None] ** (i[:, None] - i).clamp(min=0)
    return (q @ k.mT * powers.tril()) @ v


@pytest.mark.parametrize("size", [1, 2, 5, 13, 20])
def test_chunks_of_any_size_give_what_the_recurrence_and_the_table_give(size):
    draw = Draw(0)
    q, k, v, decay = draw(2, 3, 13, 4), draw(2, 3, 13, 4), draw(2, 3, 13, 5), torch.tensor([0.5, 0.9, 1.0])
    found = TABLES["retention"].reference(q, k, v, decay, size)
    for other in (one_by_one, all_at_once):
        torch.testing.assert_close(found, other(q, k, v, decay, size))


def test_answers_that_cost_too_much_are_told():
    assert told("retention", all_at_once) == [ALL_PAIRS.misconception]
    assert told("retention", one_by_one) == [ONE_POSITION.misconception]
    assert told("retention", made_by(TABLES["retention"])) == []
    way = next(known.ways[0] for known in TABLES["log_partition"].mistakes if known.name == LARGER_LAYER.misconception)
    assert told("log_partition", made_by(TABLES["log_partition"], way)) == [LARGER_LAYER.misconception]
    assert told("log_partition", made_by(TABLES["log_partition"])) == []


def test_long_outputs_of_another_shape_are_told():
    right = made_by(TABLES["retention"])
    assert told("retention", lambda *given: right(*given)[:, :, -1]) == [WRONG_SHAPE]


def test_a_loop_over_the_states_of_the_smaller_layer_costs_little_enough():
    def looped(W, b, c):
        if len(b) < len(c):
            W, b, c = W.T, c, b
        terms = [h @ c + nn.functional.softplus(h @ W + b).sum() for h in states(len(c))]
        return torch.stack(terms).logsumexp(dim=0)

    assert told("log_partition", looped) == []


# experts -----------------------------------------------------------------------------------------------------


def test_dispatch_is_what_a_loop_over_the_choices_gives():
    case = TABLES["dispatch"].cases[2]
    for seed in range(5):
        gates, capacity = case.inputs(Draw(seed))
        wanted, used = torch.full(gates.shape, -1), [0] * gates.shape[1]
        for r in range(gates.shape[1]):
            for n, row in enumerate(gates.tolist()):
                e = sorted(range(len(row)), key=lambda one: -row[one])[r]
                if row[e] > 0 and used[e] < capacity:
                    wanted[n, e] = used[e]
                    used[e] += 1
        assert torch.equal(TABLES["dispatch"].reference(gates, capacity), wanted)
        assert max(used) == capacity and (wanted >= 0).sum() < (gates > 0).sum()


def test_the_cell_below_the_experts_shows_what_the_graded_answer_says(cells):
    numbers = re.findall(r"factor (\S+):\s+(\S+) % of first and\s+(\S+) %", printed("try-dispatch", cells))
    assert [factor for factor, *_ in numbers] == ["1.00", "1.25", "2.00"] * 2
    for _, first, second in numbers:
        for number in (first, second):
            assert number == "0.0" or f"{number} %" in CELLS["in-your-own-words"]


# the cache ---------------------------------------------------------------------------------------------------


def test_a_cache_that_holds_all_is_attention_with_a_penalty_for_distance():
    draw = Draw(0)
    q, k, v, slopes = draw(3, 4), draw(3, 6, 4), draw(3, 6, 5), torch.tensor([0.1, 0.3, 0.5])
    bias = -slopes[:, None, None] * torch.arange(5, -1, -1)
    wanted = nn.functional.scaled_dot_product_attention(q[:, None], k, v, attn_mask=bias)[:, 0]
    for window, sinks in ((6, 0), (9, 2), (3, 3), (1, 8)):
        found = TABLES["streaming_attention"].reference(q, k, v, slopes, window, sinks)
        torch.testing.assert_close(found, wanted)


# the partition function --------------------------------------------------------------------------------------


def test_the_probabilities_of_all_visible_states_add_up_to_one():
    draw = Draw(0)
    for H, V in ((3, 7), (7, 3), (4, 4)):
        W, b, c = draw(H, V).double(), draw(V).double(), draw(H).double()
        for log_z in (TABLES["log_partition"].reference(W, b, c), None):
            v = states(V).double()
            found = log_likelihood(v, W, b, c)
            if log_z is not None:
                found = v @ b + nn.functional.softplus(v @ W.T + c).sum(dim=1) - log_z
            torch.testing.assert_close(found.exp().sum(), torch.tensor(1.0).double())


# mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["retention", "dispatch", "streaming_attention", "log_partition"])
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("retention", "negative powers"),
        ("streaming_attention", "keys counted twice"),
        ("log_partition", "exponential too large"),
        ("log_partition", LARGER_LAYER.misconception),
        ("retention", ALL_PAIRS.misconception),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


# bars --------------------------------------------------------------------------------------------------------


def test_the_bars_of_the_notebook_are_those_of_the_grader(cells):
    theirs, ours = cells["Bars"](3), Bars(torch.Generator().manual_seed(3))
    assert torch.equal(theirs.order, ours.order) and torch.equal(theirs.probs, ours.probs)
    images = ours.images(50)
    assert torch.equal(theirs.images(50), images)
    torch.testing.assert_close(theirs.log_prob(images), ours.log_prob(images))
    torch.testing.assert_close(ours.log_prob(states(16)).exp().sum(), torch.tensor(1.0))


def test_the_cell_below_the_bars_shows_what_the_text_says_of_independent_pixels(cells):
    missing = float(printed("look-at-some", cells).split()[-1])
    assert 3.9 <= missing <= 4.3 and "independent pixels miss 3.9 to 4.3 nats" in CELLS["train-how"]


# answers -----------------------------------------------------------------------------------------------------


class Machine(nn.Module):
    def __init__(self, hidden=4, visible=16):
        super().__init__()
        self.W, self.b, self.c = (
            nn.Parameter(torch.zeros(*shape)) for shape in ((hidden, visible), (visible,), (hidden,))
        )


@pytest.mark.parametrize("module", [Machine(13), Machine(4, 15), nn.Linear(16, 4)])
def test_machines_that_are_too_large_or_have_other_parameters_are_told(module):
    with pytest.raises(CheckFailed) as fault:
        machine(ModuleProbe(module))
    assert fault.value.finding.misconception == OTHER_PARAMETERS


def test_a_machine_without_weights_is_as_good_as_independent_pixels():
    bars = Bars(torch.Generator().manual_seed(0))
    known = bars.images(1000)
    module = Machine(12)
    with torch.no_grad():
        module.b.copy_(known.mean(dim=0).logit())
    found = measured(bars, known, *machine(ModuleProbe(module)))
    assert found.missing == pytest.approx(found.independent, abs=0.01)
    assert why(found) == NOT_JOINED


@pytest.mark.parametrize(
    ("missing", "hidden", "finding"), [(2.4, 4, FEW_UNITS), (float("inf"), 12, NOT_JOINED), (1.3, 12, NOT_LEARNED)]
)
def test_what_is_said_of_a_machine_that_misses_too_much(missing, hidden, finding):
    assert why(Trained(missing=missing, independent=4.0, hidden=hidden)) == finding
