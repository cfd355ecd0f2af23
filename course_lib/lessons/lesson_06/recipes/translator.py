"""Lesson 06: a small Transformer translates from English to French."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.translation import SentencePair
from course_lib.functional.losses import cross_entropy
from course_lib.lessons.lesson_06.transformer import ROWS, Place, best_place, error_rates, score_transformer
from course_lib.models.transformer import Transformer, TransformerConfig
from course_lib.training.averaging import load_mean
from course_lib.training.batches import bucketed_batches
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by
from course_lib.training.schedules import vaswani_peak
from course_lib.training.seeding import seeded
from course_lib.training.translation import encode_pairs, splits, vocabularies

CHECKPOINTS = 40  # of a run: Vaswani et al. 2017 averaged the last 5 of 72 (section 6.1)


@dataclass(frozen=True, kw_only=True)
class TransformerSettings:
    """A translator and how it is trained, with the tricks of Vaswani et al. 2017, section 5."""

    steps: int = 6000
    learning_rate: float | None = None  # the peak; None: the paper's, which warm-up and width decide
    schedule: str = "inverse_sqrt"  # the paper's
    warmup: int = 400  # steps
    batch_size: int = 32  # sentences
    dim: int = 64
    depth: int = 2
    pre_norm: bool = False
    dropout: float = 0.0
    smoothing: float = 0.1  # of the targets
    averaged: int = 5  # the last checkpoints whose mean is the result; 0: the weights after the last step
    seed: int = 0
    train_pairs: int = 20_000


def build(settings: TransformerSettings) -> Transformer:
    """A fresh model; its first weights depend on the seed alone."""
    english, french = vocabularies()
    config = TransformerConfig(
        vocab_size=(len(english), len(french)),
        num_heads=4,
        mlp_dim=4 * settings.dim,
        context_length=128,
        **common(settings, TransformerConfig),
    )
    with seeded(settings.seed):
        return Transformer(config)


def translation_loss(model: Transformer, batch: tuple[Tensor, ...], *, smoothing: float = 0.0) -> Float[Tensor, ""]:
    """Mean cross-entropy of the real target words, in nats per word."""
    source, source_valid, target, target_valid = batch
    logits = model(source, target[:, :-1], source_valid=source_valid)
    return cross_entropy(logits, target[:, 1:], smoothing=smoothing, scored=target_valid[:, 1:])


def train_transformer(
    settings: TransformerSettings,
    *,
    model: Transformer | None = None,
    loss: Callable[..., Tensor] = translation_loss,
    schedule: Callable[[int, int, int], float] | None = None,
    checkpoint: Path | str | None = None,
) -> Trained:
    """Trains a translator; with a folder `checkpoint`, an interrupted run goes on where it stood.

    `model`, `loss` (which takes a model, a batch and `smoothing`) and `schedule` may come from elsewhere.
    """
    pairs = splits(settings.train_pairs).train
    model = build(settings) if model is None else model
    indices_at = bucketed_batches([len(pair.english) for pair in pairs], settings.batch_size, settings.seed)
    needs_folder = settings.averaged and checkpoint is None
    with tempfile.TemporaryDirectory() if needs_folder else nullcontext(checkpoint) as folder:
        trained = fit_by(
            settings,
            model,
            lambda step: encode_pairs([pairs[i] for i in indices_at(step).tolist()]),
            partial(loss, smoothing=settings.smoothing),
            learning_rate=peak(settings),
            schedule=schedule or settings.schedule,
            warmup=min(settings.warmup, settings.steps),
            betas=(0.9, 0.98),  # section 5.3
            checkpoint_every=max(1, settings.steps // CHECKPOINTS),
            keep_weights=settings.averaged,
            checkpoint=folder,
        )
        if settings.averaged:
            load_mean(folder, model, last=settings.averaged)
    return trained


def peak(settings: TransformerSettings) -> float:
    """The highest learning rate."""
    if settings.learning_rate is not None:
        return settings.learning_rate
    return vaswani_peak(settings.dim, max(1, settings.warmup))


@torch.no_grad()
def held_out_loss(model: Transformer, pairs: Sequence[SentencePair]) -> float:
    """Cross-entropy without smoothing, in nats per word."""
    losses, words = 0.0, 0
    for start in range(0, len(pairs), ROWS):
        batch = encode_pairs(pairs[start : start + ROWS])
        count = int(batch[3][:, 1:].sum())
        losses, words = losses + count * float(translation_loss(model, batch)), words + count
    return losses / words


def scores(model: Transformer, pairs: Sequence[SentencePair], *, place: Place, layer: Place) -> Scores:
    """The loss in nats per word, BLEU of greedy and of beam search, alignment error rates of a place and a layer."""
    rates = error_rates(model, pairs)
    return {
        "loss": held_out_loss(model, pairs),
        "bleu": score_transformer(model, pairs, place=place).bleu,
        "beam": score_transformer(model, pairs, place=place, num_beams=4).bleu,
        "error_rate": rates[place],
        "layer_error_rate": rates[layer],
    }


def train(settings: TransformerSettings, *, checkpoint: Path | None = None) -> Trained:
    """Trains the translator, and chooses on validation the place and the layer to look at."""
    trained = train_transformer(settings, checkpoint=checkpoint)
    rates = error_rates(trained.model, splits(settings.train_pairs).validation)
    chosen = {"place": best_place(rates), "layer": best_place(rates, whole_layers=True)}
    english, french = (vocabulary.state_dict() for vocabulary in vocabularies())
    return replace(trained, extra={**chosen, "english": english, "french": french})


def score(trained: Trained, split: str) -> Scores:
    """The scores on a split, at the place and the layer that were chosen."""
    pairs = getattr(splits(trained.settings.train_pairs), split)
    return scores(trained.model, pairs, place=trained.extra["place"], layer=trained.extra["layer"])


RECIPE = Recipe(
    title="A Transformer that translates from English to French",
    lesson="06",
    data="20,000 pairs of sentences that course_lib.data.translation makes by a grammar; validation 500, test 1,000",
    minutes=4,
    variants={"": TransformerSettings()},
    train=train,
    scores=each(score),
    chosen_by="error_rate",  # all seeds translate well: the one whose attention is easiest to read
)
