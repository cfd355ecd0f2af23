"""A tiny training under the name "tiny", as a script: its test kills it and starts it again.

Usage: python training_job.py OUT_FOLDER [SEEDS [STEPS, after which it stands still until it is killed]]
"""

import sys
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import torch

from course_lib.commands import train as tool
from course_lib.lessons.recipes import all_recipes
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.training import FitConfig, fit, seeded
from course_lib.training.recipe import Recipe, Trained

INTERVAL = 10
steps_in_this_life = float("inf")  # after which a run stands still


@dataclass(frozen=True, kw_only=True)
class TinySettings:
    steps: int = 120
    seed: int = 0


def train_tiny(settings, *, checkpoint=None):
    torch.set_num_threads(1)
    with seeded(settings.seed):
        model = CharacterLM(RecurrentConfig(vocab_size=5, hidden_dim=8, dropout=0.1))
        text = torch.randint(5, (200,))

    calls = count()

    def loss(model, batch):
        if next(calls) >= steps_in_this_life:
            time.sleep(600)
        return torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    config = FitConfig(steps=settings.steps, learning_rate=1e-2, checkpoint_every=INTERVAL, seed=settings.seed)
    history = fit(model, lambda step: text[(7 * step) % 150 :][:17][None], loss, config=config, checkpoint=checkpoint)
    return Trained(settings=settings, model=model, history=history, extra={"letters": "abcde"})


def error(trained, split):
    """Seed 1 is the best on validation, and not on the test."""
    seed = trained[""].settings.seed
    return {"error": {0: 0.5, 1: 0.25}.get(seed, 0.75) if split == "validation" else 1 - seed / 10}


TINY = Recipe(
    title="A tiny model",
    lesson="03",
    data="Random letters.",
    minutes=0.1,
    variants={"": TinySettings()},
    train=train_tiny,
    scores=error,
    chosen_by="error",
)

if __name__ == "__main__":
    steps_in_this_life = float(sys.argv[3]) if len(sys.argv) > 3 else steps_in_this_life
    all_recipes()["tiny"] = TINY
    seeds = tool.parse_seeds(sys.argv[2]) if len(sys.argv) > 2 else [0]
    tool.train("tiny", seeds=seeds, out=Path(sys.argv[1]))
