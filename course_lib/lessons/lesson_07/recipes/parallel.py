"""What parallel text adds: BERT of two languages with and without translations beside its sentences, equal budgets.

Lample & Conneau, "Cross-lingual language model pretraining", NeurIPS 2019, arXiv 1901.07291: section 3.3 for hidden
words in a sentence and its translation (TLM), table 1 for labels in one language and questions in another (XNLI).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import mean

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.data.labelled import PARTS_OF_SPEECH
from course_lib.data.labelled import draw as few
from course_lib.data.translation import SentencePair, translation_splits
from course_lib.functional.language import mean_pool
from course_lib.lessons.lesson_07.recipes.few_labels import (
    FineTuningSettings,
    accuracy,
    fine_tune,
    parts_of_speech,
    tagged_sentences,
    tagging_task,
)
from course_lib.lessons.lesson_07.recipes.pretraining import (
    Encoded,
    MaskedBatch,
    PretrainingSettings,
    build,
    encode,
    masked_batch,
    vocabulary,
)
from course_lib.models.baselines import MajorityClass
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.text.tokenizer import pad_batch
from course_lib.training.batches import bucketed_batches
from course_lib.training.recipe import Scores, Trained, fit_by, mean_and_spread

Row = tuple[Sequence[str], ...]  # a sentence, or a sentence and its translation


@dataclass(frozen=True, kw_only=True)
class ParallelSettings(PretrainingSettings):
    """A small BERT for sentences of one clause."""

    dim: int = 64
    depth: int = 2
    learning_rate: float = 3e-3


# Both read the same number of sentences, equally often: a pair is two of them, so there are fewer rows, and steps.
VARIANTS = {
    "apart": ParallelSettings(steps=9000),
    "side by side": ParallelSettings(steps=6000, parallel=True),
}
FINE_TUNING = FineTuningSettings(steps=60, learning_rate=3e-3)  # chosen on validation
LABELS, DRAWS, PAIRS, LONGEST = 100, 5, 300, 12  # English labels; draws of them; pairs held out; words of a sentence
FILLED, BESIDE = "nats per hidden word, alone", "nats per hidden word, translation beside it"
TAGGED, FOUND = "zero-shot", "translations found"


# ------------------------------------------------------------------------------------------------ pre-training


def rows_to_read(settings: PretrainingSettings) -> list[Row]:
    """English sentences, and French ones that do not translate them, as many of each.

    If `parallel`, two thirds of the English ones have their translation beside them in place of another French one:
    half of the rows are pairs, as the paper draws its batches by turns.
    """
    pairs = translation_splits(train=settings.sentences, validation=PAIRS, test=PAIRS, max_clauses=1).train
    half = len(pairs) // 2
    count = 2 * half // 3 if settings.parallel else 0
    beside = [(pair.english, pair.french) for pair in pairs[:count]]
    return (
        beside
        + [(pair.english, ()) for pair in pairs[count:half]]
        + [((), pair.french) for pair in pairs[half : 2 * half - count]]
    )


def with_gaps(rows: Sequence[Row], *, seed: int) -> list[MaskedBatch]:
    """The rows as padded batches, their English as segment 0 and their French as 1; what a row lacks is padding."""
    batches = []
    for language, side in enumerate(zip(*rows, strict=True)):
        if any(side):
            encoded = [encode(words) if words else Encoded([], []) for words in side]
            batch = masked_batch(encoded, seed=2 * seed + language)
            batches.append(batch._replace(segments=torch.full_like(batch.tokens, language)))
    return batches


def gap_loss(model: BERTForMaskedLM, sides: Sequence[MaskedBatch]) -> Float[Tensor, ""]:
    """Mean cross-entropy of the hidden words; all words of a row see each other, and each sentence counts from 0.

    Counting anew, and a segment for each language, are the paper's (section 3.3): they make aligning easy.
    """
    masked = torch.cat([side.masked for side in sides], dim=1)
    words = torch.cat([side.tokens.masked_scatter(side.masked, side.hidden) for side in sides], dim=1)
    return F.cross_entropy(model.logits(features(model, sides), masked), words[masked])


def features(model: BERTForMaskedLM, sides: Sequence[MaskedBatch]) -> Float[Tensor, "B T D"]:
    """Those of all words of a row, English before French."""
    embedded = torch.cat([model.bert.embed(side.tokens, side.segments) for side in sides], dim=1)
    return model.bert.encode(embedded, torch.cat([side.valid for side in sides], dim=1))


@torch.no_grad()
def fill_beside(model: BERTForMaskedLM, english: str, french: str = "", *, most: int = 3) -> list[tuple[str, float]]:
    """The most probable words for the "[MASK]" of an English sentence, alone or beside its translation."""
    sides = []
    for language, text in enumerate((english, french)):
        if text:
            tokens = torch.tensor([encode(text.split()).ids])
            segments, real, none = torch.full_like(tokens, language), torch.ones_like(tokens).bool(), tokens[0, :0]
            sides.append(MaskedBatch(tokens, segments, real, tokens == vocabulary().mask_id, none))
    masked = torch.cat([side.masked for side in sides], dim=1)
    found = model.logits(features(model, sides), masked)[0].softmax(dim=-1).topk(most)
    return [
        (vocabulary().id_to_token(i), p) for i, p in zip(found.indices.tolist(), found.values.tolist(), strict=True)
    ]


def train(settings: PretrainingSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns to fill gaps, in sentences alone or side by side."""
    rows = rows_to_read(settings)
    indices_at = bucketed_batches([sum(map(len, row)) for row in rows], settings.batch_size, settings.seed)
    return fit_by(
        settings,
        build(settings),
        lambda step: with_gaps([rows[i] for i in indices_at(step).tolist()], seed=settings.seed * 2**31 + step + 1),
        gap_loss,
        parts=10,
        schedule="linear",
        warmup=min(100, settings.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: filled(model, "validation"),
        checkpoint=checkpoint,
        extra={"vocabulary": vocabulary().state_dict()},
    )


# ------------------------------------------------------------------------------------------------------ scores


def score(trained: Trained, split: str) -> Scores:
    """How well gaps are filled, French is tagged from English labels, and translations are found."""
    model = trained.model
    gaps = {FILLED: filled(model, split), BESIDE: filled(model, split, beside=True)}
    return gaps | tagged(model, split) | {FOUND: translations_found(model, held_out(split))}


@lru_cache(maxsize=2)
def held_out(split: str) -> tuple[SentencePair, ...]:
    """Sentences with their translations that no model has read in either language."""
    return getattr(translation_splits(train=0, validation=PAIRS, test=PAIRS, max_clauses=1), split)


@torch.no_grad()
def filled(model: BERTForMaskedLM, split: str, *, beside: bool = False) -> float:
    """Nats per hidden word in single sentences, or in sentences beside their translations."""
    pairs = [(pair.english, pair.french) for pair in held_out(split)]
    rows = pairs if beside else [row for english, french in pairs for row in ((english, ()), ((), french))]
    return float(gap_loss(model, with_gaps(rows, seed=0)))


def tagged(model: BERTForMaskedLM, split: str, settings: FineTuningSettings = FINE_TUNING) -> Scores:
    """Mean and spread, over draws of the English labels, of the share of French words with the right part of speech."""
    english, french = (tagged_sentences(language=language) for language in ("english", "french"))
    given, asked = short(english.train), short(getattr(french, split))
    found = []
    for draw in range(DRAWS):
        task = tagging_task(few(given, LABELS, seed=draw), asked, PARTS_OF_SPEECH, MajorityClass())
        model_of_draw, french = fine_tune(model, task, replace(settings, seed=draw)), torch.ones_like(task.asked.tokens)
        found.append(accuracy(model_of_draw, task.asked, segments=french))
    return mean_and_spread(TAGGED, found)


def short(examples: Sequence) -> list:
    """Those with few words, without gender and number, which English has not."""
    return [parts_of_speech(example) for example in examples if len(example.words) <= LONGEST]


@torch.no_grad()
def translations_found(model: BERTForMaskedLM, pairs: Sequence[SentencePair]) -> float:
    """Share of the sentences whose nearest neighbour in the other language is their translation, mean of both ways."""
    english, french = (
        vectors(model, [getattr(pair, name) for pair in pairs], i) for i, name in enumerate(("english", "french"))
    )
    similar, own = english @ french.T, torch.arange(len(pairs))
    return mean((similar.argmax(dim=axis) == own).float().mean().item() for axis in (0, 1))


def vectors(model: BERTForMaskedLM, sentences: Sequence[Sequence[str]], language: int) -> Float[Tensor, "N D"]:
    """The mean of a sentence's features, less the mean of all sentences of its language, at length 1."""
    tokens, valid = pad_batch([encode(words).ids for words in sentences])
    pooled = mean_pool(model.features(tokens, segments=torch.full_like(tokens, language), valid=valid), valid)
    return F.normalize(pooled - pooled.mean(dim=0), dim=-1)
