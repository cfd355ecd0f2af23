"""A language model of the dictionary at work: it defines words, real and invented, and reads the word that it defines.

An entry is `headword (part of speech): definition`, a line of text. A definition depends on its headword, which stands
at the beginning of the line: a model that knows only the last few tokens has soon forgotten it.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import nn

from course_lib.data.prose import dictionary_splits
from course_lib.generation import argmax, stream
from course_lib.generation.stepwise import Choice
from course_lib.models.kneser_ney import KneserNey
from course_lib.text.tokenizer import Tokenizer

ENTRY = re.compile(r"(?P<headword>.+?) \((?P<part>noun|verb|adjective|adverb)\): (?P<definition>.+)")
ONSETS = "bl br d dr f fl fr g gl gr k kl m n p pl sk sn t v z".split()
RIMES = "ab ast eb elk ib imp ob oft org orp ub ulk umb urp".split()
AFFIXES = {  # how a word is made of a stem, and its part of speech
    "-ness": ("{}ness", "noun"),
    "-ly": ("{}ly", "adverb"),
    "un-": ("un{}", "adjective"),
    "re-": ("re{}", "verb"),
    "-er": ("{}er", "noun"),
}
LONGEST = 40  # tokens of a definition


class Invented(NamedTuple):
    """A word that is in no dictionary, and the stem of which it is made."""

    word: str
    part: str  # of speech
    stem: str
    affix: str

    @property
    def prompt(self) -> str:
        return prompt_of(self.word, self.part)


def prompt_of(word: str, part: str) -> str:
    """What stands before the definition of a word."""
    return f"{word} ({part}):"


def invented(count: int, known: Iterable[str], *, seed: int = 0) -> list[Invented]:
    """So many invented words, the same number with each affix; no stem and no word is one of the `known` headwords."""
    stems = [onset + rime for onset in ONSETS for rime in RIMES]
    random.Random(seed).shuffle(stems)
    taken, words = set(known), []
    for stem in stems:
        affix, (pattern, part) = [*AFFIXES.items()][len(words) % len(AFFIXES)]
        if not {stem, pattern.format(stem)} & taken:
            words.append(Invented(pattern.format(stem), part, stem, affix))
    if len(words) < count:
        raise ValueError(f"there are only {len(words)} invented words, {count} were asked for")
    return words[:count]


def define(
    model: nn.Module | KneserNey,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    *,
    choose: Choice = argmax,
    longest: int = LONGEST,
) -> list[str]:
    """What a model writes behind each prompt up to the end of the line, `longest` tokens at most."""
    end = tokenizer.encode("\n")[0]
    ids = [tokenizer.encode("\n" + prompt) for prompt in prompts]
    if isinstance(model, KneserNey):
        return [tokenizer.decode(_counted(model, row, end, choose, longest)) for row in ids]
    groups = defaultdict(list)  # of prompts with as many tokens, which are read together
    for number, row in enumerate(ids):
        groups[len(row)].append(number)
    written: dict[int, str] = {}
    for numbers in groups.values():
        rows = torch.tensor([ids[number] for number in numbers])
        steps = stream(model, rows, max_new_tokens=longest, choose=choose, end_id=end, pad_id=end)
        new = torch.stack(list(steps), dim=1).tolist()
        for number, row in zip(numbers, new, strict=True):
            written[number] = tokenizer.decode(row[: row.index(end)] if end in row else row)
    return [written[number] for number in range(len(ids))]


def _counted(model: KneserNey, ids: list[int], end: int, choose: Choice, longest: int) -> list[int]:
    written: list[int] = []
    while len(written) < longest:
        probs = torch.from_numpy(model.next_probs([*ids, *written][-model.config.order :]))
        token = int(choose(probs.log()[None])[0])
        if token == end:
            break
        written.append(token)
    return written


def entries(split: str) -> list[re.Match[str]]:
    """The entries of a split of the dictionary, in their parts."""
    return [found for line in dictionary_splits().text(split).split("\n") if (found := ENTRY.fullmatch(line))]


def headwords() -> set[str]:
    """All words that the dictionary defines."""
    return {entry["headword"] for split in ("train", "validation", "test") for entry in entries(split)}


def held_out_entries(count: int) -> list[str]:
    """So many entries of the test split, evenly spread over it."""
    found = [entry[0] for entry in entries("test")]
    return found[:: len(found) // count][:count]


def stems_copied(model: nn.Module | KneserNey, tokenizer: Tokenizer, count: int) -> float:
    """Of so many invented words the fraction whose stem the model uses to define them, by greedy decoding."""
    words = invented(count, headwords())
    return copying(define(model, tokenizer, [word.prompt for word in words]), words)["all"]


def saved_by_headword(
    model: nn.Module | KneserNey, tokenizer: Tokenizer, entries: Sequence[str]
) -> Float[np.ndarray, " T"]:
    """The nats that an entry's own headword saves at each token of its definition, against another headword."""
    true, other = (definition_nats(model, tokenizer, rows) for rows in (entries, exchanged(entries)))
    return np.nanmean(other - true, axis=0)


def copies_stem(definition: str, word: Invented) -> bool:
    """Whether a word of the definition begins with the stem of the word that is defined."""
    return any(other.startswith(word.stem) for other in re.findall(r"[a-z]+", definition.lower()))


def copying(definitions: Sequence[str], words: Sequence[Invented]) -> dict[str, float]:
    """The fraction of definitions that use the stem, for each affix and in all."""
    hits: Mapping[str, list[bool]] = defaultdict(list)
    for definition, word in zip(definitions, words, strict=True):
        hits[word.affix].append(copies_stem(definition, word))
    means = {affix: sum(one) / len(one) for affix, one in hits.items()}
    return means | {"all": sum(map(sum, hits.values())) / len(words)}


def exchanged(entries: Sequence[str], *, seed: int = 0) -> list[str]:
    """The same entries, each with the headword of another one of the same part of speech."""
    found = [ENTRY.fullmatch(entry) for entry in entries]
    order: dict[str, list[int]] = defaultdict(list)
    for number, entry in enumerate(found):
        if entry:
            order[entry["part"]].append(number)
    result = list(entries)
    for part, numbers in order.items():
        random.Random(seed).shuffle(numbers)
        for number, other in zip(numbers, numbers[1:] + numbers[:1], strict=True):
            result[number] = f"{found[other]['headword']} ({part}): {found[number]['definition']}"
    return result


def definition_nats(
    model: nn.Module | KneserNey, tokenizer: Tokenizer, entries: Sequence[str], *, longest: int = 24
) -> Float[np.ndarray, "N T"]:
    """-ln p of the first tokens of each definition, NaN behind its end; the entry alone is read, from its line feed."""
    rows = np.full((len(entries), longest), np.nan)
    for number, entry in enumerate(entries):
        head = entry.index("): ") + 2
        before = len(tokenizer.encode("\n" + entry[:head]))
        ids = torch.tensor(tokenizer.encode("\n" + entry + "\n"))[: before + longest]
        if isinstance(model, KneserNey):
            nats = torch.from_numpy(-model.log_probs(ids))[before:]
        else:
            with torch.no_grad():
                logits = model(ids[None, :-1])[0]
            nats = F.cross_entropy(logits, ids[1:], reduction="none")[before - 1 :]
        rows[number, : len(nats)] = nats
    return rows
