"""How fast our multi-head attention is beside PyTorch's: forward and backward, both in one run, medians."""

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn

from course_lib.functional.masking import causal_mask, valid_positions
from course_lib.layers.attention import MultiHeadAttention

FEWEST, MOST = 21, 210  # rounds: more where the machine is noisy or the layers are close
SECONDS = 15.0  # after which a close race ends, once it has had the fewest rounds


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
    """Lets the contestants take turns until it is clear who is faster, or `most` rounds or the seconds are over."""
    runs = contestants(shape, mask)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
        run()
    deadline = time.monotonic() + SECONDS
    for count in range(1, most + 1):
        # who follows whom changes each round: a neighbour's leftovers in the cache favour nobody
        for name in runs if count % 2 else reversed(runs):
            begin = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - begin)
        over = is_clear(times["ours"], times["theirs"]) or time.monotonic() > deadline
        if over and count >= fewest:
            break
    ratios = [ours / theirs for ours, theirs in zip(times["ours"], times["theirs"], strict=True)]
    medians = {name: median(each) for name, each in times.items()}
    return Timing(**medians, ratio=median(ratios), rounds=len(ratios))


def is_clear(ours: list[float], theirs: list[float]) -> bool:
    """Whether one of the two won more rounds than a fair coin would: three standard deviations from half of them."""
    won = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return abs(won - len(ours) / 2) > 3 * len(ours) ** 0.5 / 2


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
