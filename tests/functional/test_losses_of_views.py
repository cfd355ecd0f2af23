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
