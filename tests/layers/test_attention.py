from functools import partial

import jaxtyping
import pytest
import torch
from torch import nn

from course_lib.functional.attention import (
    additive_scores,
    attention,
    causal_mask,
    local_mask,
    padding_mask,
    valid_positions,
)
from course_lib.functional.linear_attention import linear_attention
from course_lib.functional.local_attention import local_attention
from course_lib.layers.cache import KVCache
from course_lib.layers.recording import record_attention
from course_lib.layers.recurrent import AdditiveAttention, LuongAttention
from course_lib.layers.transformer import MultiHeadAttention

SIZES = [(1, 5, 12, 3), (2, 7, 16, 1), (3, 9, 20, 4), (1, 1, 6, 2)]  # B, T, D, H


@pytest.fixture
def unchecked_shapes(monkeypatch):
    """Outside of tests nobody checks the annotated shapes: the layer itself has to speak up."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def make_pair(dim, num_heads, *, context_dim=None, bias=True):
    """Our layer and PyTorch's with the same weights, large enough to show faults, in double precision."""
    ours = MultiHeadAttention(dim, num_heads, context_dim=context_dim, bias=bias).double()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.2)
    widths = {"kdim": context_dim, "vdim": context_dim}
    theirs = nn.MultiheadAttention(dim, num_heads, bias=bias, **widths, batch_first=True, dtype=torch.float64)
    renamed = {"out_proj.weight": ours.o_proj.weight}
    inputs = {"q": ours.q_proj, "k": ours.k_proj, "v": ours.v_proj}
    if context_dim is None:
        renamed["in_proj_weight"] = torch.cat([proj.weight for proj in inputs.values()])
    else:
        renamed |= {f"{name}_proj_weight": proj.weight for name, proj in inputs.items()}
    if bias:
        renamed["out_proj.bias"] = ours.o_proj.bias
        renamed["in_proj_bias"] = torch.cat([proj.bias for proj in inputs.values()])
    theirs.load_state_dict(renamed)
    return ours, theirs


def make(dim=12, num_heads=3, **options):
    return MultiHeadAttention(dim, num_heads, **options).double()


def drawn(*shape, requires_grad=False):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=requires_grad)


def same(actual, expected):
    torch.testing.assert_close(actual, expected, atol=1e-12, rtol=0)


def weights_of(attn, *inputs, **arguments):
    """The weights (B, H, T_q, T_k) behind one call of a layer."""
    with record_attention(attn) as record:
        attn(*inputs, **arguments)
    return record.maps()[:, 0]


def assert_same_outputs_and_gradients(ours, theirs, inputs):
    same(ours, theirs)
    weights = torch.randn_like(ours)
    for pair in zip(*(torch.autograd.grad((each * weights).mean(), inputs) for each in (ours, theirs)), strict=True):
        same(*pair)


def make_masks(kind, B, T):
    """The arguments that ask either layer for the same thing."""
    lengths = torch.arange(B) % T + 1
    return {
        "none": ({}, {}),
        "causal": ({"causal": True}, {"attn_mask": ~causal_mask(T), "is_causal": True}),
        "padding": ({"mask": padding_mask(lengths, T)}, {"key_padding_mask": ~valid_positions(lengths, T)}),
        "local": ({"mask": local_mask(T, window=2)[None, None]}, {"attn_mask": ~local_mask(T, window=2)}),
        "causal and padding": (
            {"mask": padding_mask(lengths, T), "causal": True},
            {"attn_mask": ~causal_mask(T), "key_padding_mask": ~valid_positions(lengths, T)},
        ),
    }[kind]


@pytest.mark.parametrize("kind", ["none", "causal", "padding", "local", "causal and padding"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_self_attention_agrees_with_pytorch(sizes, kind):
    B, T, D, H = sizes
    ours, theirs = make_pair(D, H)
    x = drawn(B, T, D, requires_grad=True)
    our_arguments, their_arguments = make_masks(kind, B, T)
    their_output, _ = theirs(x, x, x, need_weights=False, **their_arguments)
    assert_same_outputs_and_gradients(ours(x, **our_arguments), their_output, [x])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("context_dim", [None, 10])
@pytest.mark.parametrize(("T_q", "T_k"), [(4, 7), (7, 4), (1, 3)])
def test_cross_attention_agrees_with_pytorch(T_q, T_k, context_dim, bias):
    ours, theirs = make_pair(12, 3, context_dim=context_dim, bias=bias)
    x, context = drawn(2, T_q, 12, requires_grad=True), drawn(2, T_k, context_dim or 12, requires_grad=True)
    lengths = torch.tensor([T_k, 2])
    their_output, _ = theirs(x, context, context, need_weights=False, key_padding_mask=~valid_positions(lengths, T_k))
    assert_same_outputs_and_gradients(ours(x, context, mask=padding_mask(lengths, T_k)), their_output, [x, context])


@pytest.mark.parametrize(
    "attend", [attention, partial(local_attention, window=2), linear_attention], ids=["full", "local", "linear"]
)
@pytest.mark.parametrize("chunks", [[1] * 8, [3, 1, 4], [8]], ids=str)
def test_cached_attention_equals_uncached(attend, chunks):
    attn, x, cache = make(attend=attend), drawn(2, 8, 12), KVCache(8)
    with torch.no_grad():
        pieces = [attn(piece, causal=True, cache=cache) for piece in x.split(chunks, dim=1)]
        same(torch.cat(pieces, dim=1), attn(x, causal=True))
    assert cache.length == 8


def test_a_cache_keeps_its_memory():
    attn, x, cache = MultiHeadAttention(8, 2), torch.randn(1, 4, 8), KVCache(4)
    with torch.no_grad():
        addresses = {cache.append(*attn.keys_values(x[:, i : i + 1])).k.untyped_storage().data_ptr() for i in range(4)}
    assert len(addresses) == 1


def test_keys_and_values_of_a_context_stand_for_it_and_carry_gradients():
    attn, x, context = make(context_dim=5), drawn(2, 4, 12), drawn(2, 6, 5, requires_grad=True)
    mask = padding_mask(torch.tensor([6, 2]), 6)
    seen = attn.keys_values(context)
    steps = torch.cat([attn(x[:, i : i + 1], seen, mask=mask) for i in range(4)], dim=1)
    assert_same_outputs_and_gradients(steps, attn(x, context, mask=mask), [context])
    same(weights_of(attn, x, seen), weights_of(attn, x, context))


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_equals_full_attention_under_a_local_mask(causal):
    attn, x = make(attend=partial(local_attention, window=2)), drawn(2, 11, 12)
    mask, near = padding_mask(torch.tensor([11, 4]), 11), local_mask(11, window=2)[None, None]
    fast, masked = attn(x, causal=causal), attn(x, causal=causal, mask=mask)
    attn.attend = attention
    same(fast, attn(x, causal=causal, mask=near))
    same(masked, attn(x, causal=causal, mask=mask & near))


def test_a_mask_that_can_be_meant_in_two_ways_and_an_input_without_a_batch_are_named(unchecked_shapes):
    attn, x = MultiHeadAttention(8, 2), torch.randn(4, 4, 8)
    valid = torch.tensor([[True] * 4, [True] * 3 + [False], [True] * 2 + [False] * 2, [True] * 4])
    for rows in (4, 3, 1):  # (B, T) would pass for (T_q, T_k) where B = T: what is right must not depend on B
        for mask in (valid[:rows], causal_mask(4), valid[:rows, None]):
            with pytest.raises(ValueError, match=r"in two ways: .*mask\[None, None\], .*valid\[:, None, None, :\]"):
                attn(x[:rows], mask=mask)
        assert torch.equal(attn(x[:rows], mask=causal_mask(4)[None, None]), attn(x[:rows], causal=True))
    with pytest.raises(ValueError, match=r"got shape \(4, 8\): one row is x\[None\]"):
        attn(x[0])


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_follows_its_equation_in_the_layer_too(causal):
    attn, x = make(attend=linear_attention), drawn(2, 7, 12)
    mask = padding_mask(torch.tensor([7, 4]), 7)
    q, k, v = attn.split(attn.q_proj(x)), *attn.keys_values(x)
    phi_q, phi_k = (torch.where(t > 0, t + 1, t.exp()) for t in (q, k))
    weights = (phi_q @ phi_k.mT).masked_fill(~(mask & causal_mask(7)) if causal else ~mask, 0.0)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    same(attn(x, mask=mask, causal=causal), attn.o_proj((weights @ v).transpose(1, 2).flatten(2)))
    same(weights_of(attn, x, mask=mask, causal=causal), weights)
    with pytest.raises(ValueError, match="the same keys must be hidden from all queries"):
        attn(x, mask=causal_mask(7)[None, None])


@pytest.mark.parametrize("arguments", [{}, {"attend": partial(local_attention, window=1)}], ids=["full", "local"])
def test_the_weights_are_those_that_forward_uses(arguments):
    attn, x = make(scale=0.7, **arguments), drawn(2, 5, 12)
    given = {"mask": padding_mask(torch.tensor([5, 3]), 5), "score_bias": drawn(3, 5, 5), "causal": True}
    weights = weights_of(attn, x, **given)
    same(attn.o_proj((weights @ attn.keys_values(x).v).transpose(1, 2).flatten(2)), attn(x, **given))


def test_a_score_bias_and_a_scale_reach_the_scores():
    attn, x, bias = make(6, 1, scale=1.0), drawn(1, 4, 6), drawn(4, 4)
    heads = attention(*(proj(x) for proj in (attn.q_proj, attn.k_proj, attn.v_proj)), bias=bias, scale=1.0)
    same(attn(x, score_bias=bias), attn.o_proj(heads))


def test_a_query_that_sees_nothing_gets_the_output_bias_and_finite_gradients():
    attn, x = MultiHeadAttention(8, 2), torch.randn(2, 4, 8, requires_grad=True)
    nn.init.normal_(attn.o_proj.bias)
    output = attn(x, mask=padding_mask(torch.tensor([0, 3]), 4))
    torch.testing.assert_close(output[0], attn.o_proj.bias.expand(4, 8), atol=0, rtol=0)
    output.sum().backward()
    assert all(t.grad.isfinite().all() for t in (x, *attn.parameters()))
    assert (x.grad[0] == 0).all() and (x.grad[1] != 0).any()


def test_dropout_acts_in_training_only():
    torch.manual_seed(0)
    attn, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(2, 6, 8)
    assert not torch.equal(attn(x), attn(x))
    attn.attend = partial(local_attention, window=2)
    assert not torch.equal(attn(x), attn(x))
    attn.eval()
    assert torch.equal(attn(x), attn(x))
    attn.attend = attention
    assert torch.equal(attn(x), attn(x))


def test_misuse_of_a_cache_is_named():
    attn, x, cache = MultiHeadAttention(8, 2), torch.randn(2, 3, 8), KVCache(5)
    with pytest.raises(ValueError, match="no_grad"):
        attn(x, cache=cache)
    with torch.no_grad():
        attn(x, cache=cache)
        with pytest.raises(ValueError, match="room for 5 positions, position 6"):
            attn(x, cache=cache)
        with pytest.raises(ValueError, match=r"\(2, 2\), got \(1, 2\)"):
            attn(x[:1, :1], cache=cache)
    assert cache.length == 3


def test_additive_attention_follows_the_paper():
    torch.manual_seed(0)
    layer = AdditiveAttention(3, 5, 7)
    query, keys = torch.randn(2, 4, 3), torch.randn(2, 6, 5)
    context, weights = layer(query, keys)
    scores = additive_scores(query, keys, layer.q_proj.weight, layer.k_proj.weight, layer.v)
    torch.testing.assert_close(weights, scores.softmax(-1))
    torch.testing.assert_close(context[1, 2], sum(weights[1, 2, j] * keys[1, j] for j in range(6)))


def test_additive_attention_may_be_given_its_projected_keys():
    torch.manual_seed(0)
    layer, query, keys = AdditiveAttention(3, 5, 7), torch.randn(2, 1, 3), torch.randn(2, 6, 5)
    for a, b in zip(layer(query, keys), layer(query, keys, projected_keys=layer.project_keys(keys)), strict=True):
        assert torch.equal(a, b)
    other = layer(query, keys, projected_keys=layer.project_keys(keys.flip(1)))
    assert not torch.allclose(other[1], layer(query, keys)[1])


@pytest.mark.parametrize("score", ["dot", "general", "scaled"])
def test_luong_attention_follows_the_paper(score):
    torch.manual_seed(0)
    layer = LuongAttention(5, 5, score=score)
    query, keys = torch.randn(2, 4, 5), torch.randn(2, 6, 5)
    context, weights = layer(query, keys)
    W = torch.eye(5) if score == "dot" else layer.W
    scores = torch.stack([query[1, 2] @ W @ key for key in keys[1]]) / (5**0.5 if score == "scaled" else 1)
    torch.testing.assert_close(weights[1, 2], scores.softmax(-1))
    torch.testing.assert_close(context, weights @ keys)


def test_a_function_of_the_learners_own_attends_in_its_place():
    def looks_at_the_last(q, k, v, mask=None):
        return v[:, -1:].expand(-1, q.shape[1], -1)

    layer = LuongAttention(3, 5, score="scaled", attend=looks_at_the_last)
    query, keys = torch.randn(2, 4, 3), torch.randn(2, 6, 5)
    context, weights = layer(query, keys)
    assert (context == keys[:, -1:]).all() and (weights[..., -1] == 1).all() and (weights[..., :-1] == 0).all()


@pytest.mark.parametrize(
    "layer", [AdditiveAttention(4, 4, 3), LuongAttention(4, 4, score="dot"), LuongAttention(4, 4)], ids=str
)
def test_recurrent_attention_hides_padding_and_survives_an_empty_row(layer):
    torch.manual_seed(0)
    query, keys = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 5, 4, requires_grad=True)
    context, weights = layer(query, keys, mask=valid_positions(torch.tensor([0, 2]), 5)[:, None])
    assert (weights[0] == 0).all() and (context[0] == 0).all()
    assert (weights[1, :, 2:] == 0).all()
    torch.testing.assert_close(weights[1].sum(-1), torch.ones(3))
    context.sum().backward()
    assert query.grad.isfinite().all() and (keys.grad[1, 2:] == 0).all() and (keys.grad[1, :2] != 0).any()
