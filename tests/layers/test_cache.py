import pytest
import torch

from course_lib.functional.recurrent import LSTMState
from course_lib.layers.cache import DecoderCache, KeysValues, KVCache, RecurrentCache, check_left_padded, place

LEFT_PADDED = torch.tensor([[False, False, True], [True, True, True]])


def tokens(count, rows=2):
    return torch.zeros(rows, count, dtype=torch.long)


def test_positions_count_real_tokens_only():
    valid = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 1]]).bool()
    placed = place(tokens(5, rows=3), valid)
    assert placed.positions.tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 2, 2], [0, 0, 1, 1, 2]]
    assert placed.mask[:, 0, 0].tolist() == valid.tolist() and placed.start == 0
    assert place(tokens(5)) == (None, None, 0)


def test_without_padding_there_is_no_mask_and_no_table_of_positions():
    cache = DecoderCache(1, 5)
    assert place(tokens(3), cache=cache) == (None, None, 0)
    assert place(tokens(1), torch.ones(2, 1, dtype=torch.bool), cache) == (None, None, 3)
    assert cache.length == 4


def test_padding_is_remembered_and_not_counted():
    cache = DecoderCache(1, 5)
    first = place(tokens(3), LEFT_PADDED, cache)
    assert first.mask[:, 0, 0].tolist() == LEFT_PADDED.tolist() and first.start == 0
    assert first.positions.tolist() == [[0, 0, 0], [0, 1, 2]]
    second = place(tokens(2), None, cache)
    assert second.mask[:, 0, 0].tolist() == [[False, False, True, True, True], [True] * 5] and second.start == 3
    assert second.positions.tolist() == [[1, 2], [3, 4]]


def test_padding_may_come_after_tokens_without_any():
    cache = DecoderCache(1, 5)
    place(tokens(2), None, cache)
    new = place(tokens(3), LEFT_PADDED, cache)
    assert new.mask[:, 0, 0].tolist() == [[True, True, False, False, True], [True] * 5]
    assert new.positions[:, -1].tolist() == [2, 4]


def test_selected_rows_keep_their_keys_contexts_and_padding():
    context = KeysValues(*torch.randn(2, 2, 1, 3, 4))
    context_mask = torch.tensor([[True, True, False], [True, True, True]])[:, None, None]
    cache = DecoderCache(1, 5)
    layer = cache.layers[0]
    layer.context, layer.context_mask = context, context_mask
    place(tokens(3), LEFT_PADDED, cache)
    k, v = torch.randn(2, 2, 1, 3, 4)
    cache.layers[0].append(k, v)
    rows = torch.tensor([1, 0, 1])
    cache.select(rows)
    new = torch.randn(3, 1, 1, 4)
    kept = cache.layers[0].append(new, new)
    assert torch.equal(kept.k[:, :, :3], k[rows]) and torch.equal(kept.v[:, :, :3], v[rows])
    assert torch.equal(layer.context.k, context.k[rows]) and torch.equal(layer.context.v, context.v[rows])
    assert torch.equal(layer.context_mask, context_mask[rows])
    assert place(tokens(1, rows=3), None, cache).positions.tolist() == [[3], [1], [3]]


def test_selecting_rows_leaves_the_given_context_as_it_was():
    context, cache = KeysValues(*torch.randn(2, 2, 1, 3, 4)), DecoderCache(1, 5)
    before, cache.layers[0].context = context.k.clone(), context
    cache.select(torch.tensor([1]))
    assert torch.equal(context.k, before) and len(cache.layers[0].context.k) == 1


def test_what_does_not_fit_is_named():
    cache = DecoderCache(1, 4)
    place(tokens(3), None, cache)
    with pytest.raises(ValueError, match="room for 4 tokens, 5 were given"):
        place(tokens(2), None, cache)
    assert place(tokens(1), None, cache).start == 3  # what was refused left nothing behind
    with pytest.raises(ValueError, match="pad prompts at the left"):
        place(tokens(3), ~LEFT_PADDED, DecoderCache(1, 4))


def test_a_cache_keeps_the_chosen_rows():
    cache = RecurrentCache(9)
    cache.select(torch.tensor([0]))
    cache.advance(LSTMState(torch.arange(6.0).view(1, 3, 2), torch.arange(6.0).view(1, 3, 2) + 10), 4)
    cache.select(torch.tensor([2, 2, 0]))
    assert cache.length == 4 and cache.max_length == 9
    assert cache.state.h[0].tolist() == [[4, 5], [4, 5], [0, 1]] and cache.state.c[0, 2].tolist() == [10, 11]


def test_prompts_must_end_in_a_real_token():
    check_left_padded(None)
    check_left_padded(torch.tensor([[False, True], [True, True]]))
    with pytest.raises(ValueError, match="row 1 ends in padding"):
        check_left_padded(torch.tensor([[True, True], [True, False]]))


def test_what_is_kept_can_be_looked_at():
    cache, k, v = KVCache(5), *torch.randn(2, 3, 2, 4, 1)
    assert cache.past is None
    cache.append(k[:, :, :3], v[:, :, :3])
    assert torch.equal(cache.past.k, k[:, :, :3]) and torch.equal(cache.past.v, v[:, :, :3])
