"""What a layer costs: the paper's formulas, and instruments that measure operations, memory and time.

The formulas are table 1 of Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv 1706.03762.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

LAYER_KINDS = ("self-attention", "recurrent", "convolutional", "restricted self-attention")


@dataclass(frozen=True, kw_only=True)
class LayerCost:
    """A row of the table: what grows with the length n and width d of a sequence, constants left out."""

    operations: float  # per layer
    sequential_operations: float  # that have to wait for one another
    path_length: float  # layers or steps between the two most distant positions


def layer_cost(kind: str, n: int, d: int, *, k: int = 3, r: int = 3) -> LayerCost:
    """The complexity of one layer for n positions of width d, Vaswani et al. 2017, table 1.

    k is the kernel width of the convolution, whose path is that of a stack of dilated ones; r is the neighbourhood of
    restricted self-attention, of which more than n positions do not exist.
    Raises ValueError for an unknown `kind` or a size out of range.
    """
    if min(n, d, r) < 1 or k < 2:
        raise ValueError(f"n, d and r must be at least 1 and k at least 2, got n={n}, d={d}, k={k}, r={r}")
    if kind == "self-attention":
        return LayerCost(operations=n**2 * d, sequential_operations=1, path_length=1)
    if kind == "recurrent":
        return LayerCost(operations=n * d**2, sequential_operations=n, path_length=n)
    if kind == "convolutional":
        return LayerCost(operations=k * n * d**2, sequential_operations=1, path_length=max(1.0, math.log(n, k)))
    if kind == "restricted self-attention":
        r = min(r, n)
        return LayerCost(operations=r * n * d, sequential_operations=1, path_length=n / r)
    raise ValueError(f"kind must be one of {', '.join(LAYER_KINDS)}; got {kind!r}")


def count_flops(function: Callable[[], Any]) -> int:
    """Floating-point operations of the matrix products in one call of `function`; a multiply-add counts as two.

    Measured by PyTorch's counter, which does not know the fused attention and LSTM of the CPU: we add their formulas.
    A matrix product spent on masked scores counts, as it is computed; backward passes inside `function` count too.
    """
    aten = torch.ops.aten
    formulas = {
        aten._scaled_dot_product_flash_attention_for_cpu: _attention_flop,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward_flop,
        aten.mkldnn_rnn_layer: _lstm_flop,
        aten.mkldnn_rnn_layer_backward: _lstm_backward_flop,
    }
    with FlopCounterMode(display=False, custom_mapping=formulas) as counter:
        function()
    return counter.get_total_flops()


def saved_bytes(function: Callable[[], Any], *, without: Iterable[Tensor] = ()) -> int:
    """Bytes that autograd keeps after one call of `function`, for a backward pass to come.

    Memory seen through several tensors counts once; that of the tensors in `without` (parameters, inputs) does not.
    """
    excluded = {tensor.untyped_storage().data_ptr() for tensor in without}
    kept = {}  # address -> storage: holding it keeps the address from being given out again

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        result = function()
    total = sum(storage.nbytes() for address, storage in kept.items() if address not in excluded)
    del result  # held until here, or parts of the graph would be gone before they are counted
    return total


def largest_tensor(function: Callable[[], Any]) -> int:
    """How many numbers the largest tensor holds that one call of `function` computes.

    Views of others do not count, and neither does what happens inside a fused kernel.
    """
    with _Sizes() as sizes:
        function()
    return sizes.largest


class _Sizes(TorchDispatchMode):
    """Remembers the size of the largest new tensor."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        given = {each.untyped_storage().data_ptr() for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)}
        for each in tree_leaves(result):
            if isinstance(each, Tensor) and each.untyped_storage().data_ptr() not in given:
                self.largest = max(self.largest, each.numel())
        return result


def median_seconds(function: Callable[[], Any], *, repeats: int = 5, warmup: int = 1) -> float:
    """The median wall-clock time of `repeats` calls in seconds, after `warmup` calls that do not count.

    Raises ValueError if `repeats` is not positive.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    for _ in range(warmup):
        function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return median(times)


def fit_slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent p of the power law y = c x^p that fits best: the slope of log y over log x, by least squares.

    Raises ValueError unless there are at least two different x, as many y, and all of them are positive.
    """
    if len(x) != len(y) or len(set(x)) < 2 or min(*x, *y) <= 0:
        raise ValueError(f"need at least two different x, as many y, all positive; got x={list(x)}, y={list(y)}")
    log_x, log_y = ([math.log(value) for value in values] for values in (x, y))
    mean_x, mean_y = sum(log_x) / len(x), sum(log_y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(log_x, log_y, strict=True))
    return covariance / sum((a - mean_x) ** 2 for a in log_x)


def _attention_flop(q: tuple, k: tuple, v: tuple, *args: Any, **kwargs: Any) -> int:
    return 2 * math.prod(q[:-1]) * k[-2] * (q[-1] + v[-1])  # Q K^T and A V


def _attention_backward_flop(output: tuple, q: tuple, k: tuple, v: tuple, *args: Any, **kwargs: Any) -> int:
    # Q K^T is computed again; then dV and dA of width d_v, dQ and dK of width d_k
    return 2 * math.prod(q[:-1]) * k[-2] * (3 * q[-1] + 2 * v[-1])


def _lstm_flop(input_shape: tuple, weight_ih: tuple, weight_hh: tuple, *args: Any, **kwargs: Any) -> int:
    time_steps, batch, _ = input_shape
    return 2 * time_steps * batch * (math.prod(weight_ih) + math.prod(weight_hh))


def _lstm_backward_flop(input_shape: tuple, weight_ih: tuple, weight_hh: tuple, *args: Any, **kwargs: Any) -> int:
    # as for every matrix product: once for the gradient of the input, once for that of the weight
    return 2 * _lstm_flop(input_shape, weight_ih, weight_hh)
