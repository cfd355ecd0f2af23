"""Which of twelve languages is a name written in? A network reads it letter by letter, and others count letters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.names import LANGUAGE_NAMES, letter_runs, name_splits, texts_and_labels
from course_lib.models.baselines import LogisticRegression
from course_lib.models.naive_bayes import NaiveBayes
from course_lib.models.recurrent import SequenceClassifier, SequenceClassifierConfig
from course_lib.text.characters import CharacterTokenizer
from course_lib.training.batches import bucketed_batches
from course_lib.training.recipe import Recipe, Scores, Trained, common, fit_by
from course_lib.training.seeding import seeded

L2, SMOOTHING = 1.0, 0.1  # of the two ways to count; the best on validation of 0.1, 0.3 and 1


@dataclass(frozen=True, kw_only=True)
class NameSettings:
    """A reader of names, and how it is trained."""

    cell: str = "rnn"  # or "gru", "lstm"
    embed_dim: int = 32
    hidden_dim: int = 128
    dropout: float = 0.4  # of the last state, on its way to the head
    steps: int = 2500
    batch_size: int = 32
    learning_rate: float = 5e-3
    weight_decay: float = 0.1
    seed: int = 0


Batch = tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"], Int[Tensor, " B"]]


@cache
def tokenizer() -> CharacterTokenizer:
    """Each letter of the training names a token."""
    return CharacterTokenizer.train([name.text for name in name_splits().train], specials=("<pad>", "<unk>"))


@cache
def examples(split: str) -> Batch:
    """Letters, which of them are real, and the language of each name of a split."""
    texts, labels = texts_and_labels(getattr(name_splits(), split))
    return *tokenizer().encode_batch(texts), torch.tensor(labels)


def batches(settings: NameSettings) -> Callable[[int], Batch]:
    """The batch of a step: names of similar length."""
    ids, valid, labels = examples("train")
    lengths = valid.sum(dim=1)
    chosen = bucketed_batches(lengths, settings.batch_size, settings.seed)

    def batch_at(step: int) -> Batch:
        rows = chosen(step)
        longest = int(lengths[rows].max())
        return ids[rows, :longest], valid[rows, :longest], labels[rows]

    return batch_at


def build(settings: NameSettings) -> SequenceClassifier:
    """A fresh network; its first weights depend on the seed alone."""
    sizes = {"vocab_size": len(tokenizer()), "num_classes": len(LANGUAGE_NAMES)}
    with seeded(settings.seed):
        return SequenceClassifier(SequenceClassifierConfig(**common(settings, SequenceClassifierConfig) | sizes))


def name_loss(model: SequenceClassifier, batch: Batch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the language, in nats."""
    ids, valid, labels = batch
    return F.cross_entropy(model(ids, valid=valid), labels)


@torch.no_grad()
def right(model: SequenceClassifier, split: str) -> float:
    """The accuracy on a split's names."""
    ids, valid, labels = examples(split)
    return (model(ids, valid=valid).argmax(dim=-1) == labels).float().mean().item()


def train(settings: NameSettings, *, checkpoint: Path | None = None) -> Trained:
    """Reads about a dozen times through the training names."""
    config = {"schedule": "cosine", "warmup": min(100, settings.steps // 4), "clip_norm": 1.0}
    extra = {"tokenizer": tokenizer().state_dict(), "languages": list(LANGUAGE_NAMES)}
    return fit_by(settings, build(settings), batches(settings), name_loss, checkpoint=checkpoint, extra=extra, **config)


# --------------------------------------------------------------------------------------------- counting


def trigrams(text: str) -> list[str]:
    """The runs of three letters, the name's ends counted as letters."""
    return [run for run in letter_runs(text) if len(run) == 3]


@cache
def counting() -> dict[str, tuple[NaiveBayes | LogisticRegression, Callable[[str], list[str]]]]:
    """Two models that count runs of letters in the training names, each with what it looks at."""
    texts, labels = texts_and_labels(name_splits().train)
    return {
        "naive Bayes of trigrams": (NaiveBayes(smoothing=SMOOTHING).fit([*map(trigrams, texts)], labels), trigrams),
        "logistic regression": (LogisticRegression(l2=L2).fit([*map(letter_runs, texts)], labels), letter_runs),
    }


def counted(split: str) -> Scores:
    """The share that each of them gets right."""
    texts, labels = texts_and_labels(getattr(name_splits(), split))
    scores = {}
    for name, (model, look) in counting().items():
        said = model.predict([*map(look, texts)])
        scores[f"accuracy, {name}"] = sum(a == b for a, b in zip(said, labels, strict=True)) / len(labels)
    return scores


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Of each network, and of the counts."""
    return {f"accuracy, {name}": right(one.model, split) for name, one in trained.items()} | counted(split)


SETTINGS = NameSettings()
RECIPE = Recipe(
    title="An RNN that reads a name and says its language",
    lesson="03",
    data=(
        "names of places, languages, currencies and scripts that one of twelve languages alone has, from Unicode's "
        "CLDR, data/names: 6,535 to train, 901 for validation, 1,752 for the test; what one thing is called is in one "
        "split, whatever the language"
    ),
    minutes=1.5,
    variants={
        "RNN": SETTINGS,
        "GRU": replace(SETTINGS, cell="gru", learning_rate=1e-2),
        "LSTM": replace(SETTINGS, cell="lstm"),
    },
    ships="RNN",
    train=train,
    scores=scores,
    chosen_by="accuracy, RNN",
    mode="max",
    timed=("RNN", "GRU", "LSTM"),
    licence="MIT, as the course. The names behind it are under the Unicode licence V3 in data/names/LICENSE.txt.",
)
