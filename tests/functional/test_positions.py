import math

import pytest
import torch

from course_lib.functional import positions as codes


def test_even_columns_are_sines_and_odd_ones_cosines_of_the_same_angle():
    table = codes.sinusoidal_positions(50, 8)
    for position in (0, 1, 17, 49):
        for i in range(4):
            angle = position / 10_000 ** (2 * i / 8)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_in_halves_all_sines_come_before_all_cosines():
    paper, halves = codes.sinusoidal_positions(9, 6), codes.sinusoidal_positions(9, 6, halves=True)
    assert torch.equal(halves, torch.cat([paper[:, 0::2], paper[:, 1::2]], dim=1))


def test_far_positions_keep_their_digits():
    last = codes.sinusoidal_positions(100_001, 6)[100_000]
    for i in range(3):
        assert last[2 * i].item() == pytest.approx(math.sin(100_000 / 10_000 ** (2 * i / 6)), abs=1e-6)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 20), (12, 7), (5, 9), (33, 500)])
def test_near_keys_have_buckets_of_their_own_and_far_ones_share_them(num_buckets, max_distance, bidirectional):
    settings = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    direction = num_buckets // 2 if bidirectional else num_buckets
    past = codes.relative_buckets(-torch.arange(1000), **settings).tolist()
    assert past[: direction // 2] == list(range(direction // 2))
    assert past == sorted(past) and set(past[max_distance:]) == {direction - 1}
    future = codes.relative_buckets(torch.arange(1, 1000), **settings).tolist()
    assert future == ([bucket + direction for bucket in past[1:]] if bidirectional else [0] * 999)


def test_shared_buckets_grow_logarithmically():
    buckets = codes.relative_buckets(-torch.arange(300)).tolist()
    # 8 + floor(8 log(d / 8) / log(128 / 8)): at 8 * 2^(i / 2) begins bucket 8 + i
    begins = {bucket: buckets.index(bucket) for bucket in range(16)}
    assert begins == {bucket: bucket for bucket in range(8)} | {
        8 + i: math.ceil(8 * 2 ** (i / 2) - 1e-9) for i in range(8)
    }


def test_a_grid_has_the_code_of_the_column_beside_that_of_the_row():
    grid = codes.sinusoidal_positions_2d(3, 5, 8).view(3, 5, 8)
    line = codes.sinusoidal_positions(5, 4, halves=True)
    for row in range(3):
        for column in range(5):
            assert torch.equal(grid[row, column], torch.cat([line[column], line[row]]))


def keys_cubic(distance):
    """The weight of a sample in bicubic interpolation (Keys 1981, a = -3/4), by its distance."""
    a, s = -0.75, abs(distance)
    if s <= 1:
        return (a + 2) * s**3 - (a + 3) * s**2 + 1
    return a * s**3 - 5 * a * s**2 + 8 * a * s - 4 * a if s < 2 else 0.0


def resized(length, new):
    """The matrix that resizes a row of numbers: sample i stands at i + 1/2, and the ends go on for ever."""
    matrix = torch.zeros(new, length, dtype=torch.float64)
    for out in range(new):
        centre = (out + 0.5) * length / new - 0.5
        for i in range(math.floor(centre) - 1, math.floor(centre) + 3):
            matrix[out, min(max(i, 0), length - 1)] += keys_cubic(centre - i)
    return matrix


@pytest.mark.parametrize(("height", "width"), [(5, 7), (2, 9), (3, 4), (1, 1)])
def test_interpolated_positions_are_bicubic_in_both_directions(height, width):
    positions = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.einsum("ai,bj,ijd->abd", resized(3, height), resized(4, width), positions)
    torch.testing.assert_close(codes.interpolate_positions(positions, height, width), expected)


def test_a_pair_is_turned_by_its_own_angle_at_each_position():
    x, turned = torch.randn(7, 6, dtype=torch.float64), torch.empty(7, 6, dtype=torch.float64)
    for m in range(7):
        for i in range(3):
            angle = m * 10_000 ** (-2 * i / 6)
            matrix = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            turned[m, [i, i + 3]] = torch.tensor(matrix, dtype=torch.float64) @ x[m, [i, i + 3]]
    torch.testing.assert_close(codes.rotate(x, codes.rotary_turns(7, 6).double()), turned, atol=1e-6, rtol=0)


def test_the_first_pair_turns_by_one_radian_and_a_larger_base_slows_the_others():
    slow, fast = codes.rotary_turns(3, 8, base=1e6), codes.rotary_turns(3, 8, base=10.0)
    for turns, base in ((slow, 1e6), (fast, 10.0)):
        angles = torch.atan2(turns[1, 1], turns[1, 0])
        torch.testing.assert_close(angles, torch.tensor([base ** (-i / 4) for i in range(4)]))
    assert torch.equal(slow[0], torch.tensor([[1.0] * 4, [0.0] * 4]))
