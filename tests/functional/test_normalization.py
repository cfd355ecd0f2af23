import pytest
import torch
from torch import nn

from course_lib.functional.normalization import layer_norm, rms_norm


@pytest.mark.parametrize("eps", [1e-12, 1e-5, 0.5])
@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 4, 5)])
def test_the_readable_norms_agree_with_pytorch_in_values_and_gradients(shape, eps):
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    gain, bias = (torch.randn(shape[-1], dtype=torch.float64, requires_grad=True) for _ in "gb")
    fused, fused_rms = nn.LayerNorm(shape[-1], eps=eps).double(), nn.RMSNorm(shape[-1], eps=eps).double()
    with torch.no_grad():
        fused.weight.copy_(gain)
        fused.bias.copy_(bias)
        fused_rms.weight.copy_(gain)
    for ours, theirs, ours_of, theirs_of in (
        (layer_norm(x, gain, bias, eps=eps), fused(x), [x, gain, bias], [x, fused.weight, fused.bias]),
        (rms_norm(x, gain, eps=eps), fused_rms(x), [x, gain], [x, fused_rms.weight]),
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        pairs = zip(
            torch.autograd.grad(ours.sin().sum(), ours_of),
            torch.autograd.grad(theirs.sin().sum(), theirs_of),
            strict=True,
        )
        for a, b in pairs:
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_layer_norm_forgets_shift_and_scale_and_rms_norm_scale_alone():
    torch.manual_seed(0)
    x = torch.randn(5, 8, dtype=torch.float64)
    torch.testing.assert_close(layer_norm(3 * x + 7, eps=0.0), layer_norm(x, eps=0.0))
    torch.testing.assert_close(rms_norm(3 * x, eps=0.0), rms_norm(x, eps=0.0))
    assert (rms_norm(x + 7, eps=0.0) - rms_norm(x, eps=0.0)).abs().max() > 0.1
    torch.testing.assert_close(layer_norm(x, eps=0.0).pow(2).mean(-1), torch.ones(5, dtype=torch.float64))


def test_no_row_depends_on_another():
    x = torch.randn(4, 6, requires_grad=True)
    for norm in (layer_norm, rms_norm):
        (grad,) = torch.autograd.grad(norm(x)[1].sin().sum(), x)
        assert (grad[[0, 2, 3]] == 0).all() and (grad[1] != 0).any()


def test_constant_features_stay_finite():
    assert (layer_norm(torch.full((2, 3), 5.0)) == 0).all()
    assert (rms_norm(torch.zeros(2, 3)) == 0).all()
