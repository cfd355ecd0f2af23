import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.losses import cross_entropy, nt_xent, readable_cross_entropy


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


def views(count, dim, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(count, dim, dtype=torch.float64, generator=generator, requires_grad=True)
        for _ in ("first", "second")
    ]


def by_two_loops(first, second, temperature):
    """Chen et al. 2020, eq. (1) and algorithm 1, word by word."""
    z = [row for pair in zip(first, second, strict=True) for row in pair]  # views 2k - 1 and 2k are of one image
    total = 0.0
    for i in range(len(z)):

        def s(k, i=i):
            return torch.dot(z[i], z[k]) / (z[i].norm() * z[k].norm())

        j = i + 1 if i % 2 == 0 else i - 1
        denominator = sum(torch.exp(s(k) / temperature) for k in range(len(z)) if k != i)
        total = total - torch.log(torch.exp(s(j) / temperature) / denominator)
    return total / len(z)


@pytest.mark.parametrize("temperature", [0.07, 0.5, 2.0])
@pytest.mark.parametrize(("count", "dim"), [(2, 3), (5, 4), (9, 16)])
def test_the_loss_and_its_gradients_equal_two_loops(count, dim, temperature):
    first, second = views(count, dim)
    given, expected = nt_xent(first, second, temperature=temperature), by_two_loops(first, second, temperature)
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad(loss, (first, second)) for loss in (given, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)
