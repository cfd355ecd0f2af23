"""How fast our LSTM, GRU and RNN layers are beside PyTorch's: forward and backward, both in one run, medians."""

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import nn

from course_lib.layers.recurrent import GRU, LSTM, RNN, RecurrentLayer
from course_lib.tools.race import Race, race

LAYERS: dict[str, tuple[type[RecurrentLayer], type[nn.RNNBase]]] = {
    "LSTM": (LSTM, nn.LSTM),
    "GRU": (GRU, nn.GRU),
    "RNN": (RNN, nn.RNN),
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """B sequences of T steps, D features in and out, `layers` layers."""

    B: int
    T: int
    D: int
    layers: int = 1


SHAPES = (
    Shape(B=32, T=64, D=128),
    Shape(B=12, T=128, D=200),
    Shape(B=32, T=50, D=64),
    Shape(B=16, T=64, D=256, layers=2),
)


def contestants(kind: str, shape: Shape) -> dict[str, Callable[[], None]]:
    """Our layer, PyTorch's and our readable twin with the same weights and input; each call is forward and backward."""
    our_type, their_type = LAYERS[kind]
    torch.manual_seed(0)
    x = torch.randn(shape.B, shape.T, shape.D, requires_grad=True)
    ours, readable = (our_type(shape.D, shape.D, num_layers=shape.layers, readable=slow) for slow in (False, True))
    theirs = their_type(shape.D, shape.D, num_layers=shape.layers, batch_first=True)
    copy_weights(ours, theirs)
    readable.load_state_dict(ours.state_dict())

    def run(layer: nn.Module) -> None:
        layer.zero_grad()
        x.grad = None
        layer(x)[0].sum().backward()

    return {"ours": lambda: run(ours), "theirs": lambda: run(theirs), "readable": lambda: run(readable)}


def copy_weights(ours: RecurrentLayer, theirs: nn.RNNBase) -> None:
    """Gives PyTorch's layer the weights of ours: cells.1.weight_ih is its weight_ih_l1, or weight_ih_l0_reverse."""
    renamed = {}
    for name, weight in ours.state_dict().items():
        _, number, kind = name.split(".")
        layer, direction = divmod(int(number), ours.num_directions)
        renamed[f"{kind}_l{layer}{'_reverse' * direction}"] = weight
    theirs.load_state_dict(renamed)


def measure(kind: str, shape: Shape) -> Race:
    """The race between "ours", "theirs" and "readable" at one size."""
    return race(contestants(kind, shape))


def rows() -> Iterator[tuple[str, Shape, Race]]:
    """One row after the other: which layer, at which size, and its race."""
    for shape in SHAPES:
        for kind in LAYERS:
            yield kind, shape, measure(kind, shape)


def main() -> int:
    """Prints the table; returns 0 if our layers take at most twice PyTorch's time everywhere, otherwise 1."""
    print("Recurrent layers, forward and backward, float32: medians in milliseconds.")
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), {platform.machine()}, {os.cpu_count()} CPUs\n"
    )
    print(f"{'layer':5} {'B':>4} {'T':>4} {'D':>4} {'layers':>6} {'ours':>8} {'torch':>8} {'readable':>9} {'ratio':>6}")
    worst = 0.0
    for kind, shape, run in rows():
        ours, theirs, readable = (1e3 * run.median(name) for name in ("ours", "theirs", "readable"))
        ratio = run.ratio("ours", "theirs")
        print(
            f"{kind:5} {shape.B:4} {shape.T:4} {shape.D:4} {shape.layers:6} {ours:8.2f} {theirs:8.2f} "
            f"{readable:9.2f} {ratio:6.3f}"
        )
        worst = max(worst, ratio)
    verdict = "holds" if worst <= 2.0 else "DOES NOT HOLD"
    print(f"\nat most twice PyTorch's time {verdict}: the largest ratio is {worst:.3f}")
    return 0 if worst <= 2.0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
