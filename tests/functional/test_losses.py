import math

import jaxtyping
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
def test_padding_counts_nowhere(loss):
    logits, target, scored = batch()
    with torch.no_grad():
        changed = torch.where(scored[..., None], logits, 100.0)
        same = loss(changed, target.masked_fill(~scored, 0), smoothing=0.1, scored=scored)
        torch.testing.assert_close(same, loss(logits, target, smoothing=0.1, scored=scored), rtol=0, atol=1e-12)
    (gradient,) = torch.autograd.grad(loss(logits, target, smoothing=0.1, scored=scored), logits)
    assert (gradient[~scored] == 0).all() and (gradient[scored] != 0).all()


def test_the_lowest_loss_is_the_entropy_of_the_targets_and_not_zero():
    best = smoothed_targets(torch.tensor([1]), 5, 0.1).log()
    expected = -(0.92 * math.log(0.92) + 4 * 0.02 * math.log(0.02))
    assert cross_entropy(best, torch.tensor([1]), smoothing=0.1).item() == pytest.approx(expected, abs=1e-6)
    surer = best + torch.tensor([0.0, 5.0, 0.0, 0.0, 0.0])
    assert cross_entropy(surer, torch.tensor([1]), smoothing=0.1).item() > expected + 0.1


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


@pytest.mark.parametrize("loss", [readable_cross_entropy, cross_entropy])
def test_bad_arguments_are_named(loss):
    logits, target, scored = batch()
    with pytest.raises(ValueError, match="from 0 to 1, got 1.5"):
        loss(logits, target, smoothing=1.5)
    with pytest.raises(ValueError, match="no target is scored"):
        loss(logits, target, scored=torch.zeros_like(scored))


@pytest.mark.parametrize("loss", [cross_entropy, readable_cross_entropy])
def test_targets_of_another_shape_are_named(loss, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"logits \(2, 3, 5\) and targets \(3, 2\)"):  # as many, but turned round
        loss(torch.randn(2, 3, 5), torch.zeros(3, 2, dtype=torch.long))
