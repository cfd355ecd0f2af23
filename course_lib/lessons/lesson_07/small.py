"""Lesson 07: what a small BERT learns from short sentences before the learner's eyes, and how such models are asked."""

import html
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor, nn

from course_lib.data.labelled import MinimalPair
from course_lib.data.translation import SentencePair, translation_splits
from course_lib.lessons.lesson_07.recipes.pretraining import (
    CONTEXT_LENGTH,
    Encoded,
    PretrainingSettings,
    build,
    encode,
    fill_in,
    masked_batch,
    masked_lm_loss,
    vocabulary,
)
from course_lib.models.bert_tasks import BERTForMaskedLM, BERTForNextSentence
from course_lib.text.tokenizer import pad_batch
from course_lib.training.batches import bucketed_batches, shuffled_batches
from course_lib.training.history import History
from course_lib.training.loop import FitConfig, fit
from course_lib.training.seeding import seeded

LONGEST, TRAIN = 9, 20_000  # words of a short sentence; sentences of which the short ones are taken
SETTINGS = PretrainingSettings(dim=64, depth=2, steps=2000, learning_rate=3e-3)
BLANKS = ("the minister does not [MASK] the law .", "les lois sont [MASK] .", "la [MASK] est importante .")
Batch = tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"]]  # whole sentences, and which tokens are real


def known(split: str) -> Sequence[SentencePair]:
    """Pairs of the grammar; those for validation are the same with fewer to train on."""
    return getattr(translation_splits(train=TRAIN if split == "train" else 0, validation=1000, test=0), split)


@lru_cache(maxsize=2)
def short_sentences(split: str = "train") -> list[Encoded]:
    """English and French sentences of the grammar with up to `LONGEST` words."""
    return [encode(words) for pair in known(split) for words in (pair.english, pair.french) if len(words) <= LONGEST]


def train_small(
    model: BERTForMaskedLM,
    loss: Callable[[nn.Module, Batch], Tensor],
    *,
    settings: PretrainingSettings = SETTINGS,
    progress=None,
) -> History:
    """Trains on short sentences; `loss` gets the model and whole ones, and hides words itself."""
    sentences = short_sentences()
    indices_at = bucketed_batches([len(one.ids) for one in sentences], settings.batch_size, settings.seed)
    config = FitConfig(
        steps=settings.steps,
        learning_rate=settings.learning_rate,
        schedule="linear",
        warmup=min(100, settings.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        evaluate_every=max(1, settings.steps // 10),
        seed=settings.seed,
    )
    return fit(
        model,
        lambda step: pad_batch([sentences[i].ids for i in indices_at(step).tolist()]),
        loss,
        config=config,
        validate=short_loss,
        progress=progress,
    )


def fresh(settings: PretrainingSettings = SETTINGS) -> BERTForMaskedLM:
    """A model that knows nothing yet."""
    return build(settings)


@torch.no_grad()
def short_loss(model: BERTForMaskedLM) -> float:
    """Nats per hidden word in short sentences that nobody has learned from."""
    return float(masked_lm_loss(model, masked_batch(short_sentences("validation"), seed=0)))


def frequency_loss() -> float:
    """The same of a guesser that knows how frequent each word is, and nothing of the sentence."""
    size, first = len(vocabulary()), vocabulary().mask_id + 1
    counts = torch.bincount(torch.tensor([i for one in short_sentences() for i in one.ids]), minlength=size)[first:] + 1
    hidden = masked_batch(short_sentences("validation"), seed=0).hidden - first
    return float(F.cross_entropy((counts / counts.sum()).log().expand(len(hidden), -1), hidden))


def fills(model: BERTForMaskedLM, blanks: Sequence[str] = BLANKS, *, most: int = 4) -> str:
    """What a model puts into blanks, as HTML."""
    rows = []
    for sentence in blanks:
        words = ", ".join(
            f"<b>{html.escape(word)}</b> {p:.2f}" for word, p in fill_in(model, sentence.split(), most=most)[0]
        )
        rows.append(f"<p>{html.escape(sentence.replace('[MASK]', '____'))}<br>{words}</p>")
    return "".join(rows)


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
    """Trains the next-sentence head on a copy of the trunk; the share of new pairs that it gets right.

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
