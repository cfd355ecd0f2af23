"""One step of a recurrent network as a module, with the names and the order of weights of torch.nn's cells.

Elman 1990 (RNN). Hochreiter & Schmidhuber 1997, Gers et al. 2000 (LSTM). Cho et al. 2014, arXiv 1406.1078 (GRU).
Tallec & Ollivier, "Can recurrent neural networks warp time?", ICLR 2018, arXiv 1804.11188 (biases for long memories).

Recurrent layers over batches of unequal length.

Elman 1990 (RNN). Hochreiter & Schmidhuber 1997, Gers et al. 2000 (LSTM). Graves, Mohamed & Hinton, "Speech recognition
with deep recurrent neural networks", ICASSP 2013, arXiv 1303.5778 (layers stacked in both directions).
Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014, arXiv 1406.1078 (the GRU).
Schuster & Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on Signal Processing 45(11), 1997.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from course_lib.functional.attention import valid_positions
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


class BidirectionalGRU(nn.Module):
    """Reads a sentence from both ends: h_j = [forward h_j; backward h_j], Bahdanau et al. 2015, section 3.2.

    Padding at the end of a row does not reach any state: the backward GRU starts at the row's last real token.
    """

    def __init__(self, input_dim: int, hidden_dim: int):
        super().__init__()
        self.gru = nn.GRU(input_dim, hidden_dim, batch_first=True, bidirectional=True)

    def forward(
        self, x: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T two_H"], Float[Tensor, "B two_H"]]:
        """Returns the states at each token (zeros at padding), and the two final states side by side.

        Raises ValueError for a row without a token, or with padding before a token.
        """
        lengths = check_right_padded(valid)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, final = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
        return states, rearrange(final, "direction b h -> b (direction h)")


def check_right_padded(valid: Bool[Tensor, "B T"]) -> Tensor:
    """The number of tokens in each row of `valid`; raises ValueError unless they all stand at its beginning."""
    lengths = valid.sum(dim=1)
    if (lengths == 0).any():
        raise ValueError(f"each row needs at least one valid token, row {int((lengths == 0).nonzero()[0])} has none")
    expected = torch.arange(valid.shape[1], device=valid.device) < lengths[:, None]
    if not torch.equal(valid, expected):
        row = int((valid != expected).any(dim=1).nonzero()[0])
        raise ValueError(f"padding must stand at the end of a row, row {row} has it before a token")
    return lengths


class RecurrentLayer(nn.Module):
    """A cell along time: `num_layers` on top of each other, with `bidirectional` one from each end side by side.

    Each direction of each layer is one of `cells`, in the order of torch.nn: layer 0 forward, layer 0 backward, layer
    1 forward, ... `dropout` is the share of a layer's outputs dropped in training on the way to the next layer.
    `cell_options` (bias, activation, forget_bias, ...) go to the cells. `readable` runs the cell step by step, which
    is slower and can be differentiated twice.
    Raises ValueError if an argument is out of range.
    """

    cell_type: type[RecurrentCell]

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        *,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        readable: bool = False,
        **cell_options: Any,
    ):
        super().__init__()
        if num_layers < 1 or not 0 <= dropout < 1:
            raise ValueError(
                f"num_layers must be 1 or more and dropout in [0, 1), got num_layers={num_layers}, dropout={dropout}"
            )
        self.input_dim, self.hidden_dim, self.num_layers = input_dim, hidden_dim, num_layers
        self.num_directions, self.dropout, self.readable = 1 + bidirectional, dropout, readable
        self.output_dim = hidden_dim * self.num_directions
        self.cells = nn.ModuleList(
            self.cell_type(self.output_dim if layer else input_dim, hidden_dim, **cell_options)
            for layer in range(num_layers)
            for _ in range(self.num_directions)
        )

    def forward(
        self,
        x: Float[Tensor, "B T D"] | PackedSequence,
        state: Any = None,
        *,
        valid: Bool[Tensor, "B T"] | None = None,
    ) -> tuple[Float[Tensor, "B T H"] | PackedSequence, Any]:
        """Returns the outputs of the last layer at each step, and the final states of all `cells`.

        A state is (cells, B, H), an LSTM's is LSTMState(h, c) of two of them; `state` is the one to start from, zeros
        if not given. Padding, where `valid` is False, may stand anywhere: a state passes it unchanged, so that the
        backward direction starts at a row's last real token; outputs are zero there. A PackedSequence comes back as
        one.
        Raises ValueError if x, the state or `valid` does not fit, or there is no step.
        """
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state, valid)
        self._check(x, valid)
        state = self.initial_state(len(x)) if state is None else self._check_state(state, len(x))
        mask = None if valid is None or valid.all() else rearrange(valid, "b t -> t b 1")
        steps = rearrange(x, "b t d -> t b d")
        if mask is None:
            outputs, final = self._run(steps, state, mask, self.num_layers)
        else:
            outputs, final = self._run(steps.masked_fill(~mask, 0.0), state, mask, self.num_layers)
            outputs = outputs.masked_fill(~mask, 0.0)
        return rearrange(outputs, "t b h -> b t h"), final

    def initial_state(self, batch_size: int) -> State:
        """Zeros for all cells."""
        return map_state(lambda *each: torch.stack(each), *(cell.initial_state(batch_size) for cell in self.cells))

    def _run(self, steps: Tensor, state: State, mask: Tensor | None, num_layers: int) -> tuple[Tensor, State]:
        finals = []
        for layer in range(num_layers):
            if layer > 0:
                steps = F.dropout(steps, self.dropout, self.training)
            outputs = []
            for direction in range(self.num_directions):
                number = layer * self.num_directions + direction
                start = map_state(lambda each, number=number: each[number], state)
                output, final = self._scan(self.cells[number], steps, start, mask, from_the_end=direction == 1)
                outputs.append(output)
                finals.append(final)
            steps = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-1)
        return steps, map_state(lambda *each: torch.stack(each), *finals)

    def _scan(
        self, cell: RecurrentCell, steps: Tensor, state: State, mask: Tensor | None, *, from_the_end: bool
    ) -> tuple[Tensor, State]:
        if from_the_end:
            steps, mask = steps.flip(0), None if mask is None else mask.flip(0)
        outputs, final = readable_scan(cell, steps, state, mask) if self.readable else cell.scan(steps, state, mask)
        return outputs.flip(0) if from_the_end else outputs, final

    def _forward_packed(self, packed: PackedSequence, state: Any, valid: Tensor | None) -> tuple[PackedSequence, State]:
        if valid is not None:
            raise ValueError("a PackedSequence knows its lengths itself: leave `valid` out")
        x, lengths = pad_packed_sequence(packed, batch_first=True)
        outputs, final = self(x, state, valid=valid_positions(lengths, x.shape[1]).to(x.device))
        order = packed.sorted_indices
        if order is not None:
            outputs, lengths = outputs[order], lengths[order.cpu()]
        data = pack_padded_sequence(outputs, lengths, batch_first=True).data
        return PackedSequence(data, packed.batch_sizes, order, packed.unsorted_indices), final

    def _check(self, x: Tensor, valid: Tensor | None) -> None:
        if x.ndim != 3 or x.shape[1] == 0 or x.shape[2] != self.input_dim:
            raise ValueError(
                f"x must be (batch, time, {self.input_dim}) with at least one step, got shape {tuple(x.shape)}"
            )
        if valid is not None and (valid.dtype != torch.bool or valid.shape != x.shape[:2]):
            raise ValueError(
                f"valid must be boolean (True = real token) of shape {tuple(x.shape[:2])}, "
                f"got {valid.dtype} of shape {tuple(valid.shape)}"
            )

    def _check_state(self, state: Any, batch_size: int) -> State:
        wanted = (len(self.cells), batch_size, self.hidden_dim)
        parts = 2 if self.cell_type is LSTMCell else 1
        given = (state,) if isinstance(state, Tensor) else tuple(state)
        if len(given) != parts or any(tuple(part.shape) != wanted for part in given):
            shapes = ", ".join(str(tuple(part.shape)) for part in given)
            raise ValueError(f"the state must be {parts} tensor(s) (cells, batch, width) = {wanted}, got {shapes}")
        return LSTMState(*given) if parts == 2 else given[0]

    def extra_repr(self) -> str:
        return f"num_layers={self.num_layers}, bidirectional={self.num_directions == 2}, dropout={self.dropout}"


class RNN(RecurrentLayer):
    """h_t = tanh(W_ih x_t + W_hh h_{t-1} + b): see `RecurrentLayer`. Options: bias, activation ("tanh" or "relu")."""

    cell_type = RNNCell


class LSTM(RecurrentLayer):
    """c_t = f * c_{t-1} + i * g, h_t = o * tanh(c_t): see `RecurrentLayer`. Options: bias, forget_bias, input_bias."""

    cell_type = LSTMCell

    def gates(
        self, x: Float[Tensor, "B T D"], state: Any = None, *, valid: Bool[Tensor, "B T"] | None = None, layer: int = 0
    ) -> LSTMGates:
        """All gates (B, T, H) of the forward direction of one layer while it reads x: what `forward` did inside.

        Raises ValueError if there is no such layer, or the arguments do not fit.
        """
        if not 0 <= layer < self.num_layers:
            raise ValueError(f"layers are counted from 0 to {self.num_layers - 1}, got layer={layer}")
        self._check(x, valid)
        state = self.initial_state(len(x)) if state is None else self._check_state(state, len(x))
        mask = None if valid is None else rearrange(valid, "b t -> t b 1")
        steps = rearrange(x, "b t d -> t b d")
        if layer > 0:
            steps, _ = self._run(steps, state, mask, layer)
        number = layer * self.num_directions
        cell, start = self.cells[number], map_state(lambda each: each[number], state)
        outputs, _ = self._scan(cell, steps, start, mask, from_the_end=False)
        before = torch.cat([start.h[None], outputs[:-1]])
        return LSTMGates(*(rearrange(gate, "t b h -> b t h") for gate in cell.gates(steps, before)))


class GRU(RecurrentLayer):
    """h_t = (1 - z) * n + z * h_{t-1}: see `RecurrentLayer` and `gru_step`. Option: bias."""

    cell_type = GRUCell


class RecurrentCache:
    """What a recurrent model remembers between tokens: its state, whose size does not grow with the text.

    `max_length` is kept for generators that ask every model for it.
    """

    def __init__(self, max_length: int, state: State | None = None):
        self.max_length, self.length, self.state = max_length, 0, state

    def advance(self, state: State, count: int) -> None:
        """Remembers the state after `count` more tokens."""
        self.state, self.length = state, self.length + count

    def select(self, rows: Int[Tensor, " R"]) -> None:
        """Keeps these rows of the batch, in this order; a row may be kept several times (beam search)."""
        if self.state is not None:
            self.state = map_state(lambda each: each.index_select(1, rows), self.state)


def check_left_padded(valid: Bool[Tensor, "B T"] | None) -> None:
    """Raises ValueError for a row that ends in padding: it has no last token to go on from."""
    if valid is not None and not valid[:, -1].all():
        row = int((~valid[:, -1]).nonzero()[0])
        raise ValueError(f"a row's last token must be a real one, row {row} ends in padding: pad prompts at the left")
