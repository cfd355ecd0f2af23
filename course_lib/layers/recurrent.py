"""Recurrent networks: one step of each as a module, layers of them over batches of unequal length, and the attention of
recurrent translators.

Elman 1990 (RNN). Hochreiter & Schmidhuber 1997, Gers et al. 2000 (LSTM). Cho et al. 2014, arXiv 1406.1078 (GRU).
Schuster & Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on Signal Processing 45(11), 1997.
Graves, Mohamed & Hinton, "Speech recognition with deep recurrent neural networks", ICASSP 2013, arXiv 1303.5778 (layers
stacked in both directions). Tallec & Ollivier, "Can recurrent neural networks warp time?", ICLR 2018, arXiv 1804.11188
(biases for long memories). Weights have the names and the order of torch.nn's cells. Bahdanau et al. 2015,
arXiv 1409.0473, and Luong et al. 2015, arXiv 1508.04025 (attention).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from course_lib.functional.attention import (
    attention,
    is_transformed,
    masked_softmax,
    projected_additive_scores,
    valid_positions,
)
from course_lib.functional.recurrent import (
    LSTMGates,
    LSTMState,
    State,
    check_activation,
    gru_step,
    lstm_gates,
    lstm_step,
    map_state,
    rnn_step,
)


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


class GRUCell(RecurrentCell):
    """r, z = sigmoid(...), n = tanh(W_n x_t + r * (U_n h_{t-1})), h_t = (1 - z) * n + z * h_{t-1}; see `gru_step`."""

    num_gates = 3

    def forward(self, x: Float[Tensor, "B D"], state: Float[Tensor, "B H"]) -> Float[Tensor, "B H"]:
        return gru_step(x, state, *self.weights)


def scan(
    cell: RecurrentCell,
    x: Float[Tensor, "B T D"],
    state: State,
    valid: Bool[Tensor, "B T"] | None = None,
    *,
    from_the_end: bool = False,
) -> tuple[Float[Tensor, "B T H"], State]:
    """A cell at each step, or `from_the_end` at each step backwards; at padding the state stays as it is."""
    outputs, steps = [], range(x.shape[1])
    for t in reversed(steps) if from_the_end else steps:
        new = cell(x[:, t], state)
        state = new if valid is None else map_state(lambda a, b, t=t: torch.where(valid[:, t, None], a, b), new, state)
        outputs.append(state.h if isinstance(state, LSTMState) else state)
    return torch.stack(outputs[::-1] if from_the_end else outputs, dim=1), state


class RecurrentLayer(nn.Module):
    """A cell along time: `num_layers` on top of each other, with `bidirectional` one from each end side by side.

    Each direction of each layer is one of `cells`, in the order of torch.nn: layer 0 forward, layer 0 backward, layer
    1 forward, ... `dropout` is the share of a layer's outputs dropped in training on the way to the next layer.
    `cell_options` (bias, activation, forget_bias, ...) go to the cells. Their weights run in torch.nn's own kernel. Its
    twin, one cell after the other, runs where `readable` is True, and inside of torch.func and torch.compile.
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
        if valid is not None:
            x = x.masked_fill(~valid[:, :, None], 0.0)
        if self.readable or torch.compiler.is_compiling() or is_transformed(x, *self.parameters()):
            outputs, final = self._step_by_step(x, state, valid, self.num_layers)
        elif valid is None:
            return self._kernel(x, state)
        else:
            outputs, final = self._kernel_on_real_tokens(x, state, valid)
        return outputs if valid is None else outputs.masked_fill(~valid[:, :, None], 0.0), final

    def initial_state(self, batch_size: int) -> State:
        """Zeros for all cells."""
        return map_state(lambda *each: torch.stack(each), *(cell.initial_state(batch_size) for cell in self.cells))

    def _step_by_step(self, x: Tensor, state: State, valid: Tensor | None, num_layers: int) -> tuple[Tensor, State]:
        """The readable twin of the kernel."""
        finals = []
        for layer in range(num_layers):
            if layer > 0:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for direction in range(self.num_directions):
                number = layer * self.num_directions + direction
                start = map_state(lambda each, number=number: each[number], state)
                output, final = scan(self.cells[number], x, start, valid, from_the_end=direction == 1)
                outputs.append(output)
                finals.append(final)
            x = torch.cat(outputs, dim=-1)
        return x, map_state(lambda *each: torch.stack(each), *finals)

    def _kernel(self, x: Tensor, state: State, batch_sizes: Tensor | None = None) -> tuple[Tensor, State]:
        """x (B, T, D), or the data of a packed sequence and its `batch_sizes`, through all layers at once."""
        weights = [weight for cell in self.cells for weight in cell.weights if weight is not None]
        settings = (weights, self.cells[0].bias_ih is not None, self.num_layers, self.dropout, self.training)
        if batch_sizes is None:
            outputs, *final = self.kernel(x, state, *settings, self.num_directions == 2, True)
        else:
            outputs, *final = self.kernel(x, batch_sizes, state, *settings, self.num_directions == 2)
        return outputs, LSTMState(*final) if len(final) == 2 else final[0]

    def _kernel_on_real_tokens(self, x: Tensor, state: State, valid: Tensor) -> tuple[Tensor, State]:
        """Real tokens move to the front of their row, in their order, and are packed; then all goes back."""
        lengths, order = valid.sum(dim=1), (~valid).int().argsort(dim=1, stable=True)
        tokens = x.gather(1, order[:, :, None].expand_as(x))
        packed = pack_padded_sequence(tokens, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
        start = map_state(lambda each: each[:, packed.sorted_indices], state)
        data, final = self._kernel(packed.data, start, packed.batch_sizes)
        outputs, _ = pad_packed_sequence(packed._replace(data=data), batch_first=True, total_length=x.shape[1])
        read = (lengths > 0)[:, None]  # a row without a token was read as one zero: its state stays what it was
        final = map_state(lambda a, b: torch.where(read, a[:, packed.unsorted_indices], b), final, state)
        return outputs.gather(1, order.argsort(dim=1)[:, :, None].expand_as(outputs)), final

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

    @property
    def kernel(self) -> Callable:
        return torch.rnn_tanh if self.cells[0].activation == "tanh" else torch.rnn_relu


class LSTM(RecurrentLayer):
    """c_t = f * c_{t-1} + i * g, h_t = o * tanh(c_t): see `RecurrentLayer`. Options: bias, forget_bias, input_bias."""

    cell_type, kernel = LSTMCell, staticmethod(torch.lstm)

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
        if layer > 0:
            x, _ = self._step_by_step(x, state, valid, layer)
        number = layer * self.num_directions
        cell, start = self.cells[number], map_state(lambda each: each[number], state)
        outputs, _ = scan(cell, x, start, valid)
        return cell.gates(x, torch.cat([start.h[:, None], outputs[:, :-1]], dim=1))


class GRU(RecurrentLayer):
    """h_t = (1 - z) * n + z * h_{t-1}: see `RecurrentLayer` and `gru_step`. Option: bias."""

    cell_type, kernel = GRUCell, staticmethod(torch.gru)


class AdditiveAttention(nn.Module):
    """e_ij = v^T tanh(W q_i + U k_j); a_ij = softmax_j(e_ij); c_i = sum_j a_ij k_j.

    Bahdanau et al. 2015, eqs. (5)-(6) and appendix A.1.2, where q is the decoder state s_{i-1}, k the annotations h
    and e the alignment model a(s, h).
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int):
        super().__init__()
        self.q_proj = nn.Linear(query_dim, hidden_dim, bias=False)  # W_a
        self.k_proj = nn.Linear(key_dim, hidden_dim, bias=False)  # U_a
        self.v = nn.Parameter(torch.empty(hidden_dim).uniform_(-1, 1) * hidden_dim**-0.5)  # v_a

    def project_keys(self, keys: Float[Tensor, "B T_k D_k"]) -> Float[Tensor, "B T_k A"]:
        """U k for all keys: it does not depend on the query, so a decoder computes it once per sentence."""
        return self.k_proj(keys)

    def forward(
        self,
        query: Float[Tensor, "B T_q D_q"],
        keys: Float[Tensor, "B T_k D_k"],
        *,
        mask: Shaped[Tensor, "..."] | None = None,
        projected_keys: Float[Tensor, "B T_k A"] | None = None,
    ) -> tuple[Float[Tensor, "B T_q D_k"], Float[Tensor, "B T_q T_k"]]:
        """Returns the context vectors c and the weights a; `mask` (True = may attend) broadcasts to the weights."""
        projected_keys = self.project_keys(keys) if projected_keys is None else projected_keys
        weights = masked_softmax(projected_additive_scores(self.q_proj(query), projected_keys, self.v), mask)
        return weights @ keys, weights


class LuongAttention(nn.Module):
    """score(q, k) = q^T k ("dot"), q^T W k ("general"), q^T W k / sqrt(d_k) ("scaled"); c = sum_j softmax_j(score) k_j.

    Luong et al. 2015, eqs. (7)-(8), where q is the decoder state h_t and k the encoder states; the root is that of
    Vaswani et al. 2017, eq. (1). `attend(q, k, v, mask=...)` of "scaled" may be any scaled dot-product attention.
    Raises ValueError for another `score`, or if "dot" is asked for with unequal widths.
    """

    def __init__(self, query_dim: int, key_dim: int, *, score: str = "general", attend: Callable = attention):
        super().__init__()
        if score not in ("dot", "general", "scaled"):
            raise ValueError(f"score must be 'dot', 'general' or 'scaled', got {score!r}")
        if score == "dot" and query_dim != key_dim:
            raise ValueError(f"dot scores need queries and keys of one width, got {query_dim} and {key_dim}")
        self.attend = attend if score == "scaled" else partial(attention, scale=1.0)
        self.W = None if score == "dot" else nn.Parameter(torch.empty(query_dim, key_dim))
        if self.W is not None:
            nn.init.xavier_uniform_(self.W)

    def forward(
        self,
        query: Float[Tensor, "B T_q D_q"],
        keys: Float[Tensor, "B T_k D_k"],
        *,
        mask: Shaped[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B T_q D_k"], Float[Tensor, "B T_q T_k"]]:
        """Returns the context vectors c and the weights a; `mask` (True = may attend) broadcasts to the weights."""
        query = query if self.W is None else query @ self.W
        both = self.attend(query, keys, torch.cat([keys, identity_like(keys)], dim=-1), mask=mask)
        return both.split([keys.shape[-1], keys.shape[-2]], dim=-1)


def identity_like(keys: Float[Tensor, "*B T_k D"]) -> Float[Tensor, "*B T_k T_k"]:
    """As values for these keys it turns any attention's answers into its weights."""
    return torch.eye(keys.shape[-2], dtype=keys.dtype, device=keys.device).expand(*keys.shape[:-1], -1)
