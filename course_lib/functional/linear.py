"""y = x W^T + b, by the faster of the two matrix products that PyTorch brings for the CPU.

PyTorch sends single-precision products to the BLAS library that it was built with, which on some processors (AMD's, in
the usual build) takes about twice the time of oneDNN, the library that it uses for convolutions. The numbers are the
same up to rounding.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function
from torch.utils.flop_counter import register_flop_formula

ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
WORTH_IT = 2**20  # multiplications: oneDNN takes 10 microseconds to begin


def linear(
    x: Float[Tensor, "*B D_in"], weight: Float[Tensor, "D_out D_in"], bias: Float[Tensor, " D_out"] | None = None
) -> Float[Tensor, "*B D_out"]:
    """x W^T + b, the twin of `torch.nn.functional.linear`, with all its derivatives."""
    if not onednn_pays(x, weight):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias)):
        return OneDNNLinear.apply(x, weight, bias)
    return onednn_product(x, weight, bias)


def linear_plus(
    term: Float[Tensor, "B D_out"], x: Float[Tensor, "B D_in"], weight: Float[Tensor, "D_out D_in"]
) -> Float[Tensor, "B D_out"]:
    """term + x W^T at once, for passes written by hand: it may lack a derivative of its own."""
    if onednn_pays(x, weight):
        return ONEDNN.binary(x, term, weight, None, "add")
    return torch.addmm(term, x, weight.t())


def onednn_pays(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN can compute x W^T, and is worth its start."""
    return (
        x.dtype == weight.dtype == torch.float32
        and x.numel() * len(weight) >= WORTH_IT
        and ONEDNN is not None
        and x.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
    )


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b by oneDNN."""
    rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    if 0 in rows.stride():  # an expanded gradient: one number in the place of many
        rows = rows.contiguous()
    product = ONEDNN.default(rows, weight, bias, "none", [], "")
    return product if x.ndim == 2 else product.view(*x.shape[:-1], len(weight))


class OneDNNLinear(Function):
    """y = x W^T + b: dx = dy W, dW = dy^T x, db = sum dy. The derivatives are themselves differentiable."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return onednn_product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        rows = dy.reshape(-1, dy.shape[-1])
        return (
            linear(dy, weight.t()) if needs_x else None,
            linear(rows.t(), x.reshape(-1, x.shape[-1]).t()) if needs_weight else None,
            rows.sum(dim=0) if needs_bias else None,
        )


if ONEDNN is not None:

    @register_flop_formula(ONEDNN)
    def count_operations(x_shape: tuple[int, ...], *_: Any, out_shape: tuple[int, ...], **__: Any) -> int:
        """A multiplication and an addition for each pair of a row and a column, as PyTorch counts its own products."""
        return 2 * x_shape[0] * x_shape[1] * out_shape[1]
