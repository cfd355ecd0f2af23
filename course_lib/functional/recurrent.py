"""Recurrent networks as plain functions of tensors: one step of each, and how far back their gradients reach.

Elman, "Finding structure in time", Cognitive Science 14(2), 1990 (the RNN). Hochreiter & Schmidhuber, "Long short-term
memory", Neural Computation 9(8), 1997; Gers, Schmidhuber & Cummins, "Learning to forget", Neural Computation 12(10),
2000 (its forget gate). Cho et al., EMNLP 2014, arXiv 1406.1078 (the GRU). Pascanu, Mikolov & Bengio, "On the difficulty
of training recurrent neural networks", ICML 2013, arXiv 1211.5063.

The rows of a weight matrix are ordered as in torch.nn: the gates i, f, g, o of the LSTM, and r, z, n of the GRU.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": torch.relu}


class LSTMState(NamedTuple):
    """What an LSTM carries from step to step: its output h, and the cell c on which the gradient travels far."""

    h: Float[Tensor, "*B H"]
    c: Float[Tensor, "*B H"]


State = Tensor | LSTMState


class LSTMGates(NamedTuple):
    """i: share of g written, f: share of c kept, g: what is proposed, o: share of tanh(c) shown; all but g in 0...1."""

    i: Float[Tensor, "*B H"]
    f: Float[Tensor, "*B H"]
    g: Float[Tensor, "*B H"]
    o: Float[Tensor, "*B H"]


def map_state(function: Callable[..., Tensor], *states: State) -> Any:
    """Applies the function to the states, which are all tensors, or h by h and c by c to those of an LSTM."""
    if isinstance(states[0], Tensor):
        return function(*states)
    return LSTMState(*map(function, *states))


def rnn_step(
    x: Float[Tensor, "*B D"],
    h: Float[Tensor, "*B H"],
    W_ih: Float[Tensor, "H D"],
    W_hh: Float[Tensor, "H H"],
    b_ih: Float[Tensor, " H"] | None = None,
    b_hh: Float[Tensor, " H"] | None = None,
    *,
    activation: str = "tanh",
) -> Float[Tensor, "*B H"]:
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), Elman 1990; `activation` is "tanh" or "relu".

    Raises ValueError for another activation.
    """
    check_activation(activation)
    return ACTIVATIONS[activation](F.linear(x, W_ih, b_ih) + F.linear(h, W_hh, b_hh))


def lstm_gates(
    x: Float[Tensor, "*B D"],
    h: Float[Tensor, "*B H"],
    W_ih: Float[Tensor, "4*H D"],
    W_hh: Float[Tensor, "4*H H"],
    b_ih: Float[Tensor, " 4*H"] | None = None,
    b_hh: Float[Tensor, " 4*H"] | None = None,
) -> LSTMGates:
    """i, f, o = sigmoid(W x_t + U h_{t-1} + b), g = tanh(the same): each has its own rows of W, U and b."""
    i, f, g, o = (F.linear(x, W_ih, b_ih) + F.linear(h, W_hh, b_hh)).chunk(4, dim=-1)
    return LSTMGates(i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid())


def lstm_step(
    x: Float[Tensor, "*B D"],
    state: LSTMState,
    W_ih: Float[Tensor, "four_H D"],
    W_hh: Float[Tensor, "four_H H"],
    b_ih: Float[Tensor, " four_H"] | None = None,
    b_hh: Float[Tensor, " four_H"] | None = None,
) -> LSTMState:
    """c_t = f * c_{t-1} + i * g and h_t = o * tanh(c_t), with the gates of `lstm_gates`.

    Hochreiter & Schmidhuber 1997 with the forget gate of Gers et al. 2000; no peephole connections.
    """
    i, f, g, o = lstm_gates(x, state.h, W_ih, W_hh, b_ih, b_hh)
    c = f * state.c + i * g
    return LSTMState(o * c.tanh(), c)


def gru_step(
    x: Float[Tensor, "*B D"],
    h: Float[Tensor, "*B H"],
    W_ih: Float[Tensor, "3*H D"],
    W_hh: Float[Tensor, "3*H H"],
    b_ih: Float[Tensor, " 3*H"] | None = None,
    b_hh: Float[Tensor, " 3*H"] | None = None,
) -> Float[Tensor, "*B H"]:
    """r, z = sigmoid(W x_t + U h_{t-1}), n = tanh(W_n x_t + r * (U_n h_{t-1})), h_t = (1 - z) * n + z * h_{t-1}.

    Cho et al. 2014, eqs. (5)-(8), without their biases. Differs from eq. (8) in that r acts after the product with U_n
    (as in torch.nn), so that one product serves all three gates.
    """
    x_r, x_z, x_n = F.linear(x, W_ih, b_ih).chunk(3, dim=-1)
    h_r, h_z, h_n = F.linear(h, W_hh, b_hh).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (1 - z) * n + z * h


def check_activation(activation: str) -> None:
    """Raises ValueError unless an RNN knows this activation."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")


def recurrent_matrix(
    dim: int, radius: float, *, kind: str = "symmetric", generator: torch.Generator | None = None
) -> Float[Tensor, "{dim} {dim}"]:
    """A random matrix whose largest |eigenvalue| is `radius`.

    "symmetric" is Q diag(lambda) Q^T with lambda spread evenly over -radius ... radius: its powers are
    Q diag(lambda^t) Q^T. "orthogonal" is radius Q: the t-th power changes the length of every vector by radius^t.
    Raises ValueError for another kind, a `dim` below 1 or a negative radius.
    """
    if kind not in ("symmetric", "orthogonal") or dim < 1 or radius < 0:
        raise ValueError(
            "kind must be 'symmetric' or 'orthogonal', dim 1 or more and radius 0 or more, "
            f"got kind={kind!r}, dim={dim}, radius={radius}"
        )
    q, _ = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64))
    if kind == "orthogonal":
        return (radius * q).float()
    return (q @ torch.linspace(radius, -radius, dim, dtype=torch.float64).diag() @ q.T).float()


def linear_recurrence(x: Float[Tensor, "B T H"], W_hh: Float[Tensor, "H H"]) -> Float[Tensor, "B T H"]:
    """A_t = W_hh A_{t-1} + x_t from A_0 = 0: an RNN without its nonlinearity, Pascanu et al. 2013, section 2.1."""
    state, states = torch.zeros_like(x[:, 0]), []
    for x_t in x.unbind(dim=1):
        state = state @ W_hh.T + x_t
        states.append(state)
    return torch.stack(states, dim=1)


def gradient_norms(
    states_of: Callable[[Tensor], Tensor], x: Float[Tensor, "B T D"], direction: Float[Tensor, "B H"]
) -> Float[Tensor, " T"]:
    """How strongly the last state feels the input k = 0 ... T-1 steps before it.

    `states_of` maps x to states (B, T, H), such as `lambda x: lstm(x)[0]`. Entry k is the mean length, over the batch,
    of the gradient of <direction, h_T> in x_{T-k}: Pascanu et al. 2013, eq. (5), seen from the last step.
    """
    x = x.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad((states_of(x)[:, -1] * direction).sum(), x)
    return gradient.norm(dim=-1).mean(dim=0).flip(0)
