import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from course_lib.training import parallel
from course_lib.training.parallel import JobFailed, run_jobs, usable_cores
from tests.training import jobs

PATIENCE = 300  # seconds: the machine may be busy


class Recorder:
    """A display that remembers what it was told."""

    def __init__(self):
        self.updates, self.closed = [], False

    def update(self, done, total, **details):
        self.updates.append((done, total, details))

    def close(self):
        self.closed = True


def workers_alive():
    """The processes of a pool: not the resource tracker, which Python keeps for itself."""
    children = psutil.Process().children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def test_parallel_results_equal_serial_ones_bit_for_bit_and_come_in_order():
    settings = [{"seed": 2}, {"seed": 0, "width": 16}, {"seed": 1}]
    serial = [jobs.train(**job) for job in settings]
    for workers in (0, 2):
        for ours, theirs in zip(run_jobs(jobs.train, settings, workers=workers), serial, strict=True):
            assert ours[0].keys() == theirs[0].keys()
            assert all(np.array_equal(ours[0][name], theirs[0][name]) for name in ours[0])
            assert np.array_equal(ours[1], theirs[1])


def test_each_worker_is_another_process_with_its_own_number_of_threads():
    ((threads, process),) = run_jobs(jobs.threads_and_process, [{}], threads_per_worker=2)
    assert threads == 2 and process != os.getpid()
    ((threads, process),) = run_jobs(jobs.threads_and_process, [{}], workers=0, threads_per_worker=2)
    assert threads == 2 and process == os.getpid() and torch.get_num_threads() == 1
    assert workers_alive() == []


def test_progress_of_all_jobs_reaches_one_display():
    display = Recorder()
    assert run_jobs(jobs.count_slowly, [{"label": i} for i in "abc"], workers=2, progress=display) == ["a", "b", "c"]
    done = [update[0] for update in display.updates]
    assert done == sorted(done) and done[0] == 0 and done[-1] > 2
    assert {update[1] for update in display.updates} == {3}
    named = {update[2]["job"].split(" step ")[0] for update in display.updates if update[2]}
    assert {"3/3"} < named <= {"1/3", "2/3", "3/3"}  # the latest report of the running jobs is shown
    assert any(0 < value < 1 for value in done)  # seen inside a job, not only at its end
    assert display.closed


def test_a_failing_job_is_named_with_its_arguments_and_ends_the_others(tmp_path):
    settings = [{"folder": str(tmp_path), "seconds": 600}, {"folder": str(tmp_path), "seconds": 0, "fail": True}] * 2
    display = Recorder()
    with pytest.raises(
        JobFailed, match=r"job 2 of 4 \(folder=.*fail=True\) failed: ZeroDivisionError: planted"
    ) as error:
        run_jobs(jobs.note_start_then_wait, settings, workers=2, progress=display)
    assert "in note_start_then_wait" in error.value.__notes__[0]
    assert workers_alive() == [] and display.closed
    assert not list(tmp_path.glob("*.finished"))  # nobody waited for the others


def test_an_exception_that_cannot_travel_is_reported_like_any_other():
    with pytest.raises(JobFailed, match=r"job 1 of 1 \(\) failed: NeedsTwo: awkward"):
        run_jobs(jobs.raise_awkwardly, [{}])


def test_a_result_that_cannot_travel_is_reported_with_its_job():
    with pytest.raises(JobFailed, match=r"job 1 of 1 \(\) failed: .*lambda"):
        run_jobs(jobs.return_what_cannot_travel, [{}])


def test_a_killed_worker_gives_a_clear_sentence_at_once(tmp_path, monkeypatch):
    start = SpawnProcess.start

    def start_late(process):
        time.sleep(0.3)  # long enough for the pool to look after the other workers only
        start(process)

    monkeypatch.setattr(SpawnProcess, "start", start_late)
    settings = [{"folder": str(tmp_path), "label": label} for label in "ab"]
    with pytest.raises(
        JobFailed, match=r"died while .*label='a'\) and .*label='b'\) ran; 0 of 2 jobs .*fewer `workers`"
    ):
        run_jobs(jobs.kill_younger_worker, settings, workers=2)
    assert workers_alive() == [] and not list(tmp_path.glob("*.finished"))  # nobody waited for the survivor


@pytest.mark.parametrize("sign", ["SIGINT", "SIGKILL"])
def test_an_interrupted_call_leaves_no_orphans(tmp_path, sign):
    code = """
import sys
from course_lib.training.parallel import run_jobs
from tests.training import jobs
if __name__ == "__main__":
    settings = [{"folder": sys.argv[1], "seconds": seconds} for seconds in (600, 0)]
    run_jobs(jobs.note_start_then_wait, settings, workers=2)
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until(lambda: len(list(tmp_path.glob("*.*ed"))) == 3)  # one worker is busy, the other has finished and waits
    workers = [int(path.stem) for path in tmp_path.glob("*.started")]
    if sign == "SIGINT":
        for worker in workers:
            os.kill(worker, signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None and all(alive(worker) for worker in workers)  # the parent alone decides
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to every process of the terminal
    else:
        process.kill()
    assert process.wait(timeout=PATIENCE) != 0
    until(lambda: not any(alive(worker) for worker in workers))
    if sign == "SIGINT":
        # Our own KeyboardInterrupt only, none from a worker.
        assert process.stderr.read().count("KeyboardInterrupt") == 1
    process.stderr.close()


def until(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def alive(process_id):
    try:
        return psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def dask():
    """A Dask cluster of two processes on this machine, by its client."""
    from distributed import Client

    with Client(processes=True, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        yield client


def equal(first, second):
    same_weights = all(np.array_equal(first[0][name], second[0][name]) for name in first[0])
    return same_weights and np.array_equal(first[1], second[1])


def test_a_dask_cluster_trains_a_sweep_bit_for_bit_and_names_what_fails(dask, tmp_path):
    settings, executor = [{"seed": seed, "width": width} for seed in (0, 1) for width in (4, 8)], dask.get_executor()
    found = run_jobs(jobs.train, settings, executor=executor, results=tmp_path)
    assert all(equal(ours, jobs.train(**job)) for ours, job in zip(found, settings, strict=True))
    assert len({os.getpid(), *(pid for _, pid in dask.run(jobs.threads_and_process).values())}) == 3
    with pytest.raises(JobFailed, match=r"job 1 of 1 \(\) failed: NeedsTwo: awkward"):
        run_jobs(jobs.raise_awkwardly, [{}], executor=executor)


def test_trainings_in_threads_of_one_process_do_not_share_random_numbers():
    settings = [{"seed": seed} for seed in range(4)]
    with ThreadPoolExecutor(4) as executor:
        found = run_jobs(jobs.train, settings, executor=executor)
    assert all(equal(ours, jobs.train(**job)) for ours, job in zip(found, settings, strict=True))


def test_another_executor_can_do_the_work():
    display = Recorder()
    with ThreadPoolExecutor(2) as executor:
        results = run_jobs(jobs.count_slowly, [{"label": i} for i in range(3)], executor=executor, progress=display)
        assert results == [0, 1, 2]
        with pytest.raises(JobFailed, match="job 1 of 1"):
            run_jobs(jobs.raise_awkwardly, [{}], executor=executor)
    assert display.updates[0][0] == 0 and display.updates[-1][0] == 2


def test_a_sweep_that_was_stopped_goes_on_with_what_is_finished(tmp_path, monkeypatch):
    runs, results = tmp_path / "runs", tmp_path / "results"
    runs.mkdir()
    settings = [{"folder": str(runs), "number": number} for number in range(4)]
    monkeypatch.setenv("BROKEN_JOB", "2")
    with pytest.raises(JobFailed, match="job 3 of 4"):
        run_jobs(jobs.square, settings, workers=0, results=results)
    assert sorted(path.name for path in runs.iterdir()) == ["0", "1", "2"]
    monkeypatch.delenv("BROKEN_JOB")
    display = Recorder()
    for workers in (1, 0):  # the second time there is nothing left to do
        found = run_jobs(jobs.square, settings[::-1], workers=workers, results=results, progress=display)
        assert [int(square) for square in found] == [9, 4, 1, 0]
    assert display.updates[0][:2] == (2.0, 4)
    assert {path.name: path.read_text() for path in runs.iterdir()} == {"0": "x", "1": "x", "2": "xx", "3": "x"}
    assert run_jobs(jobs.double, settings, workers=0, results=results) == [0, 2, 4, 6]  # not mixed up with the squares
    assert len(list(results.iterdir())) == 8


class AtOnce(Executor):
    """Does each job when it is submitted: all are finished before anyone looks."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_a_job_that_finishes_beside_a_failing_one_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKEN_JOB", "0")
    (tmp_path / "runs").mkdir()
    settings = [{"folder": str(tmp_path / "runs"), "number": number} for number in range(8)]
    with pytest.raises(JobFailed, match="job 1 of 8"):
        run_jobs(jobs.square, settings, executor=AtOnce(), results=tmp_path / "results")
    assert len(list((tmp_path / "results").iterdir())) == 7


def local_job():
    return 1


def test_a_function_that_no_process_can_find_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(parallel, "ProcessPoolExecutor", None)
    with pytest.raises(ValueError, match="lambda.*top level of a module.*workers=0"):
        run_jobs(lambda: 1, [{}])
    monkeypatch.setattr(local_job, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "local_job", local_job, raising=False)
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # the workers of xdist have none
    with pytest.raises(ValueError, match="local_job is defined in the notebook.*workers=0"):
        run_jobs(local_job, [{}])


def test_results_that_could_not_be_found_again_are_refused(tmp_path):
    with pytest.raises(ValueError, match="plain values: .*Tensor is not"):
        run_jobs(jobs.count_slowly, [{"label": torch.zeros(1)}], results=tmp_path, workers=0)
    with pytest.raises(ValueError, match="<lambda> may be any"):
        run_jobs(lambda: 1, [{}], results=tmp_path, workers=0)


def test_no_jobs_give_no_results():
    assert run_jobs(jobs.threads_and_process, []) == []


def test_only_cores_that_this_process_may_use_are_counted():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)
    assert usable_cores() == len(allowed)
