"""T5's pre-training task: write down the spans that are missing from a text.

Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text Transformer", JMLR 2020,
arXiv 1910.10683, sections 3.1.4 and 3.3.4.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor


class Corrupted(NamedTuple):
    """A text with holes, and what was in them."""

    source: Int[Tensor, " T_k"]
    target: Int[Tensor, " T_q"]


def corrupt_spans(tokens: Int[Tensor, " T"], dropped: Bool[Tensor, " T"], *, first_sentinel: int) -> Corrupted:
    """Replaces each run of dropped tokens by one sentinel; the target has the sentinels, each before its tokens.

    Section 3.1.4, figure 2: the target ends with one more sentinel. As in the released vocabulary the sentinels count
    down from `first_sentinel`. Pure: who draws `dropped` (see `random_spans`) can replay it.
    Raises ValueError if there are not enough ids below `first_sentinel` that are no token here.
    """
    starts = dropped & ~torch.cat([dropped.new_zeros(1), dropped[:-1]])
    sentinels = first_sentinel - (starts.cumsum(0) - 1)  # of the span that a token is in
    last = first_sentinel - int(starts.sum())
    if last < 0 or ((tokens >= last) & (tokens <= first_sentinel)).any():
        raise ValueError(
            f"{first_sentinel - last + 1} sentinels count down from {first_sentinel} to {last}: they must not be "
            "negative, nor tokens of the text"
        )
    source = torch.where(starts, sentinels, tokens)[starts | ~dropped]
    both = torch.stack([sentinels, tokens], dim=1)[dropped]  # (dropped tokens, 2)
    target = both[torch.stack([starts, torch.ones_like(starts)], dim=1)[dropped]]
    return Corrupted(source, torch.cat([target, target.new_full((1,), last)]))


def random_spans(
    length: int, *, rate: float = 0.15, mean_span: float = 3.0, generator: torch.Generator | None = None
) -> Bool[Tensor, " T"]:
    """True at the tokens to drop: a share `rate`, in spans of `mean_span` tokens on average, section 3.3.4.

    Both the spans and the gaps between them are drawn uniformly among all ways to cut their totals into pieces of one
    token or more; the text begins with a gap, as in the released code.
    Raises ValueError if `length` is under 2, or `rate` or `mean_span` is out of range.
    """
    if length < 2 or not 0 < rate < 1 or mean_span < 1:
        raise ValueError(
            "random spans need 2 tokens or more, a rate between 0 and 1 and a mean span of 1 or more, "
            f"got length={length}, rate={rate}, mean_span={mean_span}"
        )
    num_dropped = min(max(round(length * rate), 1), length - 1)
    num_spans = min(max(round(num_dropped / mean_span), 1), length - num_dropped)
    gaps, spans = (_pieces(total, num_spans, generator) for total in (length - num_dropped, num_dropped))
    lengths = torch.stack([gaps, spans], dim=1).flatten()
    return torch.tensor([False, True]).repeat(num_spans).repeat_interleave(lengths)


def _pieces(total: int, count: int, generator: torch.Generator | None) -> Int[Tensor, " count"]:
    cuts = torch.randperm(total - 1, generator=generator)[: count - 1].sort().values + 1
    edges = torch.cat([torch.tensor([0]), cuts, torch.tensor([total])])
    return edges.diff()
