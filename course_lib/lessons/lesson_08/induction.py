"""Lesson 08: learning in context, in miniature: a random sequence comes a second time, and can only be looked up.

Olsson et al., "In-context learning and induction heads", 2022, arXiv 2209.11895.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.layers.recording import record_attention
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.lessons.lesson_08 import figures
from course_lib.models.attention_only import AttentionOnly, AttentionOnlyConfig
from course_lib.training import progress
from course_lib.training.progress import Progress
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by
from course_lib.training.seeding import seeded

SYMBOLS, LENGTH = 64, 48
SHORTEST, LONGEST = 12, 24  # symbols before a sequence begins again
HELD_OUT = {"validation": 2**31, "test": 2**31 + 1}  # seeds that no training draws its batches by
HELD_OUT_ROWS = 500


class Repeats(NamedTuple):
    """Rows that begin again after `period` symbols."""

    tokens: Int[Tensor, "B T"]
    period: Int[Tensor, " B"]

    def known(self) -> Bool[Tensor, "B t"]:
        """Whether the next symbol can be looked up: the one here stood in the row before."""
        return torch.arange(self.tokens.shape[1] - 1) >= self.period[:, None]


@dataclass(frozen=True, kw_only=True)
class InductionSettings:
    """A network of attention alone, and how it is trained."""

    depth: int = 2
    num_heads: int = 1
    head_dim: int = 64  # also where there are several: two heads in one layer cost what two layers cost
    batch_size: int = 32
    steps: int = 400
    learning_rate: float = 6e-3
    seed: int = 0


VARIANTS = {
    "two layers": InductionSettings(),
    "one layer": InductionSettings(depth=1),
    "one layer, two heads": InductionSettings(depth=1, num_heads=2),
    "one layer, four times the steps": InductionSettings(depth=1, steps=1600),
}


def repeats(count: int, seed: int) -> Repeats:
    """Different symbols in random order, which begin again after a random number of them.

    The period must differ from row to row: a network could memorise a fixed one as a distance.
    """
    generator = torch.Generator().manual_seed(seed)
    symbols = torch.rand(count, SYMBOLS, generator=generator).argsort(dim=1)
    period = torch.randint(SHORTEST, LONGEST + 1, (count,), generator=generator)
    return Repeats(symbols.gather(1, torch.arange(LENGTH) % period[:, None]), period)


def build(settings: InductionSettings) -> AttentionOnly:
    """A fresh network; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        sizes = {"vocab_size": SYMBOLS, "context_length": LENGTH}
        return AttentionOnly(AttentionOnlyConfig(**common(settings, AttentionOnlyConfig) | sizes))


def next_symbol_loss(model: nn.Module, rows: Repeats) -> Float[Tensor, ""]:
    """Mean cross-entropy of every next symbol, those that nobody can know too."""
    logits = model(rows.tokens[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), rows.tokens[:, 1:].flatten())


def train(
    settings: InductionSettings,
    *,
    model: AttentionOnly | None = None,
    display: Progress | None = None,
    checkpoint: Path | None = None,
) -> Trained:
    """Trains a network (a fresh one, if none is given) on rows that are new in each step."""
    with progress.using(lambda title: display) if display else nullcontext():
        return fit_by(
            settings,
            build(settings) if model is None else model,
            lambda step: repeats(settings.batch_size, settings.seed * 1_000_003 + step),
            next_symbol_loss,
            schedule="constant",
            warmup=min(50, settings.steps),
            betas=(0.9, 0.98),
            checkpoint=checkpoint,
        )


@torch.no_grad()
def accuracy(model: nn.Module, rows: Repeats, *, second: bool = True) -> float:
    """Accuracy on the next symbols, from 0 to 1: those that can be looked up, or the others."""
    right = model(rows.tokens[:, :-1]).argmax(dim=-1) == rows.tokens[:, 1:]
    return right[rows.known() == second].float().mean().item()


@torch.no_grad()
def maps(model: nn.Module, rows: Repeats) -> Float[Tensor, "B L H T T"]:
    """Where each head looks, in all places that have a next symbol."""
    with record_attention(model) as record:
        model(rows.tokens[:, :-1])
    return record.maps()


def at_previous(weights: Float[Tensor, "B L H T T"], rows: Repeats) -> Float[Tensor, "L H"]:
    """The weight that each head has on the symbol just before, on average over the first time of a sequence.

    Only there it is needed: one copy is enough to look everything up in.
    """
    on_previous = weights.diagonal(-1, dim1=-2, dim2=-1)  # (B, L, H, T-1), of the places from 1 on
    first = torch.arange(1, weights.shape[-1]) < rows.period[:, None]
    return on_previous.permute(0, 3, 1, 2)[first].mean(dim=0)


def at_followers(weights: Float[Tensor, "B L H T T"], rows: Repeats) -> Float[Tensor, "L H"]:
    """The weight that each head has on what followed this symbol before, on average where it occurred before.

    Olsson et al. 2022 call this prefix matching.
    """
    tokens = rows.tokens[:, :-1]
    same = (tokens[:, :, None] == tokens[:, None, :]).tril(-1)
    follows = same.roll(1, dims=-1)  # the key after each earlier occurrence
    found = (weights * follows[:, None, None]).sum(dim=-1)  # (B, L, H, T)
    return found.permute(0, 3, 1, 2)[rows.known()].mean(dim=0)


@contextmanager
def switched_off(model: nn.Module, layer: int, head: int = 0) -> Iterator[None]:
    """Inside the `with` block this head of the network hands on zeros."""
    attention = [part for part in model.modules() if isinstance(part, MultiHeadAttention)][layer]
    attend = attention.attend

    def without(q: Tensor, k: Tensor, v: Tensor, **how) -> Tensor:
        kept = torch.arange(v.shape[1])[:, None, None] != head
        return attend(q, k, v, **how) * kept

    attention.attend = without
    try:
        yield
    finally:
        attention.attend = attend


def example(model: AttentionOnly) -> Figure:
    """For `page.watch`: where each layer looks in one row."""
    rows = repeats(1, 2024)
    return figures.looks(maps(model, rows)[0, :, 0], rows.period[0].item())


def score(trained: Trained, split: str) -> Scores:
    """What is named right the first and the second time; of two layers also where they look and what each is worth."""
    model, rows = trained.model, repeats(HELD_OUT_ROWS, HELD_OUT[split])
    scores = {"second time right": accuracy(model, rows), "first time right": accuracy(model, rows, second=False)}
    if trained.settings.depth == 2:
        weights = maps(model, rows)
        scores["layer 1 on the symbol before"] = at_previous(weights, rows)[0].max().item()
        scores["layer 2 on the symbol to copy"] = at_followers(weights, rows)[1].max().item()
        for layer in range(2):
            with switched_off(model, layer):
                scores[f"second time right without layer {layer + 1}"] = accuracy(model, rows)
    return scores


RECIPE = Recipe(
    title="Induction heads: two layers of attention that look up what came before",
    lesson="08",
    data=f"Rows of {LENGTH} symbols out of {SYMBOLS}: {SHORTEST} to {LONGEST} different ones in random order, again "
    "and again. New rows in every step; validation and test 500 rows each, which no training sees.",
    minutes=0.5,
    variants=VARIANTS,
    train=train,
    scores=each(score),
    ships="two layers",
    chosen_by="second time right, two layers",
    mode="max",
    timed=tuple(VARIANTS),
)
