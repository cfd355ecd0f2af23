"""Assignment 09: its references are what torch and the papers say, its cells are what the grader has."""

import nbformat
import pytest
import torch
import torch.nn.functional as F

from course_lib.data.place import course_folder
from course_lib.functional.scaling import fit_power_law, fit_scaling_law
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_09.assignment import BUDGET, NOISE, Family, large, planned
from course_lib.tasks import Draw
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import mistaken, passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "09")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_the_huber_loss_is_that_of_torch():
    predicted, measured, delta = TABLES["huber_of_logs"].cases[0].inputs(Draw(0))
    right = F.huber_loss(predicted.log(), measured.log(), delta=delta, reduction="sum")
    torch.testing.assert_close(TABLES["huber_of_logs"].reference(predicted, measured, delta), right)


def test_first_repetitions_count_nearly_in_full_and_never_more_than_fade():
    effective = TABLES["effective_tokens"].reference
    found = effective(torch.tensor([1.0, 2.0, 1e6]), 100.0, 15.0)
    assert found[0] == 100 and 196 < found[1] < 200 and abs(found[2] - 1600) < 1e-2


def test_steps_and_examples_lie_on_the_hyperbola():
    batch, steps, examples = TABLES["steps_and_examples"].cases[0].inputs(Draw(0))
    S, E = TABLES["steps_and_examples"].reference(batch, steps, examples)
    torch.testing.assert_close((S / steps - 1) * (E / examples - 1), torch.ones(len(batch)))


def test_the_floor_is_near_that_of_the_library():
    x, y, floors = TABLES["law_with_floor"].cases[0].inputs(Draw(0))
    a, b, c = TABLES["law_with_floor"].reference(x, y, floors)
    law = fit_power_law(x, y)
    assert ((law(x) - y).square().sum() <= (a * x**-b + c - y).square().sum() + 1e-6) and abs(c - law.c) < 0.3


def test_the_biweight_is_nearly_a_square_for_small_errors_and_one_for_large_ones():
    gaps = torch.tensor([-1e-3, 1e-3, 1e-3, 50.0, -50.0])
    found = TABLES["biweight_of_logs"].reference(gaps.exp(), torch.ones(5), 100.0)
    torch.testing.assert_close(found.item() - 2, 3 * 3 / 148.26**2, atol=1e-5, rtol=1e-2)


def test_the_noise_scale_of_many_examples_is_that_of_their_distribution():
    draw = Draw(0)
    true, spread, batch = torch.tensor([3.0, 4.0]), torch.tensor([6.0, 8.0]), 4
    examples = true + spread * draw(20_000, 5, batch, 2)
    found = TABLES["noise_scale"].reference(examples.mean(dim=2), batch)
    assert abs(found - spread.square().sum() / true.square().sum()) < 0.2  # 4


def test_pretraining_is_worth_most_where_text_is_short():
    data = torch.tensor([1e5, 1e7, 1e9])
    transferred, multiplier = TABLES["transferred_data"].reference(data, torch.full((3,), 1e8), 1.9e4, 0.18, 0.38)
    assert (transferred.diff() > 0).all() and (multiplier.diff() < 0).all() and multiplier[2] > 1


def test_the_law_with_a_break_is_that_of_its_two_lines():
    x, y, breaks = TABLES["law_with_break"].cases[1].inputs(Draw(0))
    a, before, behind, d = TABLES["law_with_break"].reference(x, y, breaks)
    torch.testing.assert_close(torch.where(x < d, a * x**-before, a * d ** (behind - before) * x**-behind), y)


def test_errors_that_are_not_in_logarithms_would_always_choose_another_break():
    table = TABLES["law_with_break"]
    not_in_logs = mistaken(table, "errors not in logarithms")
    for seed in range(20):
        given = table.cases[0].inputs(Draw(seed))
        assert table.reference(*given)[3] != not_in_logs(*given)[3]


def test_the_family_of_the_notebook_is_that_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "family"):
            exec(cell.source, names)
    theirs, ours, (N, D) = names["Family"](seed=3), Family(Draw(3)), large()
    for one, other in zip((*names["large"](), theirs.train(N, D)), (N, D, ours.train(N, D)), strict=True):
        torch.testing.assert_close(one, other)


def bought(plan, seed):
    """Runs of a plan, and the mean relative error of the library's law for the larger ones."""
    assert planned(plan) == [] and NOISE == 0.0025
    family, (N, D) = Family(Draw(seed)), large()
    law = fit_scaling_law(*plan.T, family.train(*plan.T), delta=5e-3)
    return float((law(N, D) / family.train(N, D) - 1).abs().mean())


def test_a_plan_that_varies_size_and_text_foretells_what_a_fixed_ratio_does_not():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "study"):
            exec(cell.source, names)
    none, (N, D) = torch.zeros(0).double(), large()
    plan = names["study"](BUDGET, none, none, none, N, D)
    assert 6 * plan.prod(dim=1).sum() > 0.5 * BUDGET
    sizes = torch.logspace(4, 5.6, 12).double()
    noise = torch.linspace(-0.01, 0.01, 12).double().exp()  # so that the two can be told apart at all
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    fixed = torch.stack([sizes, 30 * sizes * noise[order]], dim=1)
    errors = [bought(plan, seed) for seed in range(4)], [_by_ratio(fixed, seed, names) for seed in range(4)]
    assert max(errors[0]) < 0.016 and max(errors[1]) > 0.02


def _by_ratio(plan, seed, names):
    family, (N, D) = Family(Draw(seed)), large()
    said = names["study"](BUDGET, *plan.T, family.train(*plan.T), N, D)
    return float((said / family.train(N, D) - 1).abs().mean())


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("huber_of_logs", "half forgotten"),
        ("law_with_floor", "error in logarithms"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_only_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert 0 < sum(check.points for check in right) < table.points


@pytest.mark.parametrize(
    "name",
    [
        "huber_of_logs",
        "biweight_of_logs",
        "effective_tokens",
        "transferred_data",
        "steps_and_examples",
        "noise_scale",
        "law_with_floor",
        "law_with_break",
    ],
)
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


def test_the_error_in_logarithms_would_always_choose_another_floor():
    table = TABLES["law_with_floor"]
    in_logs = mistaken(table, "error in logarithms")
    for seed in range(20):
        given = table.cases[0].inputs(Draw(seed))
        assert table.reference(*given)[2] != in_logs(*given)[2]
