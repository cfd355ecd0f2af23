"""Many to many, aligned: part of speech, gender and number of each word of a French sentence, while it is read.

Schuster & Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on Signal Processing 45(11), 1997.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.labelled import LabelledSplits, TaggedSentence, tagging_splits
from course_lib.models.recurrent import SequenceClassifierConfig, SequenceTagger
from course_lib.text.words import WordTokenizer
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, common, fit_by
from course_lib.training.seeding import seeded

NO_TAG = -100  # of padding: cross-entropy leaves it out


@dataclass(frozen=True, kw_only=True)
class TagSettings:
    """A tagger, and how it is trained."""

    cell: str = "rnn"
    embed_dim: int = 32
    hidden_dim: int = 64
    bidirectional: bool = False
    dropout: float = 0.2
    steps: int = 600
    batch_size: int = 32
    learning_rate: float = 5e-3
    seed: int = 0


@cache
def sentences() -> LabelledSplits[TaggedSentence]:
    """1,000 sentences to learn from, 300 and 500 others."""
    return tagging_splits(language="french")


@cache
def tokenizer() -> WordTokenizer:
    """Each word of the training sentences a token."""
    return WordTokenizer.train([" ".join(one.words) for one in sentences().train], cut_punctuation=False)


@cache
def tagset() -> tuple[str, ...]:
    """The tags of the training sentences."""
    return tuple(sorted({tag for one in sentences().train for tag in one.tags}))


@cache
def examples(split: str) -> tuple[Int[Tensor, "N T"], Bool[Tensor, "N T"], Int[Tensor, "N T"]]:
    """Words, which of them are real, and their tags."""
    chosen = getattr(sentences(), split)
    ids, valid = tokenizer().encode_batch([" ".join(one.words) for one in chosen])
    tags = torch.full_like(ids, NO_TAG)
    tags[valid] = torch.tensor([tagset().index(tag) if tag in tagset() else -1 for one in chosen for tag in one.tags])
    return ids, valid, tags


def build(settings: TagSettings) -> SequenceTagger:
    """A fresh tagger; its first weights depend on the seed alone."""
    sizes = {"vocab_size": len(tokenizer()), "num_classes": len(tagset())}
    with seeded(settings.seed):
        return SequenceTagger(SequenceClassifierConfig(**common(settings, SequenceClassifierConfig) | sizes))


def tag_loss(model: SequenceTagger, batch: tuple[Tensor, Tensor, Tensor]) -> Float[Tensor, ""]:
    """Mean cross-entropy of the tags of all real words, in nats."""
    ids, valid, tags = batch
    return F.cross_entropy(model(ids, valid=valid).flatten(0, 1), tags.flatten(), ignore_index=NO_TAG)


def train(settings: TagSettings, *, checkpoint: Path | None = None) -> Trained:
    """Some twenty times through the training sentences."""
    data = examples("train")
    rows_at = shuffled_batches(len(data[0]), settings.batch_size, settings.seed)

    def batch_at(step: int) -> tuple[Tensor, ...]:
        return tuple(each[rows_at(step)] for each in data)

    extra = {"tokenizer": tokenizer().state_dict(), "tags": list(tagset())}
    config = {"warmup": min(30, settings.steps // 4), "weight_decay": 0.01, "extra": extra}
    return fit_by(settings, build(settings), batch_at, tag_loss, checkpoint=checkpoint, **config)


@torch.no_grad()
def right(model: SequenceTagger, split: str) -> float:
    """The share of words whose tag is right."""
    ids, valid, tags = examples(split)
    return (model(ids, valid=valid).argmax(dim=-1) == tags)[valid].float().mean().item()


def commonest(split: str) -> float:
    """The share that is right if each word gets the tag that it most often has in training."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in sentences().train:
        for word, tag in zip(one.words, one.tags, strict=True):
            counts[word][tag] += 1
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    words = [pair for one in getattr(sentences(), split) for pair in zip(one.words, one.tags, strict=True)]
    return sum(best.get(word) == tag for word, tag in words) / len(words)


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Of the tagger, of one that reads from both ends, and of the commonest tag of each word."""
    names = {"": "accuracy", "both directions": "accuracy, both directions"}
    found = {names[name]: right(one.model, split) for name, one in trained.items()}
    return found | {"accuracy, commonest tag of the word": commonest(split)}


SETTINGS = TagSettings()
RECIPE = Recipe(
    title="An RNN that tags French words while it reads them",
    lesson="03",
    data="1,000 French sentences of course_lib.data.labelled with 23 tags; validation 300, test 500 sentences",
    minutes=0.5,
    variants={"": SETTINGS, "both directions": replace(SETTINGS, bidirectional=True, hidden_dim=40)},
    ships="",
    train=train,
    scores=scores,
    chosen_by="accuracy",
    mode="max",
)
