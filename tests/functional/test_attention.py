import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.attention import (
    additive_scores,
    attention,
    attention_weights,
    causal_mask,
    combine_masks,
    local_mask,
    padding_mask,
    projected_additive_scores,
    readable_attention,
    relative_distance,
    valid_positions,
)
from course_lib.functional.local_attention import local_attention

SHAPES = [(1, 1, 1, 1, 3), (2, 3, 5, 5, 4), (2, 1, 4, 7, 8), (3, 2, 9, 6, 5)]  # B, H, T_q, T_k, d
MASKS = ["none", "causal", "padding", "local", "hidden rows"]


def draw(B, H, T_q, T_k, d, *, dtype=torch.float64, d_v=None):
    torch.manual_seed(0)
    sizes = [(T_q, d), (T_k, d), (T_k, d_v or d)]
    return [torch.randn(B, H, *size, dtype=dtype, requires_grad=True) for size in sizes]


def make_mask(kind, B, T_q, T_k):
    if kind == "none":
        return None
    if kind == "causal":
        return causal_mask(T_q, T_k)
    if kind == "padding":
        return padding_mask(torch.arange(B) % T_k + 1, T_k)
    if kind == "local":
        return local_mask(T_q, T_k, window=1)
    mask = torch.ones(B, 1, T_q, T_k, dtype=torch.bool)
    mask[:, :, ::2] = False
    return mask


def gradients(output, inputs):
    torch.manual_seed(1)
    return torch.autograd.grad((output * torch.randn_like(output)).sum(), inputs, retain_graph=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("with_bias", [False, True])
def test_fused_and_readable_attention_agree(shape, kind, with_bias):
    B, H, T_q, T_k, _ = shape
    inputs = draw(*shape, d_v=7 if kind == "none" else None)
    bias = torch.randn(H, T_q, T_k, dtype=torch.float64, requires_grad=True) if with_bias else None
    options = {"mask": make_mask(kind, B, T_q, T_k), "bias": bias, "scale": 0.3}
    fused, (readable, _) = attention(*inputs, **options), readable_attention(*inputs, **options)
    torch.testing.assert_close(fused, readable, atol=1e-12, rtol=0)
    inputs = [*inputs, bias] if with_bias else inputs
    for a, b in zip(gradients(fused, inputs), gradients(readable, inputs), strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", ["none", "causal", "padding", "local"])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 3), (2, 3, 5, 5, 4), (3, 2, 9, 9, 5)], ids=str)
def test_both_twins_agree_with_pytorch(shape, kind):
    B, _, T_q, T_k, _ = shape
    inputs = draw(*shape, dtype=torch.float32)
    mask = make_mask(kind, B, T_q, T_k)
    wanted = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    for actual in (attention(*inputs, mask=mask), readable_attention(*inputs, mask=mask)[0]):
        torch.testing.assert_close(actual, wanted, atol=1e-6, rtol=0)
        for a, b in zip(gradients(actual, inputs), gradients(wanted, inputs), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("T_q", [1, 2, 6])
def test_causal_with_fewer_queries_places_them_at_the_end(T_q):
    q, k, v = draw(2, 3, 6, 6, 4)
    whole = attention(q, k, v, causal=True)
    for late in (
        attention(q[:, :, -T_q:], k, v, causal=True),
        readable_attention(q[:, :, -T_q:], k, v, causal=True)[0],
    ):
        torch.testing.assert_close(late, whole[:, :, -T_q:], atol=1e-12, rtol=0)


@pytest.mark.parametrize("with_bias", [False, True])
def test_causal_holds_beside_a_mask_and_a_bias(with_bias):
    q, k, v = draw(2, 2, 5, 5, 4)
    mask = padding_mask(torch.tensor([3, 5]), 5)
    bias = torch.randn(5, 5, dtype=torch.float64) if with_bias else None
    actual = attention(q, k, v, mask=mask, bias=bias, causal=True)
    wanted, _ = readable_attention(q, k, v, mask=mask & causal_mask(5), bias=bias)
    torch.testing.assert_close(actual, wanted, atol=1e-12, rtol=0)


@pytest.mark.parametrize("twin", [attention, lambda *a, **kw: readable_attention(*a, **kw)[0]])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_query_that_sees_nothing_gets_zeros_and_passes_none_on(twin, with_bias, dtype):
    q, k, v = draw(2, 2, 4, 5, 3, dtype=dtype)
    bias = torch.randn(4, 5, dtype=dtype, requires_grad=True) if with_bias else None
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[1] = False
    output = twin(q, k, v, mask=mask, bias=bias)
    assert (output[:, :, 1] == 0).all() and (output[:, :, 0] != 0).all()
    inputs = [t for t in (q, k, v, bias) if t is not None]
    grads = gradients(output, inputs)
    assert all(grad.isfinite().all() for grad in grads)
    assert (grads[0][:, :, 1] == 0).all() and (grads[0][:, :, 0] != 0).all()


def test_weights_follow_the_formula_by_hand():
    q, k = torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[2.0, 9.0, 9.0, 9.0], [0.0, 9.0, 9.0, 9.0]])
    e = torch.tensor(1.0).exp()  # (2 - 0) / sqrt(4)
    torch.testing.assert_close(attention_weights(q, k), torch.stack([e / (1 + e), 1 / (1 + e)])[None])


def test_dropout_drops_weights_and_keeps_the_mean():
    torch.manual_seed(0)
    q = k = torch.zeros(1, 1, 2000, 2)
    v = torch.ones(1, 1, 2000, 2)
    dropped = attention(q[:, :, :200], k, v, dropout=0.5)
    assert dropped.std() > 0.005
    assert abs(dropped.mean().item() - 1) < 0.02
    assert attention(q[:, :, :200], k, v).std() < 1e-5


@pytest.mark.parametrize("length", [1, 2, 7, 12])
@pytest.mark.parametrize("window", [0, 1, 3, 5, 20])
@pytest.mark.parametrize("causal", [False, True])
def test_local_attention_is_full_attention_under_a_local_mask(length, window, causal):
    inputs = draw(2, 3, length, length, 4, d_v=5 if window == 3 else None)
    local = local_attention(*inputs, window=window, causal=causal, scale=0.4)
    full = attention(*inputs, mask=local_mask(length, window=window), causal=causal, scale=0.4)
    torch.testing.assert_close(local, full, atol=1e-12, rtol=0)
    for a, b in zip(gradients(local, inputs), gradients(full, inputs), strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


def test_local_attention_works_without_head_and_batch_axes():
    q, k, v = (torch.randn(7, 4, dtype=torch.float64) for _ in range(3))
    torch.testing.assert_close(
        local_attention(q, k, v, window=2), attention(q, k, v, mask=local_mask(7, window=2)), atol=1e-12, rtol=0
    )


def test_additive_scores_are_the_paper_s_loop():
    torch.manual_seed(0)
    q, k, W, U, v = (torch.randn(*s) for s in [(2, 3, 4), (2, 5, 6), (7, 4), (7, 6), (7,)])
    scores = additive_scores(q, k, W, U, v)
    assert scores.shape == (2, 3, 5)
    for b, i, j in [(0, 0, 0), (1, 2, 4), (0, 1, 3)]:
        torch.testing.assert_close(scores[b, i, j], v @ torch.tanh(W @ q[b, i] + U @ k[b, j]))
    torch.testing.assert_close(projected_additive_scores(q @ W.T, k @ U.T, v), scores)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("T_q", "given"), [(6, "mask"), (6, "bias"), (2, "nothing"), (2, "both")])
def test_local_attention_beside_a_mask_a_bias_or_a_cache_is_attention_under_the_local_mask(T_q, given, causal):
    q, k, v = draw(2, 3, T_q, 6, 4)
    mask = padding_mask(torch.tensor([6, 4]), 6) if given in ("mask", "both") else None
    bias = torch.randn(3, T_q, 6, dtype=torch.float64) if given in ("bias", "both") else None
    wanted = combine_masks(mask, local_mask(T_q, 6, window=2))
    found = local_attention(q, k, v, window=2, mask=mask, bias=bias, causal=causal)
    expected = attention(q, k, v, mask=wanted, bias=bias, causal=causal)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_a_bias_of_minus_infinity_for_all_keys_gives_zeros_in_both_twins():
    q, k, v = draw(1, 2, 3, 4, 5)
    bias = torch.zeros(3, 4, dtype=torch.float64)
    bias[1] = float("-inf")
    fused, (readable, weights) = attention(q, k, v, bias=bias), readable_attention(q, k, v, bias=bias)
    torch.testing.assert_close(fused, readable, atol=1e-12, rtol=0)
    assert (weights[:, :, 1] == 0).all() and (readable[:, :, 1] == 0).all()


def rows(mask):
    return ["".join("x" if seen else "." for seen in row) for row in mask.tolist()]


def test_valid_positions_are_the_first_of_each_row():
    assert rows(valid_positions(torch.tensor([0, 2, 3]), 3)) == ["...", "xx.", "xxx"]


def test_padding_is_hidden_from_every_head_and_query():
    mask = padding_mask(torch.tensor([2, 3]), 3)
    assert mask.shape == (2, 1, 1, 3) and mask.dtype == torch.bool
    assert rows(mask[:, 0, 0]) == ["xx.", "xxx"]


def test_causal_mask_hides_the_future():
    assert rows(causal_mask(3)) == ["x..", "xx.", "xxx"]


def test_causal_mask_aligns_the_last_query_with_the_last_key():
    assert rows(causal_mask(2, 4)) == ["xxx.", "xxxx"]
    assert rows(causal_mask(3, 2)) == ["..", "x.", "xx"]


def test_local_mask_sees_window_positions_to_either_side():
    assert rows(local_mask(5, window=1)) == ["xx...", "xxx..", ".xxx.", "..xxx", "...xx"]
    assert rows(local_mask(3, window=0)) == ["x..", ".x.", "..x"]
    assert rows(local_mask(2, 4, window=1)) == [".xxx", "..xx"]


def test_relative_distance_is_key_minus_query():
    assert relative_distance(2, 3).tolist() == [[-1, 0, 1], [-2, -1, 0]]


def test_combined_masks_let_through_what_all_let_through():
    both = combine_masks(causal_mask(3), None, padding_mask(torch.tensor([1, 3]), 3))
    assert both.shape == (2, 1, 3, 3)
    assert rows(both[0, 0]) == ["x..", "x..", "x.."] and rows(both[1, 0]) == ["x..", "xx.", "xxx"]
    assert combine_masks(None, None) is None
