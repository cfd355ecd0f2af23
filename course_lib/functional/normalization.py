"""Normalising a token's features: no other token and no other row takes part, in training as in use.

Ba, Kiros & Hinton, "Layer normalization", 2016, arXiv 1607.06450. Zhang & Sennrich, "Root mean square layer
normalization", NeurIPS 2019, arXiv 1910.07467. The readable twins of `torch.nn.LayerNorm` and `torch.nn.RMSNorm`.
"""

from jaxtyping import Float
from torch import Tensor


def layer_norm(
    x: Float[Tensor, "*B D"],
    gain: Float[Tensor, " D"] | None = None,
    bias: Float[Tensor, " D"] | None = None,
    *,
    eps: float = 1e-5,
) -> Float[Tensor, "*B D"]:
    """g (x - mean) / sqrt(variance + eps) + b, Ba et al. 2016, eqs. (3)-(4); eps keeps constant features finite."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.pow(2).mean(dim=-1, keepdim=True)  # divided by D, not by D - 1
    return _affine(centred / (variance + eps).sqrt(), gain, bias)


def rms_norm(
    x: Float[Tensor, "*B D"], gain: Float[Tensor, " D"] | None = None, *, eps: float = 1e-6
) -> Float[Tensor, "*B D"]:
    """g x / sqrt(mean of x^2 + eps), Zhang & Sennrich 2019, eq. (4): features are scaled, but not centred."""
    return _affine(x / (x.pow(2).mean(dim=-1, keepdim=True) + eps).sqrt(), gain, None)


def _affine(x: Tensor, gain: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if gain is None else x * gain
    return x if bias is None else x + bias
