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


def make_pair(dim, num_heads, *, dtype=torch.float32, context_dim=None, bias=True):
    """Our layer and PyTorch's with the same weights, large enough to show faults."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(dim, num_heads, context_dim=context_dim, bias=bias).to(dtype)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.2)
    theirs = nn.MultiheadAttention(
        dim, num_heads, kdim=context_dim, vdim=context_dim, bias=bias, batch_first=True, dtype=dtype
    )
    renamed = {"out_proj.weight": ours.o_proj.weight}
    inputs = {"q": ours.q_proj, "k": ours.k_proj, "v": ours.v_proj}
    if context_dim in (None, dim):
        renamed["in_proj_weight"] = torch.cat([proj.weight for proj in inputs.values()])
    else:
        renamed |= {f"{name}_proj_weight": proj.weight for name, proj in inputs.items()}
    if bias:
        renamed["out_proj.bias"] = ours.o_proj.bias
        renamed["in_proj_bias"] = torch.cat([proj.bias for proj in inputs.values()])
    theirs.load_state_dict(renamed)
    return ours, theirs


def local_layer(dim, num_heads, window):
    return MultiHeadAttention(dim, num_heads, attend=partial(local_attention, window=window))


def weights_of(attn, *inputs, **arguments):
    """The weights (B, H, T_q, T_k) behind one call of a layer."""
    with record_attention(attn) as record:
        attn(*inputs, **arguments)
    return record.maps()[:, 0]


def input_gradients_of_theirs(theirs):
    """PyTorch keeps the three input projections in one matrix, unless their widths differ."""
    if theirs.in_proj_weight is not None:
        weights = theirs.in_proj_weight.grad.chunk(3)
    else:
        weights = (theirs.q_proj_weight.grad, theirs.k_proj_weight.grad, theirs.v_proj_weight.grad)
    biases = () if theirs.in_proj_bias is None else theirs.in_proj_bias.grad.chunk(3)
    return weights, biases


def assert_equal_outputs_and_gradients(ours, theirs, our_output, their_output, inputs, *, rows=None, atol=1e-6):
    """Compares what both layers make of `rows` (True = compare), and every gradient of it."""
    rows = torch.ones(our_output.shape[:2], dtype=torch.bool) if rows is None else rows
    torch.testing.assert_close(our_output[rows], their_output[rows], atol=atol, rtol=0)
    torch.manual_seed(1)
    weights = torch.randn_like(our_output[rows])
    grads = []
    for output in (our_output, their_output):
        for tensor in inputs:
            tensor.grad = None
        (output[rows] * weights).mean().backward()
        grads.append([tensor.grad for tensor in inputs])
    their_weights, their_biases = input_gradients_of_theirs(theirs)
    projections = (ours.q_proj, ours.k_proj, ours.v_proj)
    pairs = [
        *zip(*grads, strict=True),
        *zip([proj.weight.grad for proj in projections], their_weights, strict=True),
        (ours.o_proj.weight.grad, theirs.out_proj.weight.grad),
    ]
    if their_biases:
        pairs += zip([proj.bias.grad for proj in projections], their_biases, strict=True)
        pairs.append((ours.o_proj.bias.grad, theirs.out_proj.bias.grad))
    for a, b in pairs:
        torch.testing.assert_close(a, b, atol=atol, rtol=0)


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
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
def test_self_attention_agrees_with_pytorch(sizes, kind, dtype, atol):
    B, T, D, H = sizes
    ours, theirs = make_pair(D, H, dtype=dtype)
    x = torch.randn(B, T, D, dtype=dtype, requires_grad=True)
    our_arguments, their_arguments = make_masks(kind, B, T)
    their_output, _ = theirs(x, x, x, need_weights=False, **their_arguments)
    assert_equal_outputs_and_gradients(ours, theirs, ours(x, **our_arguments), their_output, [x], atol=atol)


@pytest.mark.parametrize("sizes", SIZES[:3], ids=str)
def test_visible_rows_agree_with_pytorch_where_other_rows_see_nothing(sizes):
    B, T, D, H = sizes
    ours, theirs = make_pair(D, H)
    x = torch.randn(B, T, D, requires_grad=True)
    mask = causal_mask(T).clone()
    mask[::3] = False
    rows = mask.any(-1).expand(B, T)
    their_output, _ = theirs(x, x, x, need_weights=False, attn_mask=~mask)
    assert_equal_outputs_and_gradients(ours, theirs, ours(x, mask=mask[None, None]), their_output, [x], rows=rows)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("context_dim", [None, 10])
@pytest.mark.parametrize(("T_q", "T_k"), [(4, 7), (7, 4), (1, 3)])
def test_cross_attention_agrees_with_pytorch(T_q, T_k, context_dim, bias):
    ours, theirs = make_pair(12, 3, context_dim=context_dim, bias=bias)
    x = torch.randn(2, T_q, 12, requires_grad=True)
    context = torch.randn(2, T_k, context_dim or 12, requires_grad=True)
    lengths = torch.tensor([T_k, 2])
    their_output, _ = theirs(x, context, context, need_weights=False, key_padding_mask=~valid_positions(lengths, T_k))
    our_output = ours(x, context, mask=padding_mask(lengths, T_k))
    assert_equal_outputs_and_gradients(ours, theirs, our_output, their_output, [x, context])


@pytest.mark.parametrize("kind", ["none", "causal", "padding", "local"])
def test_weights_agree_with_pytorch(kind):
    ours, theirs = make_pair(12, 3)
    x = torch.randn(2, 5, 12)
    our_arguments, their_arguments = make_masks(kind, 2, 5)
    wanted = theirs(x, x, x, average_attn_weights=False, **their_arguments)[1]
    torch.testing.assert_close(weights_of(ours, x, **our_arguments), wanted, atol=1e-6, rtol=0)


def test_future_tokens_do_not_leak():
    attn, x = MultiHeadAttention(16, 4), torch.randn(1, 6, 16, requires_grad=True)
    attn(x, causal=True)[0, 2].sum().backward()
    assert (x.grad[0, 3:] == 0).all() and (x.grad[0, :3] != 0).any()


@pytest.mark.parametrize("window", [1, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_tokens_outside_the_window_do_not_leak(window, causal):
    attn, x = local_layer(16, 4, window), torch.randn(1, 9, 16, requires_grad=True)
    attn(x, causal=causal)[0, 4].sum().backward()
    seen = (x.grad[0] != 0).any(-1).nonzero().flatten().tolist()
    assert seen == list(range(4 - window, 5 if causal else 4 + window + 1))


def test_self_attention_is_permutation_equivariant_until_it_is_masked():
    torch.manual_seed(0)
    attn, x = MultiHeadAttention(16, 4).double(), torch.randn(2, 7, 16, dtype=torch.float64)
    order = torch.tensor([3, 1, 6, 0, 2, 5, 4])
    torch.testing.assert_close(attn(x[:, order]), attn(x)[:, order], atol=1e-12, rtol=0)
    assert not torch.allclose(attn(x[:, order], causal=True), attn(x, causal=True)[:, order], atol=1e-3)


def test_cross_attention_does_not_depend_on_the_order_of_the_context():
    torch.manual_seed(0)
    attn = MultiHeadAttention(16, 4).double()
    x, context = torch.randn(2, 3, 16).double(), torch.randn(2, 5, 16).double()
    shuffled = context[:, torch.tensor([4, 2, 0, 1, 3])]
    torch.testing.assert_close(attn(x, shuffled), attn(x, context), atol=1e-12, rtol=0)


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("chunks", [[1] * 8, [3, 1, 4], [8]], ids=str)
def test_cached_attention_equals_uncached(window, chunks):
    torch.manual_seed(0)
    attn = MultiHeadAttention(12, 3) if window is None else local_layer(12, 3, window)
    attn, x = attn.double(), torch.randn(2, 8, 12, dtype=torch.float64)
    cache = KVCache(8)
    with torch.no_grad():
        pieces = [attn(piece, causal=True, cache=cache) for piece in x.split(chunks, dim=1)]
        whole = attn(x, causal=True)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, atol=1e-12, rtol=0)
    assert cache.length == 8


def test_a_cache_keeps_its_memory():
    attn, x, cache = MultiHeadAttention(8, 2), torch.randn(1, 4, 8), KVCache(4)
    with torch.no_grad():
        addresses = {cache.append(*attn.keys_values(x[:, i : i + 1])).k.untyped_storage().data_ptr() for i in range(4)}
    assert len(addresses) == 1


def test_keys_and_values_of_a_context_stand_for_it_and_carry_gradients():
    torch.manual_seed(0)
    attn = MultiHeadAttention(12, 3, context_dim=5).double()
    x = torch.randn(2, 4, 12, dtype=torch.float64)
    context = torch.randn(2, 6, 5, dtype=torch.float64, requires_grad=True)
    mask = padding_mask(torch.tensor([6, 2]), 6)
    seen = attn.keys_values(context)
    steps = torch.cat([attn(x[:, i : i + 1], seen, mask=mask) for i in range(4)], dim=1)
    whole = attn(x, context, mask=mask)
    torch.testing.assert_close(steps, whole, atol=1e-12, rtol=0)
    torch.testing.assert_close(
        torch.autograd.grad(steps.square().sum(), context),
        torch.autograd.grad(whole.square().sum(), context),
        atol=1e-12,
        rtol=0,
    )
    torch.testing.assert_close(weights_of(attn, x, seen), weights_of(attn, x, context), atol=1e-12, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_equals_full_attention_under_a_local_mask(causal):
    torch.manual_seed(0)
    attn, x = local_layer(12, 3, 2).double(), torch.randn(2, 11, 12, dtype=torch.float64)
    fast = attn(x, causal=causal)
    masked = attn(x, causal=causal, mask=torch.ones(1, 1, 11, 11, dtype=torch.bool))
    attn.attend = attention
    full = attn(x, causal=causal, mask=local_mask(11, window=2)[None, None])
    torch.testing.assert_close(fast, full, atol=1e-12, rtol=0)
    torch.testing.assert_close(masked, full, atol=1e-12, rtol=0)


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
    torch.manual_seed(0)
    attn = MultiHeadAttention(12, 3, attend=linear_attention).double()
    x = torch.randn(2, 7, 12, dtype=torch.float64, requires_grad=True)
    mask = padding_mask(torch.tensor([7, 4]), 7)
    q, k, v = attn.split(attn.q_proj(x)), *attn.keys_values(x)
    phi_q, phi_k = (torch.where(t > 0, t + 1, t.exp()) for t in (q, k))
    weights = (phi_q @ phi_k.mT).masked_fill(~(mask & causal_mask(7)) if causal else ~mask, 0.0)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    found = attn(x, mask=mask, causal=causal)
    torch.testing.assert_close(found, attn.o_proj((weights @ v).transpose(1, 2).flatten(2)), atol=1e-12, rtol=0)
    torch.testing.assert_close(weights_of(attn, x, mask=mask, causal=causal), weights, atol=1e-12, rtol=0)
    with pytest.raises(ValueError, match="the same keys must be hidden from all queries"):
        attn(x, mask=causal_mask(7)[None, None])


def test_linear_attention_behind_a_cache_equals_the_whole():
    torch.manual_seed(0)
    attn, x = MultiHeadAttention(12, 3, attend=linear_attention).double(), torch.randn(2, 8, 12).double()
    cache = KVCache(8)
    with torch.no_grad():
        pieces = [attn(piece, causal=True, cache=cache) for piece in x.split([3, 1, 4], dim=1)]
        torch.testing.assert_close(torch.cat(pieces, dim=1), attn(x, causal=True), atol=1e-12, rtol=0)


def test_a_window_holds_beside_a_mask():
    torch.manual_seed(0)
    attn, x = local_layer(12, 3, 2).double(), torch.randn(2, 7, 12, dtype=torch.float64)
    mask = padding_mask(torch.tensor([7, 4]), 7)
    actual = attn(x, mask=mask)
    attn.attend = attention
    torch.testing.assert_close(actual, attn(x, mask=mask & local_mask(7, window=2)), atol=1e-12, rtol=0)


@pytest.mark.parametrize("arguments", [{}, {"attend": partial(local_attention, window=1)}], ids=["full", "local"])
def test_the_weights_are_those_that_forward_uses(arguments):
    torch.manual_seed(0)
    attn, x = MultiHeadAttention(12, 3, scale=0.7, **arguments).double(), torch.randn(2, 5, 12).double()
    bias = torch.randn(3, 5, 5, dtype=torch.float64)
    mask = padding_mask(torch.tensor([5, 3]), 5)
    weights = weights_of(attn, x, mask=mask, score_bias=bias, causal=True)
    values = attn.keys_values(x).v
    output = attn.o_proj((weights @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(output, attn(x, mask=mask, score_bias=bias, causal=True), atol=1e-12, rtol=0)


def test_the_weights_of_each_head_and_query_sum_to_one():
    torch.manual_seed(0)
    weights = weights_of(local_layer(12, 3, 2), torch.randn(2, 5, 12), causal=True)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_a_score_bias_and_a_scale_reach_the_scores():
    torch.manual_seed(0)
    attn, x = MultiHeadAttention(6, 1, scale=1.0).double(), torch.randn(1, 4, 6, dtype=torch.float64)
    bias = torch.randn(4, 4, dtype=torch.float64)
    heads = attention(*(proj(x) for proj in (attn.q_proj, attn.k_proj, attn.v_proj)), bias=bias, scale=1.0)
    torch.testing.assert_close(attn(x, score_bias=bias), attn.o_proj(heads), atol=1e-12, rtol=0)


def test_a_query_that_sees_nothing_gets_the_output_bias_and_finite_gradients():
    torch.manual_seed(0)
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


@pytest.mark.parametrize("arguments", [{}, {"causal": True}], ids=str)
def test_gradients_agree_with_finite_differences(arguments):
    torch.manual_seed(0)
    attn = MultiHeadAttention(4, 2).double()
    x = torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: attn(x, **arguments), (x, *attn.parameters()))


def test_heads_cost_no_parameters():
    counts = {sum(p.numel() for p in MultiHeadAttention(24, heads).parameters()) for heads in (1, 2, 8)}
    assert counts == {4 * (24 * 24 + 24)}


def test_bad_sizes_are_named():
    for arguments, words in [
        ({"dim": 10, "num_heads": 3}, "dim=10, num_heads=3"),
        ({"dim": 4, "num_heads": 0}, "num_heads=0"),
        ({"dim": 4, "num_heads": 2, "dropout": 1.0}, "1.0"),
    ]:
        with pytest.raises(ValueError, match=words):
            MultiHeadAttention(**arguments)


@pytest.mark.parametrize("window", [None, 1])
def test_bad_masks_are_named(window):
    attn = MultiHeadAttention(8, 2) if window is None else local_layer(8, 2, window)
    x = torch.randn(3, 4, 8)
    with pytest.raises(ValueError, match="torch.float32"):
        attn(x, mask=torch.zeros(4, 4))
    with pytest.raises(ValueError, match=r"\(3, 1, 1, 5\).*\(3, 2, 4, 4\)"):
        attn(x, mask=torch.ones(3, 1, 1, 5, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"\(5, 4\).*\(3, 2, 4, 4\)"):
        attn(x, score_bias=torch.ones(5, 4))


def test_arguments_that_exclude_each_other_are_named():
    attn, x = MultiHeadAttention(8, 2), torch.randn(1, 4, 8)
    with pytest.raises(ValueError, match="a cache is for self-attention"):
        attn(x, x, cache=KVCache(4))


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


def test_bad_arguments_of_recurrent_attention_are_named(unchecked_shapes):
    with pytest.raises(ValueError, match="'concat'"):
        LuongAttention(4, 4, score="concat")
    with pytest.raises(ValueError, match="4 and 6"):
        LuongAttention(4, 6, score="dot")
    layer, keys = AdditiveAttention(4, 4, 3), torch.randn(2, 5, 4)
    with pytest.raises(ValueError, match="torch.float32"):
        layer(keys, keys, mask=torch.ones(5, 5))
    with pytest.raises(ValueError, match=r"\(2, 5\).*\(2, 3, 5\)"):
        layer(keys[:, :3], keys, mask=torch.ones(2, 5, dtype=torch.bool))
