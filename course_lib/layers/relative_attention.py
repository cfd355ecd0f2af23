"""Attention that knows how far back a key is, whatever the place of both.

Dai, Yang, Yang, Carbonell, Le & Salakhutdinov, "Transformer-XL: attentive language models beyond a fixed-length
context", ACL 2019, arXiv 1901.02860, section 3.3 and appendix B.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.functional.positions import sinusoidal_positions
from course_lib.layers.transformer import MultiHeadAttention


class RelativeAttention(MultiHeadAttention):
    """Self-attention by content and distance, section 3.3, to both sides.

    A_ij = ((q_i + u)^T k_j + (q_i + v)^T W_R R_i-j) / sqrt(d_k), with sinusoids R of the distance i - j: keys are
    sought by what they hold and by how far back they are, and u and v say what and where to look whatever the query.
    """

    def __init__(self, dim: int, num_heads: int, *, dropout: float = 0.0):
        super().__init__(dim, num_heads, dropout=dropout)
        self.pos_proj = nn.Linear(dim, dim, bias=False)  # W_R
        self.content_bias = nn.Parameter(torch.zeros(num_heads, 1, dim // num_heads))  # u
        self.position_bias = nn.Parameter(torch.zeros(num_heads, 1, dim // num_heads))  # v

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        distances: Float[Tensor, "distances D"],
        *,
        mask: Bool[Tensor, "B 1 1 T"] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """`distances` are `relative_sinusoids` of T - 1 ... -(T - 1)."""
        q, (k, v) = self.split(self.q_proj(x)), self.keys_values(x)
        r = self.split(self.pos_proj(distances)[None])  # (1, H, 2T - 1, d)
        by_distance = relative_shift((q + self.position_bias) @ r.mT) * q.shape[-1] ** -0.5
        dropout = self.dropout if self.training else 0.0
        heads = self.attend(q + self.content_bias, k, v, mask=mask, bias=by_distance, dropout=dropout)
        return self.o_proj(heads.transpose(1, 2).flatten(2))


def relative_sinusoids(length: int, dim: int) -> Float[Tensor, "2*{length}-1 {dim}"]:
    """The codes of the distances length - 1, ..., 0, ..., -(length - 1): query minus key, in frames."""
    past = sinusoidal_positions(length, dim)
    mirror = torch.tensor([-1.0, 1.0]).repeat(dim // 2)  # sin(-x) = -sin x, cos(-x) = cos x
    return torch.cat([past.flip(0), past[1:] * mirror])


def relative_shift(scores: Float[Tensor, "B H T distances"]) -> Float[Tensor, "B H T T"]:
    """From a column per distance to one per key: row i moves left by T - 1 - i. Appendix B."""
    length = scores.shape[2]
    padded = F.pad(scores, (1, 0)).flatten(2).unflatten(2, (-1, length))  # (B, H, 2T, T): each row slips by one
    return padded[:, :, 1:].flatten(2).unflatten(2, (length, -1))[..., :length]
