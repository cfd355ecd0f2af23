"""How fast our multi-head attention is beside PyTorch's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from course_lib.bench.race import race
from course_lib.bench.table import Row, Section, print_table, row
from course_lib.functional.attention import causal_mask, valid_positions
from course_lib.layers.transformer import MultiHeadAttention


@dataclass(frozen=True, kw_only=True)
class Shape:
    """B sentences of T tokens, D features, H heads."""

    B: int
    T: int
    D: int
    H: int


SHAPES = (
    Shape(B=64, T=16, D=64, H=4),
    Shape(B=32, T=64, D=128, H=4),
    Shape(B=16, T=50, D=512, H=8),
    Shape(B=8, T=256, D=256, H=8),
    Shape(B=2, T=1024, D=256, H=8),
)
MASKS = ("none", "causal", "padding")


def variants(shape: Shape, mask: str) -> dict[str, Callable[[], None]]:
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
    }


def copy_weights(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Gives PyTorch's layer, which keeps the three input projections in one matrix, the weights of ours."""
    inputs = (ours.q_proj, ours.k_proj, ours.v_proj)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([proj.weight for proj in inputs]))
        theirs.in_proj_bias.copy_(torch.cat([proj.bias for proj in inputs]))
    theirs.out_proj.load_state_dict(ours.o_proj.state_dict())


def rows() -> Iterator[Row]:
    """Every shape under every mask."""
    for shape, mask in product(SHAPES, MASKS):
        sizes = f"B {shape.B}, T {shape.T}, D {shape.D}, H {shape.H}"
        yield row(f"{sizes}, mask {mask}", race(variants(shape, mask)), target=1.0)


def main() -> int:
    """Prints the table; returns 0 if ours is at least as fast as PyTorch's at every shape, otherwise 1."""
    title = "Forward and backward, against nn.MultiheadAttention(need_weights=False)"
    return print_table([Section(title=title, rows=rows)])
