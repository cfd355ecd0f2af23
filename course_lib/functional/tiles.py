"""A picture too large for a network, or larger than those it has learned from: cut into tiles that overlap.

Ronneberger, Fischer & Brox 2015, arXiv 1505.04597, section 2 and figure 2, the overlap-tile strategy.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def in_tiles(
    function: Callable[[Tensor], Tensor], image: Float[Tensor, "B C H W"], *, tile: int, overlap: int = 0
) -> Float[Tensor, "B K H W"]:
    """What `function`, which keeps height and width, makes of tiles of the image, put together again.

    Neighbouring tiles share `overlap` pixels, across which one fades into the other; the last ones are moved inside.
    Differs from Ronneberger et al. 2015, who keep of each tile its middle alone and mirror the image at its border. An
    image not larger than a tile is one. Raises ValueError unless 0 <= overlap < tile.
    """
    if not 0 <= overlap < tile:
        raise ValueError(f"tiles need 0 <= overlap < tile, in pixels, got overlap={overlap} and tile={tile}")
    rows, columns = (starts(size, tile, overlap) for size in image.shape[-2:])
    position = torch.arange(tile, device=image.device)
    fade = torch.minimum(position + 1, tile - position).clamp(max=overlap + 1).to(image.dtype)
    total = weight = None
    for top in rows:
        for left in columns:
            window = (..., slice(top, top + tile), slice(left, left + tile))
            made = function(image[window])
            if total is None or weight is None:
                total = made.new_zeros(*made.shape[:2], *image.shape[-2:])
                weight = torch.zeros_like(total[:1, :1])
            share = fade[: made.shape[-2], None] * fade[: made.shape[-1]]
            total[window] += share * made
            weight[window] += share
    return total / weight  # type: ignore[operator, arg-type]


def starts(size: int, tile: int, overlap: int) -> list[int]:
    """Where the tiles of an axis begin: `tile - overlap` apart, and the last one ends with the image."""
    last = max(size - tile, 0)
    return [*range(0, last, tile - overlap), last]
