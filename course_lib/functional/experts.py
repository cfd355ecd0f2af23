"""Mixtures of experts: how evenly the tokens are distributed among them.

Shazeer et al., "Outrageously large neural networks: the sparsely-gated mixture-of-experts layer", ICLR 2017, arXiv
1701.06538. Fedus, Zoph & Shazeer, "Switch Transformers: scaling to trillion parameter models with simple and efficient
sparsity", JMLR 23, 2022, arXiv 2101.03961.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def expert_load(chosen: Int[Tensor, "*B k"], num_experts: int) -> Float[Tensor, " E"]:
    """f_i, the fraction of all choices that fell on expert i: Fedus et al. 2022, eq. (5), there with k = 1."""
    return torch.bincount(chosen.flatten(), minlength=num_experts) / chosen.numel()


def load_balance_loss(logits: Float[Tensor, "*B E"], k: int = 1) -> Float[Tensor, ""]:
    """E sum_i f_i P_i, Fedus et al. 2022, eq. (4) without its factor alpha: 1 if all experts are chosen equally often.

    P_i, eq. (6), is the mean probability of expert i over the tokens. The gradient flows through P alone, since f
    counts; it lowers the probabilities of the experts that were chosen most often.
    """
    num_experts = logits.shape[-1]
    chosen = logits.topk(k, dim=-1).indices
    mean_probs = logits.softmax(dim=-1).flatten(0, -2).mean(dim=0)
    return num_experts * (expert_load(chosen, num_experts).to(logits.dtype) * mean_probs).sum()
