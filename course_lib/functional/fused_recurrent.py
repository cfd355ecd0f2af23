"""Whole sequences through an RNN, LSTM or GRU at once, with backpropagation through time written by hand.

The same equations as one step after the other (course_lib.functional.recurrent), in about half the time, because
1. the inputs of all steps are projected in one product: only W_hh h_{t-1} has to wait for the step before;
2. the slopes of all gates at all steps are computed at once: what remains of the backward loop is the chain rule;
3. each weight's gradient, a sum over time, is one product at the end.

Sequences are (T, B, D) here: a step is then one contiguous block. `valid` (T, B, 1) is True at real tokens; at the
others a state stays as it is, and so does its gradient. Werbos, "Backpropagation through time: what it does and how to
do it", Proceedings of the IEEE 78(10), 1990.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.nn.functional import linear


def linear_plus(term, x, weight):
    return torch.addmm(term, x, weight.t())


from course_lib.functional.recurrent import ACTIVATIONS, LSTMState, check_activation

# Under autocast, too, a pass keeps to single precision: its steps write into memory that was made before them.
forward_in_single = custom_fwd(device_type="cpu", cast_inputs=torch.float32)
backward_in_single = custom_bwd(device_type="cpu")


def fused_rnn(
    x: Float[Tensor, "T B D"],
    h: Float[Tensor, "B H"],
    W_ih: Float[Tensor, "H D"],
    W_hh: Float[Tensor, "H H"],
    b_ih: Float[Tensor, " H"] | None = None,
    b_hh: Float[Tensor, " H"] | None = None,
    *,
    valid: Bool[Tensor, "T B 1"] | None = None,
    activation: str = "tanh",
) -> tuple[Float[Tensor, "T B H"], Float[Tensor, "B H"]]:
    """`rnn_step` at each step of x; returns all states and the last. Raises ValueError for an unknown activation."""
    check_activation(activation)
    states = FusedRNN.apply(x, h, W_ih, W_hh, _sum(b_ih, b_hh), valid, activation)
    return states, states[-1]


def fused_lstm(
    x: Float[Tensor, "T B D"],
    state: LSTMState,
    W_ih: Float[Tensor, "four_H D"],
    W_hh: Float[Tensor, "four_H H"],
    b_ih: Float[Tensor, " four_H"] | None = None,
    b_hh: Float[Tensor, " four_H"] | None = None,
    *,
    valid: Bool[Tensor, "T B 1"] | None = None,
) -> tuple[Float[Tensor, "T B H"], LSTMState]:
    """`lstm_step` at each step of x; returns all outputs h and the last state."""
    states, c = FusedLSTM.apply(x, *state, W_ih, W_hh, _sum(b_ih, b_hh), valid)
    return states, LSTMState(states[-1], c)


def fused_gru(
    x: Float[Tensor, "T B D"],
    h: Float[Tensor, "B H"],
    W_ih: Float[Tensor, "3*H D"],
    W_hh: Float[Tensor, "3*H H"],
    b_ih: Float[Tensor, " 3*H"] | None = None,
    b_hh: Float[Tensor, " 3*H"] | None = None,
    *,
    valid: Bool[Tensor, "T B 1"] | None = None,
) -> tuple[Float[Tensor, "T B H"], Float[Tensor, "B H"]]:
    """`gru_step` at each step of x; returns all states and the last."""
    states = FusedGRU.apply(x, h, W_ih, W_hh, b_ih, b_hh, valid)
    return states, states[-1]


class FusedRNN(Function):
    """Pascanu et al. 2013, eqs. (3)-(5): d_a = d_h * slope, and d_h of the step before gains W_hh^T d_a."""

    @staticmethod
    @forward_in_single
    def forward(ctx: Any, x, h, W_ih, W_hh, bias, valid, activation):
        inputs, states, steps = _at_all_steps(x, W_ih, bias), _room_behind(h, len(x)), _by_step(valid, len(x))
        for a, keep, old, new in zip(inputs, steps, states[:-1], states[1:], strict=True):
            new.copy_(ACTIVATIONS[activation](linear_plus(a, old, W_hh)))
            _freeze(keep, new, old)
        ctx.save_for_backward(x, W_ih, W_hh, states, valid)
        ctx.activation = activation
        return states[1:]

    @staticmethod
    @backward_in_single
    def backward(ctx: Any, d_states):
        _refuse_second_derivative()
        x, W_ih, W_hh, states, valid = ctx.saved_tensors
        h = states[1:]
        d_a = 1 - h * h if ctx.activation == "tanh" else (h > 0).to(h.dtype)  # as yet the slopes alone
        _silence(valid, d_a)
        dh, W_back = torch.zeros_like(h[0]), W_hh.t()
        for d_out, d_at, keep in _from_the_end(d_states, d_a, _by_step(valid, len(x))):
            dh = dh + d_out
            d_at.mul_(dh)
            dh = _through(d_at, W_back, dh, keep)
        dx = _at_all_steps(d_a, W_ih.t()) if ctx.needs_input_grad[0] else None
        return dx, dh, _outer(d_a, x), _outer(d_a, states[:-1]), _total(ctx, 4, d_a), None, None


class FusedLSTM(Function):
    """The gradient of a cell, d_c, passes a step by a product with f alone: no matrix, no slope of a tanh.

    d_c gains o (1 - tanh^2 c) d_h; then d_i = g i (1 - i) d_c, d_f = c_{t-1} f (1 - f) d_c, d_g = i (1 - g^2) d_c,
    d_o = tanh(c) o (1 - o) d_h are the gradients before the gates' sigmoids and tanh.
    """

    @staticmethod
    @forward_in_single
    def forward(ctx: Any, x, h, c, W_ih, W_hh, bias, valid):
        # tanh(a) = 2 sigmoid(2a) - 1: with the rows of g doubled, one sigmoid serves all gates, and takes less time
        gates, W_step = _at_all_steps(x, _double_g(W_ih), _double_g(bias)), _double_g(W_hh)
        states, cells, steps = _room_behind(h, len(x)), _room_behind(c, len(x)), _by_step(valid, len(x))
        tanh_c = torch.empty_like(states[1:])
        for a, i, f, g, o, keep, h_old, h_new, c_old, c_new, shown in zip(
            gates, *gates.chunk(4, dim=2), steps, states[:-1], states[1:], cells[:-1], cells[1:], tanh_c, strict=True
        ):
            torch.sigmoid(linear_plus(a, h_old, W_step), out=a)
            g.mul_(2).sub_(1)
            torch.mul(f, c_old, out=c_new).addcmul_(i, g)
            torch.mul(c_new, 2, out=shown).sigmoid_().mul_(2).sub_(1)
            torch.mul(o, shown, out=h_new)
            _freeze(keep, h_new, h_old)
            _freeze(keep, c_new, c_old)
        ctx.save_for_backward(x, W_ih, W_hh, gates, states, cells, tanh_c, valid)
        return states[1:], cells[-1]

    @staticmethod
    @backward_in_single
    def backward(ctx: Any, d_states, d_c):
        _refuse_second_derivative()
        x, W_ih, W_hh, gates, states, cells, tanh_c, valid = ctx.saved_tensors
        i, f, g, o = gates.chunk(4, dim=2)
        d_a = torch.empty_like(gates)  # as yet the slopes alone
        slope_i, slope_f, slope_g, slope_o = d_a.chunk(4, dim=2)
        torch.addcmul(i, i, i, value=-1, out=slope_i).mul_(g)
        torch.addcmul(f, f, f, value=-1, out=slope_f).mul_(cells[:-1])
        torch.addcmul(i, torch.mul(i, g, out=slope_g), g, value=-1, out=slope_g)
        torch.addcmul(o, o, o, value=-1, out=slope_o).mul_(tanh_c)
        into_c = o * tanh_c
        torch.addcmul(o, into_c, tanh_c, value=-1, out=into_c)
        _silence(valid, d_a, into_c)
        kept = f if valid is None else torch.where(valid, f, 1.0)
        dh, dc, W_back, width = torch.zeros_like(d_c), d_c.clone(), W_hh.t(), d_c.shape[1]
        d_ifg, d_o = d_a[:, :, : 3 * width].unflatten(2, (3, width)), d_a[:, :, 3 * width :]
        for d_out, d_at, d_ifgt, d_ot, c_slope, f_t, keep in _from_the_end(
            d_states, d_a, d_ifg, d_o, into_c, kept, _by_step(valid, len(x))
        ):
            dh = dh + d_out
            dc.addcmul_(dh, c_slope)
            d_ifgt.mul_(dc[:, None])
            d_ot.mul_(dh)
            dc.mul_(f_t)
            dh = _through(d_at, W_back, dh, keep)
        dx = _at_all_steps(d_a, W_ih.t()) if ctx.needs_input_grad[0] else None
        return dx, dh, dc, _outer(d_a, x), _outer(d_a, states[:-1]), _total(ctx, 5, d_a), None


class FusedGRU(Function):
    """d_n = (1 - z) (1 - n^2) d_h, d_z = (h_{t-1} - n) z (1 - z) d_h, d_r = U_n h_{t-1} r (1 - r) d_n.

    All three are a slope times d_h. The step before gets z d_h, and U^T of (d_r, d_z, r d_n).
    """

    @staticmethod
    @forward_in_single
    def forward(ctx: Any, x, h, W_ih, W_hh, b_ih, b_hh, valid):
        gates, width = _at_all_steps(x, W_ih, b_ih), h.shape[1]
        states, steps = _room_behind(h, len(x)), _by_step(valid, len(x))
        from_h = torch.empty_like(states[1:])  # U_n h_{t-1} + b_n
        for a, keep, old, new, h_n in zip(gates, steps, states[:-1], states[1:], from_h, strict=True):
            z_h = linear(old, W_hh, b_hh)
            h_n.copy_(z_h[:, 2 * width :])
            r_z, n = a[:, : 2 * width], a[:, 2 * width :]
            r, z = r_z.add_(z_h[:, : 2 * width]).sigmoid_().chunk(2, dim=1)
            n.addcmul_(r, h_n).tanh_()
            torch.lerp(n, old, z, out=new)
            _freeze(keep, new, old)
        ctx.save_for_backward(x, W_ih, W_hh, gates, states, from_h, valid)
        return states[1:]

    @staticmethod
    @backward_in_single
    def backward(ctx: Any, d_states):
        _refuse_second_derivative()
        x, W_ih, W_hh, gates, states, from_h, valid = ctx.saved_tensors
        r, z, n = gates.chunk(3, dim=2)
        slope_n = (1 - z) * (1 - n * n)
        d_u = torch.cat([slope_n * from_h * r * (1 - r), (states[:-1] - n) * z * (1 - z), slope_n * r], dim=2)
        _silence(valid, d_u, slope_n)
        dh, W_back, width = torch.zeros_like(z[0]), W_hh.t(), z.shape[2]
        for d_out, d_ut, d_n, z_t, keep in _from_the_end(d_states, d_u, slope_n, z, _by_step(valid, len(x))):
            dh = dh + d_out
            d_ut.unflatten(1, (3, width)).mul_(dh[:, None])
            d_n.mul_(dh)
            back = linear_plus(dh * z_t, d_ut, W_back)
            dh = back if keep is None else torch.where(keep, back, dh)
        d_a = torch.cat([d_u[:, :, : 2 * width], slope_n], dim=2)
        dx = _at_all_steps(d_a, W_ih.t()) if ctx.needs_input_grad[0] else None
        weights = _outer(d_a, x), _outer(d_u, states[:-1])
        return dx, dh, *weights, _total(ctx, 4, d_a), _total(ctx, 5, d_u), None


def _at_all_steps(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b of all steps in one product."""
    return linear(x.flatten(0, 1), weight, bias).view(*x.shape[:2], len(weight))


def _double_g(weight: Tensor | None) -> Tensor | None:
    """The third of four gates' rows doubled."""
    if weight is None:
        return None
    doubled = weight.clone()
    doubled.chunk(4)[2].mul_(2)
    return doubled


def _outer(d_a: Tensor, x: Tensor) -> Tensor:
    """A weight's gradient: the sum over time and batch of d_a x^T."""
    return linear(x.flatten(0, 1).t(), d_a.flatten(0, 1).t()).t()


def _total(ctx: Any, position: int, d_a: Tensor) -> Tensor | None:
    """A bias's gradient, if there is a bias at this position of the arguments."""
    return d_a.sum(dim=(0, 1)) if ctx.needs_input_grad[position] else None


def _sum(b_ih: Tensor | None, b_hh: Tensor | None) -> Tensor | None:
    return b_ih if b_hh is None else b_hh if b_ih is None else b_ih + b_hh


def _room_behind(start: Tensor, count: int) -> Tensor:
    """`start`, followed by room for `count` states."""
    states = start.new_empty(count + 1, *start.shape)
    states[0] = start
    return states


def _by_step(valid: Tensor | None, count: int) -> list[Tensor | None]:
    """`valid` at each step; None where all rows hold a token, and nothing has to be kept back."""
    if valid is None:
        return [None] * count
    return [None if full else keep for full, keep in zip(valid.flatten(1).all(dim=1).tolist(), valid, strict=True)]


def _from_the_end(*sequences: Any) -> Any:
    return zip(*(reversed(list(sequence)) for sequence in sequences), strict=True)


def _freeze(keep: Tensor | None, new: Tensor, old: Tensor) -> None:
    if keep is not None:
        new.copy_(torch.where(keep, new, old))


def _silence(valid: Tensor | None, *slopes: Tensor) -> None:
    """Padding has no part in any gradient."""
    if valid is not None:
        for slope in slopes:
            slope.masked_fill_(~valid, 0.0)


def _through(d_a: Tensor, W_back: Tensor, dh: Tensor, keep: Tensor | None) -> Tensor:
    """The gradient of the state before; a state that stayed as it was passes its own on."""
    back = linear(d_a, W_back)
    return back if keep is None else torch.where(keep, back, dh)


def _refuse_second_derivative() -> None:
    if torch.is_grad_enabled():
        raise RuntimeError(
            "this backward pass is written by hand and has no derivative of its own: "
            "for create_graph=True use the readable twin (readable=True in a layer)"
        )
