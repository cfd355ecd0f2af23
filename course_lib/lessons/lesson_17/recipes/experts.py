"""Lesson 17: a small GPT whose feed-forward networks are dense, or mixtures of experts, at equal compute per token."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.functional.cost import count_flops
from course_lib.functional.experts import expert_load, load_balance_loss
from course_lib.functional.metrics import bits_per_byte
from course_lib.layers.experts import record_routers, route
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig
from course_lib.training.batches import text_windows
from course_lib.training.language_models import (
    LanguageSettings,
    nats_per_token,
    next_token_loss,
    token_nats,
    tokenized_prose,
)
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by, rounded
from course_lib.training.seeding import seeded

SCORED = 20_000  # characters of a split
COUNTED = 8_000  # characters whose routes are counted


@dataclass(frozen=True, kw_only=True)
class ExpertSettings(LanguageSettings):
    """A GPT of characters, dense or with experts."""

    mlp_dim: int  # of the feed-forward network, or of one expert
    num_experts: int = 0  # 0: a dense feed-forward network
    k: int = 1  # experts that compute a token
    balance: float = 0.0  # alpha, the weight of the load-balancing loss


def build(settings: ExpertSettings) -> GPT:
    """A fresh model; its first weights depend on the seed alone."""
    sizes = {"vocab_size": len(tokenized_prose(None).tokenizer), "num_heads": max(1, settings.dim // 32)}
    config = MixtureGPTConfig if settings.num_experts else GPTConfig
    with seeded(settings.seed):
        return (MixtureGPT if settings.num_experts else GPT)(
            config(**common(settings, config) | sizes | {"activation": "gelu"})
        )


def balanced_loss(model: nn.Module, window: Int[Tensor, "B T"], *, k: int, alpha: float) -> Tensor:
    """The next-token loss, and alpha times the load-balancing loss of each router in the model."""
    with record_routers(model) as routers:
        loss = next_token_loss(model, window)
    return loss + alpha * sum(load_balance_loss(logits, k) for logits in routers)


def train(settings: ExpertSettings, *, checkpoint: Path | None = None) -> Trained:
    """One variant; the weights are rounded to 16 bits. All of a seed read the same windows of the text."""
    prose = tokenized_prose(None)

    def loss(model: nn.Module, window: Tensor) -> Tensor:
        return balanced_loss(model, window, k=settings.k, alpha=settings.balance)

    trained = fit_by(
        settings,
        build(settings),
        text_windows(
            prose.ids["train"],
            batch_size=settings.batch_size,
            length=settings.context_length + 1,
            seed=settings.seed,
        ),
        loss,
        warmup=settings.steps // 10,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: nats_per_token(model, prose.ids["validation"][:4000]),
        checkpoint=checkpoint,
        extra={"tokenizer": prose.tokenizer.state_dict()},
    )
    rounded(trained.model)
    return trained


@torch.no_grad()
def loads(model: MixtureGPT, ids: Int[Tensor, " T"]) -> list[Tensor]:
    """For each block the fraction of the choices that fall on each expert, in windows of the text."""
    length, k = model.config.context_length, model.config.k
    windows = ids[: len(ids) // length * length].view(-1, length)
    with record_routers(model) as routers:
        model(windows)
    return [expert_load(route(logits, k)[1], model.config.num_experts) for logits in routers]


@torch.no_grad()
def score(trained: Trained, split: str) -> Scores:
    """Bits for each character of the split's first ones; operations; of experts the load, largest first."""
    model, ids = trained.model, tokenized_prose(None).ids[split][: SCORED + 1]
    tokens = ids[: model.config.context_length][None]
    found = {
        "bits per character": bits_per_byte(float(token_nats(model, ids).sum()), len(ids) - 1),
        "operations a character": float(count_flops(lambda: model(tokens)) // tokens.numel()),
        "parameters": float(sum(weights.numel() for weights in model.parameters())),
    }
    if isinstance(model, MixtureGPT):
        for block, fractions in enumerate(loads(model, ids[:COUNTED]), start=1):
            ordered = fractions.sort(descending=True).values.tolist()
            found |= {f"load {rank} of block {block}": value for rank, value in enumerate(ordered, start=1)}
    return found


DENSE = ExpertSettings(model="gpt", dim=64, depth=2, steps=800, learning_rate=5e-3, mlp_dim=256)
ONE = replace(DENSE, num_experts=4, balance=0.01)
TWO = replace(ONE, k=2, mlp_dim=128)
VARIANTS = {  # the first four cost the same for each token, but for the router
    "dense": DENSE,
    "4 experts, k = 1": ONE,
    "4 experts, k = 2": TWO,
    "4 experts, k = 2, no balance loss": replace(TWO, balance=0.0),
    "dense, all parameters": replace(DENSE, mlp_dim=512),  # as many as four experts of 128 have
}

RECIPE = Recipe(
    title="A GPT of characters with mixtures of experts at equal compute",
    lesson="17",
    data="English prose of docstrings in characters, data/prose: trained on its training split, tuned on the first "
    f"{SCORED:,} characters of its validation split, reported on as many of its test split",
    licence="MIT, as the course. The text behind it is under the BSD-, MIT- and PSF-type licences that "
    "data/prose/LICENSES.txt holds.",
    minutes=4,
    variants=VARIANTS,
    train=train,
    scores=each(score),
    ships="4 experts, k = 2",
    chosen_by="bits per character, 4 experts, k = 2",
    timed=tuple(VARIANTS),
)
RECIPES = {"experts": RECIPE}
