"""Lesson 11, Vision Transformer: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from pathlib import Path

from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward
from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def picture(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int]:
    """Pictures of drawn sizes, and the side of their patches."""
    B, C, rows, columns = draw.sizes(4, 2, 6)
    p = draw.integers(2, 5, 1).item() if draw.same is None else 3
    return draw(B, channels or C, rows * p, columns * p), p


def pieces(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int, int, int]:
    """Patches, their side, and the size of the picture that they come from."""
    image, p = picture(draw, channels=channels)
    return TASKS["patchify"].reference(image, p), p, *image.shape[-2:]


def embedded(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Embedded patches, a class token, and positions for all of them."""
    B, N, D = draw.sizes(3)
    return draw(B, N, D), draw(1, 1, D), draw(1, N + 1, D)


def maps(draw: Draw, *, front: int = 1) -> tuple[Tensor, int, int, int]:
    """Attention between a class token and the patches of a grid, each row a distribution."""
    *axes, height, width = draw.sizes(front + 2, 2, 6)
    T = height * width + 1
    return (2 * draw(*axes, T, T)).softmax(-1), height, width, draw.integers(2, 17, 1).item()


def table_and_grids(draw: Draw, *, same: bool = False) -> tuple[Tensor, tuple[int, int], tuple[int, int]]:
    """Positions of a grid, and two sizes."""
    h, w, D, more, wider = draw.sizes(5, 2, 7)
    return draw(1, 1 + h * w, D), (h, w), (h, w) if same else (h + more, w + wider)


def drawn(module: nn.Module, draw: Draw) -> nn.Module:
    """The module with drawn weights, which need no gradient."""
    for weight in module.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    return module.requires_grad_(False)


def four_parts(draw: Draw) -> tuple[Tensor, nn.Module, nn.Module, nn.Module, nn.Module]:
    """Patches of drawn sizes, and the four parts of a block for them."""
    B, N, D = draw.sizes(3)
    norm1, norm2 = (drawn(nn.LayerNorm(D), draw) for _ in range(2))
    mlps = [drawn(FeedForward(size, 3 * size, activation="gelu_tanh"), draw) for size in (N, D)]
    return 3 * draw(B, N, D), norm1, mlps[0], norm2, mlps[1]


CASES = {
    "patchify": (
        Case("the patches of a picture in colour, row by row", picture),
        Case("pictures in grey", lambda draw: picture(draw, channels=1)),
    ),
    "unpatchify": (
        Case("the picture in colour", pieces),
        Case("pictures in grey", lambda draw: pieces(draw, channels=1)),
    ),
    "tokens": (Case("the class token, then the patches, each with its position", embedded),),
    "attention_distance": (
        Case("the mean distance of what a patch looks at, in pixels", maps),
        Case("pictures, blocks and heads in front", lambda draw: maps(draw, front=3)),
    ),
    "fit_positions": (
        Case("the positions of another grid, the class token's as it was", table_and_grids),
        Case("nothing changes where the grid is the same", lambda draw: table_and_grids(draw, same=True)),
    ),
    "mixer_block": (Case("first across the places, then across the channels, each added to x", four_parts),),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
