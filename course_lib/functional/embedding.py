"""A word's vector is a row of a table (Press & Wolf, "Using the output embedding to improve language models",
EACL 2017, arXiv 1608.05859, on tables that also make the logits)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


def lookup(tokens: Int[Tensor, "*B"], table: Float[Tensor, "V D"], *, tied: bool = False) -> Float[Tensor, "*B D"]:
    """E[tokens], the rows of a table.

    Say `tied` where the same table also makes the logits that are trained: on a CPU the few rows of this gradient are
    then added to that of the logits as a sparse tensor, which saves two passes over a table of V rows. Without such
    logits the table's gradient would stay sparse, and most optimizers refuse that.
    """
    return F.embedding(tokens, table, sparse=tied and table.is_cpu)


def lookup_pair(
    source: Int[Tensor, "B T_k"],
    target: Int[Tensor, "B T_q"],
    source_table: Float[Tensor, "V_k D"],
    target_table: Float[Tensor, "V_q D"],
    *,
    tied: bool = False,
) -> tuple[Float[Tensor, "B T_k D"], Float[Tensor, "B T_q D"]]:
    """The rows of an encoder's and of a decoder's tokens; where both share one table, it gets one gradient, not two.

    Say `tied` as in `lookup` where the target's table also makes the logits.
    """
    if source_table is not target_table:
        return lookup(source, source_table), lookup(target, target_table, tied=tied)
    lengths = [source.shape[1], target.shape[1]]
    return lookup(torch.cat([source, target], dim=1), source_table, tied=tied).split(lengths, dim=1)
