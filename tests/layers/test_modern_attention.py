"""Rotary positions, and keys and values that heads share, inside of multi-head attention."""

import pytest
import torch
from torch import nn

from course_lib.functional.attention import attention
from course_lib.layers.cache import KVCache
from course_lib.layers.transformer import MultiHeadAttention, RotaryPositions

DIM, HEADS = 16, 4


def make(**arguments):
    """A layer with large random weights, in double precision."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(DIM, HEADS, **arguments).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)
    return layer


def rotary(base=10_000.0):
    return RotaryPositions(DIM // HEADS, 12, base=base)


def inputs(length=7, rows=2):
    return torch.randn(rows, length, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def repeated(layer):
    """Plain multi-head attention whose key and value heads are the shared ones, each once for every head of a group."""
    plain, group = make(rotary=layer.rotary), HEADS // layer.num_kv_heads
    state = layer.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        heads = state[name].unflatten(0, (layer.num_kv_heads, -1))
        state[name] = heads.repeat_interleave(group, dim=0).flatten(0, 1)
    plain.load_state_dict(state)
    return plain


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("turns", [None, rotary()])
@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_shared_heads_are_heads_repeated_in_their_group(num_kv_heads, turns, causal):
    layer, x = make(num_kv_heads=num_kv_heads, rotary=turns), inputs()
    output, expected = layer(x, causal=causal), repeated(layer)(x, causal=causal)
    torch.testing.assert_close(output, expected, atol=1e-12, rtol=0)
    assert f"num_kv_heads={num_kv_heads}" in str(layer) and "num_kv_heads" not in str(make(num_kv_heads=HEADS))


def test_a_context_s_keys_are_shared_too():
    layer, x = make(num_kv_heads=2), inputs()
    context = inputs(5)
    seen = layer.keys_values(context)
    assert seen.k.shape == (2, 2, 5, 4)
    torch.testing.assert_close(layer(x, seen), repeated(layer)(x, context), atol=1e-12, rtol=0)


@pytest.mark.parametrize("chunks", [1, 3, [5, 1, 2], 8])
@pytest.mark.parametrize("num_kv_heads", [1, 4])
@torch.no_grad()
def test_cached_equals_uncached_with_rotations(num_kv_heads, chunks):
    layer, x, cache = make(num_kv_heads=num_kv_heads, rotary=rotary()), inputs(8), KVCache(8)
    pieces = [layer(piece, causal=True, cache=cache) for piece in x.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), layer(x, causal=True), atol=1e-12, rtol=0)
    assert cache.past.k.shape == (2, num_kv_heads, 8, 4)


def test_rotary_attention_is_attention_of_turned_queries_and_keys_but_not_values():
    layer, x, turn = make(rotary=rotary()), inputs(), rotary().double()
    q, (k, v) = layer.split(layer.q_proj(x)), layer.keys_values(x)
    heads = attention(turn(q), turn(k), v)
    torch.testing.assert_close(layer(x), layer.o_proj(heads.transpose(1, 2).flatten(2)), atol=1e-6, rtol=0)


def test_nothing_is_learned_or_stored_of_rotations():
    turns = rotary()
    assert not list(turns.parameters()) and not turns.state_dict()
    assert make(rotary=turns).state_dict().keys() == make().state_dict().keys()


def test_a_later_start_gives_the_later_turns():
    turns, x = rotary(), torch.randn(2, 3, 7, 4)
    torch.testing.assert_close(turns(x[:, :, 4:], start=4), turns(x)[:, :, 4:])
    assert not torch.allclose(turns(x[:, :, 4:]), turns(x)[:, :, 4:])
