"""Next-sentence prediction on real documents, beside a baseline that compares words.

Devlin et al. 2019, arXiv 1810.04805, section 3.1, task 2; Lan et al., "ALBERT", ICLR 2020, arXiv 1909.11942, for two
sentences in swapped order.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.prose import prose_splits
from course_lib.functional.language import mask_tokens
from course_lib.models.bert import BERTConfig
from course_lib.models.bert_tasks import BERTForPreTraining
from course_lib.text.tokenizer import pad_batch
from course_lib.text.wordpiece import WordPiece
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Scores, Trained, common, fit_by
from course_lib.training.seeding import seeded

VOCABULARY, LENGTH = 3000, 64  # sub-words; tokens of a row at most
NEXT, OTHER = 0, 1  # classes: B follows A, or B comes from another document
ACCURACY, OVERLAP, CALLED = "accuracy", "accuracy, common words", "called next"
CONSECUTIVE, SWAPPED, ELSEWHERE = (f"{CALLED}, {kind}" for kind in ("consecutive", "swapped", "elsewhere"))
Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class NextSentenceSettings:
    """A small BERT, and how it learns from pairs of sentences by both tasks of the paper."""

    dim: int = 64
    depth: int = 2
    num_heads: int = 4
    steps: int = 2000
    batch_size: int = 32  # pairs
    learning_rate: float = 2e-3
    seed: int = 0


# ------------------------------------------------------------------------------------------------------ pairs


@cache
def documents(split: str) -> list[list[str]]:
    """The documents of two or more sentences, as lists of sentences."""
    cut = (re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(text.split())) for text in getattr(prose_splits(), split))
    return [sentences for sentences in cut if len(sentences) > 1]


@cache
def consecutive(split: str) -> list[Pair]:
    """All pairs of consecutive sentences."""
    return [pair for text in documents(split) for pair in zip(text, text[1:], strict=False)]


def others(pairs: Sequence[Pair], split: str, *, seed: int) -> list[Pair]:
    """The first sentence of each pair beside a random one from another document."""
    texts, draw, found = documents(split), random.Random(seed), []
    for first, _ in pairs:
        text = draw.choice(texts)
        while first in text:
            text = draw.choice(texts)
        found.append((first, draw.choice(text)))
    return found


@cache
def tokenizer() -> WordPiece:
    """Sub-words of the training documents."""
    return WordPiece.train((sentence for text in documents("train") for sentence in text), vocab_size=VOCABULARY)


@cache
def sub_words(sentence: str) -> list[int]:
    """The ids of a sentence, of a long one those that fit into half a row."""
    return tokenizer().encode(sentence)[: (LENGTH - 3) // 2]


def rows(pairs: Sequence[Pair]) -> dict[str, Tensor]:
    """[CLS] A [SEP] B [SEP] of each pair: tokens, segments, and which are real, (B, T) each."""
    start, end = tokenizer().encode("", start=True, end=True)
    sides = [([start, *sub_words(a), end], [*sub_words(b), end]) for a, b in pairs]
    tokens, valid = pad_batch([a + b for a, b in sides])
    segments, _ = pad_batch([[0] * len(a) + [1] * len(b) for a, b in sides])
    return {"tokens": tokens, "segments": segments, "valid": valid}


# --------------------------------------------------------------------------------------------------- training


def pretraining_loss(
    model: BERTForPreTraining, batch: tuple[Sequence[Pair], Int[Tensor, " B"], int]
) -> Float[Tensor, ""]:
    """The sum of both losses: of the masked tokens, and of the classes of the pairs. A seed decides what is masked."""
    pairs, classes, seed = batch
    row, first = rows(pairs), len(tokenizer().specials)
    tokens = row["tokens"]
    noise = torch.rand(3, *tokens.shape, generator=torch.Generator().manual_seed(seed))
    row["tokens"], masked = mask_tokens(
        tokens, noise, maskable=tokens >= first, mask_id=tokenizer().mask_id, word_ids=(first, len(tokenizer()))
    )
    logits = model(**row, masked=masked)
    return F.cross_entropy(logits.words, tokens[masked]) + F.cross_entropy(logits.next_sentence, classes)


def train(settings: NextSentenceSettings, *, checkpoint: Path | None = None) -> Trained:
    """Both tasks at once. Half of a batch is consecutive, the other half has the same first sentences."""
    config = BERTConfig(
        vocab_size=len(tokenizer()),
        mlp_dim=4 * settings.dim,
        context_length=LENGTH,
        dropout=0.0,
        **common(settings, BERTConfig),
    )
    with seeded(settings.seed):
        model = BERTForPreTraining(config)
    pairs, half = consecutive("train"), settings.batch_size // 2
    indices_at = shuffled_batches(len(pairs), half, settings.seed)

    def batch_at(step: int) -> tuple[Sequence[Pair], Int[Tensor, " B"], int]:
        seed = settings.seed * 2**31 + step + 1
        chosen = [pairs[i] for i in indices_at(step).tolist()]
        classes = torch.tensor([NEXT] * len(chosen) + [OTHER] * len(chosen))
        return chosen + others(chosen, "train", seed=seed), classes, seed

    return fit_by(
        settings,
        model,
        batch_at,
        pretraining_loss,
        parts=5,
        schedule="linear",
        warmup=min(200, settings.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: accuracy(model, "validation"),
        mode="max",
        checkpoint=checkpoint,
    )


# ----------------------------------------------------------------------------------------------------- scores


def score(trained: Trained, split: str) -> Scores:
    """The accuracy of the model and of the baseline, and how many pairs of each kind the model calls next."""
    pairs = consecutive(split)
    kinds = {CONSECUTIVE: pairs, SWAPPED: [(b, a) for a, b in pairs], ELSEWHERE: others(pairs, split, seed=0)}
    called = {name: called_next(trained.model, asked) for name, asked in kinds.items()}
    return {ACCURACY: (called[CONSECUTIVE] + 1 - called[ELSEWHERE]) / 2, OVERLAP: overlap_accuracy(split), **called}


def accuracy(model: BERTForPreTraining, split: str) -> float:
    """From 0 to 1, half of the pairs are consecutive; a constant answer has 0.5."""
    pairs = consecutive(split)
    return (called_next(model, pairs) + 1 - called_next(model, others(pairs, split, seed=0))) / 2


@torch.no_grad()
def called_next(model: BERTForPreTraining, pairs: Sequence[Pair]) -> float:
    """The fraction of pairs whose second sentence is said to follow the first."""
    batches = (rows(pairs[start : start + 200]) for start in range(0, len(pairs), 200))
    found = torch.cat([model(**row, masked=row["valid"] & False).next_sentence.argmax(dim=-1) for row in batches])
    return (found == NEXT).float().mean().item()


def overlap_accuracy(split: str) -> float:
    """B is said to follow A if the cosine of their words exceeds the threshold that is best on the training pairs."""
    known = consecutive("train")
    near, far = (np.array([*map(overlap, pairs)]) for pairs in (known, others(known, "train", seed=0)))
    threshold = max(np.linspace(0, 0.5, 101), key=lambda at: (near > at).mean() - (far > at).mean())
    asked = consecutive(split)
    near, far = (np.array([*map(overlap, pairs)]) for pairs in (asked, others(asked, split, seed=0)))
    return float(((near > threshold).mean() + (far <= threshold).mean()) / 2)


def overlap(pair: Pair) -> float:
    """The cosine of the sets of words of two sentences, each word weighted by its rarity in the training text."""
    first, second = map(weights, pair)
    product = sum(first[word] ** 2 for word in first.keys() & second.keys())
    return product / (math.hypot(*first.values()) * math.hypot(*second.values()) or 1)


@cache
def weights(sentence: str) -> dict[str, float]:
    """ln(N / (1 + n)) of each word, which n of the N training sentences have."""
    counts, total = rarity()
    return {word: math.log(total / (1 + counts[word])) for word in words(sentence)}


@cache
def rarity() -> tuple[Counter[str], int]:
    """In how many training sentences each word occurs, and the number of these sentences."""
    sentences = [sentence for text in documents("train") for sentence in text]
    return Counter(word for sentence in sentences for word in words(sentence)), len(sentences)


def words(sentence: str) -> set[str]:
    return set(re.findall(r"\w+", sentence.lower()))
