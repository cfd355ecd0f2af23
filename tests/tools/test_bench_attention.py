import pytest
import torch

from course_lib.tools import bench_attention
from course_lib.tools.bench_attention import MASKS, Shape, Timing, contestants, copy_weights, is_clear, main, measure

TINY = Shape(B=3, T=6, D=8, H=2)


@pytest.mark.parametrize("mask", MASKS)
def test_both_layers_of_the_benchmark_compute_the_same(mask, monkeypatch):
    seen = []
    backward = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: (seen.append(loss.item()), backward(loss)))
    copied = []
    monkeypatch.setattr(bench_attention, "copy_weights", lambda *pair: (copy_weights(*pair), copied.append(pair)))
    runs = contestants(TINY, mask)
    gradients = {}
    for name, run in runs.items():
        run()
        ours, theirs = copied[0]
        layer = ours.o_proj if name == "ours" else theirs.out_proj
        gradients[name] = layer.weight.grad.clone()
    for name in ("theirs", "default"):
        torch.testing.assert_close(gradients[name], gradients["ours"], atol=1e-5, rtol=1e-5)
    assert seen == pytest.approx([seen[0]] * 3, abs=1e-4)


def test_the_ratio_is_that_of_typical_rounds(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(bench_attention.time, "perf_counter", lambda: next(clock) ** 2)
    timing = measure(TINY, "none", fewest=4, most=4)
    assert timing.rounds == 4
    # readings 0, 1, 4, 9, ...: the odd rounds begin with ours, the even ones end with it
    times = [(2 * start + 1) for start in range(0, 24, 2)]
    ours, theirs = [times[i] for i in (0, 5, 6, 11)], [times[i] for i in (1, 4, 7, 10)]
    assert timing.ours == (ours[1] + ours[2]) / 2 and timing.theirs == (theirs[1] + theirs[2]) / 2
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    assert timing.ratio == (ratios[1] + ratios[2]) / 2


@pytest.mark.parametrize(("seconds", "clear", "rounds"), [(99, True, 3), (99, False, 7), (-1, False, 3)])
def test_a_race_ends_when_it_is_clear_or_its_time_is_over(seconds, clear, rounds, monkeypatch):
    monkeypatch.setattr(bench_attention, "SECONDS", seconds)
    monkeypatch.setattr(bench_attention, "is_clear", lambda *_: clear)
    assert measure(TINY, "none", fewest=3, most=7).rounds == rounds


def test_a_race_is_clear_when_a_coin_would_hardly_give_its_outcome():
    assert is_clear([1.0] * 21, [2.0] * 21) and is_clear([2.0] * 21, [1.0] * 21)
    assert is_clear([1.0] * 18 + [3.0] * 3, [2.0] * 21)
    assert not is_clear([1.0] * 17 + [3.0] * 4, [2.0] * 21)
    assert not is_clear([1.0, 3.0] * 10, [2.0] * 20)


@pytest.mark.parametrize(("ours", "code", "verdict"), [(1.0, 0, "never slower"), (1.1, 1, "SLOWER somewhere")])
def test_the_benchmark_fails_where_ours_is_slower(ours, code, verdict, monkeypatch, capsys):
    monkeypatch.setattr(
        bench_attention, "measure", lambda *_: Timing(ours=ours, theirs=1.0, default=1.0, ratio=ours, rounds=21)
    )
    assert main() == code
    printed = capsys.readouterr().out
    assert verdict in printed and f"{ours:.3f}" in printed
    assert printed.count("causal") == len(bench_attention.SHAPES)
