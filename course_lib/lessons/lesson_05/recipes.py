"""Lesson 05: what its translators are made of, with a fixed vector, with three kinds of attention, on equal terms."""

from dataclasses import dataclass, replace
from functools import partial

import torch

from course_lib.functional.attention import attention
from course_lib.training.recipe import Recipe, Scores, Trained, each
from course_lib.training.translation import (
    TranslatorRecipe,
    build_translator,
    score_translator,
    splits,
    train_translator,
)


@dataclass(frozen=True, kw_only=True)
class RootSettings(TranslatorRecipe):
    """A translator whose scores are multiplied by `scale`; its W_a starts `start` times as large as by default.

    With (1 / sqrt(d_k), 1) it is "scaled", with (1, 1) "no root". Adam's steps do not depend on the size of a gradient:
    a score is `scale` times a product with W_a, so `scale` decides how far a step moves the scores.
    """

    scale: float = 1.0
    start: float = 1.0


SCALED = TranslatorRecipe()
WIDTH = 2 * SCALED.width  # d_k
VARIANTS = {
    "scaled": SCALED,
    "no root": replace(SCALED, attention="general", looks_first=True),
    "additive": replace(SCALED, attention="additive"),
    "Luong": replace(SCALED, looks_first=False),
}
EFFECTS = {  # each of the two things that the division does, without the other
    "small start": RootSettings(attention="general", looks_first=True, start=WIDTH**-0.5),
    "small steps": RootSettings(attention="general", looks_first=True, scale=WIDTH**-0.5, start=WIDTH**0.5),
}
FIXED = replace(SCALED, attention="none", steps=1600)  # its steps are cheaper: it gets more of them, and more time
LEARNED = 0.5  # nats per word
DATA = "20,000 pairs of sentences that course_lib.data.translation makes by a grammar; validation 500, test 1,000 pairs"


def train(settings: TranslatorRecipe, *, checkpoint=None) -> Trained:
    """One variant."""
    model = build_translator(settings)
    if isinstance(settings, RootSettings):
        model.decoder.attention.attend = partial(attention, scale=settings.scale)
        with torch.no_grad():
            model.decoder.attention.W.mul_(settings.start)
    run = train_translator(model, settings, checkpoint=checkpoint)
    return Trained(settings=settings, model=model, history=run.history)


def score(trained: Trained, split: str) -> Scores:
    """BLEU, also by length; the alignment error rate; and after how many steps the loss stayed below `LEARNED`."""
    found = score_translator(trained.model, getattr(splits(), split))
    by_length = {f"BLEU, {b.low} to {b.high - 1} words": b.bleu.score for b in found.by_length}
    error = {} if found.alignment_error_rate is None else {"AER": found.alignment_error_rate}
    return {"BLEU": found.bleu, **by_length, **error, "steps": steps_to(trained.history.losses)}


def steps_to(losses, *, below: float = LEARNED, window: int = 20) -> float:
    """The first step from which on the loss, averaged over `window` steps, is below a value; all steps if none is."""
    above = [i for i in range(window, len(losses) + 1) if losses[i - window : i].mean() >= below]
    return float(above[-1] if above else window)


RECIPES = {
    "attention": Recipe(
        title="Recurrent translator with attention",
        lesson="05",
        data=DATA,
        minutes=3,
        variants=VARIANTS | EFFECTS,
        train=train,
        scores=each(score),
        ships="scaled",
        chosen_by="BLEU, scaled",
        mode="max",
        timed=tuple(VARIANTS),
    ),
    "fixed_vector": Recipe(
        title="Recurrent translator with one fixed vector",
        lesson="05",
        data=DATA,
        minutes=4,
        variants={"": FIXED, "four times the steps": replace(FIXED, steps=4 * FIXED.steps)},
        train=train,
        scores=each(score),
        chosen_by="BLEU",
        mode="max",
    ),
}
