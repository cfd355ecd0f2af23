"""Sampling from a machine of two layers, some of whose units are known."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@torch.no_grad()
def clamped_chain(
    hidden: Callable[[Tensor], Tensor],
    visible: Callable[[Tensor], Tensor],
    v: Float[Tensor, "B V"],
    steps: int,
    *,
    clamped: Bool[Tensor, " V"] | None = None,
) -> Float[Tensor, "B V"]:
    """The probabilities of the visible units after so many Gibbs steps from `v`; `clamped` units keep their values.

    `hidden(v)` and `visible(h)` are the probabilities of one layer's units given the other's. With labels among the
    visible units, clamping a label makes a chain that samples its class. Raises ValueError for less than one step.
    """
    if steps < 1:
        raise ValueError(f"a chain takes 1 Gibbs step or more, got {steps}")
    keep = torch.zeros_like(v[0], dtype=torch.bool) if clamped is None else clamped
    state = v
    for _ in range(steps):
        probs = hidden(state)
        probs = visible((torch.rand_like(probs) < probs).to(v.dtype))
        state = torch.where(keep, v, (torch.rand_like(probs) < probs).to(v.dtype))
    return torch.where(keep, v, probs)
