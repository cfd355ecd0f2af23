import pytest
import torch

from course_lib.layers.recurrent import RNN
from course_lib.tools import bench_recurrent
from course_lib.tools.bench_recurrent import LAYERS, SHAPES, Shape, contestants, copy_weights, main, rows
from course_lib.tools.race import Race

TINY = Shape(B=3, T=5, D=4, layers=2)


@pytest.mark.parametrize("kind", LAYERS)
def test_all_layers_of_the_benchmark_compute_the_same(kind, monkeypatch):
    seen = []
    backward = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: (seen.append(loss.item()), backward(loss)))
    for run in contestants(kind, TINY).values():
        run()
    assert len(seen) == 3 and seen == pytest.approx([seen[0]] * 3, abs=1e-4) and abs(seen[0]) > 1e-2


def test_weights_find_their_names_in_both_directions():
    torch.manual_seed(0)
    ours = RNN(3, 4, num_layers=2, bidirectional=True)
    theirs = torch.nn.RNN(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    copy_weights(ours, theirs)
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0])


@pytest.mark.parametrize(("ours", "code", "verdict"), [(2.0, 0, "holds"), (2.1, 1, "DOES NOT HOLD")])
def test_the_benchmark_fails_where_ours_takes_more_than_twice_the_time(ours, code, verdict, monkeypatch, capsys):
    times = Race(seconds={"ours": [ours], "theirs": [1.0], "readable": [5.0]})
    monkeypatch.setattr(bench_recurrent, "measure", lambda *_: times)
    assert len(list(rows())) == len(SHAPES) * len(LAYERS)
    assert main() == code
    printed = capsys.readouterr().out
    assert verdict in printed and f"{ours:.3f}" in printed and printed.count("LSTM") == len(SHAPES)
