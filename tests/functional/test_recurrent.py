import pytest
import torch
from torch import nn

from course_lib.functional import recurrent

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
    torch.testing.assert_close(recurrent.rnn_step(x, h, *weights, activation=activation), cell(x, h))


def test_a_step_of_the_lstm_is_pytorch_s_and_follows_from_its_gates():
    cell, weights, x, h, c = weights_of(nn.LSTMCell(D, H))
    expected_h, expected_c = cell(x, (h, c))
    state = recurrent.lstm_step(x, recurrent.LSTMState(h, c), *weights)
    torch.testing.assert_close(tuple(state), (expected_h, expected_c))
    gates = recurrent.lstm_gates(x, h, *weights)
    torch.testing.assert_close(gates.f * c + gates.i * gates.g, expected_c)
    torch.testing.assert_close(gates.o * expected_c.tanh(), expected_h)


def test_a_step_of_the_gru_is_pytorch_s():
    cell, weights, x, h, _ = weights_of(nn.GRUCell(D, H))
    torch.testing.assert_close(recurrent.gru_step(x, h, *weights), cell(x, h))


@pytest.mark.parametrize("radius", [0.9, 1.0, 1.1])
@pytest.mark.parametrize("kind", ["symmetric", "orthogonal"])
def test_a_recurrent_matrix_has_the_asked_radius(kind, radius):
    matrix = recurrent.recurrent_matrix(8, radius, kind=kind, generator=torch.Generator().manual_seed(0))
    assert torch.linalg.eigvals(matrix).abs().max().item() == pytest.approx(radius, abs=1e-5)
    if kind == "symmetric":
        torch.testing.assert_close(matrix, matrix.T)
    else:
        torch.testing.assert_close(matrix @ matrix.T, radius**2 * torch.eye(8), atol=1e-5, rtol=0)


@pytest.mark.parametrize("radius", [0.9, 1.0, 1.1])
def test_the_gradient_of_a_linear_recurrence_shrinks_or_grows_like_the_radius_to_the_distance(radius):
    torch.manual_seed(0)
    direction = nn.functional.normalize(torch.randn(4, 6), dim=1)
    x = torch.randn(4, 30, 6)
    W = recurrent.recurrent_matrix(6, radius, kind="orthogonal")
    norms = recurrent.gradient_norms(lambda x: recurrent.linear_recurrence(x, W), x, direction)
    torch.testing.assert_close(norms, radius ** torch.arange(30.0), atol=0, rtol=1e-4)
    symmetric = recurrent.recurrent_matrix(6, radius)
    norms = recurrent.gradient_norms(lambda x: recurrent.linear_recurrence(x, symmetric), x, direction)
    powers = torch.stack([(direction @ torch.linalg.matrix_power(symmetric, k)).norm(dim=1).mean() for k in range(30)])
    torch.testing.assert_close(norms, powers, atol=1e-6, rtol=1e-4)


def test_a_linear_recurrence_adds_what_each_input_has_become():
    torch.manual_seed(0)
    W, x = torch.randn(3, 3), torch.randn(2, 4, 3)
    last = sum(torch.linalg.matrix_power(W, 3 - t) @ x[1, t] for t in range(4))
    torch.testing.assert_close(recurrent.linear_recurrence(x, W)[1, 3], last)


def test_gradient_norms_need_no_gradients_outside_and_leave_none_behind():
    W, x = recurrent.recurrent_matrix(3, 0.5).requires_grad_(), torch.randn(2, 4, 3)
    with torch.no_grad():
        norms = recurrent.gradient_norms(lambda x: recurrent.linear_recurrence(x, W), x, torch.ones(2, 3))
    assert norms.shape == (4,) and W.grad is None and not x.requires_grad
    assert (norms[1:] < norms[:-1]).all()
