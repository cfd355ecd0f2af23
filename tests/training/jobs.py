"""Jobs for the tests of run_jobs: at the top level of a module, where a new process finds them."""

import os
import signal
import time
from pathlib import Path

import torch
from torch import nn

from course_lib.training import FitConfig, fit, progress, seeded


def train(seed, width=8):
    with seeded(seed):
        model = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1))
        inputs = torch.randn(64, 4)
    history = fit(
        model, lambda step: inputs, lambda m, x: (m(x) - x.sum(1, keepdim=True)).square().mean(),
        config=FitConfig(steps=15, learning_rate=0.02, seed=seed),
    )  # fmt: skip
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}, history.losses


def threads_and_process():
    return torch.get_num_threads(), os.getpid()


def count_slowly(label):
    display = progress.start("counting")
    for done in range(1, 7):
        display.update(done, 6)
        time.sleep(0.1)
    display.close()
    return label


def note_start_then_wait(folder, seconds, fail=False):
    (Path(folder) / f"{os.getpid()}.started").touch()
    if fail:
        raise ZeroDivisionError("planted")
    time.sleep(seconds)
    (Path(folder) / f"{os.getpid()}.finished").touch()


class NeedsTwo(Exception):
    """Cannot be rebuilt from its message: such an exception breaks a process pool that tries to send it."""

    def __init__(self, one, two):
        super().__init__(one)


def raise_awkwardly():
    raise NeedsTwo("awkward", 2)


def kill_younger_worker(folder, label):
    """Two workers meet; the one that was started last dies, which a pool notices least easily."""
    (Path(folder) / f"{os.getpid()}.met").touch()
    while len(met := [int(path.stem) for path in Path(folder).glob("*.met")]) < 2:
        time.sleep(0.02)
    if os.getpid() == max(met):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
    (Path(folder) / f"{os.getpid()}.finished").touch()


def return_what_cannot_travel():
    return lambda: None


def square(folder, number):
    with open(Path(folder) / str(number), "a") as file:
        file.write("x")
    if os.environ.get("BROKEN_JOB") == str(number):
        raise ZeroDivisionError("planted")
    return torch.tensor(number) ** 2


def double(folder, number):
    return 2 * number
