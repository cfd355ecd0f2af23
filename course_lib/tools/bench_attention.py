"""How fast our multi-head attention is beside PyTorch's: forward and backward, both in one run, medians."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_lib.functional.attention import causal_mask, valid_positions
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.tools.race import FEWEST, MOST, race


@dataclass(frozen=True, kw_only=True)
class Shape:
    """B sentences of T tokens, D features, H heads."""

    B: int
    T: int
    D: int
    H: int


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Median seconds of one forward and backward pass; `default` is PyTorch's layer when it also returns weights.

    `ratio` is the median of ours / theirs within a round: both then meet the same load of the machine.
    """

    ours: float
    theirs: float
    default: float
    ratio: float
    rounds: int


SHAPES = (
    Shape(B=64, T=16, D=64, H=4),
    Shape(B=32, T=64, D=128, H=4),
    Shape(B=16, T=50, D=512, H=8),
    Shape(B=8, T=256, D=256, H=8),
    Shape(B=2, T=1024, D=256, H=8),
)
MASKS = ("none", "causal", "padding")


def contestants(shape: Shape, mask: str) -> dict[str, Callable[[], None]]:
    """Our layer and PyTorch's with the same weights, input and mask; each call is one forward and backward pass."""
    torch.manual_seed(0)
    x = torch.randn(shape.B, shape.T, shape.D, requires_grad=True)
    ours = MultiHeadAttention(shape.D, shape.H)
    theirs = nn.MultiheadAttention(shape.D, shape.H, batch_first=True)
    copy_weights(ours, theirs)
    lengths = torch.linspace(shape.T // 2, shape.T, shape.B).long()
    valid = valid_positions(lengths, shape.T)
    our_mask = valid[:, None, None, :] if mask == "padding" else None
    their_masks = {
        "none": {},
        "causal": {"attn_mask": ~causal_mask(shape.T), "is_causal": True},
        "padding": {"key_padding_mask": ~valid},
    }[mask]

    def run(module: nn.Module, forward: Callable[[], Tensor]) -> None:
        module.zero_grad()
        x.grad = None
        forward().sum().backward()

    return {
        "ours": lambda: run(ours, lambda: ours(x, mask=our_mask, causal=mask == "causal")),
        "theirs": lambda: run(theirs, lambda: theirs(x, x, x, need_weights=False, **their_masks)[0]),
        "default": lambda: run(theirs, lambda: theirs(x, x, x, **their_masks)[0]),
    }


def copy_weights(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Gives PyTorch's layer, which keeps the three input projections in one matrix, the weights of ours."""
    inputs = (ours.q_proj, ours.k_proj, ours.v_proj)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([proj.weight for proj in inputs]))
        theirs.in_proj_bias.copy_(torch.cat([proj.bias for proj in inputs]))
    theirs.out_proj.load_state_dict(ours.o_proj.state_dict())


def measure(shape: Shape, mask: str, *, fewest: int = FEWEST, most: int = MOST) -> Timing:
    """Lets the contestants race."""
    result = race(contestants(shape, mask), fewest=fewest, most=most)
    medians = {name: result.median(name) for name in ("ours", "theirs", "default")}
    return Timing(**medians, ratio=result.ratio("ours", "theirs"), rounds=result.rounds)


def main() -> int:
    """Prints the table; returns 0 if ours is at least as fast as PyTorch's at every shape, otherwise 1."""
    print(
        f"Multi-head attention, forward and backward, float32: medians over at least {FEWEST} rounds, in milliseconds."
    )
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), {machine}")
    print("theirs = nn.MultiheadAttention(need_weights=False), default = the same returning its weights")
    print("ours/theirs = median of the rounds' ratios\n")
    print("   B     T    D   H  mask          ours   theirs  default  ours/theirs  rounds")
    worst = 0.0
    for shape in SHAPES:
        for mask in MASKS:
            timing = measure(shape, mask)
            worst = max(worst, timing.ratio)
            times = "".join(f"{1000 * t:9.2f}" for t in (timing.ours, timing.theirs, timing.default))
            sizes = f"{shape.B:>4}{shape.T:>6}{shape.D:>5}{shape.H:>4}"
            print(f"{sizes}  {mask:<9}{times}{timing.ratio:13.3f}{timing.rounds:8}", flush=True)
    verdict = "never slower" if worst <= 1.0 else "SLOWER somewhere"
    print(f"\nours is {verdict}: the largest ratio is {worst:.3f}, at most 1.0 is demanded")
    return 0 if worst <= 1.0 else 1
