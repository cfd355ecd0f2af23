"""Stochastic depth: a network that is shallower in training than in use.

Huang et al., "Deep networks with stochastic depth", ECCV 2016, arXiv 1603.09382.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class DropPath(nn.Module):
    """b x / (1 - rate), where b is 0 with probability `rate`, for a whole image or sentence at a time; x in use.

    It stands at the end of a residual branch, which it so leaves out: Huang et al. 2016, eq. (2). Differs from the
    paper in that the branch is made larger in training instead of smaller in use.
    Raises ValueError unless `rate` is from 0 to below 1.
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"rate is a probability from 0 up to, but not including, 1; got {rate}")
        self.rate = rate

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.training or self.rate == 0.0:
            return x
        kept = torch.rand(len(x), *[1] * (x.ndim - 1), device=x.device) >= self.rate
        return x * kept.to(x.dtype).div_(1.0 - self.rate)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
