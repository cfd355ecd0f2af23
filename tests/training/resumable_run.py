"""One small training with everything random in it, as a script: the resume test kills it and starts it again.

Usage: python resumable_run.py CHECKPOINT_FOLDER RESULT_FILE [STEPS, after which it stands still until it is killed]
"""

import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import torch
from torch import nn

from course_lib.training import FitConfig, fit, seeded, shuffled_batches

CONFIG = FitConfig(
    steps=240, learning_rate=1e-2, warmup=20, weight_decay=0.1, evaluate_every=16, checkpoint_every=5, seed=4, ema=0.95
)


def train(checkpoint: Path | None, steps: float = float("inf")):
    torch.set_num_threads(1)
    with seeded(0):
        model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
        inputs = torch.randn(50, 6)
    targets = inputs.prod(dim=1, keepdim=True)
    indices_at = shuffled_batches(50, 8, seed=1)

    calls = count()

    def loss(model, batch):
        if next(calls) >= steps:
            time.sleep(600)
        # Not Python's `random`: under test, beartype draws from it to choose the list items that it checks.
        noise = 0.1 * float(np.random.normal())
        return ((model(batch[0]) - batch[1] + noise) ** 2).mean()

    def validate(model):
        torch.rand(3)  # a validation may draw random numbers: the training must not notice
        return float(((model(inputs) - targets) ** 2).mean())

    history = fit(
        model, lambda step: (inputs[i := indices_at(step)], targets[i]), loss,
        config=CONFIG, validate=validate, checkpoint=checkpoint,
    )  # fmt: skip
    return model, history


def outcome(model, history):
    """All that must be the same, bit for bit, however often the run was interrupted."""
    timings = {"cpu_seconds", "wall_seconds"}
    arrays = {name: torch.from_numpy(array) for name, array in history.arrays().items() if name not in timings}
    best = {f"best.{name}": tensor for name, tensor in history.best_weights.items()}
    return model.state_dict() | best | arrays | {"best_step": torch.tensor(history.best_step)}


if __name__ == "__main__":
    torch.save(outcome(*train(Path(sys.argv[1]), *map(int, sys.argv[3:]))), sys.argv[2])
