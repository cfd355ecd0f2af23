import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.losses import cross_entropy, readable_cross_entropy, smoothed_targets


def batch(seed=0):
    """Logits of two sentences of five words, their targets, and the three words that are padding."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 5, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    scored = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    return logits, torch.randint(7, (2, 5), generator=generator), scored


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("padded", [False, True])
def test_readable_and_fused_equal_torch_s_loss_and_gradient(smoothing, padded):
    logits, target, scored = batch()
    ignored = target.masked_fill(~scored, -100) if padded else target
    expected = F.cross_entropy(logits.flatten(0, 1), ignored.flatten(), label_smoothing=smoothing)
    (expected_gradient,) = torch.autograd.grad(expected, logits)
    for loss in (readable_cross_entropy, cross_entropy):
        given = loss(logits, target, smoothing=smoothing, scored=scored if padded else None)
        (gradient,) = torch.autograd.grad(given, logits)
        torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=1e-12)


def test_the_targets_are_those_of_the_paper():
    targets = smoothed_targets(torch.tensor([2, 0]), 4, 0.1)
    expected = torch.tensor([[0.025, 0.025, 0.925, 0.025], [0.925, 0.025, 0.025, 0.025]])
    torch.testing.assert_close(targets, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("loss", [readable_cross_entropy, cross_entropy])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("wrong", [-100, -1, 7, 2**40, torch.iinfo(torch.int64).min + 1])
def test_a_target_that_is_no_class_is_named_where_it_is_scored(loss, smoothing, wrong):
    logits, target, scored = batch()
    target[1, 3] = wrong
    with pytest.raises(ValueError, match=rf"targets must lie in 0\.\.6, got \[{wrong}\]: to leave .* use `scored`"):
        loss(logits, target, smoothing=smoothing)
    expected = loss(logits[scored], target[scored], smoothing=smoothing)
    torch.testing.assert_close(loss(logits, target, smoothing=smoothing, scored=scored), expected, rtol=0, atol=1e-12)
