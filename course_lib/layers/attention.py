"""Attention of recurrent translators: additive (Bahdanau et al. 2015, arXiv 1409.0473) and multiplicative (Luong et al.
2015, arXiv 1508.04025)."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from course_lib.functional.attention import luong_scores, masked_softmax, projected_additive_scores


class AdditiveAttention(nn.Module):
    """e_ij = v^T tanh(W q_i + U k_j); a_ij = softmax_j(e_ij); c_i = sum_j a_ij k_j.

    Bahdanau et al. 2015, eqs. (5)-(6) and appendix A.1.2, where q is the decoder state s_{i-1}, k the annotations h
    and e the alignment model a(s, h).
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)  # W_a
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)  # U_a
        self.v = nn.Parameter(torch.empty(hidden_dim).uniform_(-1, 1) * hidden_dim**-0.5)  # v_a

    def project_keys(self, keys: Float[Tensor, "B T_k D_k"]) -> Float[Tensor, "B T_k A"]:
        """U k for all keys: it does not depend on the query, so a decoder computes it once per sentence."""
        return self.k_proj(keys)

    def forward(
        self,
        query: Float[Tensor, "B T_q D_q"],
        keys: Float[Tensor, "B T_k D_k"],
        *,
        mask: Shaped[Tensor, "..."] | None = None,
        projected_keys: Float[Tensor, "B T_k A"] | None = None,
    ) -> tuple[Float[Tensor, "B T_q D_k"], Float[Tensor, "B T_q T_k"]]:
        """Returns the context vectors c and the weights a; `mask` (True = may attend) broadcasts to the weights."""
        projected_keys = self.project_keys(keys) if projected_keys is None else projected_keys
        weights = masked_softmax(projected_additive_scores(self.q_proj(query), projected_keys, self.v), mask)
        return weights @ keys, weights


class LuongAttention(nn.Module):
    """score(q, k) = q^T k ("dot") or q^T W k ("general"); weights = softmax(score); c = sum_j a_j k_j.

    Luong et al. 2015, eqs. (7)-(8), where q is the decoder state h_t and k the encoder states.
    Raises ValueError for another `score`, or if "dot" is asked for with unequal widths.
    """

    def __init__(self, query_dim: int, key_dim: int, *, score: str = "general"):
        super().__init__()
        if score not in ("dot", "general"):
            raise ValueError(f"score must be 'dot' or 'general', got {score!r}")
        if score == "dot" and query_dim != key_dim:
            raise ValueError(f"dot scores need queries and keys of one width, got {query_dim} and {key_dim}")
        self.W = nn.Parameter(torch.empty(query_dim, key_dim)) if score == "general" else None
        if self.W is not None:
            nn.init.xavier_uniform_(self.W)

    def forward(
        self,
        query: Float[Tensor, "B T_q D_q"],
        keys: Float[Tensor, "B T_k D_k"],
        *,
        mask: Shaped[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B T_q D_k"], Float[Tensor, "B T_q T_k"]]:
        """Returns the context vectors c and the weights a; `mask` (True = may attend) broadcasts to the weights."""
        weights = masked_softmax(luong_scores(query, keys, self.W), mask)
        return weights @ keys, weights
