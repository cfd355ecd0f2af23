"""Speech in small: melodies written down by CTC, with a Conformer and with a plain Transformer of its size.

Gulati et al., "Conformer", Interspeech 2020, arXiv 2005.08100; Graves et al., "Connectionist temporal classification",
ICML 2006.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.data.tones import BANDS, NAMES, Melodies, Tones
from course_lib.functional.ctc import ctc_loss, error_rate, greedy_decode, prefix_beam_search
from course_lib.models.conformer import Conformer, ConformerConfig, SpeechTransformer
from course_lib.training.recipe import Recipe, Scores, Trained, common, fit_by
from course_lib.training.seeding import seeded
from course_lib.training.vision import seed_of_step

MODELS = {"conformer": Conformer, "transformer": SpeechTransformer}
TONES = Tones(noise=0.8)
LONG = replace(TONES, num_tones=(12, 16))  # training has 8 at most
SPLIT_MELODIES = {"validation": 400, "test": 600}
HELD_OUT = {"validation": 2**31 + 1, "test": 2**31 + 2}  # seeds that no step of a training has
WIDTH = 8  # of the beam


@dataclass(frozen=True, kw_only=True)
class SpeechSettings:
    """A model of MODELS, and how it is trained."""

    model: str = "conformer"
    dim: int = 48
    depth: int = 2
    num_heads: int = 4
    mlp_dim: int = 192
    kernel_size: int = 9  # frames of 40 ms; the Transformer has no use for it
    dropout: float = 0.1
    steps: int = 1000
    batch_size: int = 32  # melodies
    learning_rate: float = 3e-3
    weight_decay: float = 0.01
    seed: int = 0


def build(settings: SpeechSettings) -> Conformer:
    """A fresh model; its first weights depend on the seed alone."""
    sizes = {"frame_dim": BANDS, "num_classes": len(NAMES) + 1}
    with seeded(settings.seed):
        return MODELS[settings.model](ConformerConfig(**common(settings, ConformerConfig), **sizes))


def log_probs_of(model: Conformer, batch: Melodies) -> tuple[Tensor, Tensor]:
    """ln p of each symbol at each of the model's frames (B, t, V), and how many of them are real."""
    valid = batch.valid
    return model(batch.frames, valid).log_softmax(dim=-1), model.shorter(valid).sum(dim=1)


def speech_loss(model: Conformer, batch: Melodies) -> Float[Tensor, ""]:
    """CTC's loss in nats per tone."""
    log_probs, lengths = log_probs_of(model, batch)
    return ctc_loss(log_probs, batch.labels, lengths, batch.num_labels).sum() / batch.num_labels.sum()


def train(settings: SpeechSettings, *, checkpoint: Path | None = None) -> Trained:
    """New melodies in each step."""
    return fit_by(
        settings,
        build(settings),
        lambda step: TONES.batch(settings.batch_size, seed_of_step(settings.seed, step)),
        speech_loss,
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
        extra={"tones": list(NAMES)},
    )


@cache
def held_out(split: str, *, long: bool = False) -> Melodies:
    """The melodies that a split is scored on."""
    return (LONG if long else TONES).batch(SPLIT_MELODIES[split], HELD_OUT[split])


@torch.no_grad()
def labels_of(model: Conformer, batch: Melodies, *, width: int = 1) -> list[list[int]]:
    """The labels that are read off each melody: of the most probable path, or the best of a beam wider than 1."""
    log_probs, lengths = log_probs_of(model, batch)
    if width == 1:
        return greedy_decode(log_probs, lengths)
    rows = [row[:length] for row, length in zip(log_probs, lengths.tolist(), strict=True)]
    return [list(prefix_beam_search(row, width=width)[0][0]) for row in rows]


def written(model: Conformer, batch: Melodies, *, width: int = 1) -> list[str]:
    """Each melody as the names of its tones, such as "C E G c"."""
    return [" ".join(NAMES[label - 1] for label in labels) for labels in labels_of(model, batch, width=width)]


def error_rates(model: Conformer, melodies: Melodies) -> Scores:
    """Edits per tone of the greedy and of the beam's best labelling, and the share of melodies without one."""
    spoken = melodies.spoken()
    greedy, beam = (labels_of(model, melodies, width=width) for width in (1, WIDTH))
    right = sum(found == said for found, said in zip(greedy, spoken, strict=True)) / len(spoken)
    return {
        "token error, greedy": error_rate(greedy, spoken),
        "token error, beam": error_rate(beam, spoken),
        "melodies without an error": right,
    }


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Of each variant, on melodies as in training and on longer ones."""
    found = {}
    for name, one in trained.items():
        found |= {f"{key}, {name}": value for key, value in error_rates(one.model, held_out(split)).items()}
        long = error_rates(one.model, held_out(split, long=True))
        found[f"token error, greedy, long melodies, {name}"] = long["token error, greedy"]
    return found


SETTINGS = SpeechSettings()
RECIPE = Recipe(
    title="Melodies written down by CTC, with a Conformer and a Transformer",
    lesson="15",
    data="melodies of 3 to 8 pure tones of 80 to 240 ms in noise, drawn afresh in each step by course_lib.data.tones; "
    "validation 400, test 600 melodies of other seeds, and as many of 12 to 16 tones",
    minutes=4,
    variants={"Conformer": SETTINGS, "Transformer": replace(SETTINGS, model="transformer", depth=4)},
    ships="Conformer",
    train=train,
    scores=scores,
    chosen_by="token error, greedy, Conformer",
    timed=("Conformer", "Transformer"),
)
RECIPES = {"tones": RECIPE}
