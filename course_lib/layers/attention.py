"""Attention layers: multi-head (Vaswani et al. 2017, arXiv 1706.03762), additive (Bahdanau et al. 2015,
arXiv 1409.0473) and multiplicative (Luong et al. 2015, arXiv 1508.04025)."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from course_lib.functional.attention import (
    attention,
    check_mask,
    combine_masks,
    local_attention,
    local_mask,
    luong_scores,
    masked_softmax,
    projected_additive_scores,
    readable_attention,
)


class KeysValues(NamedTuple):
    """What a layer remembers of a context: its keys and its values, split into heads."""

    k: Float[Tensor, "B H T_k d"]
    v: Float[Tensor, "B H T_k d"]


class KVCache:
    """Keys and values of all past positions of one self-attention layer, for generation without gradients.

    Room for `max_length` positions is set aside at the first `append`, so a new position costs one copy of itself.
    Raises ValueError, in `append`, when that room is used up, the batch changes or gradients are on.
    """

    def __init__(self, max_length: int):
        self.max_length = max_length
        self.length = 0
        self._store: KeysValues | None = None

    def append(self, k: Float[Tensor, "B H T d"], v: Float[Tensor, "B H T d"]) -> KeysValues:
        """Stores new positions and returns all of them, old and new."""
        end = self.length + k.shape[2]
        if end > self.max_length:
            raise ValueError(f"the cache has room for {self.max_length} positions, position {end} was asked for")
        if k.requires_grad or v.requires_grad:
            raise ValueError("a cache overwrites memory that gradients need: use it under torch.no_grad()")
        if self._store is None:
            self._store = KeysValues(*(t.new_empty(*t.shape[:2], self.max_length, t.shape[3]) for t in (k, v)))
        if self._store.k.shape[:2] != k.shape[:2]:
            raise ValueError(
                f"the cache holds (batch, heads) = {tuple(self._store.k.shape[:2])}, got {tuple(k.shape[:2])}: "
                "start a new cache for a new batch"
            )
        keys, values = self._store
        keys[:, :, self.length : end], values[:, :, self.length : end] = k, v
        self.length = end
        return KeysValues(keys[:, :, :end], values[:, :, :end])

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times (beam search)."""
        if self._store is not None:
            self._store = KeysValues(*(t.index_select(0, rows) for t in self._store))


class MultiHeadAttention(nn.Module):
    """head_i = Attention(X W_i^Q, C W_i^K, C W_i^V); output = Concat(head_1 ... head_h) W^O.

    Vaswani et al. 2017, section 3.2.2, with d_k = d_v = `head_dim`, dim / num_heads if not given. C is `context`, of
    width `context_dim`, or X itself when none is given. `window` limits self-attention to that many positions on
    either side; `dropout` is the share of weights dropped in training; `scale` replaces 1/sqrt(d_k). Differs from the
    paper in that the projections have a bias, unless `bias` is False.
    Raises ValueError if `dim` is no multiple of `num_heads` and no `head_dim` is given, or an argument is out of range.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        head_dim: int | None = None,
        context_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        window: int | None = None,
    ):
        super().__init__()
        if num_heads < 1 or dim < 1 or (head_dim is None and dim % num_heads):
            raise ValueError(f"dim must be a positive multiple of num_heads, got dim={dim}, num_heads={num_heads}")
        if head_dim is not None and head_dim < 1:
            raise ValueError(f"head_dim is the width of one head: it must be 1 or more, got {head_dim}")
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"dropout is a probability from 0 up to, but not including, 1; got {dropout}")
        if window is not None and window < 0:
            raise ValueError(f"window counts the positions seen on either side: it must be 0 or more, got {window}")
        self.num_heads, self.dropout, self.scale, self.window = num_heads, dropout, scale, window
        context_dim = dim if context_dim is None else context_dim
        inner_dim = dim if head_dim is None else num_heads * head_dim
        self.q_proj = nn.Linear(dim, inner_dim, bias=bias)
        self.k_proj = nn.Linear(context_dim, inner_dim, bias=bias)
        self.v_proj = nn.Linear(context_dim, inner_dim, bias=bias)
        self.o_proj = nn.Linear(inner_dim, dim, bias=bias)
        for proj in (self.q_proj, self.k_proj, self.v_proj, self.o_proj):
            nn.init.xavier_uniform_(proj.weight)
            if bias:
                nn.init.zeros_(proj.bias)

    def forward(
        self,
        x: Float[Tensor, "B T_q D"],
        context: Float[Tensor, "B T_k C"] | None = None,
        *,
        memory: KeysValues | None = None,
        mask: Shaped[Tensor, "..."] | None = None,
        score_bias: Shaped[Tensor, "..."] | None = None,
        causal: bool = False,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "B T_q D"]:
        """Attends from `x` to itself, to a `context`, or to a `memory` made of a context by `remember`.

        `mask` is boolean, True = may attend; mask and score_bias broadcast to (B, H, T_q, T_k). With a `cache`, x holds
        only the new positions, which see the old ones too. Raises ValueError if the arguments do not fit together.
        """
        q, k, v = self._queries_keys_values(x, context, memory, cache)
        dropout = self.dropout if self.training else 0.0
        if self.window is not None and mask is None and score_bias is None and q.shape == k.shape:
            heads = local_attention(q, k, v, window=self.window, causal=causal, scale=self.scale, dropout=dropout)
        else:
            mask = self._restrict(mask, q, k)
            heads = attention(q, k, v, mask=mask, bias=score_bias, causal=causal, scale=self.scale, dropout=dropout)
        return self.o_proj(heads.transpose(1, 2).flatten(2))  # (B, T_q, H d)

    def weights(
        self,
        x: Float[Tensor, "B T_q D"],
        context: Float[Tensor, "B T_k C"] | None = None,
        *,
        memory: KeysValues | None = None,
        mask: Shaped[Tensor, "..."] | None = None,
        score_bias: Shaped[Tensor, "..."] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "B H T_q T_k"]:
        """The weights that `forward` would use, without dropout, to be looked at; arguments as there."""
        q, k, v = self._queries_keys_values(x, context, memory, cache=None)
        mask = self._restrict(mask, q, k)
        return readable_attention(q, k, v, mask=mask, bias=score_bias, causal=causal, scale=self.scale)[1]

    def remember(self, context: Float[Tensor, "B T_k C"]) -> KeysValues:
        """Projects a context once, so that a decoder can attend to it at every step."""
        return KeysValues(self._split(self.k_proj(context)), self._split(self.v_proj(context)))

    def _queries_keys_values(
        self, x: Tensor, context: Tensor | None, memory: KeysValues | None, cache: KVCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if sum(given is not None for given in (context, memory, cache)) > 1:
            raise ValueError("give only one of context, memory and cache: a cache is for self-attention")
        if self.window is not None and (context is not None or memory is not None):
            raise ValueError(f"a window ({self.window}) limits self-attention: it has no meaning for a context")
        q = self._split(self.q_proj(x))
        k, v = self.remember(x if context is None else context) if memory is None else memory
        if cache is not None:
            k, v = cache.append(k, v)
        return q, k, v

    def _split(self, x: Tensor) -> Tensor:
        # as einops' "b t (h d) -> b h t d", which would take a tenth of the time of a step of a small model
        return x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)

    def _restrict(self, mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
        """Adds the window, if there is one, to the mask."""
        if self.window is None:
            return mask
        check_mask(mask, (*q.shape[:-1], k.shape[-2]))
        return combine_masks(mask, local_mask(q.shape[-2], k.shape[-2], window=self.window, device=q.device))

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, dropout={self.dropout}, scale={self.scale}, window={self.window}"


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
