"""The RNN and the LSTM in NumPy, with backpropagation through time written by hand, one step after the other.

Werbos, "Backpropagation through time: what it does and how to do it", Proceedings of the IEEE 78(10), 1990. Elman 1990
(the RNN). Hochreiter & Schmidhuber 1997 and Gers et al. 2000 (the LSTM with its forget gate).

A `forward` returns a cache beside its result: what its `backward` needs. dx is the gradient of the loss in x. Rows of
weights are ordered as in torch.nn (gates i, f, g, o), with one bias: the sum of PyTorch's two.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """Of the inputs, the state before the first of them (dc0: LSTM only) and the weights, each summed over time."""

    dx: Float[np.ndarray, "*B D"]
    dh0: Float[np.ndarray, "B H"]
    dc0: Float[np.ndarray, "B H"] | None = None
    dW_ih: Float[np.ndarray, "G D"]
    dW_hh: Float[np.ndarray, "G H"]
    db: Float[np.ndarray, " G"]


class RNNStepCache(NamedTuple):
    x: np.ndarray
    h_before: np.ndarray
    h: np.ndarray
    W_ih: np.ndarray
    W_hh: np.ndarray


class LSTMStepCache(NamedTuple):
    x: np.ndarray
    h_before: np.ndarray
    c_before: np.ndarray
    gates: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # i, f, g, o
    tanh_c: np.ndarray
    W_ih: np.ndarray
    W_hh: np.ndarray


def rnn_step_forward(
    x: Float[np.ndarray, "B D"],
    h_before: Float[np.ndarray, "B H"],
    W_ih: Float[np.ndarray, "H D"],
    W_hh: Float[np.ndarray, "H H"],
    b: Float[np.ndarray, " H"],
) -> tuple[Float[np.ndarray, "B H"], RNNStepCache]:
    """h_t = tanh(W_ih x_t + W_hh h_{t-1} + b)."""
    h = np.tanh(x @ W_ih.T + h_before @ W_hh.T + b)
    return h, RNNStepCache(x, h_before, h, W_ih, W_hh)


def rnn_step_backward(dh: Float[np.ndarray, "B H"], cache: RNNStepCache) -> Gradients:
    """From the gradient of h_t to those of all that made it; tanh' = 1 - tanh^2."""
    da = dh * (1 - cache.h**2)  # of what stands inside the tanh
    return Gradients(
        dx=da @ cache.W_ih,
        dh0=da @ cache.W_hh,
        dW_ih=da.T @ cache.x,
        dW_hh=da.T @ cache.h_before,
        db=da.sum(axis=0),
    )


def rnn_forward(
    x: Float[np.ndarray, "B T D"],
    h0: Float[np.ndarray, "B H"],
    W_ih: Float[np.ndarray, "H D"],
    W_hh: Float[np.ndarray, "H H"],
    b: Float[np.ndarray, " H"],
) -> tuple[Float[np.ndarray, "B T H"], list[RNNStepCache]]:
    """The states h_1 ... h_T. Raises ValueError for a sequence without a step."""
    h, states, caches = h0, [], []
    for x_t in _steps(x):
        h, cache = rnn_step_forward(x_t, h, W_ih, W_hh, b)
        states.append(h)
        caches.append(cache)
    return np.stack(states, axis=1), caches


def rnn_backward(dh: Float[np.ndarray, "B T H"], caches: list[RNNStepCache]) -> Gradients:
    """Backpropagation through time: from the loss's gradient in each h_t to those of inputs, h_0 and weights.

    A state feels the loss twice: at its own step, and through the state after it. For a loss in the last state alone,
    `dh` is zero at all other steps.
    """
    from_later, steps = np.zeros_like(dh[:, 0]), []
    for dh_t, cache in zip(_steps(dh)[::-1], caches[::-1], strict=True):
        step = rnn_step_backward(dh_t + from_later, cache)
        from_later = step.dh0
        steps.append(step)
    return _add_over_time(steps)


def lstm_step_forward(
    x: Float[np.ndarray, "B D"],
    h_before: Float[np.ndarray, "B H"],
    c_before: Float[np.ndarray, "B H"],
    W_ih: Float[np.ndarray, "4*H D"],
    W_hh: Float[np.ndarray, "4*H H"],
    b: Float[np.ndarray, " 4*H"],
) -> tuple[Float[np.ndarray, "B H"], Float[np.ndarray, "B H"], LSTMStepCache]:
    """c_t = f * c_{t-1} + i * g and h_t = o * tanh(c_t); returns h_t, c_t and the cache."""
    a_i, a_f, a_g, a_o = np.split(x @ W_ih.T + h_before @ W_hh.T + b, 4, axis=1)
    i, f, g, o = _sigmoid(a_i), _sigmoid(a_f), np.tanh(a_g), _sigmoid(a_o)
    c = f * c_before + i * g
    tanh_c = np.tanh(c)
    return o * tanh_c, c, LSTMStepCache(x, h_before, c_before, (i, f, g, o), tanh_c, W_ih, W_hh)


def lstm_step_backward(dh: Float[np.ndarray, "B H"], dc: Float[np.ndarray, "B H"], cache: LSTMStepCache) -> Gradients:
    """From the gradients of h_t and c_t to those of all that made them; sigmoid' = sigmoid (1 - sigmoid).

    c_t acts on the loss through h_t, and through c_{t+1}, whose part is `dc`.
    """
    i, f, g, o = cache.gates
    dc = dc + dh * o * (1 - cache.tanh_c**2)
    da_i = dc * g * i * (1 - i)
    da_f = dc * cache.c_before * f * (1 - f)
    da_g = dc * i * (1 - g**2)
    da_o = dh * cache.tanh_c * o * (1 - o)
    da = np.concatenate([da_i, da_f, da_g, da_o], axis=1)
    return Gradients(
        dx=da @ cache.W_ih,
        dh0=da @ cache.W_hh,
        dc0=dc * f,  # the highway: no matrix, and no slope of a squashing function
        dW_ih=da.T @ cache.x,
        dW_hh=da.T @ cache.h_before,
        db=da.sum(axis=0),
    )


def lstm_forward(
    x: Float[np.ndarray, "B T D"],
    h0: Float[np.ndarray, "B H"],
    c0: Float[np.ndarray, "B H"],
    W_ih: Float[np.ndarray, "4*H D"],
    W_hh: Float[np.ndarray, "4*H H"],
    b: Float[np.ndarray, " 4*H"],
) -> tuple[Float[np.ndarray, "B T H"], Float[np.ndarray, "B H"], list[LSTMStepCache]]:
    """The outputs h_1 ... h_T, the last cell c_T, and the caches. Raises ValueError for a sequence without a step."""
    h, c, outputs, caches = h0, c0, [], []
    for x_t in _steps(x):
        h, c, cache = lstm_step_forward(x_t, h, c, W_ih, W_hh, b)
        outputs.append(h)
        caches.append(cache)
    return np.stack(outputs, axis=1), c, caches


def lstm_backward(
    dh: Float[np.ndarray, "B T H"], dc_last: Float[np.ndarray, "B H"], caches: list[LSTMStepCache]
) -> Gradients:
    """Backpropagation through time, from the loss's gradients in each h_t and in c_T (zeros if it does not enter)."""
    from_later, dc, steps = np.zeros_like(dh[:, 0]), dc_last, []
    for dh_t, cache in zip(_steps(dh)[::-1], caches[::-1], strict=True):
        step = lstm_step_backward(dh_t + from_later, dc, cache)
        from_later, dc = step.dh0, step.dc0  # type: ignore[assignment]
        steps.append(step)
    return _add_over_time(steps)


def _steps(x: np.ndarray) -> list[np.ndarray]:
    if x.ndim != 3 or x.shape[1] == 0:
        raise ValueError(f"a sequence has the axes (batch, time, features) and at least one step, got shape {x.shape}")
    return list(np.moveaxis(x, 1, 0))


def _add_over_time(steps: list[Gradients]) -> Gradients:
    """`steps` run from the last to the first; the weights are shared, so their gradients add up."""
    return Gradients(
        dx=np.stack([step.dx for step in reversed(steps)], axis=1),
        dh0=steps[-1].dh0,
        dc0=steps[-1].dc0,
        dW_ih=np.sum([step.dW_ih for step in steps], axis=0),
        dW_hh=np.sum([step.dW_hh for step in steps], axis=0),
        db=np.sum([step.db for step in steps], axis=0),
    )


def _sigmoid(a: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * a))  # the same function; exp(-a) would overflow
