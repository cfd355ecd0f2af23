"""PyTorch's fused attention, called so that torch.func can differentiate it."""

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import debug_unwrap
from torch.nn.attention import SDPBackend, sdpa_kernel


def fused_attention(q: Tensor, k: Tensor, v: Tensor, **arguments: Any) -> Tensor:
    """PyTorch's own, whose fastest kernels lack derivatives that torch.func asks for: there by plain products."""
    with sdpa_kernel(SDPBackend.MATH) if is_transformed(q, k, v) else nullcontext():
        return F.scaled_dot_product_attention(q, k, v, **arguments)


def is_transformed(*tensors: Tensor) -> bool:
    """Whether one of the tensors stands inside of torch.func's grad, vmap, jvp or their kin."""
    return not torch.compiler.is_compiling() and any(debug_unwrap(t, recurse=False) is not t for t in tensors)
