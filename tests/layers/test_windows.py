import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.layers import windows
from course_lib.layers.windows import PatchMerging, SwinBlock, WindowAttention

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


@pytest.mark.parametrize("shift", [0, 2])
def test_a_window_larger_than_the_map_is_attention_to_the_whole_map(shift):
    layer = attention(7, shift)
    x = torch.randn(1, 3, 3, 6, dtype=torch.float64)
    small = attention(3)
    small.load_state_dict({k: v for k, v in layer.state_dict().items() if k != "bias_table"}, strict=False)
    inner = layer.bias_table.view(13, 13, 2)[4:9, 4:9].reshape(25, 2)  # offsets from -2 to 2
    small.bias_table = nn.Parameter(inner)
    torch.testing.assert_close(layer(x), small(x), rtol=0, atol=1e-12)
    assert (torch.autograd.functional.jacobian(layer, x).abs().amax((3, 7)) > 0).all()  # every pair of places


@pytest.mark.parametrize("shift", [0, 1])
def test_padding_weighs_on_the_softmax_but_brings_nothing_without_biases(shift):
    """Its keys and values are then zero: what a place gets is what it would get without, times a share below one."""
    layer = attention(3, shift, qkv_bias=False)
    nn.init.zeros_(layer.bias_table)
    nn.init.zeros_(layer.o_proj.bias)
    nn.init.zeros_(layer.q_proj.weight)  # all weights equal
    x = torch.randn(1, 5, 5, 6, dtype=torch.float64)
    given = layer(x)[0]
    first = [(i - shift) // 3 * 3 + shift for i in range(5)]
    for row, column in ((r, c) for r in range(5) for c in range(5)):
        top, left = first[row], first[column]
        seen = x[0, max(top, 0) : top + 3, max(left, 0) : left + 3].reshape(-1, 6)
        places = (min(top + 3, 6) - max(top, 0)) * (min(left + 3, 6) - max(left, 0))  # of them, on the padded map
        expected = layer.o_proj(layer.v_proj(seen).sum(0) / places)
        torch.testing.assert_close(given[row, column], expected, rtol=0, atol=1e-12)


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


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((6, 4, 3), {}, "dim=6, num_heads=4"),
        ((6, 0, 3), {}, "dim=6, num_heads=0"),
        ((6, 2, 3), {"shift": 3}, "below window_size=3, got 3"),
        ((6, 2, 3), {"shift": -1}, "below window_size=3, got -1"),
    ],
)
def test_sizes_that_do_not_fit_together_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        WindowAttention(*arguments, **options)


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
