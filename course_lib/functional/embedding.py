"""A word's vector is a row of a table (Press & Wolf, "Using the output embedding to improve language models",
EACL 2017, arXiv 1608.05859, on tables that also make the logits)."""

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
