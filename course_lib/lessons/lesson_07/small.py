"""Lesson 07: the short sentences that the page trains on, pairs of them, and the test of agreement."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from course_lib.data.labelled import MinimalPair
from course_lib.data.translation import SentencePair, translation_splits
from course_lib.lessons.lesson_07.recipes.pretraining import (
    CONTEXT_LENGTH,
    Encoded,
    encode,
    masked_batch,
    masked_lm_loss,
    vocabulary,
)
from course_lib.models.bert_tasks import BERTForMaskedLM, BERTForNextSentence
from course_lib.text.tokenizer import pad_batch
from course_lib.training.batches import shuffled_batches
from course_lib.training.loop import FitConfig, fit
from course_lib.training.seeding import seeded

LONGEST, TRAIN = 9, 20_000  # words of a short sentence; sentences of which the short ones are taken
BLANKS = ("the minister does not [MASK] the law .", "les lois sont [MASK] .", "la [MASK] est importante .")


def known(split: str) -> Sequence[SentencePair]:
    """Pairs of the grammar; those for validation are the same with fewer to train on."""
    return getattr(translation_splits(train=TRAIN if split == "train" else 0, validation=1000, test=0), split)


@lru_cache(maxsize=2)
def short_sentences(split: str = "train") -> list[Encoded]:
    """English and French sentences of the grammar with up to `LONGEST` words."""
    return [encode(words) for pair in known(split) for words in (pair.english, pair.french) if len(words) <= LONGEST]


@torch.no_grad()
def short_loss(model: BERTForMaskedLM) -> float:
    """The loss in short sentences that no model was trained on, in nats per chosen token."""
    return float(masked_lm_loss(model, masked_batch(short_sentences("validation"), seed=0)))


def frequency_loss() -> float:
    """The same of a guesser that knows how frequent each word is, and nothing of the sentence."""
    size, first = len(vocabulary()), vocabulary().mask_id + 1
    counts = torch.bincount(torch.tensor([i for one in short_sentences() for i in one.ids]), minlength=size)[first:] + 1
    hidden = masked_batch(short_sentences("validation"), seed=0).hidden - first
    return float(F.cross_entropy((counts / counts.sum()).log().expand(len(hidden), -1), hidden))


# ------------------------------------------------------------------------------------------- sentence B after A


class Pairs(NamedTuple):
    """English sentences A with French ones B: 0 where B says the same, 1 where it is another, as in next sentence."""

    first: list[list[int]]
    second: list[list[int]]
    answers: Int[Tensor, " N"]


@lru_cache(maxsize=2)
def sentence_pairs(split: str = "train") -> Pairs:
    """Short sentences, half of them with their translation, half with that of another one."""
    pairs = [pair for pair in known(split) if len(pair.english) <= LONGEST]
    generator = torch.Generator().manual_seed(0)
    other = torch.randperm(len(pairs), generator=generator).tolist()
    answers = (torch.rand(len(pairs), generator=generator) < 0.5).long()
    seconds = [pairs[other[i] if answer else i].french for i, answer in enumerate(answers.tolist())]
    ids = ([vocabulary().encode(" ".join(words)) for words in side] for side in ([p.english for p in pairs], seconds))
    return Pairs(*ids, answers)


def train_pairs(pretrained: BERTForMaskedLM, pack: Callable, *, steps: int = 400, progress=None) -> float:
    """Train a next-sentence head on a copy of the encoder, and return its accuracy on new pairs, from 0 to 1.

    `pack(first, second, start, end, max_length)` gives ids and segments.
    """
    with seeded(0):
        model = BERTForNextSentence(pretrained.config)
    model.bert.load_state_dict(model.bert.state_dict() | pretrained.bert.state_dict())  # the pooler stays fresh

    def batch(pairs: Pairs, rows: Sequence[int]) -> tuple[Tensor, ...]:
        start, end = vocabulary().start_id, vocabulary().end_id
        packed = [pack(pairs.first[i], pairs.second[i], start, end, CONTEXT_LENGTH) for i in rows]
        (tokens, valid), (segments, _) = (pad_batch(side) for side in zip(*packed, strict=True))
        return tokens, segments, valid, pairs.answers[list(rows)]

    def logits(model: BERTForNextSentence, tokens: Tensor, segments: Tensor, valid: Tensor) -> Tensor:
        return model(tokens, segments=segments, valid=valid)

    train, held_out = sentence_pairs(), sentence_pairs("validation")
    indices_at = shuffled_batches(len(train.first), 32, 0)
    settings = FitConfig(steps=steps, learning_rate=1e-3, warmup=steps // 10, schedule="linear")
    fit(
        model,
        lambda step: batch(train, indices_at(step).tolist()),
        lambda model, given: F.cross_entropy(logits(model, *given[:3]), given[3]),
        config=settings,
        progress=progress,
    )
    with torch.no_grad():
        *asked, answers = batch(held_out, range(len(held_out.first)))
        return (logits(model, *asked).argmax(dim=-1) == answers).float().mean().item()


# -------------------------------------------------------------------------------------------------- agreement


@torch.no_grad()
def prefers_good(model: BERTForMaskedLM, pairs: Sequence[MinimalPair]) -> Bool[Tensor, " N"]:
    """Where the two sentences of a pair differ: is the right word the likelier one?"""
    found = []
    for pair in pairs:
        position = next(i for i, (good, bad) in enumerate(zip(pair.good, pair.bad, strict=True)) if good != bad)
        tokens = torch.tensor([encode([*pair.good[:position], "[MASK]", *pair.good[position + 1 :]]).ids])
        logits = model(tokens, masked=tokens == vocabulary().mask_id)[0]
        good, bad = (logits[vocabulary().token_to_id(words[position])] for words in (pair.good, pair.bad))
        found.append(bool(good > bad))
    return torch.tensor(found)
