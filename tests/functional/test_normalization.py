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


@pytest.mark.parametrize("x", [torch.randn(4, 6) / 100, torch.full((2, 3), 5.0), torch.zeros(2, 3)])
def test_without_gain_and_bias_they_are_pytorchs_with_the_usual_eps(x):
    torch.testing.assert_close(layer_norm(x), nn.functional.layer_norm(x, x.shape[-1:]))
    torch.testing.assert_close(rms_norm(x), nn.functional.rms_norm(x, x.shape[-1:], eps=1e-6))
