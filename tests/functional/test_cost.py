import math

import pytest
import torch
from torch import nn

from course_lib.functional import cost
from course_lib.functional.attention import attention, readable_attention
from course_lib.functional.cost import count_flops, fit_slope, layer_cost, median_seconds, saved_bytes
from course_lib.functional.local_attention import local_attention

N, D = 10, 16


def draw(n=N, d=D, batch=2):
    return torch.randn(batch, n, d, requires_grad=True)


def test_table_1_of_the_paper():
    rows = {
        "self-attention": (100**2 * 8, 1, 1),
        "recurrent": (100 * 8**2, 100, 100),
        "convolutional": (5 * 100 * 8**2, 1, math.log(100, 5)),
        "restricted self-attention": (7 * 100 * 8, 1, 100 / 7),
    }
    for kind, wanted in rows.items():
        cost = layer_cost(kind, 100, 8, k=5, r=7)
        assert (cost.operations, cost.sequential_operations, cost.path_length) == pytest.approx(wanted)


def test_a_neighbourhood_is_not_larger_than_the_sequence():
    assert layer_cost("restricted self-attention", 4, 8, r=9) == layer_cost("self-attention", 4, 8)


def test_flops_of_each_layer_are_counted_as_by_hand():
    x = draw()
    recurrent = 2 * 2 * N * (D * D + D * D)  # multiply-add, batch, steps, both matrices of a gate
    cases = [
        (lambda: nn.Linear(D, 3)(x), 2 * 2 * N * D * 3),
        (lambda: nn.Conv1d(D, D, 3, padding=1)(x.mT), 2 * 2 * N * 3 * D * D),
        (lambda: nn.RNN(D, D, batch_first=True)(x), recurrent),
        (lambda: nn.GRU(D, D, batch_first=True)(x), 3 * recurrent),
        (lambda: nn.LSTM(D, D, batch_first=True)(x), 4 * recurrent),
        (lambda: readable_attention(x, x, x), 2 * 2 * 2 * N * N * D),
        (lambda: attention(x[:, None], x[:, None], x[:, None]), 2 * 2 * 2 * N * N * D),
    ]
    for layer, wanted in cases:
        assert count_flops(layer) == wanted


def test_a_backward_pass_is_counted():
    x = draw()[:, None]
    linear, lstm = nn.Linear(D, D), nn.LSTM(D, D, batch_first=True)
    assert count_flops(lambda: linear(x).sum().backward()) == 3 * count_flops(lambda: linear(x))
    assert count_flops(lambda: lstm(x[:, 0])[0].sum().backward()) == 3 * count_flops(lambda: lstm(x[:, 0]))
    # fused attention computes its scores a second time
    forward = count_flops(lambda: attention(x, x, x))
    assert count_flops(lambda: attention(x, x, x).sum().backward()) == 3.5 * forward


def test_operations_grow_with_the_length_as_the_table_says():
    lengths = [64, 128, 256, 512]
    gru, conv = nn.GRU(D, D, batch_first=True), nn.Conv1d(D, D, 3, padding=1)
    layers = {
        "self-attention": lambda x: attention(x[:, None], x[:, None], x[:, None]),
        "recurrent": lambda x: gru(x),
        "convolutional": lambda x: conv(x.mT),
        "restricted self-attention": lambda x: local_attention(x, x, x, window=4),
    }
    for kind, layer in layers.items():
        measured = [count_flops(lambda n=n, layer=layer: layer(draw(n))) for n in lengths]
        table = [layer_cost(kind, n, D).operations for n in lengths]
        assert fit_slope(lengths, measured) == pytest.approx(fit_slope(lengths, table), abs=1e-6)


def test_memory_kept_is_quadratic_for_readable_and_linear_for_fused_and_local_attention():
    lengths = [256, 512, 1024]

    def slope(function):
        kept = []
        for n in lengths:
            x = draw(n, batch=1)[:, None]
            kept.append(saved_bytes(lambda x=x: function(x, x, x), without=[x]))
        return fit_slope(lengths, kept)

    assert slope(readable_attention) > 1.9
    assert slope(attention) == pytest.approx(1, abs=0.05)
    assert slope(lambda q, k, v: local_attention(q, k, v, window=8)) == pytest.approx(1, abs=0.05)


def test_kept_memory_counts_each_storage_once_and_parameters_never():
    x, linear = torch.randn(8, 4), nn.Linear(4, 4)
    assert saved_bytes(lambda: linear(x), without=linear.parameters()) == 8 * 4 * 4
    assert saved_bytes(lambda: linear(x) * linear(x).detach(), without=[*linear.parameters(), x]) == 8 * 4 * 4
    y = torch.randn(8, 4, requires_grad=True)
    assert saved_bytes(lambda: y * y[:2].mean() + y * y) == 8 * 4 * 4 + 4  # y once, and the mean
    assert saved_bytes(lambda: x * x) == 0


def test_slope_is_the_exponent_of_a_power_law():
    x = [1, 2, 4, 8]
    assert fit_slope(x, [3 * value**1.7 for value in x]) == pytest.approx(1.7)
    assert fit_slope([1, 10, 100], [1, 100, 100]) == pytest.approx(1.0)


def test_time_is_the_median_after_a_warm_up(monkeypatch):
    calls, clock = [], [0.0]
    monkeypatch.setattr(cost.time, "perf_counter", lambda: clock[0])

    def function():
        calls.append(None)
        clock[0] += 0.5 if len(calls) in (1, 3) else 0.25  # the warm-up, and one interruption

    assert median_seconds(function, repeats=3, warmup=1) == 0.25
    assert len(calls) == 4


def test_the_largest_tensor_is_what_is_computed_and_no_view_of_what_was_given():
    x, y = torch.randn(6, 5), torch.randn(5, 7)
    assert cost.largest_tensor(lambda: (x @ y).sum()) == 42
    assert cost.largest_tensor(lambda: x.T[:2].sum(dim=1)) == 2
    assert cost.largest_tensor(lambda: [x[i : i + 1] @ y for i in range(6)]) == 7
