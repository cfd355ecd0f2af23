import math

import jaxtyping
import pytest
import torch

from course_lib.functional.losses import nt_xent


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


def test_the_length_of_a_projection_does_not_count():
    first, second = views(4, 3)
    scaled = first * torch.tensor([0.1, 1.0, 5.0, 100.0])[:, None]
    torch.testing.assert_close(nt_xent(scaled, second), nt_xent(first, second))


def test_views_that_cannot_be_told_apart_cost_what_a_guess_costs():
    same = torch.ones(6, 3)
    assert nt_xent(same, same).item() == pytest.approx(math.log(2 * 6 - 1))


def test_equal_views_of_images_that_are_orthogonal_cost_little_at_a_low_temperature():
    images = torch.eye(6)
    assert nt_xent(images, images, temperature=0.05).item() < 1e-6
    assert nt_xent(images, images.roll(1, dims=0), temperature=0.05).item() > 10


@pytest.mark.parametrize(("one", "other"), [((4, 3), (5, 3)), ((4, 3), (4, 2)), ((2, 4, 3), (2, 4, 3)), ((4,), (4,))])
def test_views_of_unequal_shapes_are_refused_with_both(one, other, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # outside of tests nobody checks the annotations
    with pytest.raises(ValueError) as refused:
        nt_xent(torch.randn(one), torch.randn(other))
    assert f"must have one shape (B, D), got {one} and {other}" in str(refused.value)


def test_bad_arguments_are_named():
    first, second = views(2, 3)
    with pytest.raises(ValueError, match="two or more, got 1"):
        nt_xent(first[:1], second[:1])
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        nt_xent(first, second, temperature=0.0)
