"""Lesson 15: encoder-decoder, prefix LM and causal LM on the same five tasks, at about equal computation.

Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text Transformer", JMLR 2020, section
3.2 and table 2: L + L blocks of an encoder-decoder compute about as much as L blocks of a language model, which reads
source and target in one sequence. They have about twice as many parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.functional.attention import causal_mask
from course_lib.functional.cost import count_flops
from course_lib.layers.transformer import RelativePositionBias, TokenEmbedding
from course_lib.lessons.lesson_15.recipes import text_to_text
from course_lib.models.t5 import T5Config, build_block, first_weights
from course_lib.training.recipe import Recipe, Scores, Trained, common
from course_lib.training.seeding import seeded

ENCODER_DECODER, PREFIX, CAUSAL = "encoder-decoder", "prefix LM", "causal LM"


@dataclass(frozen=True, kw_only=True)
class LayoutSettings(text_to_text.TextSettings):
    """A layout, and how it learns the five tasks from scratch."""

    layout: str = ENCODER_DECODER
    pretraining: int = 0
    per_task: int = 1000
    steps: int = 1000


class OneStack(nn.Module):
    """T5's blocks in one stack that reads the source and then the target; called like an encoder-decoder.

    Sources are moved to the right, so that the target follows without padding: its distances are those of the text.
    """

    def __init__(self, config: T5Config, *, prefix: bool):
        super().__init__()
        self.config, self.prefix = config, prefix
        buckets = {"num_buckets": config.num_buckets, "max_distance": config.max_distance}
        self.token_embed = TokenEmbedding(config.vocab_size, config.dim)
        self.bias = RelativePositionBias(config.num_heads, **buckets, bidirectional=prefix)
        self.blocks = nn.ModuleList(build_block(config, decoder=False) for _ in range(config.depth))
        self.norm = nn.RMSNorm(config.dim, eps=config.norm_eps)
        first_weights(self, config, self.bias)

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], *, source_valid: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B T V"]:
        """Teacher forcing: the logits of y_1 ... y_n, given `target` = padding token, y_1 ... y_{n-1}."""
        order = source_valid.int().argsort(dim=1, stable=True)  # padding first
        tokens = torch.cat([source.gather(1, order), target], dim=1)
        valid = torch.cat([source_valid.gather(1, order), torch.ones_like(target, dtype=torch.bool)], dim=1)
        mask = layout_mask(source.shape[1] if self.prefix else 0, tokens.shape[1]) & valid[:, None, None]
        x, bias = self.token_embed(tokens), self.bias(tokens.shape[1])
        for block in self.blocks:
            x = block(x, mask=mask, score_bias=bias)
        x = self.norm(x[:, source.shape[1] :]) * self.config.dim**-0.5
        return x @ self.token_embed.weight.T

    def given(self, source: Int[Tensor, "B S"], source_valid: Bool[Tensor, "B S"]) -> "Writer":
        """p(y | x) for these sources, to write y token by token."""
        return Writer(self, source, source_valid)


def layout_mask(prefix: int, length: int) -> Bool[Tensor, "T T"]:
    """True where a query (row) may attend to a key (column): those before it, itself, and the whole prefix."""
    return causal_mask(length) | (torch.arange(length) < prefix)


class Writer:
    """A stack with its source fixed, for `course_lib.generation`; each step computes everything again."""

    def __init__(self, model: OneStack, source: Int[Tensor, "B S"], valid: Bool[Tensor, "B S"]):
        self.model, self.source, self.valid = model, source, valid

    def new_cache(self, max_length: int) -> list[Tensor]:
        """Of the tokens that were written."""
        return []

    def next_logits(self, tokens: Int[Tensor, "B T"], cache: list[Tensor], *, valid=None) -> Float[Tensor, "B V"]:
        """Appends `tokens` and returns the logits of the next one."""
        cache.append(tokens)
        return self.model(self.source, torch.cat(cache, dim=1), source_valid=self.valid)[:, -1]


def build(settings: LayoutSettings) -> nn.Module:
    """Fresh; its first weights depend on the seed alone."""
    if settings.layout == ENCODER_DECODER:
        return text_to_text.build(settings)
    config = T5Config(**common(settings, T5Config), vocab_size=len(text_to_text.tokenizer()))
    with seeded(settings.seed):
        return OneStack(config, prefix=settings.layout == PREFIX)


def train(settings: LayoutSettings, *, checkpoint: Path | None = None) -> Trained:
    """All tasks mixed; all layouts of a seed see the same batches, and pay for the target alone."""
    return text_to_text.tune(settings, build(settings), checkpoint=checkpoint)


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Exact answers of each variant, its parameters, and the operations of one pass over a batch of 32 examples."""
    found = text_to_text.scores(trained, split)
    batch = text_to_text.as_batch(text_to_text.few(text_to_text.TextSettings(per_task=32))[::5])
    for name, one in trained.items():
        found[f"thousand parameters, {name}"] = sum(weight.numel() for weight in one.model.parameters()) / 1e3
        forward = partial(one.model, batch.source, batch.target, source_valid=batch.source_valid)
        found[f"million operations, {name}"] = count_flops(forward) / 1e6
    return found


RATES = {ENCODER_DECODER: 2e-3, PREFIX: 4e-3, CAUSAL: 4e-3}


def settings_of(layout: str) -> LayoutSettings:
    """Those of a variant; a prefix LM has as many buckets for the past as a causal one, and as many for the future."""
    buckets = LayoutSettings.num_buckets * (2 if layout == PREFIX else 1)
    return LayoutSettings(layout=layout, num_buckets=buckets, learning_rate=RATES[layout])


VARIANTS = {layout: settings_of(layout) for layout in RATES}
RECIPE = Recipe(
    title="Encoder-decoder, prefix LM and causal LM on five tasks as text",
    lesson="15",
    data=f"what the five tasks of `text_to_text` make of {LayoutSettings.per_task:,} sentences each, without plain "
    f"text; held out are {text_to_text.SCORED['validation']} and {text_to_text.SCORED['test']} sentences with other "
    "pairs of nouns and adjectives",
    minutes=1,
    variants=VARIANTS,
    train=train,
    scores=scores,
    ships=ENCODER_DECODER,
    chosen_by=f"exact, {ENCODER_DECODER}",
    mode="max",
    timed=tuple(VARIANTS),
    weights=False,
)
RECIPES = {"t5_layouts": RECIPE}
