import torch

from course_lib.functional.attention import (
    causal_mask,
    combine_masks,
    local_mask,
    padding_mask,
    relative_distance,
    valid_positions,
)


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
