import pytest
import torch

from course_lib.tools import bench_attention
from course_lib.tools.bench_attention import MASKS, Shape, Timing, contestants, copy_weights, main, measure

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


def test_a_shape_is_timed_by_a_race():
    timing = measure(TINY, "none", fewest=4, most=4)
    assert timing.rounds == 4 and min(timing.ours, timing.theirs, timing.default, timing.ratio) > 0


@pytest.mark.parametrize(("ours", "code", "verdict"), [(1.0, 0, "never slower"), (1.1, 1, "SLOWER somewhere")])
def test_the_benchmark_fails_where_ours_is_slower(ours, code, verdict, monkeypatch, capsys):
    monkeypatch.setattr(
        bench_attention, "measure", lambda *_: Timing(ours=ours, theirs=1.0, default=1.0, ratio=ours, rounds=21)
    )
    assert main() == code
    printed = capsys.readouterr().out
    assert verdict in printed and f"{ours:.3f}" in printed
    assert printed.count("causal") == len(bench_attention.SHAPES)
