"""Flamingo: a language model that stays as it is learns to look at pictures, through gates that open from 0.

Alayrac et al., "Flamingo: a visual language model for few-shot learning", NeurIPS 2022, arXiv 2204.14198.
"""

from dataclasses import dataclass, field
from itertools import repeat

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.cache import ALONE, DecoderCache, KeysValues, place
from course_lib.layers.transformer import FeedForward, MultiHeadAttention, check_sizes, xavier_weights
from course_lib.models.gpt import GPT, GPTConfig


@dataclass(frozen=True, kw_only=True)
class FlamingoConfig:
    """The paper's resampler by default, before a language model of ours.

    Raises ValueError for a size below 1, and for a language model without a head.
    """

    language: GPTConfig = field(default_factory=GPTConfig)
    vision_dim: int = 1536  # of each feature that the frozen vision encoder gives
    num_latents: int = 64  # R, the tokens that stand for a picture, however many features it has
    resampler_depth: int = 6  # layers
    num_heads: int = 16
    head_dim: int = 96  # of keys and values
    every: int = 1  # a gated block before each, every second, ... block of the language model
    activation: str = "gelu"  # the paper's is the squared ReLU

    def __post_init__(self):
        check_sizes(self, "vision_dim", "num_latents", "resampler_depth", "num_heads", "head_dim", "every")
        if self.language.head is None:
            raise ValueError("the language model has head=None: it makes features, no logits to write with")


class PerceiverLayer(nn.Module):
    """latents + attention(q=latents, kv=[features, latents]), then + FFW(latents): the loop in figure 5."""

    def __init__(self, dim: int, num_heads: int, head_dim: int, activation: str):
        super().__init__()
        self.norm_features, self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = MultiHeadAttention(dim, num_heads, head_dim=head_dim, bias=False)
        self.ffn = FeedForward(dim, 4 * dim, activation=activation, bias=False)

    def forward(self, latents: Float[Tensor, "B R C"], features: Float[Tensor, "B N C"]) -> Float[Tensor, "B R C"]:
        queries = self.norm1(latents)
        latents = latents + self.attn(queries, torch.cat([self.norm_features(features), queries], dim=1))
        return latents + self.ffn(self.norm2(latents))


class PerceiverResampler(nn.Module):
    """Any number of features to R tokens, by learned queries: section 2.1, appendix A.1.1.

    Differs from the paper in that there is one picture and no film, so that no time is encoded.
    """

    def __init__(self, config: FlamingoConfig):
        super().__init__()
        dim = config.vision_dim
        self.layers = nn.ModuleList(
            PerceiverLayer(dim, config.num_heads, config.head_dim, config.activation)
            for _ in range(config.resampler_depth)
        )
        self.norm = nn.LayerNorm(dim)
        xavier_weights(self)
        self.latents = nn.Parameter(torch.randn(config.num_latents, dim) * 0.02)

    def forward(self, features: Float[Tensor, "B N C"]) -> Float[Tensor, "B R C"]:
        latents = self.latents.expand(len(features), -1, -1)
        for layer in self.layers:
            latents = layer(latents, features)
        return self.norm(latents)


class GatedCrossAttention(nn.Module):
    """y + tanh(alpha_attn) attention(q=y, kv=x), then y + tanh(alpha_ffn) FFW(y): GATED XATTN-DENSE, figure 4.

    Both alphas start at 0: then y comes out as it went in.
    """

    def __init__(self, config: FlamingoConfig):
        super().__init__()
        dim = config.language.dim
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = MultiHeadAttention(
            dim, config.num_heads, head_dim=config.head_dim, context_dim=config.vision_dim, bias=False
        )
        self.ffn = FeedForward(dim, 4 * dim, activation=config.activation, bias=False)
        xavier_weights(self)
        self.alpha_attn, self.alpha_ffn = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))

    def forward(self, y: Float[Tensor, "B T D"], x: Float[Tensor, "B R C"] | KeysValues) -> Float[Tensor, "B T D"]:
        y = y + self.alpha_attn.tanh() * self.attn(self.norm1(y), x)
        return y + self.alpha_ffn.tanh() * self.ffn(self.norm2(y))


class Flamingo(nn.Module):
    """p(text | picture): a frozen GPT with gated cross-attention between its blocks, section 2.2.

    Differs from the paper in that a text has one picture, which all of its tokens see. `features` of pictures come from
    a vision encoder that is trained before, and frozen too. Raises ValueError as `GPT` and its layers do.
    """

    def __init__(self, config: FlamingoConfig):
        super().__init__()
        self.config = config
        self.resampler = PerceiverResampler(config)
        self.gated = nn.ModuleList(GatedCrossAttention(config) for _ in range(0, config.language.depth, config.every))
        self.language = GPT(config.language).requires_grad_(False)

    def forward(
        self, tokens: Int[Tensor, "B T"], picture: Float[Tensor, "B N C"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T V"]:
        """The logits of each next token."""
        return self.language.logits(self.features(tokens, picture, valid=valid))

    def features(
        self, tokens: Int[Tensor, "B T"], picture: Float[Tensor, "B N C"], *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T D"]:
        """What the blocks, old and new, make of each token."""
        placed = place(tokens, valid) if valid is not None else ALONE
        return self.encode(self.language.embed(tokens, placed), self.embed(picture), mask=placed.mask)

    def embed(self, picture: Float[Tensor, "B N C"]) -> Float[Tensor, "B R C"]:
        """The tokens that stand for a picture."""
        return self.resampler(picture)

    def encode(
        self,
        y: Float[Tensor, "B T D"],
        x: Float[Tensor, "B R C"] | None,
        *,
        mask: Bool[Tensor, "B 1 1 T_k"] | None = None,
        cache: DecoderCache | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Embedded words through all blocks; before every `every`-th of them they look at the picture.

        `x` are the picture's tokens; a `cache` of `given` knows them already.
        """
        layers = repeat(None) if cache is None else cache.layers
        for number, (block, layer) in enumerate(zip(self.language.blocks, layers, strict=False)):
            if number % self.config.every == 0:
                y = self.gated[number // self.config.every](y, x if layer is None else layer.context)
            y = block(y, mask=mask, causal=True, cache=layer)
        return self.language.norm(y)

    def train(self, mode: bool = True) -> "Flamingo":
        """As every module; but the frozen language model drops nothing out."""
        super().train(mode)
        self.language.eval()
        return self

    def given(self, picture: Float[Tensor, "B N C"]) -> "Seeing":
        """This model with its picture: a language model for the generators."""
        return Seeing(self, picture)


class Seeing:
    """A Flamingo that writes about one picture for each row, which is resampled once."""

    @torch.no_grad()
    def __init__(self, model: Flamingo, picture: Float[Tensor, "B N C"]):
        self.model, self.x = model, model.embed(picture)

    @torch.no_grad()
    def new_cache(self, max_length: int) -> DecoderCache:
        """Room for `max_length` tokens, and what each gated block sees of the picture."""
        cache = self.model.language.new_cache(max_length)
        for gated, layer in zip(self.model.gated, cache.layers[:: self.model.config.every], strict=True):
            layer.context = gated.attn.keys_values(self.x)
        return cache

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: DecoderCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one."""
        placed, language = place(tokens, valid, cache), self.model.language
        y = self.model.encode(language.embed(tokens, placed), None, mask=placed.mask, cache=cache)
        return language.logits(y[:, -1])


def flamingo_on(language: GPT, **overrides) -> Flamingo:
    """A Flamingo around a copy of this language model; `overrides` go to `FlamingoConfig`. Its gates are shut."""
    model = Flamingo(FlamingoConfig(**{"language": language.config} | overrides))
    model.language.load_state_dict(language.state_dict())
    return model
