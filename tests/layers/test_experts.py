from functools import partial

import numpy as np
import pytest
import torch

from course_lib.functional.cost import count_flops
from course_lib.layers.experts import MixtureOfExperts, record_routers, route
from course_lib.models.mixture_gpt import MixtureGPT, MixtureGPTConfig

SIZES = {"vocab_size": 11, "context_length": 8, "dim": 8, "depth": 2, "num_heads": 2, "dropout": 0.0}


def make(experts=4, k=2, *, dim=6, mlp_dim=5):
    torch.manual_seed(0)
    return MixtureOfExperts(dim, mlp_dim, experts, k=k).double()


def tokens(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 3, 6)])
def test_the_output_is_the_sum_of_the_chosen_experts_by_their_gates(k, shape):
    mixture, x = make(k=k), tokens(*shape)
    gates, chosen = route(mixture.router(x), k)
    expected = torch.zeros_like(x)
    for at in np.ndindex(shape[:-1]):
        for gate, expert in zip(gates[at], chosen[at].tolist(), strict=True):
            expected[at] += gate * mixture.experts[expert](x[at])
    torch.testing.assert_close(mixture(x), expected, rtol=0, atol=1e-12)


def test_a_token_costs_k_experts_whatever_their_number():
    x = tokens(20, 6)
    few, many = (count_flops(partial(make(experts=n, k=2), x)) for n in (2, 8))
    assert many - few == 2 * 20 * 6 * (8 - 2)  # the router alone has grown


def test_only_experts_that_are_used_get_a_gradient():
    mixture = make(experts=6, k=1)
    x = tokens(3, 6)
    mixture(x).sum().backward()
    used = set(route(mixture.router(x), 1)[1].flatten().tolist())
    for number, expert in enumerate(mixture.experts):
        changes = sum(weights.grad.abs().sum() for weights in expert.parameters() if weights.grad is not None)
        assert (changes > 0) == (number in used)
    assert mixture.router.weight.grad.abs().sum() > 0


def test_names_of_parameters_and_sizes_that_do_not_fit():
    names = [name for name, _ in make(experts=1, k=1).named_parameters()]
    assert names == ["router.weight", *(f"experts.0.{part}" for part in ("0.weight", "0.bias", "2.weight", "2.bias"))]
    with pytest.raises(ValueError, match="k must be from 1 to the number of experts, 4, got 5"):
        MixtureOfExperts(6, 5, 4, k=5)


def test_routers_are_recorded_in_the_order_of_the_blocks_and_only_inside_the_context():
    model = MixtureGPT(MixtureGPTConfig(**SIZES, num_experts=3, k=2))
    ids = torch.randint(11, (2, 5))
    with record_routers(model) as found:
        model(ids)
    assert [tuple(logits.shape) for logits in found] == [(10, 3), (10, 3)]
    model(ids)
    assert len(found) == 2
