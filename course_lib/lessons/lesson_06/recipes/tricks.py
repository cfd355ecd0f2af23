"""Lesson 06: what each part of the Transformer's training buys, a recurrent translator beside it, and where the norm
stands against depth."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.lessons.lesson_05 import recipes as recurrent
from course_lib.lessons.lesson_06.recipes.translator import (
    TransformerSettings,
    build,
    held_out_loss,
    peak,
    train_transformer,
)
from course_lib.lessons.lesson_06.transformer import Place, score_transformer
from course_lib.models.transformer import Transformer
from course_lib.training.recipe import Recipe, Scores, Trained, each
from course_lib.training.translation import TranslatorRecipe, score_translator, splits

DATA = "20,000 pairs of sentences that course_lib.data.translation makes by a grammar; validation 500, test 1,000 pairs"


@dataclass(frozen=True, kw_only=True)
class TrickSettings(TransformerSettings):
    """A translator of which one part is changed."""

    steps: int = 1000
    head: str = "tied"  # or "linear": logits from a matrix of their own
    ordered: tuple[str, ...] = ("source", "target")  # the sides whose words are told where they stand


class NoPositions(nn.Module):
    """x itself: nobody tells where a word stands."""

    def forward(self, x: Float[Tensor, "B T D"], *, start: int = 0, positions=None) -> Float[Tensor, "B T D"]:
        return x


def without_ramp(step: int, steps: int, warmup: int) -> float:
    """The rate of the paper without its rise: the peak from the first step to the end of the warm-up."""
    return min(1.0, math.sqrt(warmup / (step + 1)))


PAPER = TrickSettings()
VARIANTS = {
    "paper": PAPER,
    "pre-norm": replace(PAPER, pre_norm=True),
    "no positions": replace(PAPER, ordered=()),
    "no positions in the decoder": replace(PAPER, ordered=("source",)),
    "no warm-up": replace(PAPER, schedule="without ramp"),
    "constant rate": replace(PAPER, schedule="constant", warmup=0, learning_rate=2e-3),
    "no averaging": replace(PAPER, averaged=0),
    "no smoothing": replace(PAPER, smoothing=0.0),
    "dropout": replace(PAPER, dropout=0.1),
    "untied": replace(PAPER, head="linear"),
    "GRU": recurrent.SCALED,
    "as long as the GRU": replace(PAPER, pre_norm=True, steps=1800),
}
PEAK = peak(PAPER)
OTHER_PEAKS = {  # the learning rates beside PEAK that each of these changes is tried with
    name: (PEAK / 4, PEAK / 2)
    for name in ("paper", "pre-norm", "untied", "no smoothing", "dropout", "no averaging", "no warm-up")
}
BY_PEAK = {
    f"{name}, peak {rate:g}": replace(VARIANTS[name], learning_rate=rate)
    for name, tried in OTHER_PEAKS.items()
    for rate in tried
}


def train(settings: TrickSettings | TranslatorRecipe, *, checkpoint: Path | None = None) -> Trained:
    """One variant."""
    if isinstance(settings, TranslatorRecipe):
        return recurrent.train(settings, checkpoint=checkpoint)
    model = build(settings)
    for side in {"source", "target"}.difference(settings.ordered):
        setattr(model, f"{side}_pos", NoPositions())
    schedule = without_ramp if settings.schedule == "without ramp" else None
    return train_transformer(settings, model=model, schedule=schedule, checkpoint=checkpoint)


def score(trained: Trained, split: str) -> Scores:
    """BLEU of greedy translations; of a Transformer also the loss in nats per word, without smoothing."""
    pairs = getattr(splits(trained.settings.train_pairs), split)
    if not isinstance(trained.model, Transformer):
        return {"BLEU": score_translator(trained.model, pairs).bleu}
    return {"BLEU": bleu(trained, split), "loss": held_out_loss(trained.model, pairs)}


def bleu(trained: Trained, split: str, num_beams: int = 1) -> float:
    """BLEU of greedy translations, or by beam search."""
    pairs = getattr(splits(trained.settings.train_pairs), split)
    return score_transformer(trained.model, pairs, place=Place(0), num_beams=num_beams).bleu


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """All variants greedily, one of them also by beam search."""
    return each(score)(trained, split) | {"beam BLEU, paper": bleu(trained["paper"], split, num_beams=4)}


DEPTHS = (1, 4, 8)
SHORT = TrickSettings(steps=200, schedule="constant", averaged=0, smoothing=0.0, warmup=0)
NORMS = {
    "post-norm": SHORT,
    "post-norm with warm-up": replace(SHORT, warmup=50),
    "pre-norm": replace(SHORT, pre_norm=True),
    "pre-norm with warm-up": replace(SHORT, pre_norm=True, warmup=50),
}
RATES = (3e-4, 1e-3, 3e-3, 1e-2)


def rates(name: str, depth: int) -> tuple[float, ...]:
    """The learning rates that a variant is trained with at this depth: all four with four blocks."""
    if depth == 4:
        return RATES
    if name == "pre-norm with warm-up":
        return ()
    if depth == 1:
        return RATES[1:]
    return RATES[1:3] if name == "pre-norm" else RATES[:3]


BY_DEPTH = {
    f"{name}, depth {depth}, rate {rate:g}": replace(settings, depth=depth, learning_rate=rate)
    for depth in DEPTHS
    for name, settings in NORMS.items()
    for rate in rates(name, depth)
}


def loss(trained: Trained, split: str) -> Scores:
    """The loss on held-out sentences, in nats per word."""
    return {"loss": held_out_loss(trained.model, getattr(splits(trained.settings.train_pairs), split))}


RECIPES = {
    "translator_tricks": Recipe(
        title="What each trick of the translator's training buys",
        lesson="06",
        data=DATA,
        minutes=6,
        variants=VARIANTS,
        train=train,
        scores=scores,
        ships="paper",
        chosen_by="BLEU, paper",
        mode="max",
        timed=("paper", "GRU", "as long as the GRU"),
    ),
    "tricks_peaks": Recipe(
        title="Each trick of the translator's training at other learning rates",
        lesson="06",
        data=DATA,
        minutes=10,
        variants=BY_PEAK,
        train=train,
        scores=each(score),
        ships="paper, peak 0.003125",
        chosen_by="BLEU, paper, peak 0.003125",
        mode="max",
        weights=False,
    ),
    "norm_depth": Recipe(
        title="Post-norm and pre-norm by depth, warm-up and learning rate",
        lesson="06",
        data=DATA,
        minutes=6,
        variants=BY_DEPTH,
        train=train,
        scores=each(loss),
        ships="pre-norm, depth 1, rate 0.003",
        chosen_by="loss, pre-norm, depth 1, rate 0.003",
        weights=False,
    ),
}
