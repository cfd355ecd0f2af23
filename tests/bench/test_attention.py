import pytest
import torch

from course_lib.bench import attention as bench_attention
from course_lib.bench.attention import MASKS, Shape, copy_weights, main, variants
from course_lib.bench.race import Race

TINY = Shape(B=3, T=6, D=8, H=2)


@pytest.mark.parametrize("mask", MASKS)
def test_both_layers_of_the_benchmark_compute_the_same(mask, monkeypatch):
    seen = []
    backward = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: (seen.append(loss.item()), backward(loss)))
    copied = []
    monkeypatch.setattr(bench_attention, "copy_weights", lambda *pair: (copy_weights(*pair), copied.append(pair)))
    runs = variants(TINY, mask)
    gradients = {}
    for name, run in runs.items():
        run()
        ours, theirs = copied[0]
        layer = ours.o_proj if name == "ours" else theirs.out_proj
        gradients[name] = layer.weight.grad.clone()
    torch.testing.assert_close(gradients["theirs"], gradients["ours"], atol=1e-5, rtol=1e-5)
    assert seen == pytest.approx([seen[0]] * 2, abs=1e-4)


@pytest.mark.parametrize(("ours", "code"), [(1.0, 0), (1.1, 1)])
def test_the_benchmark_fails_where_ours_is_slower(ours, code, monkeypatch, capsys):
    monkeypatch.setattr(bench_attention, "SHAPES", (TINY,))
    monkeypatch.setattr(bench_attention, "race", lambda runs: Race(seconds={"ours": [ours], "theirs": [1.0]}))
    assert main() == code
    printed = capsys.readouterr().out
    assert f"{ours:.3f}" in printed and printed.count("MISSED") == 3 * code
    assert all(f"B 3, T 6, D 8, H 2, mask {mask}" in printed for mask in MASKS)
