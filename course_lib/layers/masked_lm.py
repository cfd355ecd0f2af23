"""The layer that names hidden words (Devlin et al. 2019, arXiv 1810.04805, section 3.1, task 1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.linear import linear
from course_lib.layers.initialisation import normal_weights
from course_lib.layers.linear import Linear
from course_lib.layers.transformer import ACTIVATIONS


class MaskedLMHead(nn.Module):
    """logits = norm(act(W h + b)) E^T + c, with the transform W of the released code, which the paper leaves out.

    E is the token embedding, given with each call, or the head's own `decoder` where `tied` is False.
    """

    def __init__(self, dim: int, vocab_size: int, activation: str, norm_eps: float, *, tied: bool = True):
        super().__init__()
        self.activation = activation
        self.transform = Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.decoder = None if tied else Linear(dim, vocab_size)
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if tied else None
        normal_weights(self)

    def forward(self, h: Float[Tensor, "*N D"], embedding: Float[Tensor, "V D"]) -> Float[Tensor, "*N V"]:
        h = self.norm(ACTIVATIONS[self.activation](self.transform(h)))
        return linear(h, embedding, self.bias) if self.decoder is None else self.decoder(h)

    def extra_repr(self) -> str:
        return f"activation={self.activation}"
