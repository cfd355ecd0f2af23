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
    ALL_FLIPPED,
    ALL_PAIRS,
    FEW_UNITS,
    LARGER_LAYER,
    NOT_JOINED,
    NOT_LEARNED,
    ONE_PIXEL,
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
from tests.assignments.mistaken import mistaken, passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "17")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
CELLS = {cell.id: cell.source for cell in nbformat.reads(FILES.source_notebook.decode(), as_version=4).cells}


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define, with the reference of a task."""
    names = {}
    for name in ("setup", "dispatch", "bars", "train"):
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


def corrected_one_by_one(q, k, v, beta, size):
    S, outputs = q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1]), []
    for t in range(q.shape[2]):
        held = (k[:, :, t, None] @ S)[:, :, 0]
        S = S + torch.einsum("bh,bhk,bhv->bhkv", beta[:, :, t], k[:, :, t], v[:, :, t] - held)
        outputs.append((q[:, :, t, None] @ S)[:, :, 0])
    return torch.stack(outputs, dim=2)


@pytest.mark.parametrize("size", [1, 2, 5, 13, 20])
def test_the_delta_rule_in_chunks_of_any_size_is_that_of_the_recurrence(size):
    draw = Draw(0)
    q, k, v, beta = draw(2, 3, 13, 4), draw(2, 3, 13, 4) / 2, draw(2, 3, 13, 5), draw(2, 3, 13).sigmoid()
    found = TABLES["delta_rule"].reference(q, k, v, beta, size)
    torch.testing.assert_close(found, corrected_one_by_one(q, k, v, beta, size))


def test_the_delta_rule_reads_the_last_value_that_was_written_for_a_key():
    which, v = torch.tensor([0, 1, 0, 2, 1, 0, 0]), torch.randn(1, 1, 7, 4)
    k = torch.eye(3)[which][None, None]
    found = TABLES["delta_rule"].reference(k.roll(1, dims=2), k, v, torch.ones(1, 1, 7), 3)
    torch.testing.assert_close(found[0, 0, [1, 2, 3, 5, 6]], v[0, 0, [0, 1, 2, 4, 6]])


def test_a_loop_over_the_positions_of_all_chunks_costs_little_enough():
    def substituted(q, k, v, beta, size):
        size = min(size, q.shape[2])
        missing = -q.shape[2] % size
        q, k, v = (nn.functional.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, size)) for x in (q, k, v))
        beta = nn.functional.pad(beta, (0, missing)).unflatten(2, (-1, size))[..., None]
        table, rows = beta * (k @ k.mT), []
        for i in range(size):
            row = torch.eye(size, dtype=q.dtype)[i].expand(*table.shape[:3], 1, size)
            rows.append(row - table[..., i, None, :i] @ torch.cat(rows, dim=3) if rows else row)
        solved, S, outputs = torch.cat(rows, dim=3), q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1]), []
        for a, b, c, strength, inverse in zip(*(x.unbind(dim=2) for x in (q, k, v, beta, solved)), strict=True):
            u = inverse @ (strength * (c - b @ S))
            outputs.append(a @ S + (a @ b.mT).tril() @ u)
            S = S + b.mT @ u
        whole = torch.cat(outputs, dim=2)
        return whole[:, :, : whole.shape[2] - missing]

    assert told("delta_rule", substituted) == []


def test_answers_that_cost_too_much_are_told():
    assert told("retention", all_at_once) == [ALL_PAIRS.misconception]
    assert told("retention", one_by_one) == [ONE_POSITION.misconception]
    assert told("retention", made_by(TABLES["retention"])) == []
    assert told("delta_rule", corrected_one_by_one) == [ONE_POSITION.misconception]
    assert told("delta_rule", mistaken(TABLES["delta_rule"], ALL_PAIRS.misconception)) == [ALL_PAIRS.misconception]
    assert told("delta_rule", made_by(TABLES["delta_rule"])) == []
    flipped = mistaken(TABLES["pseudo_log_likelihood"], ALL_FLIPPED.misconception)
    assert told("pseudo_log_likelihood", flipped) == [ALL_FLIPPED.misconception]
    assert told("pseudo_log_likelihood", pixel_by_pixel) == [ONE_PIXEL.misconception]
    assert told("pseudo_log_likelihood", made_by(TABLES["pseudo_log_likelihood"])) == []
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


def with_lists(q, k, v, heavy, recent):
    outputs = [[] for _ in q]
    for h, head in enumerate(outputs):
        cache, total = [], {}
        for t in range(q.shape[1]):
            cache.append(t)
            weights = (k[h, cache] @ q[h, t] / q.shape[2] ** 0.5).softmax(dim=0)
            head.append(weights @ v[h, cache])
            for token, weight in zip(cache, weights.tolist(), strict=True):
                total[token] = total.get(token, 0.0) + weight
            if len(cache) > heavy + recent:
                cache.remove(min(cache[:-recent], key=total.get))
    return torch.stack([torch.stack(head) for head in outputs])


def test_heavy_hitters_are_those_that_lists_keep():
    table = TABLES["heavy_hitters"]
    for case in table.cases:
        for seed in range(3):
            given = case.inputs(Draw(seed))
            torch.testing.assert_close(table.reference(*given), with_lists(*given))


def test_a_cache_without_heavy_hitters_is_local_attention_that_sees_one_token_more():
    q, k, v = (torch.randn(3, 9, 4) for _ in range(3))
    i = torch.arange(9)
    seen = (i <= i[:, None]) & (i[:, None] - i <= 4)  # a token is removed behind the step in which it is the fifth
    wanted = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    torch.testing.assert_close(TABLES["heavy_hitters"].reference(q, k, v, 0, 4), wanted)


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


def pixel_by_pixel(v, W, b, c):
    def minus_free_energy(v):
        return v @ b + nn.functional.softplus(v @ W.T + c).sum(dim=1)

    v, total = v.to(W.dtype), 0
    for i in range(len(b)):
        flipped = torch.where(torch.arange(len(b)) == i, 1 - v, v)
        total = total + nn.functional.logsigmoid(minus_free_energy(v) - minus_free_energy(flipped))
    return total


def test_the_pseudo_likelihood_is_the_product_of_the_conditionals_of_the_joint_distribution():
    draw, v = Draw(0), states(4)
    W, b, c = draw(3, 4), draw(4), draw(3)
    joint = log_likelihood(v, W, b, c).double().exp()
    for row, found in zip(v, TABLES["pseudo_log_likelihood"].reference(v.long(), W, b, c), strict=True):
        others = [joint[(v != row).sum(dim=1) - (v != row)[:, i].int() == 0] for i in range(4)]
        own = joint[(v == row).all(dim=1)]
        torch.testing.assert_close(found.exp().double(), torch.stack([own[0] / two.sum() for two in others]).prod())
    v = draw.integers(0, 2, 5, 6)
    W, b, c = draw(3, 6), draw(6), draw(3)
    found = TABLES["pseudo_log_likelihood"].reference(v, W, b, c)
    torch.testing.assert_close(found, pixel_by_pixel(v, W, b, c))


# mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.cases])
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("retention", "negative powers"),
        ("streaming_attention", "keys counted twice"),
        ("delta_rule", ALL_PAIRS.misconception),
        ("heavy_hitters", "one choice for all heads"),
        ("log_partition", "exponential too large"),
        ("pseudo_log_likelihood", "logarithm of zero"),
        ("pseudo_log_likelihood", ALL_FLIPPED.misconception),
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
