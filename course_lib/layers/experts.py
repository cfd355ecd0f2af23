"""A mixture of experts: several feed-forward networks, of which each token uses a few.

Shazeer et al., "Outrageously large neural networks: the sparsely-gated mixture-of-experts layer", ICLR 2017, arXiv
1701.06538. Fedus, Zoph & Shazeer, "Switch Transformers: scaling to trillion parameter models with simple and efficient
sparsity", JMLR 23, 2022, arXiv 2101.03961.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def route(logits: Float[Tensor, "*B E"], k: int) -> tuple[Float[Tensor, "*B k"], Int[Tensor, "*B k"]]:
    """The gates and the indices of the k experts with the largest logits, the best one first.

    For k > 1 the gates are a softmax over the chosen logits, Shazeer et al. 2017, eqs. (3)-(5), without their noise. A
    softmax over one logit is always 1, and the router would get no gradient from the task: for k = 1 the gate is the
    probability of the chosen expert among all, Fedus et al. 2022, eqs. (1)-(2).
    Raises ValueError unless k is from 1 to the number of experts.
    """
    if not 1 <= k <= logits.shape[-1]:
        raise ValueError(f"k must be from 1 to the number of experts, {logits.shape[-1]}, got {k}")
    largest, chosen = logits.topk(k, dim=-1)
    if k == 1:
        return logits.softmax(dim=-1).gather(-1, chosen), chosen
    return largest.softmax(dim=-1), chosen


class MixtureOfExperts(nn.Module):
    """y = sum_{i in top k} g_i E_i(x) at each position, Shazeer et al. 2017, eq. (1); it replaces a `FeedForward`.

    A router scores the experts, `route` chooses k of them and gives their gates, and a token is computed by its own
    experts alone: the cost is that of k experts, whatever their number. No expert has a capacity, so no token is
    dropped. Raises ValueError unless k is from 1 to `num_experts`.
    """

    def __init__(self, dim: int, mlp_dim: int, num_experts: int, *, k: int = 1):
        super().__init__()
        if not 1 <= k <= num_experts:
            raise ValueError(f"k must be from 1 to the number of experts, {num_experts}, got {k}")
        self.k = k
        self.router = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim)) for _ in range(num_experts)
        )

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        tokens = x.reshape(-1, x.shape[-1])
        gates, chosen = route(self.router(tokens), self.k)
        output = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, ranks = (chosen == number).nonzero(as_tuple=True)
            output = output.index_add(0, rows, gates[rows, ranks, None] * expert(tokens[rows]))
        return output.reshape(x.shape)

    def extra_repr(self) -> str:
        return f"k={self.k}"


@contextmanager
def record_routers(model: nn.Module) -> Iterator[list[Float[Tensor, "*B E"]]]:
    """The logits of every part of the model that is called `router`, call by call, while the context is open."""
    found: list[Tensor] = []
    routers = [part for name, part in model.named_modules() if name.rpartition(".")[2] == "router"]
    handles = [router.register_forward_hook(lambda _part, _given, logits: found.append(logits)) for router in routers]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
