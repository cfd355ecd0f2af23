from functools import partial
from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules

import pytest
import torch
import torch.nn.functional as F

from course_lib import functional
from course_lib.functional.attention import attention, padding_mask
from course_lib.functional.linear_attention import (
    causal_sums,
    elu_features,
    first_state,
    linear_attention,
    linear_step,
    readable_linear_attention,
)
from course_lib.functional.local_attention import local_attention
from course_lib.models.gpt import GPT, GPTConfig


def inputs(num_queries=7, num_keys=None, *, batch=(2, 3), d_k=4, d_v=5):
    generator = torch.Generator().manual_seed(0)
    shapes = ((num_queries, d_k), (num_keys or num_queries, d_k), (num_keys or num_queries, d_v))
    return [2 * torch.randn(*batch, *shape, generator=generator, dtype=torch.float64) for shape in shapes]


def by_steps(q, k, v):
    state, outputs = first_state(k[..., 0, :], v[..., 0, :]), []
    for i in range(q.shape[-2]):
        output, state = linear_step(q[..., i, :], k[..., i, :], v[..., i, :], state)
        outputs.append(output)
    return torch.stack(outputs, dim=-2), state


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_features_are_elu_plus_one_and_stay_positive_where_that_is_rounded_to_zero():
    x = torch.linspace(-8, 8, 101, dtype=torch.float64)
    torch.testing.assert_close(elu_features(x), F.elu(x) + 1, rtol=1e-10, atol=0)
    far = torch.tensor([-20.0, -50.0])
    assert (F.elu(far) + 1 == 0).all() and (elu_features(far) > 0).all()


def test_two_keys_by_hand():
    q, k = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [2.0]])  # phi: 1, 2 and 1, 3
    v = torch.tensor([[4.0], [8.0]])
    same(linear_attention(q, k, v), torch.tensor([[7.0], [7.0]]))  # (1 x 4 + 3 x 8) / 4
    same(linear_attention(q, k, v, causal=True), torch.tensor([[4.0], [7.0]]))
    step, state = linear_step(q[1], k[1], v[1], linear_step(q[0], k[0], v[0], first_state(k[0], v[0]))[1])
    assert step.tolist() == [7.0] and state.s.tolist() == [[28.0]] and state.z.tolist() == [4.0]


@pytest.mark.parametrize("length", [1, 3, 4, 9])
@pytest.mark.parametrize("block", [1, 4, 32])
def test_the_table_the_sums_and_the_recurrence_are_equal(length, block):
    q, k, v = inputs(length)
    expected, weights = readable_linear_attention(q, k, v, causal=True)
    same(weights.sum(dim=-1), torch.ones(2, 3, length).double())
    same(linear_attention(q, k, v, causal=True, block=block), expected)
    same(by_steps(q, k, v)[0], expected)
    same(linear_attention(q, k, v), readable_linear_attention(q, k, v)[0])


@pytest.mark.parametrize("num_queries", [1, 2, 5])
def test_fewer_queries_than_keys_stand_at_the_end_as_behind_a_cache(num_queries):
    q, k, v = inputs(9)
    whole = linear_attention(q, k, v, causal=True, block=4)
    same(linear_attention(q[..., -num_queries:, :], k, v, causal=True, block=4), whole[..., -num_queries:, :])


@pytest.mark.parametrize("causal", [False, True])
def test_hidden_keys_count_for_nothing_and_who_sees_none_gets_zeros_with_finite_gradients(causal):
    q, k, v = (each.requires_grad_() for each in inputs())
    mask = padding_mask(torch.tensor([5, 0]), 7)
    found = linear_attention(q, k, v, mask=mask, causal=causal)
    same(found, readable_linear_attention(q, k, v, mask=mask, causal=causal)[0])
    assert (found[1] == 0).all()
    for gradient in torch.autograd.grad(found.square().sum(), (q, k, v)):
        assert gradient.isfinite().all() and (gradient[1] == 0).all()
    alone = linear_attention(*(each[:1, :, :5] for each in (q, k, v)), causal=causal)
    same(found[:1, :, :5], alone)


def test_keys_so_far_off_that_their_features_are_zero_give_zeros_and_not_nan():
    q, k, v = torch.randn(3, 4), torch.full((3, 4), -1000.0), torch.randn(3, 2)
    for found in (linear_attention(q, k, v), linear_attention(q, k, v, causal=True), by_steps(q, k, v)[0]):
        assert (found == 0).all()


def gpt_with(attend):
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=11, context_length=8, dim=8, depth=2, num_heads=2, dropout=0.0)).double().eval()
    for block in model.blocks:
        block.attn.attend = attend
    return model


@torch.no_grad()
@pytest.mark.parametrize("attend", [linear_attention, partial(local_attention, window=2)], ids=["linear", "local"])
def test_a_gpt_reads_and_writes_with_it(attend):
    model, tokens = gpt_with(attend), torch.randint(11, (2, 8), generator=torch.Generator().manual_seed(0))
    logits, changed = model(tokens), tokens.clone()
    assert not torch.allclose(logits, gpt_with(attention)(tokens))
    changed[:, 5:] = 0
    same(model(changed)[:, :5], logits[:, :5])
    cache = model.new_cache(8)
    for part in tokens[:, :4], tokens[:, 4:5], tokens[:, 5:]:
        found = model.next_logits(part, cache)
    same(found, logits[:, -1])


def test_a_public_name_is_one_function_of_the_floor():
    """Two functions of one name differ at the edges, and whoever imports one believes to have the other."""
    homes = {}
    for found in iter_modules(functional.__path__):
        module = import_module(f"{functional.__name__}.{found.name}")
        for name, value in vars(module).items():
            if isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                homes.setdefault(name, []).append(found.name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_large_keys_later_in_a_block_take_no_digits_from_what_came_before():
    q, k, v = (each.abs().float() for each in inputs(64, batch=()))
    k[33:] *= 1e6
    exact, single = (
        causal_sums(*(each.to(number) for each in (q, k, v)), 32) for number in (torch.float64, torch.float32)
    )
    torch.testing.assert_close(single[32].double(), exact[32], rtol=1e-6, atol=0)
