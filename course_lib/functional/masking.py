"""Masks say who may look at whom: boolean tensors, True = may attend, that broadcast to (B, H, T_q, T_k)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def valid_positions(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B T"]:
    """True at the first `lengths[b]` of `size` positions: the real tokens of a padded batch.

    Raises ValueError if a length is negative or larger than `size`.
    """
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= size:
        raise ValueError(f"lengths must lie between 0 and size={size}, got {lengths.tolist()}")
    return torch.arange(size, device=lengths.device) < lengths[:, None]


def padding_mask(lengths: Int[Tensor, " B"], size: int) -> Bool[Tensor, "B 1 1 T"]:
    """The mask that hides padding from every query of every head; see `valid_positions`."""
    return valid_positions(lengths, size)[:, None, None, :]


def relative_distance(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Int[Tensor, "T_q T_k"]:
    """Position of the key minus position of the query, the last query standing at the last key.

    With fewer queries than keys the missing ones lie in the past: that is how a cache is used.
    """
    num_keys = num_queries if num_keys is None else num_keys
    queries = torch.arange(num_queries, device=device) + (num_keys - num_queries)
    return torch.arange(num_keys, device=device) - queries[:, None]


def causal_mask(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "T_q T_k"]:
    """True where the key is not later than the query (Vaswani et al. 2017, section 3.2.3)."""
    return relative_distance(num_queries, num_keys, device=device) <= 0


def local_mask(
    num_queries: int, num_keys: int | None = None, *, window: int, device: torch.device | str | None = None
) -> Bool[Tensor, "T_q T_k"]:
    """True where the key is at most `window` positions away, on either side of the query.

    Vaswani et al. 2017, section 4, call this restricted self-attention with a neighbourhood of r = 2 window + 1.
    Raises ValueError if `window` is negative.
    """
    if window < 0:
        raise ValueError(f"window counts the positions seen on either side: it must be 0 or more, got {window}")
    return relative_distance(num_queries, num_keys, device=device).abs() <= window


def combine_masks(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """True where every given mask is True; None stands for "everything may be seen".

    Raises ValueError if the shapes of the masks do not broadcast together.
    """
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    try:
        torch.broadcast_shapes(*(mask.shape for mask in given))
    except RuntimeError:
        shapes = ", ".join(str(tuple(mask.shape)) for mask in given)
        raise ValueError(f"masks of shapes {shapes} do not broadcast together") from None
    combined = given[0]
    for mask in given[1:]:
        combined = combined & mask
    return combined


def check_mask(mask: Tensor | None, scores_shape: tuple[int, ...], *, bias: Tensor | None = None) -> None:
    """Raises ValueError for a mask that is not boolean, and for a mask or bias that does not broadcast."""
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"mask must be boolean (True = may attend), got {mask.dtype}; "
            "pass terms that are added to the scores as a bias"
        )
    for name, term in (("mask", mask), ("bias", bias)):
        if term is not None and not _broadcasts(tuple(term.shape), tuple(scores_shape)):
            raise ValueError(
                f"{name} of shape {tuple(term.shape)} does not broadcast to the scores' shape {tuple(scores_shape)}"
                ", whose last two axes are queries and keys"
            )


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in (1, wanted) for size, wanted in pairs)
