import pytest
import torch
from torch import nn

from course_lib.functional import linear
from course_lib.functional.fused_recurrent import fused_gru, fused_lstm, fused_rnn
from course_lib.functional.recurrent import (
    LSTMState,
    gradient_norms,
    gru_step,
    linear_recurrence,
    lstm_gates,
    lstm_step,
    recurrent_matrix,
    rnn_step,
)

B, D, H = 3, 4, 5


def weights_of(cell):
    torch.manual_seed(0)
    cell = cell.double()
    for weight in cell.parameters():
        nn.init.normal_(weight, std=0.5)
    draws = torch.randn(2, B, H, dtype=torch.float64)
    return cell, (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh), torch.randn(B, D).double(), *draws


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_step_of_the_rnn_is_pytorch_s(activation):
    cell, weights, x, h, _ = weights_of(nn.RNNCell(D, H, nonlinearity=activation))
    torch.testing.assert_close(rnn_step(x, h, *weights, activation=activation), cell(x, h))
    with pytest.raises(ValueError, match="tanh, relu, got 'sigmoid'"):
        rnn_step(x, h, *weights, activation="sigmoid")


def test_a_step_of_the_lstm_is_pytorch_s_and_follows_from_its_gates():
    cell, weights, x, h, c = weights_of(nn.LSTMCell(D, H))
    expected_h, expected_c = cell(x, (h, c))
    state = lstm_step(x, LSTMState(h, c), *weights)
    torch.testing.assert_close(tuple(state), (expected_h, expected_c))
    gates = lstm_gates(x, h, *weights)
    torch.testing.assert_close(gates.f * c + gates.i * gates.g, expected_c)
    torch.testing.assert_close(gates.o * expected_c.tanh(), expected_h)


def test_a_step_of_the_gru_is_pytorch_s():
    cell, weights, x, h, _ = weights_of(nn.GRUCell(D, H))
    torch.testing.assert_close(gru_step(x, h, *weights), cell(x, h))


def test_an_open_forget_gate_and_a_closed_input_gate_keep_the_cell():
    bias = torch.cat([torch.full((H,), -50.0), torch.full((H,), 50.0), torch.zeros(2 * H)])
    c = torch.randn(B, H)
    state = LSTMState(torch.zeros(B, H), c)
    for _ in range(100):
        state = lstm_step(torch.randn(B, D), state, torch.zeros(4 * H, D), torch.zeros(4 * H, H), bias)
    assert torch.equal(state.c, c)


@pytest.mark.parametrize("with_bias", [False, True])
def test_whole_sequences_are_one_step_after_the_other(with_bias):
    for cell, step, fused in ((nn.RNNCell, rnn_step, fused_rnn), (nn.GRUCell, gru_step, fused_gru)):
        _, weights, _, h, _ = weights_of(cell(D, H))
        weights = weights if with_bias else weights[:2]
        x = torch.randn(6, B, D).double()
        states, last = fused(x, h, *weights)
        for x_t, state in zip(x, states, strict=True):
            h = step(x_t, h, *weights)
            torch.testing.assert_close(state, h)
        torch.testing.assert_close(last, h)
    _, weights, _, h, c = weights_of(nn.LSTMCell(D, H))
    weights, state = weights if with_bias else weights[:2], LSTMState(h, c)
    outputs, last = fused_lstm(x, state, *weights)
    for x_t, output in zip(x, outputs, strict=True):
        state = lstm_step(x_t, state, *weights)
        torch.testing.assert_close(output, state.h)
    torch.testing.assert_close(tuple(last), tuple(state))


def test_the_backward_pass_leaves_the_gradients_that_it_is_given_as_they_are():
    _, weights, _, h, c = weights_of(nn.LSTMCell(D, H))
    outputs, state = fused_lstm(torch.randn(6, B, D).double(), LSTMState(h, c), *weights)
    given = [torch.ones_like(outputs), torch.ones_like(state.c)]
    torch.autograd.grad([outputs, state.c], weights, given)
    assert all((gradient == 1).all() for gradient in given)


def both_passes(fused, gates, dtype=torch.float32):
    """All states of a layer of 12 units, and the gradients of everything that it takes."""
    generator = torch.Generator().manual_seed(0)
    shapes = (6, 4, 10), (4, 12), (gates * 12, 10), (gates * 12, 12), (gates * 12,), (gates * 12,)
    x, h, *weights = given = [(torch.randn(shape, generator=generator) / 3).to(dtype) for shape in shapes]
    for tensor in given:
        tensor.requires_grad_()
    states = fused(x, LSTMState(h, h) if fused is fused_lstm else h, *weights)[0]
    return [states, *torch.autograd.grad(states.sin().sum(), given)]


each_layer = pytest.mark.parametrize(("fused", "gates"), [(fused_rnn, 1), (fused_lstm, 4), (fused_gru, 3)])


@each_layer
@pytest.mark.parametrize("worth_it", [1, 10**12])
def test_whole_sequences_are_the_same_by_either_matrix_product(fused, gates, worth_it, monkeypatch):
    monkeypatch.setattr(linear, "WORTH_IT", worth_it)
    for single, double in zip(both_passes(fused, gates), both_passes(fused, gates, torch.float64), strict=True):
        torch.testing.assert_close(single.double(), double, atol=1e-5, rtol=1e-5)


@each_layer
@pytest.mark.parametrize("worth_it", [1, 10**12])
def test_under_autocast_whole_sequences_stay_in_single_precision(fused, gates, worth_it, monkeypatch):
    monkeypatch.setattr(linear, "WORTH_IT", worth_it)
    expected = both_passes(fused, gates)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = both_passes(fused, gates)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("radius", [0.9, 1.0, 1.1])
@pytest.mark.parametrize("kind", ["symmetric", "orthogonal"])
def test_a_recurrent_matrix_has_the_asked_radius(kind, radius):
    matrix = recurrent_matrix(8, radius, kind=kind, generator=torch.Generator().manual_seed(0))
    assert torch.linalg.eigvals(matrix).abs().max().item() == pytest.approx(radius, abs=1e-5)
    if kind == "symmetric":
        torch.testing.assert_close(matrix, matrix.T)
    else:
        torch.testing.assert_close(matrix @ matrix.T, radius**2 * torch.eye(8), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("arguments", "message"), [((0, 1.0), "dim=0"), ((3, -1.0), "radius=-1.0")])
def test_impossible_matrices_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        recurrent_matrix(*arguments)
    with pytest.raises(ValueError, match="kind='normal'"):
        recurrent_matrix(3, 1.0, kind="normal")


@pytest.mark.parametrize("radius", [0.9, 1.0, 1.1])
def test_the_gradient_of_a_linear_recurrence_shrinks_or_grows_like_the_radius_to_the_distance(radius):
    torch.manual_seed(0)
    direction = nn.functional.normalize(torch.randn(4, 6), dim=1)
    x = torch.randn(4, 30, 6)
    W = recurrent_matrix(6, radius, kind="orthogonal")
    norms = gradient_norms(lambda x: linear_recurrence(x, W), x, direction)
    torch.testing.assert_close(norms, radius ** torch.arange(30.0), atol=0, rtol=1e-4)
    symmetric = recurrent_matrix(6, radius)
    norms = gradient_norms(lambda x: linear_recurrence(x, symmetric), x, direction)
    powers = torch.stack([(direction @ torch.linalg.matrix_power(symmetric, k)).norm(dim=1).mean() for k in range(30)])
    torch.testing.assert_close(norms, powers, atol=1e-6, rtol=1e-4)


def test_a_linear_recurrence_adds_what_each_input_has_become():
    torch.manual_seed(0)
    W, x = torch.randn(3, 3), torch.randn(2, 4, 3)
    last = sum(torch.linalg.matrix_power(W, 3 - t) @ x[1, t] for t in range(4))
    torch.testing.assert_close(linear_recurrence(x, W)[1, 3], last)


def test_gradient_norms_need_no_gradients_outside_and_leave_none_behind():
    W, x = recurrent_matrix(3, 0.5).requires_grad_(), torch.randn(2, 4, 3)
    with torch.no_grad():
        norms = gradient_norms(lambda x: linear_recurrence(x, W), x, torch.ones(2, 3))
    assert norms.shape == (4,) and W.grad is None and not x.requires_grad
    assert (norms[1:] < norms[:-1]).all()
