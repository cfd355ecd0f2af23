"""What lesson 09 reads from its runs, and its two playgrounds."""

import pytest
import torch

from course_lib.functional.scaling import ScalingLaw
from course_lib.lessons.lesson_09 import laws, playground
from course_lib.lessons.lesson_09.recipes import ScalingSettings, columns
from course_lib.lessons.lesson_09.tasks import TASKS

LAW = ScalingLaw(E=1.0, A=20.0, B=3000.0, alpha=0.4, beta=0.65)


@pytest.fixture(scope="module")
def runs():
    return laws.shipped()


def run(flops, validation, dim=12, tokens=100, test=None):
    return {"flops": flops, "validation": validation, "dim": dim, "tokens": tokens, "test": test or validation}


def test_the_frontier_is_what_no_cheaper_run_beats():
    found = laws.frontier([run(3, 2.5), run(1, 3.0), run(2, 2.0), run(4, 1.9), run(5, 1.95)])
    assert [one["flops"] for one in found] == [1, 2, 4]


def test_tokens_are_counted_of_the_first_run_that_gets_there():
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
