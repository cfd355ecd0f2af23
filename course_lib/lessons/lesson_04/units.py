"""Lesson 04: what single cells of the character model count, searched for on validation text and scored on test text.

After Karpathy, Johnson & Fei-Fei, "Visualizing and understanding recurrent networks", 2015, arXiv 1506.02078.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from course_lib.functional.recurrent import LSTMGates, LSTMState, lstm_gates
from course_lib.models.recurrent import CharacterLM
from course_lib.training.language_models import tokenized_prose

STREAMS, CHARACTERS = 16, 48_000  # so many characters of a split, read in so many parts side by side
WARM_UP = 64  # characters at the beginning of a part that are not scored: a reader without a past
BEHIND = 20  # characters behind a quotation
QUOTATION = re.compile(r"(?<!\w)'[^'\n]{1,60}'(?!\w)")  # an apostrophe stands inside or at the end of a word


class Reading(NamedTuple):
    """What a network has in it at each character of some texts."""

    texts: list[str]
    inside: Float[Tensor, "N T H"]  # the cells C of an LSTM, the states h of an RNN
    gates: LSTMGates | None


class Found(NamedTuple):
    """The unit that was best on validation text, its score there, and on test text."""

    unit: int
    validation: float
    test: float


@torch.no_grad()
def read(model: CharacterLM, ids: Int[Tensor, "N T"]) -> Reading:
    """Reads texts from the zero state on: the kernel for h, then all gates at once, then C step by step."""
    x = model.embed(ids)
    h, final = model.encode(x)
    texts = [tokenized_prose().tokenizer.decode(row.tolist()) for row in ids]
    if not isinstance(final, LSTMState):
        return Reading(texts, h, None)
    before = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], dim=1)
    gates = lstm_gates(x, before, *model.rnn.cells[0].weights)
    c, cells = torch.zeros_like(h[:, 0]), []
    for i, f, g in zip(*(gate.unbind(dim=1) for gate in gates[:3]), strict=True):
        c = f * c + i * g
        cells.append(c)
    return Reading(texts, torch.stack(cells, dim=1), gates)


@lru_cache(maxsize=4)
def read_split(model: CharacterLM, split: str, characters: int = CHARACTERS) -> Reading:
    """The beginning of a split of the prose, without the gates."""
    ids = tokenized_prose().ids[split]
    return read(model, ids[: min(characters, len(ids)) // STREAMS * STREAMS].view(STREAMS, -1))._replace(gates=None)


def read_text(model: CharacterLM, text: str) -> Reading:
    """One text, behind a line feed, which is not part of the answer. Raises ValueError for an unknown character."""
    reading = read(model, torch.tensor([tokenized_prose().tokenizer.encode("\n" + text)]))
    return Reading([text], reading.inside[:, 1:], LSTMGates(*(gate[:, 1:] for gate in reading.gates)))


def since_sentence(text: str) -> Int[Tensor, " T"]:
    """How many characters of its sentence stand before each character."""
    counts, count = [], 0
    for here, following in zip(text, text[1:] + " ", strict=True):
        counts.append(count)
        ended = here == "\n" or (here in ".!?" and following in " \n")
        count = 0 if ended else count + 1
    return torch.tensor(counts)


def quoted(text: str) -> Bool[Tensor, " T"]:
    """Whether a character stands in single quotes: from the opening mark on, up to the closing one."""
    return _mark(text, ((start, end - 1) for start, end in spans(text)))


def behind_quotation(text: str) -> Bool[Tensor, " T"]:
    """Whether one stands just behind a quotation: its closing mark and what follows, before any other mark."""
    return _mark(text, ((end - 1, _end(text, end)) for _, end in spans(text)))


def spans(text: str) -> list[tuple[int, int]]:
    """Where the quotations begin and end."""
    return [match.span() for match in QUOTATION.finditer(text)]


def _end(text: str, start: int) -> int:
    stops = [position for mark in "'\n" if (position := text.find(mark, start)) >= 0]
    return min([start - 1 + BEHIND, len(text), *stops])


def _mark(text: str, positions: Iterable[tuple[int, int]]) -> Bool[Tensor, " T"]:
    marked = torch.zeros(len(text), dtype=torch.bool)
    for start, end in positions:
        marked[start:end] = True
    return marked


def labels(texts: Iterable[str], label: Callable[[str], Tensor]) -> Shaped[Tensor, " S"]:
    """A label at each scored character of the texts."""
    return torch.stack([label(text)[WARM_UP:] for text in texts]).flatten()


def values(reading: Reading) -> Float[Tensor, "S H"]:
    """What all units hold at each scored character."""
    return reading.inside[:, WARM_UP:].flatten(0, 1)


def correlation(units: Float[Tensor, "S H"], count: Int[Tensor, " S"]) -> Float[Tensor, " H"]:
    """Pearson's r of each unit with a count, from -1 to 1."""
    units, count = units - units.mean(dim=0), count - count.float().mean()
    return (units * count[:, None]).sum(dim=0) / (units.norm(dim=0) * count.norm())


def auc(units: Float[Tensor, "S H"], label: Bool[Tensor, " S"]) -> Float[Tensor, " H"]:
    """How often a unit is higher where the label holds than where it does not: 0.5 is a guess, 0 and 1 are perfect."""
    ranks = units.argsort(dim=0).argsort(dim=0).float() + 1
    yes = int(label.sum())
    return (ranks[label].mean(dim=0) - (yes + 1) / 2) / (len(label) - yes)


def search(
    model: CharacterLM,
    label: Callable[[str], Tensor],
    score: Callable[[Tensor, Tensor], Tensor],
    *,
    neutral: float = 0.0,
    characters: int = CHARACTERS,
) -> Found:
    """The unit whose score is furthest from `neutral` on validation text, with its score on test text."""
    scores = {}
    for split in ("validation", "test"):
        reading = read_split(model, split, characters)
        scores[split] = score(values(reading), labels(reading.texts, label))
    unit = int((scores["validation"] - neutral).abs().argmax())
    return Found(unit, *(found[unit].item() for found in scores.values()))


def inside_or_behind(model: CharacterLM, unit: int, split: str = "test") -> float:
    """The AUC of a unit for *in quotes*, where the only other characters are those just behind a quotation."""
    reading = read_split(model, split)
    inside, behind = (labels(reading.texts, label) for label in (quoted, behind_quotation))
    near = inside | behind
    return auc(values(reading)[near][:, [unit]], inside[near]).item()


def distance_alone(model: CharacterLM, split: str = "test") -> float:
    """The same AUC of nothing but how near the last quote mark is, opening or closing."""
    texts = read_split(model, split).texts
    inside, behind, since = (labels(texts, label) for label in (quoted, behind_quotation, since_mark))
    near = inside | behind
    return auc(-since[near, None].float(), inside[near]).item()


def since_mark(text: str) -> Int[Tensor, " T"]:
    """How many characters ago the last mark of a quotation was, in it and behind it; 0 elsewhere."""
    counts = torch.zeros(len(text), dtype=torch.long)
    for start, end in spans(text):
        for first, last in ((start, end - 1), (end - 1, _end(text, end))):
            counts[first:last] = torch.arange(last - first)
    return counts


def after_marks(model: CharacterLM, unit: int, split: str = "test") -> dict[str, Float[Tensor, " K"]]:
    """A unit's mean so many characters after an opening mark, and after a closing one."""
    reading = read_split(model, split)
    follow: dict[str, list[list[float]]] = {
        "opening": [[] for _ in range(BEHIND)],
        "closing": [[] for _ in range(BEHIND)],
    }
    for text, cells in zip(reading.texts, reading.inside[:, :, unit], strict=True):
        for start, end in spans(text):
            if start >= WARM_UP:
                for name, first, last in (("opening", start, end - 1), ("closing", end - 1, _end(text, end))):
                    for k, value in enumerate(cells[first:last][:BEHIND].tolist()):
                        follow[name][k].append(value)
    return {
        name: torch.tensor([sum(each) / len(each) for each in lists if len(each) >= 5])
        for name, lists in follow.items()
    }
