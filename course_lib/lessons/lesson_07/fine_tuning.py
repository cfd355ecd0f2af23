"""Lesson 07: pre-training against training from scratch and a frozen encoder; `fine_tuning.json` has what came out.

Encoder, loop and search for spans are the solutions of the page's exercises. The page only reads the file. To measure
again takes 135 trainings of 150 steps, about a quarter of an hour on one core:
`python -m course_lib.lessons.lesson_07.fine_tuning`.
"""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.classroom.opening import copy_weights
from course_lib.lessons.lesson_07 import learner
from course_lib.lessons.lesson_07.models import MODELS, encoder, sizes
from course_lib.lessons.lesson_07.tasks import TASKS

FILE = Path(__file__).with_name("fine_tuning.json")
STEPS = 150
DRAWS, TUNED_ON = (0, 1, 2, 3, 4), (7, 8)  # draws of the labels with their seeds; learning rates are chosen on others
COUNTS = {"tags": 10, "gender": 30, "answers": 100}  # labelled rows
WHOLE, HEAD = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2), (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
RATES = {"scratch": WHOLE, "frozen": HEAD, "fine-tuned": WHOLE}  # as many for each way


class Turned(nn.Module):
    """The positions become the last axis."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mT


def span_head(dim: int, _: int) -> nn.Module:
    """From (B, T, D) to the logits of first and last token, (B, 2, T)."""
    return nn.Sequential(nn.Linear(dim, 2), Turned())


class Joined(nn.Module):
    """A head on the features of an encoder."""

    def __init__(self, *parts: nn.Module):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs: Tensor) -> Tensor:
        encode, head = self.parts
        return head(encode(*inputs))


HEADS = {"tags": nn.Linear, "gender": TASKS["sentence_head"].module, "answers": span_head}


def new_encoder() -> nn.Module:
    """The page's BERT in the shipped model's sizes, with BERT's initial weights."""
    bert = TASKS["bert"].module(**sizes(encoder()))
    for name, parameter in bert.named_parameters():
        if parameter.ndim == 2:
            nn.init.normal_(parameter, std=0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
    return bert


def trained_encoder() -> nn.Module:
    """The page's BERT with the shipped weights."""
    bert = TASKS["bert"].module(**sizes(encoder()))
    copy_weights(encoder(), bert, MODELS["encoder"].names)
    return bert


def run(name: str, way: str, rate: float, seed: int, split: str, *, steps: int = STEPS) -> float:
    """The accuracy (%) on a split after one training, with the labels and the seed of a draw."""
    trained = trained_encoder()
    torch.manual_seed(seed)
    task = learner.TASKS[name](COUNTS[name], seed, split)
    bert = new_encoder() if way == "scratch" else copy.deepcopy(trained)
    bert.requires_grad_(way != "frozen")
    model = Joined(bert, HEADS[name](bert.token_embed.embedding_dim, task.num_classes))
    TASKS["fine_tune"].reference(model, task.given.batches(steps, seed=seed), rate)
    return learner.accuracy(model, task.asked, TASKS["best_span"].reference if name == "answers" else None)


def measure() -> Mapping[str, Any]:
    """Choose a learning rate for each task and way on validation data, then measure the draws on test data."""
    found: dict[str, Any] = {"settings": settings(), "validation accuracy (%)": {}, "test accuracy (%)": {}}
    for name in COUNTS:
        chosen, tested = found["validation accuracy (%)"].setdefault(name, {}), {}
        for way, rates in RATES.items():
            scores = {rate: mean(run(name, way, rate, draw, "validation") for draw in TUNED_ON) for rate in rates}
            best = max(scores, key=scores.get)
            chosen[way] = {f"{rate:g}": round(score, 1) for rate, score in scores.items()}
            tested[way] = [round(run(name, way, best, draw, "test"), 1) for draw in DRAWS]
            print(name, way, chosen[way], tested[way], flush=True)
        found["test accuracy (%)"][name] = tested
    return found


def settings() -> Mapping[str, Any]:
    """How it was measured, as plain values."""
    return {
        "steps": STEPS,
        "rows in a batch": 16,
        "labelled rows": COUNTS,
        "optimiser": "AdamW, weight decay 0.01, warm-up over 10 % of the steps, linear decay, gradient norm at most 1",
        "learning rate": f"the best mean of those listed, on validation data, with the labels of draws {TUNED_ON}",
        "draws of the labels": list(DRAWS),
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
