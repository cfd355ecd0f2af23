"""The layer that names hidden words (Devlin et al., NAACL 2019, arXiv 1810.04805, section 3.1, task 1)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.layers.initialisation import normal_weights
from course_lib.layers.transformer import ACTIVATIONS


class MaskedLMHead(nn.Module):
    """logits = norm(act(W h + b)) E^T + c, with the transform W of the released code, which the paper leaves out.

    E is the token embedding, given with each call, or the head's own `decoder` where `tied` is False.
    """

    def __init__(self, dim: int, vocab_size: int, *, activation: str, norm_eps: float, tied: bool = True):
        super().__init__()
        self.activation = activation
        self.transform = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim, eps=norm_eps)
        self.decoder = None if tied else nn.Linear(dim, vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        normal_weights(self)

    def forward(self, h: Float[Tensor, "*N D"], embedding: Float[Tensor, "V D"]) -> Float[Tensor, "*N V"]:
        E = embedding if self.decoder is None else self.decoder.weight
        return F.linear(self.norm(ACTIVATIONS[self.activation](self.transform(h))), E, self.bias)

    def extra_repr(self) -> str:
        return f"activation={self.activation}, tied={self.decoder is None}"
