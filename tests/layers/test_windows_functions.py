import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.layers.windows import (
    cyclic_shift,
    relative_position_index,
    shifted_window_mask,
    window_merge,
    window_partition,
)

sizes = st.integers(1, 4)


@settings(max_examples=25, deadline=None)
@given(down=sizes, across=sizes, size=sizes)
def test_windows_and_their_places_go_row_by_row_and_merging_undoes_cutting(down, across, size):
    x = torch.rand(2, down * size, across * size, 3)
    windows = window_partition(x, size)
    assert windows.shape == (2, down * across, size**2, 3)
    for window in range(down * across):
        for place in range(size**2):
            row = window // across * size + place // size
            column = window % across * size + place % size
            assert torch.equal(windows[:, window, place], x[:, row, column])
    assert torch.equal(window_merge(windows, down * size, across * size), x)


@pytest.mark.parametrize(("height", "width", "size"), [(6, 7, 2), (5, 8, 4), (4, 4, 0)])
def test_a_map_that_is_no_whole_number_of_windows_is_named(height, width, size):
    with pytest.raises(ValueError, match=f"{height} x {width} .* {size} x {size}"):
        window_partition(torch.zeros(1, height, width, 1), size)


@pytest.mark.parametrize(
    ("count", "area", "height", "width"), [(6, 4, 4, 4), (4, 5, 4, 5), (3, 4, 4, 3), (4, 4, 1, 16)]
)
def test_windows_of_another_map_are_refused(count, area, height, width):
    with pytest.raises(ValueError, match=f"{count} windows of {area} places do not make a map of {height} x {width}"):
        window_merge(torch.zeros(1, count, area, 1), height, width)


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_what_leaves_at_the_top_left_comes_in_at_the_bottom_right(shift):
    x = torch.rand(2, 4, 6, 3)
    shifted = cyclic_shift(x, shift)
    for row in range(4):
        for column in range(6):
            assert torch.equal(shifted[:, row, column], x[:, (row + shift) % 4, (column + shift) % 6])
    assert torch.equal(cyclic_shift(shifted, -shift), x)


@settings(max_examples=25, deadline=None)
@given(down=sizes, across=sizes, size=sizes, data=st.data())
def test_who_may_attend_are_the_places_of_one_displaced_window(down, across, size, data):
    """Figure 2, on the right: a grid of windows displaced by the shift, cut off at the edges, cuts the map."""
    shift = data.draw(st.integers(0, size - 1))
    height, width = down * size, across * size
    mask = shifted_window_mask(height, width, size, shift)
    place = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij"), dim=-1)
    before = window_partition(cyclic_shift(place[None], shift), size)[0]  # (nW, M2, 2)
    for window in range(down * across):
        for query in range(size**2):
            for key in range(size**2):
                cells = (before[window, [query, key]] - shift).div(size, rounding_mode="floor")
                assert mask[window, query, key] == bool((cells[0] == cells[1]).all())
    cells = (before - shift).div(size, rounding_mode="floor").flatten(0, 1)
    number = torch.arange(down * across).repeat_interleave(size**2)
    homes = {(*cell, window) for cell, window in zip(cells.tolist(), number.tolist(), strict=True)}
    assert len(homes) == len({tuple(cell) for cell in cells.tolist()})  # no displaced window is torn apart


@pytest.mark.parametrize("shift", [-1, 3])
def test_a_shift_out_of_range_is_named(shift):
    with pytest.raises(ValueError, match=f"shifted by 0 to 2 places, got {shift}"):
        shifted_window_mask(6, 6, 3, shift)


@pytest.mark.parametrize(("size", "table_size"), [(1, None), (3, None), (2, 2), (2, 5), (4, 7)])
def test_a_pair_of_places_finds_the_row_of_its_offset(size, table_size):
    largest = table_size or size
    offsets = range(1 - largest, largest)
    rows = [(down, right) for down in offsets for right in offsets]  # of the table
    index = relative_position_index(size, table_size)
    for query in range(size**2):
        for key in range(size**2):
            down, right = query // size - key // size, query % size - key % size
            assert rows[index[query, key]] == (down, right)


@pytest.mark.parametrize("size", [0, 4])
def test_a_window_that_the_table_does_not_know_is_named(size):
    with pytest.raises(ValueError, match=f"windows of 1 to 3, got one of {size}"):
        relative_position_index(size, 3)
