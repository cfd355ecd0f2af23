"""Lesson 04: the texts that the learner's models read, what a step of theirs costs, and what is shown while they learn.

A learner's model is a `CharacterModel`: `model(tokens, state)` gives logits (B, T, V) and the state behind them.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.sequences import FirstSymbol
from course_lib.functional.cost import count_flops
from course_lib.lessons.lesson_04 import figures
from course_lib.lessons.lesson_04.remember import SYMBOLS
from course_lib.models.recurrent import CharacterLM
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.language_models import tokenized_prose

PART = 500  # characters of a validation text


def prose(split: str = "train") -> tuple[Int[Tensor, " N"], Tokenizer]:
    """The characters of a split of the prose as ids, and their tokenizer."""
    data = tokenized_prose()
    return data.ids[split], data.tokenizer


@torch.no_grad()
def continuation(model: CharacterLM, tokenizer: Tokenizer, prompt: str, temperature: float, *, count: int = 120) -> str:
    """The prompt, continued by so many sampled characters."""
    torch.manual_seed(4)
    ids, state, text = torch.tensor([tokenizer.encode(prompt)]), None, prompt
    for _ in range(count):
        logits, state = model.read_on(ids, state)
        ids = torch.multinomial((logits[:, -1] / temperature).softmax(dim=-1), 1)
        text += tokenizer.decode(ids[0].tolist())
    return text


@torch.no_grad()
def validation_loss(model: nn.Module, *, rows: int = 64) -> float:
    """The mean cross-entropy of a learner's model on validation text, in nats per character, from the zero state on."""
    text = prose("validation")[0][: rows * PART].view(rows, PART)
    return F.cross_entropy(model(text[:, :-1])[0].flatten(0, 1), text[:, 1:].flatten()).item()


def operations(model: nn.Module, *, length: int = 50) -> float:
    """The multiplications and additions of all matrix products for one character, forward."""
    tokens = torch.zeros(1, length, dtype=torch.long)
    return count_flops(lambda: model(tokens)) / length


@torch.no_grad()
def accuracy(model: nn.Module, rows: FirstSymbol) -> float:
    """The fraction of the sequences whose first symbol a learner's model names."""
    return (model(rows.tokens)[0][:, -1].argmax(dim=-1) == rows.first).float().mean().item()


@torch.no_grad()
def cell_states(model: nn.Module, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
    """The cell states of a learner's LSTM after each symbol."""
    state, kept = None, []
    for column in tokens.split(1, dim=1):
        _, state = model(column, state)
        kept.append(state[1])
    return torch.stack(kept, dim=1)


def showing(rows: FirstSymbol, units: int = 24) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: what the first symbol of one sequence left in some cells, and the answer.

    That is their distance from the mean over ten sequences that differ in their first symbol only.
    """
    twins, first = rows.tokens[:1].repeat(SYMBOLS, 1), int(rows.first[0])
    twins[:, 0] = torch.arange(SYMBOLS)

    def example(model: nn.Module) -> Figure:
        probability = model(twins)[0][:, -1].softmax(dim=-1)[first, first].item()
        kept = cell_states(model, twins)[:, :, :units]
        return figures.memory((kept[first] - kept.mean(dim=0)).T, twins[first].tolist(), probability)

    return example


def smoothed(losses: Sequence[float], width: int = 10) -> list[float]:
    """The means of so many losses, one after another."""
    return [sum(losses[i : i + width]) / width for i in range(0, len(losses) - width + 1, width)]
