import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.models.gpt import GPT, GPTConfig
from course_lib.training import FitConfig, fit
from course_lib.training import checkpoints as files
from tests.training import resumable_run
from tests.training.resumable_run import outcome, train


def assert_identical(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name].nan_to_num(-1.0), second[name].nan_to_num(-1.0)), name


@pytest.fixture(scope="module")
def uninterrupted():
    return outcome(*train(None))


def test_a_run_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path, uninterrupted):
    folder, result = tmp_path / "run", tmp_path / "result.pt"
    command = [sys.executable, "-m", "tests.training.resumable_run", str(folder), str(result)]
    root = Path(__file__).parents[2]
    reached = []
    # Each life is killed a little later after its first new checkpoint: between, and in the middle of, its writes.
    for life in range(3):
        process = subprocess.Popen([*command, "50"], cwd=root)
        before = folder_time(folder)
        while folder_time(folder) == before and process.poll() is None:  # it cannot end before it is killed
            time.sleep(0.001)
        time.sleep(0.004 * life)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"
        reached.append(files.load(folder)["done"])
    assert reached == sorted(set(reached)) and 0 < reached[0] and reached[-1] < resumable_run.CONFIG.steps, reached
    subprocess.run(command, cwd=root, check=True)
    assert_identical(torch.load(result), uninterrupted)


def folder_time(folder):
    last = folder / files.LAST
    try:
        return last.stat().st_mtime_ns
    except FileNotFoundError:
        return None


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", ["torch.save", "os.replace", "os.fsync"])
def test_a_kill_at_any_moment_of_writing_loses_at_most_one_interval(tmp_path, monkeypatch, uninterrupted, moment):
    """Stops at every single call of `moment` in turn, each time in the run that the last stop left behind."""
    module, name = {"torch": torch, "os": os}[moment.split(".")[0]], moment.split(".")[1]
    real, calls, stop_at = getattr(module, name), 0, 1

    def fails(*arguments, **keywords):
        nonlocal calls
        calls += 1
        if calls == stop_at:
            if name == "save":
                arguments[1].write(b"half a checkpoint")
            raise Killed
        return real(*arguments, **keywords)

    monkeypatch.setattr(module, name, fails)
    kills = 0
    while True:
        calls, stop_at = 0, 1 + (kills % 11)
        try:
            model, history = train(tmp_path)
            break
        except Killed:
            kills += 1
    assert kills >= 11
    monkeypatch.undo()
    assert_identical(outcome(model, history), uninterrupted)


def test_a_finished_run_is_not_repeated(tmp_path, uninterrupted, monkeypatch):
    train(tmp_path)
    monkeypatch.setattr(torch.optim.AdamW, "step", None)
    assert_identical(outcome(*train(tmp_path)), uninterrupted)


@pytest.mark.parametrize("kept", [0, 10, 1000, -1])
def test_a_truncated_checkpoint_gives_way_to_the_one_before(tmp_path, uninterrupted, kept):
    stop_at(tmp_path, 100)
    last = tmp_path / files.LAST
    last.write_bytes(last.read_bytes()[:kept])
    with pytest.warns(UserWarning, match=r"last\.pt cannot be read.*damaged.*Going on from previous\.pt"):
        assert files.load(tmp_path)["done"] == 95
    # The damaged file must not push the good one out, should the next save be interrupted.
    assert not last.exists() and (tmp_path / files.PREVIOUS).exists()
    assert_identical(outcome(*train(tmp_path)), uninterrupted)


def stop_at(folder, done):
    """Leaves the run in `folder` as a kill after `done` steps would."""
    real = files.save

    def save(folder, state):
        real(folder, state)
        if state["done"] == done:
            raise Killed

    files.save = save
    try:
        with pytest.raises(Killed):
            train(folder)
    finally:
        files.save = real


def test_no_readable_checkpoint_at_all_is_said_clearly(tmp_path):
    stop_at(tmp_path, 10)
    for name in (files.LAST, files.PREVIOUS):
        (tmp_path / name).write_bytes(b"PK\x03\x04 not much")
    with pytest.raises(ValueError, match=r"last\.pt.*previous\.pt.*Delete the folder"):
        train(tmp_path)


def test_a_checkpoint_cannot_run_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)

    torch.save({"done": Trap()}, tmp_path / files.LAST)
    (tmp_path / files.PREVIOUS).write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(files.DamagedCheckpoint):
        files.load(tmp_path)
    assert not (tmp_path / "trapped").exists()


def test_other_settings_are_named(tmp_path, monkeypatch):
    stop_at(tmp_path, 10)
    monkeypatch.setattr(resumable_run, "CONFIG", replace(resumable_run.CONFIG, learning_rate=0.5, seed=8))
    with pytest.raises(ValueError, match=r"learning_rate=0.01 then, 0.5 now; seed=4 then, 8 now.*another checkpoint"):
        train(tmp_path)


def test_how_often_a_run_is_saved_may_change(tmp_path, monkeypatch, uninterrupted):
    stop_at(tmp_path, 10)
    monkeypatch.setattr(resumable_run, "CONFIG", replace(resumable_run.CONFIG, checkpoint_every=None))
    assert_identical(outcome(*train(tmp_path)), uninterrupted)


def test_best_pt_holds_the_weights_that_validated_best(tmp_path):
    model, history = train(tmp_path)
    fresh = nn.Sequential(*(type(m)(*a) for m, a in zip(model, [(6, 16), (16,), (), (0.3,), (16, 1)], strict=True)))
    assert files.load_best(tmp_path, fresh) == {"step": history.best_step, "value": history.best_value}
    assert all(torch.equal(tensor, history.best_weights[name]) for name, tensor in fresh.state_dict().items())


def test_old_partial_files_do_no_harm(tmp_path, uninterrupted):
    stop_at(tmp_path, 10)
    (tmp_path / f"{files.LAST}.partial").write_bytes(b"rubbish")
    assert_identical(outcome(*train(tmp_path)), uninterrupted)
    assert {path.name for path in tmp_path.iterdir()} == {files.LAST, files.PREVIOUS, files.BEST}


def test_seconds_add_up_over_a_resume(tmp_path):
    stop_at(tmp_path, 100)
    first = files.load(tmp_path)["history"]["wall_seconds"].numpy().copy()
    shutil.copytree(tmp_path, tmp_path / "copy")
    history = train(tmp_path)[1]
    assert (history.wall_seconds[:100] == first[:100]).all() and np.isnan(first[100:]).all()
    assert (np.diff(history.wall_seconds) > 0).all() and (np.diff(history.cpu_seconds) >= 0).all()


def test_a_single_flipped_bit_in_the_weights_is_noticed(tmp_path):
    stop_at(tmp_path, 10)
    last = tmp_path / files.LAST
    weight = files.read(last)["model"]["0.weight"].numpy().tobytes()
    content = bytearray(last.read_bytes())
    content[content.index(weight) + 5] ^= 4
    last.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged.*previous"):
        assert files.load(tmp_path)["done"] == 5


def squares(model, batch, times=1):
    return times * (model(batch) ** 2).mean()


def absolutes(model, batch):
    return model(batch).abs().mean()


def ones(step):
    return torch.ones(4, 2)


def layers(*, slope=0.1, kind=nn.LeakyReLU):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), kind(slope))


def decay(factor):
    return lambda step, steps, warmup: factor**step


def gpt(num_heads):
    return GPT(GPTConfig(vocab_size=5, context_length=4, dim=8, depth=1, num_heads=num_heads, dropout=0.0))


def of_tokens(model, batch):
    return model(batch["tokens"].float()[:, None].expand(-1, 2)).mean()


def tokens(*numbers):
    return {"batch_at": lambda step: {"tokens": torch.tensor(numbers), "name": "x"}, "loss": of_tokens}


def begun(folder, *, model=None, batch_at=ones, loss=squares, **settings):
    return fit(model or layers(), batch_at, loss, config=FitConfig(**{"steps": 2} | settings), checkpoint=folder)


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        ({}, {"loss": absolutes}, "loss='squares' then, 'absolutes' now"),
        ({}, {"loss": lambda model, batch: model(batch).mean()}, "loss='squares' then, '<lambda> .{8}' now"),
        ({}, {"loss": partial(squares)}, None),
        ({}, {"loss": partial(squares, times=2)}, r"loss='squares' then, 'squares\(times=2\)' now"),
        ({"loss": lambda m, b: m(b).mean()}, {"loss": lambda m, b: m(b).mean()}, None),
        ({"loss": lambda m, b: m(b).mean()}, {"loss": lambda m, b: 2 * m(b).mean()}, "loss='<lambda>"),
        ({"schedule": decay(0.5)}, {"schedule": decay(0.5)}, None),
        ({"schedule": decay(0.5)}, {"schedule": decay(0.25)}, "schedule="),
        ({}, {"batch_at": lambda step: torch.ones(4, 2)}, None),
        ({}, {"batch_at": lambda step: torch.ones(4, 2) + 0.1}, r"first batch='float32 \(4, 2\) mean 1 .*mean 1.1 "),
        ({}, {"batch_at": lambda step: torch.ones(3, 2)}, r"first batch='float32 \(4, 2\) .*\(3, 2\)"),
        (tokens(1, 2, 3), tokens(1, 2, 3), None),
        (tokens(1, 2, 3), tokens(1, 3, 2), "first batch="),  # whole numbers are told apart by every one
        ({}, {"model": layers(slope=0.2)}, r"model.1='LeakyReLU\(negative_slope=0.1\)' then, .*0.2\)' now"),
        ({}, {"model": layers(kind=nn.ELU)}, r"model.1='LeakyReLU.*' then, 'ELU.*' now"),
        (
            {"model": nn.Linear(2, 1)},
            {"model": nn.Linear(3, 1)},
            r"'weight' is \(1, 2\) .*32 there, \(1, 3\) .*32 here",
        ),
        ({"model": nn.Linear(2, 1)}, {"model": nn.Linear(2, 1, bias=False)}, "only the checkpoint has 'bias'"),
        ({"model": nn.Linear(2, 1)}, {"model": nn.Linear(2, 1).double()}, "float32 there, .* torch.float64 here"),
        (
            {"model": gpt(4), "batch_at": lambda step: torch.ones(2, 4).long()},
            {"model": gpt(2)},
            "config.num_heads='4' then, '2' now",
        ),
    ],
)
def test_another_experiment_is_not_taken_for_the_one_that_is_in_the_folder(tmp_path, first, other, message):
    losses = begun(tmp_path, **first).losses.tolist()
    if message is None:
        assert begun(tmp_path, **first | other).losses.tolist() == losses
    else:
        with pytest.raises(ValueError, match=f"{message}.*another checkpoint folder"):
            begun(tmp_path, **first | other)


def test_a_run_begun_before_settings_were_invented_and_its_experiment_noted_goes_on(tmp_path, uninterrupted):
    stop_at(tmp_path, 10)
    state = files.load(tmp_path)
    assert state["settings"].pop("final_factor") == 0.0 and state["settings"].pop("processes") == 1
    experiment = {name for name in state["settings"] if name in ("loss", "first batch") or name.startswith("model")}
    assert len(experiment) > 3
    for name in experiment:
        del state["settings"][name]
    files.save(tmp_path, state)
    assert_identical(outcome(*train(tmp_path)), uninterrupted)


def test_a_finished_run_says_so(tmp_path, capsys):
    begun(tmp_path)
    assert capsys.readouterr().out == ""
    begun(tmp_path)
    assert capsys.readouterr().out == f"{tmp_path}: finished before, nothing trained.\n"


def test_a_run_draws_no_batch_more_than_it_needs(tmp_path):
    asked = []

    def batch_at(step):
        asked.append(step)
        return torch.ones(4, 2)

    begun(tmp_path, batch_at=batch_at)
    assert asked == [0, 1]
