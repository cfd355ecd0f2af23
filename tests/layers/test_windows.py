import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.layers import windows
from course_lib.layers.windows import (
    DropPath,
    PatchMerging,
    SwinBlock,
    WindowAttention,
    cyclic_shift,
    relative_position_index,
    shifted_window_mask,
    window_merge,
    window_partition,
)

SIZES = {  # height, width, window, shift
    "windows that fit": (4, 6, 2, 0),
    "shifted": (6, 9, 3, 1),
    "shifted by half of an even window": (8, 4, 4, 2),  # as high as two windows, as wide as one: not shifted
    "padded": (5, 7, 3, 0),
    "padded and shifted": (5, 7, 3, 1),
    "padded in one direction, shifted": (6, 5, 4, 2),
    "window as large as the map": (3, 3, 3, 1),
    "window larger than the map": (2, 2, 5, 2),
    "window larger than one side": (2, 5, 3, 1),
}
each_size = pytest.mark.parametrize(("height", "width", "size", "shift"), SIZES.values(), ids=SIZES)


def attention(size, shift=0, *, dim=6, num_heads=2, **options):
    """A layer with large random weights, in double precision."""
    torch.manual_seed(0)
    return filled(WindowAttention(dim, num_heads, size, shift=shift, **options))


def filled(module):
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double().eval()


def one_by_one(layer, x):
    """Each query for itself: it looks at all places of its displaced window, on the map or, as zeros, beyond it."""
    height, width, dim = x.shape
    largest, shift, d = layer.window_size, layer.shift, dim // layer.num_heads
    size = min(height, width, largest)
    shift = shift if min(height, width) > largest else 0
    down, across = -(-height // size) * size, -(-width // size) * size
    x = F.pad(x, (0, 0, 0, across - width, 0, down - height))
    q, k, v = (proj(x) for proj in (layer.q_proj, layer.k_proj, layer.v_proj))
    table = layer.bias_table.view(2 * largest - 1, 2 * largest - 1, -1)

    def window(row, column):
        return (row - shift) // size, (column - shift) // size

    def places(home):
        return [(r, c) for r in range(down) for c in range(across) if window(r, c) == home]

    rows = []
    for row, column in ((r, c) for r in range(height) for c in range(width)):
        heads = []
        for head in range(layer.num_heads):
            part, keys = slice(head * d, (head + 1) * d), places(window(row, column))
            scores = [
                q[row, column, part] @ k[r, c, part] / d**0.5
                + table[row - r + largest - 1, column - c + largest - 1, head]
                for r, c in keys
            ]
            weights = torch.stack(scores).softmax(0)
            heads.append(sum(weight * v[r, c, part] for weight, (r, c) in zip(weights, keys, strict=True)))
        rows.append(layer.o_proj(torch.cat(heads)))
    return torch.stack(rows).view(height, width, dim)


@pytest.mark.parametrize("learned", [True, False], ids=["training", "in use"])
@each_size
def test_each_place_attends_to_its_displaced_window(height, width, size, shift, learned):
    layer = attention(size, shift)
    x = torch.randn(2, height, width, 6, dtype=torch.float64)
    with torch.set_grad_enabled(learned):
        given = layer(x)
        for one, expected in zip(given, x, strict=True):
            torch.testing.assert_close(one, one_by_one(layer, expected), rtol=0, atol=1e-12)


@each_size
def test_gradients_are_those_of_one_place_at_a_time(height, width, size, shift):
    layer = attention(size, shift)
    x = torch.randn(height, width, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(height, width, 6, dtype=torch.float64)
    inputs = (x, *layer.parameters())
    given = torch.autograd.grad((layer(x[None])[0] * weight).sum(), inputs)
    expected = torch.autograd.grad((one_by_one(layer, x) * weight).sum(), inputs)
    for one, other in zip(given, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


def test_what_was_computed_in_inference_mode_does_not_spoil_a_later_training():
    windows.hidden_pairs.cache_clear()
    windows.position_index.cache_clear()
    layer, x = attention(2, 1), torch.randn(1, 4, 4, 6, dtype=torch.float64)
    with torch.inference_mode():
        before = layer(x)
    after = layer(x)
    after.sum().backward()
    torch.testing.assert_close(after.detach(), before.clone(), rtol=0, atol=1e-12)
    assert layer.bias_table.grad.abs().sum() > 0


def test_sizes_that_change_from_call_to_call_do_not_disturb_each_other():
    layer = attention(3, 1)
    maps = [torch.randn(1, *size, 6, dtype=torch.float64) for size in ((6, 9), (2, 2), (5, 7), (9, 6))]
    first = [layer(x) for x in maps]
    for x, expected in reversed(list(zip(maps, first, strict=True))):
        assert torch.equal(layer(x), expected)


def test_without_a_bias_only_the_last_projection_has_one():
    names = [name for name, _ in attention(2, qkv_bias=False).named_parameters() if name.endswith(".bias")]
    assert names == ["o_proj.bias"]


def test_a_block_follows_its_equation():
    block = filled(SwinBlock(WindowAttention(6, 2, 3, shift=1), 6, 10))
    x = torch.randn(2, 6, 6, 6, dtype=torch.float64)
    middle = block.attn(block.norm1(x)) + x
    torch.testing.assert_close(block(x), block.ffn(block.norm2(middle)) + middle, rtol=0, atol=1e-12)


def test_stochastic_depth_leaves_out_either_branch():
    torch.manual_seed(0)
    block = filled(SwinBlock(WindowAttention(6, 2, 3), 6, 10, drop_path=0.5)).train()
    x = torch.randn(1, 3, 3, 6, dtype=torch.float64).expand(64, -1, -1, -1)
    first = block.attn(block.norm1(x[:1])) * 2
    outcomes = []
    for branch in (torch.zeros_like(first), first):
        middle = x[:1] + branch
        outcomes += [middle, middle + block.ffn(block.norm2(middle)) * 2]
    given = block(x)
    distance = torch.stack([(given - outcome).abs().amax((1, 2, 3)) for outcome in outcomes])
    assert (distance.amin(0) < 1e-12).all() and set(distance.argmin(0).tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 6), (4, 3), (1, 1)])
def test_merging_joins_four_neighbours_column_by_column(height, width):
    merging = filled(PatchMerging(3))
    x = torch.randn(2, height, width, 3, dtype=torch.float64)
    given = merging(x)
    assert given.shape == (2, (height + 1) // 2, (width + 1) // 2, 6)
    zeros = torch.zeros(2, 3, dtype=torch.float64)
    for row in range(0, height, 2):
        for column in range(0, width, 2):
            four = [
                x[:, row + down, column + right] if row + down < height and column + right < width else zeros
                for right in (0, 1)
                for down in (0, 1)
            ]
            expected = merging.norm(torch.cat(four, dim=1)) @ merging.proj.weight.T
            torch.testing.assert_close(given[:, row // 2, column // 2], expected, rtol=0, atol=1e-12)


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


def test_in_training_whole_examples_are_dropped_and_the_others_made_up_for_it():
    torch.manual_seed(0)
    x = torch.rand(4000, 2, 3) + 1
    kept = DropPath(0.2).train()(x)
    dropped = (kept == 0).flatten(1)
    assert torch.equal(dropped.all(1), dropped.any(1))
    torch.testing.assert_close(kept[~dropped.any(1)], x[~dropped.any(1)] / 0.8)
    assert 0.17 < dropped.any(1).float().mean() < 0.23


def test_in_use_and_at_rate_zero_nothing_is_dropped():
    x = torch.rand(50, 3)
    assert torch.equal(DropPath(0.9).eval()(x), x)
    assert torch.equal(DropPath(0.0).train()(x), x)


def test_a_dropped_branch_gets_no_gradient():
    torch.manual_seed(0)
    x = torch.rand(20, 3, requires_grad=True)
    y = DropPath(0.5).train()(x)
    y.sum().backward()
    assert torch.equal(x.grad == 0, y == 0) and (y == 0).any() and (y != 0).any()
