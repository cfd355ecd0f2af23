"""A GPT that reads a picture and a text as one stream of tokens: patches first, then words.

The layout is that of Fuyu (Bavishi et al., "Fuyu-8B: a multimodal architecture for AI agents", Adept, 2023): a decoder
whose first layer takes patches through one linear projection, in the place of word embeddings. The same stream in
encoders: VisualBERT (Li et al. 2019, arXiv 1908.03557) with regions of a detector, ViLT (Kim et al., ICML 2021, arXiv
2102.03334) with patches.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.layers.cache import DecoderCache, Placed, place
from course_lib.layers.transformer import check_sizes, normal_weights
from course_lib.models.gpt import GPT, GPTConfig


@dataclass(frozen=True, kw_only=True)
class MultimodalGPTConfig:
    """A GPT, and what its patches are made of. Raises ValueError for a size below 1, and for a GPT without a head."""

    language: GPTConfig = field(default_factory=GPTConfig)  # its context holds patches and words
    patch_dim: int = 2700  # numbers in a patch: Fuyu's are 30 x 30 pixels of three colours

    def __post_init__(self):
        check_sizes(self, "patch_dim")
        if self.language.head is None:
            raise ValueError("the language model has head=None: it makes features, no logits to write with")


class MultimodalGPT(nn.Module):
    """p(text | picture) = prod_i p(x_i | patches, x_<i): one GPT for both, all of it trained.

    Each token sees those before it, so that all words see all patches. Patches have the first positions, in the order
    of `patchify`. Differs from Fuyu in that positions are learned and that no sign ends a row of patches: every picture
    has the same grid, so that a position says the row.
    Raises ValueError as `GPT` does, and for a patch of another length.
    """

    def __init__(self, config: MultimodalGPTConfig):
        super().__init__()
        self.config = config
        self.gpt = GPT(config.language)
        self.patch_proj = normal_weights(nn.Linear(config.patch_dim, config.language.dim))

    def forward(self, tokens: Int[Tensor, "B T"], patches: Float[Tensor, "B N P"]) -> Float[Tensor, "B T V"]:
        """The logits of each next word; of patches nothing is asked. Padding may follow the words."""
        return self.gpt.logits(self.features(tokens, patches)[:, patches.shape[1] :])

    def features(self, tokens: Int[Tensor, "B T"], patches: Float[Tensor, "B N P"]) -> Float[Tensor, "B L D"]:
        """What the blocks make of each of the L = N + T patches and words."""
        return self.encode(self.embed(tokens, patches))

    def embed(self, tokens: Int[Tensor, "B T"], patches: Float[Tensor, "B N P"]) -> Float[Tensor, "B L D"]:
        """Patches, then words, with their positions in the one stream."""
        words = self.gpt.embed(tokens, Placed(start=patches.shape[1]))
        return torch.cat([self.embed_patches(patches), words], dim=1)

    def embed_patches(self, patches: Float[Tensor, "B N P"]) -> Float[Tensor, "B N D"]:
        """W p_n + b + position n."""
        if patches.shape[-1] != self.config.patch_dim:
            raise ValueError(f"a patch has {self.config.patch_dim} numbers, got {patches.shape[-1]}")
        return self.gpt.dropout(self.gpt.pos_embed(self.patch_proj(patches)))

    def encode(self, x: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """The stream through all blocks."""
        return self.gpt.encode(x)

    def given(self, patches: Float[Tensor, "B N P"]) -> "Prefixed":
        """This model with its picture: a language model for the generators."""
        return Prefixed(self, patches)


class Prefixed:
    """A model that has read a picture, one for each row, and goes on with words."""

    def __init__(self, model: MultimodalGPT, patches: Float[Tensor, "B N P"]):
        self.model, self.patches = model, patches

    @torch.no_grad()
    def new_cache(self, max_length: int) -> DecoderCache:
        """Room for `max_length` words behind the patches, which are in it already."""
        batch, count = self.patches.shape[:2]
        cache = self.model.gpt.new_cache(count + max_length)
        place(torch.zeros(batch, count, dtype=torch.long), cache=cache)  # in the place of words: all are real
        self.model.gpt.encode(self.model.embed_patches(self.patches), cache=cache)
        return cache

    def next_logits(
        self, tokens: Int[Tensor, "B T"], cache: DecoderCache, *, valid: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B V"]:
        """Appends `tokens` (`valid`: the real ones, padding at the left) and returns the logits of the next one."""
        return self.model.gpt.next_logits(tokens, cache, valid=valid)
