import pytest
import torch

from course_lib.layers.attention import KeysValues
from course_lib.layers.cache import DecoderCache, count_positions

LEFT_PADDED = torch.tensor([[False, False, True], [True, True, True]])


def tokens(count, rows=2):
    return torch.zeros(rows, count, dtype=torch.long)


def test_positions_count_real_tokens_only():
    valid = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 1]]).bool()
    assert count_positions(valid).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 2, 2], [0, 0, 1, 1, 2]]


def test_without_padding_there_is_no_mask_and_no_table_of_positions():
    cache = DecoderCache(1, 5)
    assert cache.admit(tokens(3)) == (None, None, 0)
    assert cache.admit(tokens(1), torch.ones(2, 1, dtype=torch.bool)) == (None, None, 3)
    assert cache.length == 4


def test_padding_is_remembered_and_not_counted():
    cache = DecoderCache(1, 5)
    first = cache.admit(tokens(3), LEFT_PADDED)
    assert first.mask[:, 0, 0].tolist() == LEFT_PADDED.tolist() and first.start == 0
    assert first.positions.tolist() == [[0, 0, 0], [0, 1, 2]]
    second = cache.admit(tokens(2))
    assert second.mask[:, 0, 0].tolist() == [[False, False, True, True, True], [True] * 5] and second.start == 3
    assert second.positions.tolist() == [[1, 2], [3, 4]]


def test_padding_may_come_after_tokens_without_any():
    cache = DecoderCache(1, 5)
    cache.admit(tokens(2))
    new = cache.admit(tokens(3), LEFT_PADDED)
    assert new.mask[:, 0, 0].tolist() == [[True, True, False, False, True], [True] * 5]
    assert new.positions[:, -1].tolist() == [2, 4]


def test_selected_rows_keep_their_keys_memories_and_padding():
    memory = KeysValues(*torch.randn(2, 2, 1, 3, 4))
    memory_mask = torch.tensor([[True, True, False], [True, True, True]])[:, None, None]
    cache = DecoderCache(1, 5, memories=[memory], memory_mask=memory_mask)
    cache.admit(tokens(3), LEFT_PADDED)
    k, v = torch.randn(2, 2, 1, 3, 4)
    cache.layers[0].append(k, v)
    rows = torch.tensor([1, 0, 1])
    cache.select(rows)
    new = torch.randn(3, 1, 1, 4)
    kept = cache.layers[0].append(new, new)
    assert torch.equal(kept.k[:, :, :3], k[rows]) and torch.equal(kept.v[:, :, :3], v[rows])
    assert torch.equal(cache.memories[0].k, memory.k[rows]) and torch.equal(cache.memories[0].v, memory.v[rows])
    assert torch.equal(cache.memory_mask, memory_mask[rows])
    assert cache.admit(tokens(1, rows=3)).positions.tolist() == [[3], [1], [3]]


def test_selecting_rows_leaves_the_given_memories_as_they_were():
    memories = [KeysValues(*torch.randn(2, 2, 1, 3, 4))]
    before, cache = memories[0].k.clone(), DecoderCache(1, 5, memories=memories)
    cache.select(torch.tensor([1]))
    assert torch.equal(memories[0].k, before) and len(cache.memories[0].k) == 1


def test_what_does_not_fit_is_named():
    cache = DecoderCache(1, 4)
    cache.admit(tokens(3))
    with pytest.raises(ValueError, match="room for 4 tokens, 5 were given"):
        cache.admit(tokens(2))
    assert cache.admit(tokens(1)).start == 3  # what was refused left nothing behind
    with pytest.raises(ValueError, match="pad prompts at the left"):
        DecoderCache(1, 4).admit(tokens(3), ~LEFT_PADDED)
