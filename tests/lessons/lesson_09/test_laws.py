import pytest
import torch

from course_lib.functional.scaling import ScalingLaw
from course_lib.lessons.lesson_09 import laws, playground, recipes
from course_lib.lessons.lesson_09.recipes import Run, ScalingSettings, build, columns, planned_runs, size_of
from course_lib.lessons.lesson_09.tasks import TASKS

LAW = ScalingLaw(E=1.0, A=20.0, B=3000.0, alpha=0.4, beta=0.65)


@pytest.fixture(scope="module")
def runs():
    return laws.shipped()


def run(flops, validation, dim=12, tokens=100, test=None):
    return {"flops": flops, "validation": validation, "dim": dim, "tokens": tokens, "test": test or validation}


def test_the_frontier_is_what_no_cheaper_run_beats_and_tokens_are_counted_of_the_first_that_gets_there():
    found = laws.frontier([run(3, 2.5), run(1, 3.0), run(2, 2.0), run(4, 1.9), run(5, 1.95)])
    assert [one["flops"] for one in found] == [1, 2, 4]
    found = laws.tokens_to_reach([run(1, 2.5, tokens=10), run(2, 1.8, tokens=30), run(2, 1.9, tokens=20)], 2.0)
    assert found == {12: 20} and laws.tokens_to_reach([run(1, 2.5)], 2.0) == {12: None}


def test_the_best_split_costs_the_budget_and_no_other_is_better():
    size, tokens, loss = laws.best_split(LAW, 1e11)
    assert 6 * size * tokens == pytest.approx(1e11)
    assert all(laws.at(LAW, k * size, tokens / k) > loss for k in (0.8, 1.25))


def test_the_shipped_runs_are_those_of_the_plan(runs):
    assert len(runs["grid"]) == 25 and len(runs["rates"]) == 5 * len(ScalingSettings().rates)
    assert all(1 < one["test"] < 3 for group in runs.values() for one in group if one["learning_rate"] < 0.04)


def test_the_learners_line_is_that_of_the_library(runs):
    x, y = columns(runs["grid"][-5:], "tokens", "test")
    a, b = TASKS["power_law"].reference(x, y)
    assert a > 0 and b > 0 and torch.allclose(a * x**-b, y, rtol=0.1)


def test_the_goals_of_the_playgrounds_can_be_reached_and_are_not_at_the_start(runs):
    compute = playground.compute(runs["grid"] + runs["isoflop"])
    size, _, _ = laws.best_split(laws.law(), 1e13)
    assert [goal(compute.state()) for goal in compute.goals] == [False] * 3
    assert compute.goals[0](compute.state(budget=1e13, size=2.1 * size))
    budgets = [10 ** (11 + number / 10) for number in range(21)]
    assert any(compute.goals[1](compute.state(budget=budget, size=1e5)) for budget in budgets)
    assert not any(compute.goals[1](compute.state(budget=budget)) for budget in budgets)
    assert compute.goals[2](compute.state(budget=1e9, size=1e5))
    fit = playground.by_hand(runs["grid"])
    assert [goal(fit.state()) for goal in fit.goals] == [False] * 3
    states = [fit.state(exponent=b / 100, floor=c / 20) for b in range(2, 80) for c in range(26)]
    assert all(any(goal(state) for state in states) for goal in fit.goals)


def test_huge_numbers_are_read_in_powers_of_ten(runs):
    compute = playground.compute(runs["grid"])
    assert compute.controls[0].words(1e11) == "1.0e+11"
    assert "12,000 parameters" in compute.frame(compute.state(size=12_345.0)).alt


SETTINGS = ScalingSettings()
RATES = dict.fromkeys(SETTINGS.dims, 1e-2)
TINY = {"depth": 1, "tokens": 128, "learning_rate": 1e-3, "batch_size": 2, "context_length": 16, "seed": 0}
SMALL = ScalingSettings(
    dims=(4, 8), depth=1, tokens=(64, 128), isoflop=((2e4, (4,)),), shapes=((2, 4),), shape_tokens=64,
    rates=(1e-3,), rate_tokens=96, largest=(12, 160), batch_size=2, context_length=16,
)  # fmt: skip


def test_a_grid_three_budgets_three_shapes_and_one_that_is_larger_than_all():
    plan = planned_runs(SETTINGS, RATES)
    assert {name: len(runs) for name, runs in plan.items()} == {"grid": 25, "isoflop": 15, "shapes": 3, "largest": 1}
    cost = {name: [size_of(r["dim"], r["depth"]) * r["tokens"] for r in runs] for name, runs in plan.items()}
    assert cost["largest"][0] > 4 * max(cost["grid"] + cost["isoflop"])


def test_runs_of_a_budget_cost_the_same_and_shapes_have_about_as_many_parameters():
    runs = iter(planned_runs(SETTINGS, RATES)["isoflop"])
    for budget, dims in SETTINGS.isoflop:
        costs = [6 * size_of(run["dim"], run["depth"]) * run["tokens"] for _, run in zip(dims, runs, strict=False)]
        assert costs == pytest.approx([budget] * len(dims), rel=0.01)
    sizes = [size_of(dim, depth) for depth, dim in (*SETTINGS.shapes, (2, 32))]
    assert max(sizes) / min(sizes) < 1.25


def test_the_rate_of_a_size_is_the_best_on_validation_not_on_test():
    tried = {1.0: 3.0, 2.0: 2.0, 3.0: 2.5}
    records = [{"dim": 4, "learning_rate": rate, "validation": loss, "test": -loss} for rate, loss in tried.items()]
    assert recipes.tuned_rates(records) == {4: 2.0}
    assert {run["learning_rate"] for run in recipes.rate_runs(SETTINGS)} == set(SETTINGS.rates)


def test_sizes_off_the_grid_take_the_rate_of_the_nearest():
    plan = planned_runs(SETTINGS, {12: 0.1, 20: 0.2, 32: 0.3, 48: 0.4, 64: 0.5})
    assert {run["dim"]: run["learning_rate"] for run in plan["isoflop"]}[8] == 0.1
    assert plan["largest"][0]["learning_rate"] == 0.5


def test_a_narrow_model_begins_as_wide_as_it_should():
    model = build(Run(dim=32, **TINY))
    spread = model.blocks[0].attn.q_proj.weight.std() * 32**0.5
    assert 0.9 < spread < 1.1 and 0.15 < model.token_embed.weight.std() < 0.25
    assert torch.equal(build(Run(dim=32, **TINY)).pos_embed.table, model.pos_embed.table)


@pytest.fixture
def little_text(monkeypatch):
    monkeypatch.setattr(recipes, "LOOKS", 100)
    monkeypatch.setattr(recipes, "SCORED", 200)


def test_a_run_is_measured_at_its_end(little_text):
    result = recipes.measure(dim=8, **TINY)
    assert result["parameters"] == recipes.parameters(build(Run(dim=8, **TINY))) == size_of(8, 1)
    assert result["flops"] == 6 * size_of(8, 1) * 128 and result["steps"] == 4
    assert 3 < result["test"] < 5 and len(result["curve"]) >= 4


def test_a_sweep_taken_up_later_ends_as_one_that_was_not_stopped(little_text, tmp_path):
    whole = recipes.train(SMALL, checkpoint=tmp_path / "whole").extra["runs"]
    lines = (tmp_path / "whole/runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "part").mkdir()
    (tmp_path / "part/runs.jsonl").write_text("".join(lines[:5]) + lines[5][:20])
    part = recipes.train(SMALL, checkpoint=tmp_path / "part").extra["runs"]
    grids = [[run | {"cpu_seconds": 0} for run in found["grid"]] for found in (part, whole)]
    assert grids[0] == grids[1]
    assert len(list((tmp_path / "part").rglob("last.pt"))) < len(list((tmp_path / "whole").rglob("last.pt")))
