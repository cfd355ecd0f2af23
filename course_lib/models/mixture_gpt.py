"""A GPT whose feed-forward networks are mixtures of experts, as in Switch Transformer and Mixtral.

Fedus, Zoph & Shazeer, "Switch Transformers: scaling to trillion parameter models with simple and efficient sparsity",
JMLR 23, 2022, arXiv 2101.03961, in a decoder.
"""

from dataclasses import dataclass

from torch import nn

from course_lib.layers.experts import MixtureOfExperts
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import normal_weights
from course_lib.models.gpt import GPT, GPTConfig


@dataclass(frozen=True, kw_only=True)
class MixtureGPTConfig(GPTConfig):
    """A GPT's sizes; `mlp_dim` is that of one expert. Raises ValueError unless k is from 1 to `num_experts`."""

    num_experts: int = 8
    k: int = 1  # experts that compute a token
    activation: str = "gelu"  # of an expert; no other

    def __post_init__(self):
        super().__post_init__()
        plain_integers(self)
        if not 1 <= self.k <= self.num_experts:
            raise ValueError(f"k must be from 1 to the number of experts, {self.num_experts}, got {self.k}")
        if self.activation != "gelu":
            raise ValueError(f'experts compute with the exact "gelu", got {self.activation!r}')


class MixtureGPT(GPT):
    """A GPT with a `MixtureOfExperts` in the place of each block's feed-forward network; first weights as in a GPT."""

    config: MixtureGPTConfig

    def __init__(self, config: MixtureGPTConfig):
        super().__init__(config)
        for block in self.blocks:
            mixture = MixtureOfExperts(config.dim, config.mlp_dim or 4 * config.dim, config.num_experts, k=config.k)
            block.ffn = normal_weights(mixture)
            for expert in mixture.experts:
                nn.init.normal_(expert[-1].weight, std=0.02 * (2 * config.depth) ** -0.5)
