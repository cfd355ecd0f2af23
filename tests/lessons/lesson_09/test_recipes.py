"""The sweep of lesson 09: which runs there are, and how each begins."""

import pytest
import torch

from course_lib.lessons.lesson_09 import recipes
from course_lib.lessons.lesson_09.recipes import (
    Run,
    ScalingSettings,
    build,
    measure,
    parameters,
    planned_runs,
    rate_runs,
    size_of,
    train,
    tuned_rates,
)

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


def test_runs_of_a_budget_cost_the_same():
    runs = planned_runs(SETTINGS, RATES)["isoflop"]
    for budget, dims in SETTINGS.isoflop:
        costs = [6 * size_of(run["dim"], run["depth"]) * run["tokens"] for run in runs[: len(dims)]]
        assert costs == pytest.approx([budget] * len(dims), rel=0.01)
        runs = runs[len(dims) :]


def test_shapes_have_about_as_many_parameters():
    sizes = [size_of(dim, depth) for depth, dim in (*SETTINGS.shapes, (2, 32))]
    assert max(sizes) / min(sizes) < 1.25


def test_the_rate_of_a_size_is_the_best_on_validation_not_on_test():
    records = [
        {"dim": 4, "learning_rate": rate, "validation": value, "test": -value}
        for rate, value in ((1.0, 3.0), (2.0, 2.0), (3.0, 2.5))
    ]
    assert tuned_rates(records) == {4: 2.0}
    assert {run["learning_rate"] for run in rate_runs(SETTINGS)} == set(SETTINGS.rates)


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
    result = measure(dim=8, **TINY)
    assert result["parameters"] == parameters(build(Run(dim=8, **TINY))) == size_of(8, 1)
    assert result["flops"] == 6 * size_of(8, 1) * 128 and result["steps"] == 4
    assert 3 < result["test"] < 5 and len(result["curve"]) >= 4


def test_a_sweep_taken_up_later_ends_as_one_that_was_not_stopped(little_text, tmp_path):
    whole = train(SMALL, checkpoint=tmp_path / "whole").extra["runs"]
    lines = (tmp_path / "whole/runs.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "part").mkdir()
    (tmp_path / "part/runs.jsonl").write_text("".join(lines[:5]) + lines[5][:20])
    part = train(SMALL, checkpoint=tmp_path / "part").extra["runs"]
    assert [without_time(run) for run in part["grid"]] == [without_time(run) for run in whole["grid"]]
    assert len(list((tmp_path / "part").rglob("last.pt"))) < len(list((tmp_path / "whole").rglob("last.pt")))


def without_time(record):
    return {name: value for name, value in record.items() if name != "cpu_seconds"}
