"""Filters between a language model and the dice: logits in, logits out, -inf for what may not be drawn.

Ackley, Hinton & Sejnowski, "A learning algorithm for Boltzmann machines", 1985 (temperature). Fan, Lewis & Dauphin,
"Hierarchical neural story generation", ACL 2018, arXiv 1805.04833 (top-k). Holtzman, Buys, Du, Forbes & Choi, "The
curious case of neural text degeneration", ICLR 2020, arXiv 1904.09751 (nucleus, top-p).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def temperature(logits: Float[Tensor, "*B V"], value: float) -> Float[Tensor, "*B V"]:
    """u / t, so that p_i ~ exp(u_i / t): Holtzman et al. 2020, section 3.3. Below 1 the likely gets likelier.

    Raises ValueError if `value` is not positive and finite.
    """
    if not 0 < value < float("inf"):
        raise ValueError(f"temperature must be positive and finite, got {value}: for the argmax use greedy")
    return logits / value


def top_k(logits: Float[Tensor, "*B V"], k: int) -> Float[Tensor, "*B V"]:
    """Leaves the k most probable tokens, and those that tie with the last of them, Fan et al. 2018.

    A k of V or more leaves all. Raises ValueError if k is less than 1.
    """
    if k < 1:
        raise ValueError(f"top_k must be 1 or more, got {k}")
    least = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < least, float("-inf"))


def top_p(logits: Float[Tensor, "*B V"], p: float) -> Float[Tensor, "*B V"]:
    """Leaves the nucleus: the fewest tokens whose probabilities sum to p or more, Holtzman et al. 2020, eq. (2).

    Raises ValueError if p is not above 0 and at most 1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"top_p is a probability above 0 and at most 1, got {p}")
    if p == 1:
        return logits
    ordered, tokens = logits.sort(dim=-1, descending=True)
    probabilities = ordered.softmax(dim=-1)
    likelier = probabilities.cumsum(dim=-1) - probabilities  # what comes before each token
    outside = torch.zeros_like(tokens, dtype=torch.bool).scatter(-1, tokens, likelier >= p)
    return logits.masked_fill(outside, float("-inf"))


def draw(logits: Float[Tensor, "B V"], generator: torch.Generator | None = None) -> Int[Tensor, " B"]:
    """One token for each row, with probability softmax(logits)."""
    return logits.softmax(dim=-1).multinomial(1, generator=generator).squeeze(1)
