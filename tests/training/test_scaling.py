"""A sweep runs each of its settings once, wherever it runs and however often it is stopped."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

from course_lib.training.parallel import JobFailed
from course_lib.training.scaling import sweep
from tests.training.sweeps import note_and_square, odd_result

RUNS = [{"number": number, "seed": 0} for number in range(5)]
EXPECTED = [run | {"square": run["number"] ** 2} for run in RUNS]


def count(folder):
    return {path.name: len(path.read_text()) for path in folder.glob("[0-9]*")}


def test_results_come_in_the_order_of_the_runs_with_their_settings(tmp_path):
    assert sweep(partial(note_and_square, str(tmp_path)), RUNS) == EXPECTED
    assert sweep(note_and_square, []) == []


def test_an_interrupted_sweep_repeats_nothing_and_equals_one_that_was_not(tmp_path):
    records, whole = tmp_path / "runs.jsonl", tmp_path / "whole.jsonl"
    (tmp_path / "stop-at-3").touch()
    function = partial(note_and_square, str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        sweep(function, RUNS, records=records)
    assert len(records.read_text().splitlines()) == 3
    (tmp_path / "stop-at-3").unlink()
    assert sweep(function, RUNS, records=records) == EXPECTED
    assert count(tmp_path) == {"0": 1, "1": 1, "2": 1, "3": 1, "4": 1}
    assert sweep(function, RUNS, records=records) == EXPECTED and sum(count(tmp_path).values()) == 5
    sweep(function, RUNS, records=whole)
    assert records.read_text() == whole.read_text()


def test_a_line_that_was_cut_off_is_run_again_and_the_others_are_not(tmp_path):
    records, function = tmp_path / "runs.jsonl", partial(note_and_square, str(tmp_path))
    sweep(function, RUNS, records=records)
    records.write_text(records.read_text()[:-7])
    assert sweep(function, RUNS, records=records) == EXPECTED
    assert count(tmp_path)["4"] == 2 and sum(count(tmp_path).values()) == 6
    assert sweep(function, RUNS, records=records) == EXPECTED and sum(count(tmp_path).values()) == 6  # it reads on


def test_a_run_is_known_by_its_settings_in_any_order(tmp_path):
    records, function = tmp_path / "runs.jsonl", partial(note_and_square, str(tmp_path))
    sweep(function, RUNS[:2], records=records)
    turned = [dict(reversed(run.items())) for run in reversed(RUNS[:3])]
    assert sweep(function, turned, records=records) == EXPECTED[2::-1]
    assert sum(count(tmp_path).values()) == 3
    sweep(function, [{"number": 0, "seed": 1}], records=records)
    assert count(tmp_path)["0"] == 2


def test_the_executor_makes_no_difference(tmp_path):
    function, records = partial(note_and_square, str(tmp_path)), tmp_path / "runs.jsonl"
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert sweep(function, RUNS, executor=processes, records=records) == EXPECTED
    assert sweep(function, RUNS, records=records) == EXPECTED and sum(count(tmp_path).values()) == 5  # without it


def test_a_run_that_fails_is_named_and_those_before_it_are_kept(tmp_path):
    records, function = tmp_path / "runs.jsonl", partial(note_and_square, str(tmp_path))
    with pytest.raises(JobFailed, match="number=-1"):
        sweep(function, [*RUNS[:2], {"number": -1, "seed": 0}], records=records)
    assert len(records.read_text().splitlines()) == 2


def test_what_cannot_be_kept_is_refused(tmp_path):
    with pytest.raises(ValueError, match="asked for twice"):
        sweep(note_and_square, [RUNS[0], RUNS[1], RUNS[0]])
    with pytest.raises(ValueError, match="plain, finite"):
        sweep(note_and_square, [{"number": object()}])
    for kind in ("nan", "object"):
        with pytest.raises(ValueError, match="plain, finite"):
            sweep(odd_result, [{"kind": kind}], records=tmp_path / "odd.jsonl")
    (tmp_path / "other.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="line 1 .* no record"):
        sweep(note_and_square, RUNS, records=tmp_path / "other.jsonl")
