"""A tiny training under the name "tiny", as a script: its test kills it and starts it again.

Usage: python training_job.py OUT_FOLDER [SEEDS]
"""

import sys
from pathlib import Path

import torch

from course_lib.commands import train as tool
from course_lib.models.recurrent import CharacterLM, RecurrentConfig
from course_lib.training import FitConfig, fit, seeded
from course_lib.training.registry import RECIPES, Recipe, Trained

STEPS, INTERVAL = 120, 10


def train_tiny(seed, checkpoint, progress):
    torch.set_num_threads(1)
    with seeded(seed):
        model = CharacterLM(RecurrentConfig(vocab_size=5, hidden_dim=8, dropout=0.1))
        text = torch.randint(5, (200,))

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    history = fit(
        model,
        lambda step: text[(7 * step) % 150 :][:17][None],
        loss,
        config=FitConfig(steps=STEPS, learning_rate=1e-2, checkpoint_every=INTERVAL, seed=seed),
        checkpoint=checkpoint,
        progress=progress,
    )
    # seed 1 is the best on validation, and the worst on the test
    validation = {"error": {0: 0.5, 1: 0.25}.get(seed, 0.75)}
    return Trained(
        model=model, history=history, validation=validation, test={"error": 1 - seed / 10}, extra={"letters": "abcde"}
    )


TINY = Recipe(
    title="A tiny model",
    lesson="03",
    data="Random letters.",
    licence="MIT",
    minutes=0.1,
    settings={"steps": STEPS},
    train=train_tiny,
    chosen_by="error",
    notes="It learns nothing.",
)

if __name__ == "__main__":
    sys.modules["tiny_recipe"] = sys.modules["__main__"]
    RECIPES["tiny"] = "tiny_recipe:TINY"
    seeds = tool.parse_seeds(sys.argv[2]) if len(sys.argv) > 2 else [0]
    tool.train("tiny", seeds=seeds, out=Path(sys.argv[1]))
