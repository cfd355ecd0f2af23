"""What the tests of `scale` train, and, as a script that torchrun starts, two processes that train it together.

Usage: torchrun --nproc-per-node 2 together.py FOLDER
"""

import os
import sys
import time
from pathlib import Path
from unittest.mock import patch

import torch
from torch import nn

from course_lib.training import FitConfig, Rollouts, checkpoints, fit, seeded
from course_lib.training.scale import Setup, start

INPUTS = torch.randn(96, 5, generator=torch.Generator().manual_seed(0))
TARGETS = INPUTS.prod(dim=1, keepdim=True)
CONFIG = FitConfig(steps=12, learning_rate=0.02, clip_norm=0.3, evaluate_every=3, checkpoint_every=4)


class Net(nn.Module):
    """Its loss calls methods, and leaves out a layer in every other batch."""

    def __init__(self, dropout=0.0):
        super().__init__()
        with seeded(3):
            self.inner, self.outer, self.extra = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(5, 1)
        self.dropout = nn.Dropout(dropout)

    def features(self, x):
        return self.dropout(self.inner(x).tanh())


def batch_at(number, size=4):
    rows = torch.arange(size * number, size * number + size) % 96
    return INPUTS[rows], TARGETS[rows]


def loss(model, batch):
    inputs, targets = batch
    out = model.outer(model.features(inputs))
    return ((out - targets) ** 2).mean()


def loss_with_rest(model, batch):
    """Uses `extra` where the first input is positive: in some batches of some processes."""
    extra = model.extra(batch[0]).square().mean() if batch[0][0, 0] > 0 else 0.0
    return loss(model, batch) + extra


def validate(model):
    return float(loss(model, (INPUTS, TARGETS)))


def noise_of(draws):
    """Batches that note what was drawn for them."""

    def noted(model, batch):
        draws.append(torch.rand(()).item())
        return loss(model, batch)

    return noted


def interrupted_at(number):
    def interrupted(wanted):
        if wanted >= number:
            raise KeyboardInterrupt
        return batch_at(wanted)

    return interrupted


def train(folder):
    engine, models = start(), {name: Net() for name in ("plain", "rest")}
    histories = {
        "plain": fit(models["plain"], batch_at, loss, config=CONFIG, validate=validate, engine=engine),
        "rest": fit(models["rest"], batch_at, loss_with_rest, config=CONFIG, engine=engine),
    }
    models["accumulated"] = Net()
    fit(models["accumulated"], batch_at, loss, config=CONFIG, engine=start(Setup(accumulate=2)))
    draws = []
    fit(Net(), batch_at, noise_of(draws), config=FitConfig(steps=3, seed=5), engine=engine)
    rollouts = Rollouts(lambda model, number: {"seen": torch.rand(8)}, epochs=1, minibatches=1)
    fit(Net(), rollouts, lambda model, b: draws.extend(b["seen"][:1].tolist()) or loss(model, batch_at(0)),
        config=FitConfig(steps=1), engine=engine)  # fmt: skip
    run = {"checkpoint": folder / "run", "config": CONFIG, "engine": engine}
    models |= {"whole": Net(dropout=0.5), "resumed": Net(dropout=0.5)}
    fit(models["whole"], batch_at, loss, config=CONFIG, engine=engine)
    try:
        fit(Net(dropout=0.5), interrupted_at(2 * 6), loss, **run)
    except KeyboardInterrupt:
        fit(models["resumed"], batch_at, loss, **run)
    slow = Path(folder, "slow")
    with patch.object(checkpoints, "_rename", lambda *paths: (time.sleep(0.5), os.replace(*paths))):
        fit(Net(), batch_at, loss, config=FitConfig(steps=1), checkpoint=slow, engine=engine)
        found = [path.name for path in slow.iterdir()]
    weights = {name: model.state_dict() for name, model in models.items()}
    torch.save((weights, histories, draws, found), folder / f"{engine.rank}.pt")


if __name__ == "__main__":
    train(Path(sys.argv[1]))
