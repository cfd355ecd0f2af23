import numpy as np
import pytest
import torch
from torch import nn

from course_lib.functional.numpy_recurrent import lstm_backward, lstm_forward, rnn_backward, rnn_forward

B, T, D, H = 3, 6, 4, 5


def make(gates):
    """Weights, inputs and states in float64, as NumPy arrays that share memory with tensors which want gradients."""
    torch.manual_seed(0)
    shapes = {
        "W_ih": (gates * H, D),
        "W_hh": (gates * H, H),
        "b": (gates * H,),
        "x": (B, T, D),
        "h0": (B, H),
        "c0": (B, H),
    }
    tensors = {name: (0.7 * torch.randn(shape, dtype=torch.float64)).requires_grad_() for name, shape in shapes.items()}
    return tensors, {name: tensor.detach().numpy() for name, tensor in tensors.items()}


def official(kind, tensors):
    """Outputs of torch.nn with these weights; its second bias is zero."""
    layer = getattr(nn, kind)(D, H, batch_first=True).double()
    parameters = {
        "weight_ih_l0": tensors["W_ih"],
        "weight_hh_l0": tensors["W_hh"],
        "bias_ih_l0": tensors["b"],
        "bias_hh_l0": torch.zeros_like(tensors["b"]),
    }
    state = tuple(tensors[name][None] for name in ("h0", "c0")) if kind == "LSTM" else tensors["h0"][None]
    return torch.func.functional_call(layer, parameters, (tensors["x"], state))


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=0, atol=1e-10)


def test_the_rnn_and_its_gradients_are_those_of_autograd():
    tensors, arrays = make(1)
    states, caches = rnn_forward(*(arrays[name] for name in ("x", "h0", "W_ih", "W_hh", "b")))
    expected, _ = official("RNN", tensors)
    assert_close(states, expected)
    dh = torch.randn(B, T, H, dtype=torch.float64)
    (expected * dh).sum().backward()
    gradients = rnn_backward(dh.numpy(), caches)
    for name in ("x", "h0", "W_ih", "W_hh", "b"):
        assert_close(getattr(gradients, f"d{name}"), tensors[name].grad)
    assert gradients.dc0 is None


def test_the_lstm_and_its_gradients_are_those_of_autograd():
    tensors, arrays = make(4)
    outputs, c, caches = lstm_forward(*(arrays[name] for name in ("x", "h0", "c0", "W_ih", "W_hh", "b")))
    expected, (_, expected_c) = official("LSTM", tensors)
    assert_close(outputs, expected)
    assert_close(c, expected_c[0])
    dh, dc = torch.randn(B, T, H, dtype=torch.float64), torch.randn(B, H, dtype=torch.float64)
    ((expected * dh).sum() + (expected_c[0] * dc).sum()).backward()
    gradients = lstm_backward(dh.numpy(), dc.numpy(), caches)
    for name in ("x", "h0", "c0", "W_ih", "W_hh", "b"):
        assert_close(getattr(gradients, f"d{name}"), tensors[name].grad)


def test_saturated_gates_overflow_nowhere():
    _, arrays = make(4)
    arrays["b"] = arrays["b"] * 1e4
    with np.errstate(all="raise", under="ignore"):
        outputs, c, caches = lstm_forward(*(arrays[name] for name in ("x", "h0", "c0", "W_ih", "W_hh", "b")))
        gradients = lstm_backward(np.ones_like(outputs), np.ones_like(c), caches)
    assert np.isfinite(outputs).all() and np.isfinite(gradients.dW_hh).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_keep_their_precision(dtype):
    _, arrays = make(4)
    inputs = (arrays[name].astype(dtype) for name in ("x", "h0", "c0", "W_ih", "W_hh", "b"))
    outputs, c, caches = lstm_forward(*inputs)
    gradients = lstm_backward(np.ones_like(outputs), np.zeros_like(c), caches)
    assert outputs.dtype == c.dtype == gradients.dx.dtype == gradients.dW_ih.dtype == dtype
    _, arrays = make(1)
    states, caches = rnn_forward(*(arrays[name].astype(dtype) for name in ("x", "h0", "W_ih", "W_hh", "b")))
    gradients = rnn_backward(np.ones_like(states), caches)
    assert states.dtype == gradients.dx.dtype == gradients.dW_ih.dtype == dtype
