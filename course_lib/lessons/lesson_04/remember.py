"""Lesson 04: remember the first of T symbols until the end, with each kind of cell and each kind of start.

After Hochreiter & Schmidhuber 1997, section 5. The biases for a long memory are those of Jozefowicz, Zaremba &
Sutskever, ICML 2015 (1), and Tallec & Ollivier, ICLR 2018, arXiv 1804.11188, section 3 (about ln T).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.data.sequences import FirstSymbol, first_symbol
from course_lib.models.recurrent import SequenceClassifier, SequenceClassifierConfig
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by
from course_lib.training.seeding import seeded

SYMBOLS = 10
LENGTHS = (10, 25, 50, 100)
HELD_OUT = {"validation": 2**31, "test": 2**31 + 1}  # seeds that no training draws its sequences by
HELD_OUT_ROWS = 1000
KEEP = {"lstm": 1, "gru": 1}  # which gate says how much of the old state stays: f of the LSTM, z of the GRU


@dataclass(frozen=True, kw_only=True)
class RememberSettings:
    """A network that reads `length` symbols, and how it is trained."""

    cell: str
    length: int
    keep: float | None = None  # where the bias of the gate that keeps starts
    hidden_dim: int = 64
    batch_size: int = 32
    steps: int = 2000
    learning_rate: float = 1e-2
    seed: int = 0


def long_bias(length: int) -> float:
    """ln T + 1/2: a gate that starts here forgets about 1 / (1.6 T) of its unit in a step."""
    return math.log(length) + 0.5


KINDS: dict[str, Callable[[int], RememberSettings]] = {
    "RNN": lambda length: RememberSettings(cell="rnn", length=length, learning_rate=3e-3),
    "GRU": lambda length: RememberSettings(cell="gru", length=length, learning_rate=2e-2),
    "GRU, long bias": lambda length: RememberSettings(cell="gru", length=length, keep=long_bias(length)),
    "LSTM, bias 1": lambda length: RememberSettings(cell="lstm", length=length, keep=1.0, learning_rate=3e-3),
    "LSTM, long bias": lambda length: RememberSettings(cell="lstm", length=length, keep=long_bias(length)),
}
VARIANTS = {f"{kind}, {length} symbols": make(length) for kind, make in KINDS.items() for length in LENGTHS}


def build(settings: RememberSettings) -> SequenceClassifier:
    """A fresh network, whose first weights depend on the seed alone.

    With an open forget gate an LSTM's input gate starts half closed, else its cell adds up all that it reads. A GRU
    writes 1 - z, and needs no second bias.
    """
    sizes = {"vocab_size": SYMBOLS, "num_classes": SYMBOLS}
    if settings.cell == "lstm" and settings.keep is not None:
        sizes["forget_bias"] = settings.keep
        sizes["input_bias"] = -settings.keep / 2 if settings.keep > 1 else None
    with seeded(settings.seed):
        model = SequenceClassifier(SequenceClassifierConfig(**common(settings, SequenceClassifierConfig) | sizes))
    if settings.cell == "gru" and settings.keep is not None:
        model.rnn.cells[0].set_gate_bias(KEEP["gru"], settings.keep)
    return model


def sequences(settings: RememberSettings, step: int) -> FirstSymbol:
    """The sequences of one training step: new ones each time."""
    return first_symbol(
        settings.batch_size, settings.length, num_symbols=SYMBOLS, seed=settings.seed * 1_000_003 + step
    )


def first_symbol_loss(model: SequenceClassifier, rows: FirstSymbol) -> Float[Tensor, ""]:
    """Cross-entropy of the first symbol, asked for after the last; a guess costs ln 10 = 2.30."""
    return F.cross_entropy(model(rows.tokens), rows.first)


def train(settings: RememberSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains a fresh network."""
    return fit_by(
        settings,
        build(settings),
        lambda step: sequences(settings, step),
        first_symbol_loss,
        schedule="constant",
        checkpoint=checkpoint,
    )


@torch.no_grad()
def accuracy(model: SequenceClassifier, rows: FirstSymbol) -> float:
    """The fraction of the sequences whose first symbol is named."""
    return (model(rows.tokens).argmax(dim=-1) == rows.first).float().mean().item()


def held_out(length: int, split: str = "test", count: int | None = None) -> FirstSymbol:
    """Sequences that no training sees; `HELD_OUT_ROWS` of them if not said."""
    return first_symbol(count or HELD_OUT_ROWS, length, num_symbols=SYMBOLS, seed=HELD_OUT[split])


@torch.no_grad()
def left_over(kind: str, length: int, backward: Callable) -> float:
    """The fraction of a gradient that comes back over `length` steps of a fresh LSTM, along the cell states alone.

    `backward(dh, dc, c_before, c, f, o)` returns the gradients inside the forget gate and in the cell before.
    """
    model, steps = build(KINDS[kind](length)), []
    cell, rows = model.rnn.cells[0], held_out(length, count=16)
    state = cell.initial_state(len(rows.tokens))
    for x in model.embed(rows.tokens).unbind(dim=1):
        gates, before = cell.gates(x, state.h), state.c
        state = cell(x, state)
        steps.append((before, state.c, gates.f, gates.o))
    dc = torch.ones_like(state.c)
    for step in reversed(steps):
        _, dc = backward(torch.zeros_like(dc), dc, *step)
    return dc.mean().item()


def score(trained: Trained, split: str) -> Scores:
    """The accuracy."""
    return {"right": accuracy(trained.model, held_out(trained.settings.length, split))}


RECIPE = Recipe(
    title="The first of T symbols, remembered until the end",
    lesson="04",
    data=f"Sequences of 10, 25, 50 or 100 random symbols out of {SYMBOLS} (course_lib.data.sequences). New ones in "
    "every step; validation and test 1,000 each, which no training sees.",
    minutes=4,
    variants=VARIANTS,
    train=train,
    scores=each(score),
    ships="LSTM, long bias, 50 symbols",
    chosen_by="right, LSTM, long bias, 50 symbols",
    mode="max",
)
