"""Lesson 08: the parts of today's decoders, swapped into the lesson's GPT one at a time, and then all of them."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward, MultiHeadAttention, RotaryPositions, normal_weights
from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.llama import Llama, LlamaConfig
from course_lib.training.batches import text_windows
from course_lib.training.language_models import (
    VALIDATION_TOKENS,
    LanguageSettings,
    nats_per_token,
    next_token_loss,
    tokenized_prose,
)
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by
from course_lib.training.seeding import seeded

PARTS = ("rotary", "RMSNorm", "SwiGLU", "grouped")


@dataclass(frozen=True, kw_only=True)
class DecoderSettings(LanguageSettings):
    """A GPT of prose, and which of its parts are today's; `model="llama"` has all of them and no bias."""

    num_heads: int = 4
    parts: tuple[str, ...] = ()


class NoPositions(nn.Module):
    """In the place of a table of positions: x as it is."""

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0, positions: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        return x


def swap(model: GPT, *parts: str) -> GPT:
    """The same GPT with some of today's parts in the place of its own, all weights fresh as GPT-2's.

    "rotary" positions for the learned table, "RMSNorm" for layer norm, "SwiGLU" for the feed-forward network with
    GELU, "grouped": two query heads share each key and value head. Inner layers are made narrower or wider until a
    block has as many parameters as before, as nearly as whole units allow.
    Raises ValueError for another part.
    """
    if unknown := set(parts) - set(PARTS):
        raise ValueError(f"parts must be among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    config = model.config
    dim, num_heads = config.dim, config.num_heads
    rotary = RotaryPositions(dim // num_heads, config.context_length) if "rotary" in parts else None
    shared = {"num_kv_heads": num_heads // 2} if "grouped" in parts else {}
    inner = {"activation": "silu", "gated": True} if "SwiGLU" in parts else {"activation": config.activation}
    norm = partial(nn.RMSNorm if "RMSNorm" in parts else nn.LayerNorm, dim, eps=config.norm_eps)
    width = equal_width(dim, num_heads, parts)
    for block in model.blocks:
        block.attn = MultiHeadAttention(dim, num_heads, **shared, rotary=rotary)
        block.ffn = FeedForward(dim, width, **inner)
        block.norm1, block.norm2 = norm(), norm()
    model.norm = norm()
    if "rotary" in parts:
        model.pos_embed = NoPositions()
    return first_weights(model)


def equal_width(dim: int, num_heads: int, parts: tuple[str, ...], *, bias: bool = True) -> int:
    """Inner units with which a block's matrices, and their biases, hold as many numbers as those of GPT's.

    SwiGLU has three matrices for two; what grouped heads save goes to the inner layer (Touvron et al. 2023, arXiv
    2307.09288, appendix A.2.1, do the same to compare them).
    """
    saved = 2 * (dim + bias) * dim * (num_heads - num_heads // 2) // num_heads if "grouped" in parts else 0
    for_a_unit = 3 * dim + 2 * bias if "SwiGLU" in parts else 2 * dim + bias
    return round((4 * dim * (2 * dim + bias) + saved) / for_a_unit)


def first_weights(model: GPT | Llama) -> GPT | Llama:
    """GPT-2's: N(0, 0.02^2), the last matrix of each residual path divided by sqrt(2 depth)."""
    normal_weights(model)
    for block in model.blocks:
        for last in (block.attn.o_proj, block.ffn.down_proj):
            nn.init.normal_(last.weight, std=0.02 * (2 * len(model.blocks)) ** -0.5)
    return model


def build(settings: DecoderSettings) -> GPT | Llama:
    """A fresh model; its first weights depend on the seed alone."""
    vocab_size = len(tokenized_prose(settings.vocab_size).tokenizer)
    sizes = {name: getattr(settings, name) for name in ("context_length", "dim", "depth", "num_heads")}
    with seeded(settings.seed):
        if settings.model == "gpt":
            return swap(GPT(GPTConfig(**sizes, vocab_size=vocab_size, dropout=settings.dropout)), *settings.parts)
        width = equal_width(settings.dim, settings.num_heads, PARTS, bias=False)
        shared = {"num_kv_heads": settings.num_heads // 2, "head": "tied"}
        return first_weights(Llama(LlamaConfig(**sizes, **shared, vocab_size=vocab_size, mlp_dim=width)))


def train(settings: DecoderSettings, *, checkpoint: Path | None = None) -> Trained:
    """One variant; all of a seed read the same windows of the text, as the lesson's GPT is trained."""
    prose = tokenized_prose(settings.vocab_size)
    windows = {"batch_size": settings.batch_size, "length": settings.context_length + 1, "seed": settings.seed}
    return fit_by(
        settings,
        build(settings),
        text_windows(prose.ids["train"], **windows),
        next_token_loss,
        warmup=min(100, settings.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        validate=lambda model: nats_per_token(model, prose.ids["validation"][:VALIDATION_TOKENS]),
        checkpoint=checkpoint,
        extra={"tokenizer": prose.tokenizer.state_dict()},
    )


@torch.no_grad()
def cache_bytes(model: GPT | Llama) -> int:
    """What the cache keeps of each token, keys and values of all layers: read off a cache that holds one."""
    cache = model.new_cache(1)
    model.next_logits(torch.zeros(1, 1, dtype=torch.long), cache)
    return sum(kept.nbytes for layer in cache.layers for kept in layer.past)


def score(trained: Trained, split: str) -> Scores:
    """Nats a token on a split of the prose, with half a window of context or more; parameters; the cache's bytes."""
    prose, model = tokenized_prose(trained.settings.vocab_size), trained.model
    return {
        "nats per token": nats_per_token(model, prose.ids[split]),
        "parameters": float(sum(parameter.numel() for parameter in model.parameters())),
        "cache bytes a token": float(cache_bytes(model)),
    }


SETTINGS = DecoderSettings(
    model="gpt", vocab_size=1024, dim=64, depth=2, context_length=64, batch_size=8, steps=1500, learning_rate=4e-3
)  # the lesson's own, but for four heads instead of two: grouped ones need them
CHANGES = {
    "GPT": {},
    "rotary": {"parts": ("rotary",)},
    "RMSNorm": {"parts": ("RMSNorm",)},
    "SwiGLU": {"parts": ("SwiGLU",), "learning_rate": 2e-3},
    "grouped": {"parts": ("grouped",)},
    "all four": {"parts": PARTS},
    "Llama": {"model": "llama", "parts": PARTS},
}  # learning rates are the best of 2e-3, 4e-3, 8e-3 and 1.6e-2 for each: 4e-3 but for one
VARIANTS = {name: replace(SETTINGS, **changes) for name, changes in CHANGES.items()}

RECIPE = Recipe(
    title="The lesson's GPT with the parts of today's decoders, one at a time and all together",
    lesson="08",
    data="English prose of docstrings in 1,024 byte-level tokens, data/prose: trained on its training split, tuned on "
    "its validation split, reported on its test split",
    licence="MIT, as the course. The text behind it is under the BSD-, MIT- and PSF-type licences that "
    "data/prose/LICENSES.txt holds.",
    minutes=4,
    variants=VARIANTS,
    train=train,
    scores=each(score),
    ships="Llama",
    chosen_by="nats per token, Llama",
    timed=tuple(VARIANTS),
    weights=False,
)
