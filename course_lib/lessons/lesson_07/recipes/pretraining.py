"""BERT learns two languages from unlabelled sentences.

Devlin et al. 2019, arXiv 1810.04805; Lample & Conneau, "Cross-lingual language model pretraining", NeurIPS 2019, arXiv
1901.07291, for two languages in one model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.translation import english_words, french_words, translation_splits
from course_lib.functional.language import mask_tokens
from course_lib.models.bert import BERTConfig
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.text.tokenizer import pad_batch
from course_lib.text.words import WordTokenizer
from course_lib.training.batches import bucketed_batches
from course_lib.training.recipe import Trained, common, fit_by
from course_lib.training.seeding import seeded

CONTEXT_LENGTH = 80  # tokens: two sentences of the grammar and their signs
VALIDATION_SENTENCES = 300


@dataclass(frozen=True, kw_only=True)
class PretrainingSettings:
    """A small BERT, and the unlabelled sentences from which it learns English and French."""

    dim: int = 96
    depth: int = 3
    num_heads: int = 4
    sentences: int = 20_000  # half of them English, half French
    parallel: bool = False  # some beside their translations, which `recipes.parallel` makes of it
    steps: int = 12_000
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0


class Encoded(NamedTuple):
    """Token ids, and to which sentence each of them belongs."""

    ids: list[int]
    segments: list[int]


class MaskedBatch(NamedTuple):
    """Sentences with gaps, and the words that stood there."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]
    masked: Bool[Tensor, "B T"]
    hidden: Int[Tensor, " N"]


@lru_cache(maxsize=1)
def vocabulary() -> WordTokenizer:
    """The words of both languages of the grammar: one that both have is one token."""
    specials, words = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"), sorted({*english_words(), *french_words()})
    return WordTokenizer([*specials, *words], specials=specials, cut_punctuation=False)


def encode(first: Sequence[str], second: Sequence[str] = ()) -> Encoded:
    """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
    ids = vocabulary().encode(" ".join(first), start=True, end=True)
    more = vocabulary().encode(" ".join(second), end=True) if second else []
    return Encoded(ids + more, [0] * len(ids) + [1] * len(more))


def texts(settings: PretrainingSettings, split: str = "train") -> list[Encoded]:
    """The unlabelled sentences of a split: English ones, then French ones that do not translate them."""
    splits = translation_splits(train=settings.sentences, validation=VALIDATION_SENTENCES, test=0)
    pairs = getattr(splits, split)
    half = len(pairs) // 2
    return [encode(pair.english) for pair in pairs[:half]] + [encode(pair.french) for pair in pairs[half:]]


def masked_batch(sentences: Sequence[Encoded], *, seed: int) -> MaskedBatch:
    """The sentences as one padded batch with gaps; the same seed makes the same gaps."""
    tokens, valid = pad_batch([sentence.ids for sentence in sentences])
    segments, _ = pad_batch([sentence.segments for sentence in sentences])
    mask_id, end = vocabulary().mask_id, len(vocabulary())
    noise = torch.rand(3, *tokens.shape, generator=torch.Generator().manual_seed(seed))
    given, masked = mask_tokens(tokens, noise, maskable=tokens > mask_id, mask_id=mask_id, word_ids=(mask_id + 1, end))
    return MaskedBatch(given, segments, valid, masked, tokens[masked])


def masked_lm_loss(model: BERTForMaskedLM, batch: MaskedBatch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the words in the gaps, in nats per word."""
    logits = model(batch.tokens, segments=batch.segments, valid=batch.valid, masked=batch.masked)
    return F.cross_entropy(logits, batch.hidden)


def build(settings: PretrainingSettings) -> BERTForMaskedLM:
    """A fresh model; its first weights depend on the seed alone."""
    config = BERTConfig(
        vocab_size=len(vocabulary()),
        mlp_dim=4 * settings.dim,
        context_length=CONTEXT_LENGTH,
        dropout=0.0,  # the sentences are seen too few times to be memorised
        **common(settings, BERTConfig),
    )
    with seeded(settings.seed):
        return BERTForMaskedLM(config)


def pretrain(settings: PretrainingSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns to fill gaps."""
    model, sentences = build(settings), texts(settings)
    held_out = masked_batch(texts(settings, "validation"), seed=0)
    indices_at = bucketed_batches([len(sentence.ids) for sentence in sentences], settings.batch_size, settings.seed)

    def batch_at(step: int) -> MaskedBatch:
        chosen = [sentences[i] for i in indices_at(step).tolist()]
        return masked_batch(chosen, seed=settings.seed * 2**32 + step + 1)

    return fit_by(
        settings,
        model,
        batch_at,
        masked_lm_loss,
        parts=10,
        schedule="linear",
        warmup=min(200, settings.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: float(masked_lm_loss(model, held_out)),
        checkpoint=checkpoint,
        extra={"vocabulary": vocabulary().state_dict()},
    )


@torch.no_grad()
def fill_in(model: BERTForMaskedLM, words: Sequence[str], *, most: int = 5) -> list[list[tuple[str, float]]]:
    """For each "[MASK]" among the words the `most` likely ones, with their probabilities."""
    tokens = torch.tensor([encode(words).ids])
    gaps = model(tokens, masked=tokens == vocabulary().mask_id).softmax(dim=-1).topk(most)
    names = vocabulary().vocabulary
    return [
        [(names[i], p) for i, p in zip(ids, ps, strict=True)]
        for ids, ps in zip(gaps.indices.tolist(), gaps.values.tolist(), strict=True)
    ]
