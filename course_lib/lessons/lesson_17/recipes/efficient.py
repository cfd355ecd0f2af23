"""Lesson 17: a small GPT that attends to everything, to its neighbours, or to a running sum, at equal steps."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from course_lib.functional.attention import attention
from course_lib.functional.cost import count_flops
from course_lib.functional.linear_attention import linear_attention
from course_lib.functional.local_attention import local_attention
from course_lib.functional.metrics import bits_per_byte
from course_lib.models.gpt import GPT
from course_lib.training.batches import text_windows
from course_lib.training.language_models import (
    LanguageSettings,
    build_language_model,
    nats_per_token,
    next_token_loss,
    token_nats,
    tokenized_prose,
)
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by, rounded

SCORED = 20_000  # characters of a split
WINDOW = 16  # characters on the left that a local head sees
LENGTHS = (64, 128, 256, 1024, 4096)  # characters at which operations are counted


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(LanguageSettings):
    """A GPT of characters, and what its heads do."""

    attend: str = "softmax"  # or "local", "linear"
    window: int = WINDOW  # of "local"


def attend_by(model: GPT, name: str, *, window: int = WINDOW) -> GPT:
    """The same GPT with "softmax", "local" or "linear" attention in all its heads: the one thing that changes.

    A checkpoint does not say which: it is asked for again. Raises ValueError for another name.
    """
    kinds: dict[str, Callable[..., Tensor]] = {
        "softmax": attention,
        "local": partial(local_attention, window=window),
        "linear": linear_attention,
    }
    if name not in kinds:
        raise ValueError(f"attention must be one of {', '.join(kinds)}, got {name!r}")
    for block in model.blocks:
        block.attn.attend = kinds[name]
    return model


def train(settings: AttentionSettings, *, checkpoint: Path | None = None) -> Trained:
    """One variant, rounded to 16 bits; all of a seed begin with the same weights and read the same windows."""
    prose = tokenized_prose(None)
    model = attend_by(build_language_model(settings), settings.attend, window=settings.window)
    windows = {"batch_size": settings.batch_size, "length": settings.context_length + 1, "seed": settings.seed}
    trained = fit_by(
        settings,
        model,
        text_windows(prose.ids["train"], **windows),
        next_token_loss,
        warmup=settings.steps // 10,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: nats_per_token(model, prose.ids["validation"][:4000]),
        checkpoint=checkpoint,
        extra={"tokenizer": prose.tokenizer.state_dict(), "attend": settings.attend},
    )
    rounded(trained.model)
    return trained


@torch.no_grad()
def operations(settings: AttentionSettings, length: int) -> int:
    """Operations of the matrix products for each character, where the whole GPT reads so many: exact, of any weights.

    All of it counts, also what no attention changes: projections, inner layers and the head.
    """
    longer = replace(settings, context_length=length)
    model = attend_by(build_language_model(longer), settings.attend, window=settings.window).eval()
    tokens = torch.zeros(1, length, dtype=torch.long)
    return count_flops(lambda: model(tokens)) // length


@torch.no_grad()
def score(trained: Trained, split: str) -> Scores:
    """Bits for each character of the split's first ones, with half a window of context or more; operations."""
    prose = tokenized_prose(None)
    ids = prose.ids[split][: SCORED + 1]
    nats = float(token_nats(trained.model, ids).sum())
    counted = {f"operations a character at {n}": float(operations(trained.settings, n)) for n in LENGTHS}
    return {"bits per character": bits_per_byte(nats, len(ids) - 1)} | counted


SETTINGS = AttentionSettings(model="gpt", dim=64, depth=2, steps=2000, learning_rate=1e-2)
RATES = {"softmax": 1e-2, "local": 1e-2, "linear": 1e-2}  # the best of 5e-3, 1e-2 and 2e-2 for each
VARIANTS = {name: replace(SETTINGS, attend=name, learning_rate=rate) for name, rate in RATES.items()}

RECIPE = Recipe(
    title="A GPT of characters with softmax, local and linear attention",
    lesson="17",
    data="English prose of docstrings in characters, data/prose: trained on its training split, tuned on the first "
    f"{SCORED:,} characters of its validation split, reported on as many of its test split",
    licence="MIT, as the course. The text behind it is under the BSD-, MIT- and PSF-type licences that "
    "data/prose/LICENSES.txt holds.",
    minutes=3,
    variants=VARIANTS,
    train=train,
    scores=each(score),
    ships="linear",
    chosen_by="bits per character, linear",
    timed=tuple(VARIANTS),
)
RECIPES = {"efficient_attention": RECIPE}
