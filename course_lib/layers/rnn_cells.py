"""One step of a recurrent network as a module, with the names and the order of weights of torch.nn's cells.

Elman 1990 (RNN). Hochreiter & Schmidhuber 1997, Gers et al. 2000 (LSTM). Cho et al. 2014, arXiv 1406.1078 (GRU).
Tallec & Ollivier, "Can recurrent neural networks warp time?", ICLR 2018, arXiv 1804.11188 (biases for long memories).
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.functional.fused_recurrent import fused_gru, fused_lstm, fused_rnn
from course_lib.functional.recurrent import (
    LSTMGates,
    LSTMState,
    check_activation,
    gru_step,
    lstm_gates,
    lstm_step,
    rnn_step,
)

State = Tensor | LSTMState


class RecurrentCell(nn.Module):
    """What the cells share: the weights of `num_gates` gates, drawn from U(-1/sqrt(H), 1/sqrt(H)) as in torch.nn.

    Raises ValueError if a size is not positive.
    """

    num_gates: int

    def __init__(self, input_dim: int, hidden_dim: int, *, bias: bool = True):
        super().__init__()
        if input_dim < 1 or hidden_dim < 1:
            raise ValueError(f"sizes must be 1 or more, got input_dim={input_dim}, hidden_dim={hidden_dim}")
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        rows, bound = self.num_gates * hidden_dim, hidden_dim**-0.5
        self.weight_ih = nn.Parameter(torch.empty(rows, input_dim).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_dim).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(rows).uniform_(-bound, bound)) if bias else None
        self.bias_hh = nn.Parameter(torch.empty(rows).uniform_(-bound, bound)) if bias else None

    @property
    def weights(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def initial_state(self, batch_size: int) -> State:
        """Zeros."""
        return self.weight_hh.new_zeros(batch_size, self.hidden_dim)

    @torch.no_grad()
    def set_gate_bias(self, gate: int, value: float | Float[Tensor, " H"]) -> None:
        """Lets b_ih + b_hh of one gate, counted in the order of the weights, start at `value`.

        Raises ValueError if the cell has no biases.
        """
        if self.bias_ih is None:
            raise ValueError(f"a cell without biases has none to set to {value}: leave bias=True")
        rows = slice(gate * self.hidden_dim, (gate + 1) * self.hidden_dim)
        self.bias_ih[rows] = value
        self.bias_hh[rows] = 0.0

    def extra_repr(self) -> str:
        return f"{self.input_dim}, {self.hidden_dim}" + ("" if self.bias_ih is not None else ", bias=False")


class RNNCell(RecurrentCell):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh), Elman 1990; `activation` is "tanh" or "relu"."""

    num_gates = 1

    def __init__(self, input_dim: int, hidden_dim: int, *, bias: bool = True, activation: str = "tanh"):
        super().__init__(input_dim, hidden_dim, bias=bias)
        check_activation(activation)
        self.activation = activation

    def forward(self, x: Float[Tensor, "B D"], state: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        return rnn_step(x, state, *self.weights, activation=self.activation)

    def scan(
        self, x: Float[Tensor, "T B D"], state: Float[Tensor, "B H"], valid: Bool[Tensor, "T B 1"] | None = None
    ) -> tuple[Float[Tensor, "T B H"], Float[Tensor, "B H"]]:
        """`forward` at each step, in one fused call: all states, and the last."""
        return fused_rnn(x, state, *self.weights, valid=valid, activation=self.activation)


class LSTMCell(RecurrentCell):
    """i, f, o = sigmoid(W x_t + U h_{t-1} + b), g = tanh(...); c_t = f * c_{t-1} + i * g, h_t = o * tanh(c_t).

    `forget_bias` and `input_bias` are where the biases of f and i start, in all units. A unit forgets by f a step: to
    remember T steps, let `forget_bias` be about ln T (Tallec & Ollivier 2018).
    """

    num_gates = 4

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        *,
        bias: bool = True,
        forget_bias: float | None = None,
        input_bias: float | None = None,
    ):
        super().__init__(input_dim, hidden_dim, bias=bias)
        for gate, value in ((0, input_bias), (1, forget_bias)):
            if value is not None:
                self.set_gate_bias(gate, value)

    def initial_state(self, batch_size: int) -> LSTMState:
        """Zeros."""
        return LSTMState(super().initial_state(batch_size), super().initial_state(batch_size))

    def forward(self, x: Float[Tensor, "B D"], state: LSTMState) -> LSTMState:
        return lstm_step(x, state, *self.weights)

    def gates(self, x: Float[Tensor, "*B D"], h: Float[Tensor, "*B H"]) -> LSTMGates:
        """How far i, f and o are open, and what g proposes, for inputs x that meet the outputs h of the step before."""
        return lstm_gates(x, h, *self.weights)

    def scan(
        self, x: Float[Tensor, "T B D"], state: LSTMState, valid: Bool[Tensor, "T B 1"] | None = None
    ) -> tuple[Float[Tensor, "T B H"], LSTMState]:
        """`forward` at each step, in one fused call: all outputs h, and the last state."""
        return fused_lstm(x, state, *self.weights, valid=valid)


class GRUCell(RecurrentCell):
    """r, z = sigmoid(...), n = tanh(W_n x_t + r * (U_n h_{t-1})), h_t = (1 - z) * n + z * h_{t-1}; see `gru_step`."""

    num_gates = 3

    def forward(self, x: Float[Tensor, "B D"], state: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        return gru_step(x, state, *self.weights)

    def scan(
        self, x: Float[Tensor, "T B D"], state: Float[Tensor, "B H"], valid: Bool[Tensor, "T B 1"] | None = None
    ) -> tuple[Float[Tensor, "T B H"], Float[Tensor, "B H"]]:
        """`forward` at each step, in one fused call: all states, and the last."""
        return fused_gru(x, state, *self.weights, valid=valid)


def readable_scan(
    cell: RecurrentCell, x: Float[Tensor, "T B D"], state: State, valid: Bool[Tensor, "T B 1"] | None = None
) -> tuple[Float[Tensor, "T B H"], State]:
    """The readable twin of `cell.scan`: the same cell at each step; at padding the state stays as it is."""
    outputs = []
    for t, x_t in enumerate(x):
        new = cell(x_t, state)
        state = new if valid is None else map_state(lambda a, b, keep=valid[t]: torch.where(keep, a, b), new, state)
        outputs.append(state.h if isinstance(state, LSTMState) else state)
    return torch.stack(outputs), state


def map_state(function: Callable[..., Tensor], *states: State) -> Any:
    """Applies the function to the states, which are all tensors, or h by h and c by c to those of an LSTM."""
    if isinstance(states[0], Tensor):
        return function(*states)
    return LSTMState(*map(function, *states))


@torch.no_grad()
def chrono_init(cell: LSTMCell | GRUCell, longest: int, *, generator: torch.Generator | None = None) -> None:
    """Biases for memories of up to `longest` steps, spread over the units (Tallec & Ollivier 2018).

    LSTM: b_f = ln u with u from U(1, longest - 1), and b_i = -b_f. GRU: the same for the gate that keeps, b_z = ln u.
    Raises ValueError if `longest` is below 3.
    """
    if longest < 3:
        raise ValueError(f"chrono initialisation needs memories of 3 steps or more, got longest={longest}")
    draws = torch.rand(cell.hidden_dim, generator=generator).to(cell.weight_hh)
    span = (1 + draws * (longest - 2)).log()
    cell.set_gate_bias(1, span)  # f of the LSTM, z of the GRU
    if isinstance(cell, LSTMCell):
        cell.set_gate_bias(0, -span)
