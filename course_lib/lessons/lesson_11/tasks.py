"""Lesson 11, Vision Transformer: what its exercises are tried with; their text and their mistakes are in tasks.md."""

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.layers.transformer import FeedForward
from course_lib.lessons.lesson_05.tasks import TASKS as TASKS_05
from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.markdown import read_tasks


def an_image(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int]:
    """Images of drawn sizes, and the side of their patches."""
    B, C, rows, columns = draw.sizes(4, 2, 6)
    p = draw.integers(2, 5, 1).item() if draw.same is None else 3
    return draw(B, channels or C, rows * p, columns * p), p


def pieces(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int, int, int]:
    """Patches, their side, and the size of the image that they come from."""
    image, p = an_image(draw, channels=channels)
    return TASKS["patchify"].reference(image, p), p, *image.shape[-2:]


def matrix(draw: Draw, *, channels: int | None = None) -> tuple[Tensor, int]:
    """A matrix that makes tokens of patches, and the side of a patch."""
    p, C, D = draw.sizes(3, 2, 6)
    C = channels or C
    return draw(p * p * C, D + 2), p


def embedded(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Embedded patches, a class token, and positions for all of them."""
    B, N, D = draw.sizes(3)
    return draw(B, N, D), draw(1, 1, D), draw(1, N + 1, D)


def some_tokens(draw: Draw, *, scale: float = 2.0) -> TaskInput:
    """Tokens, and the sizes of a block."""
    B, T, d, inner = draw.sizes(4, 3, 7)
    heads = draw.integers(2, 4, 1).item()
    return TaskInput((scale * draw(B, T, heads * d),), build=(heads * d, heads, 2 * inner))


def square_images(draw: Draw, *, channels: int = 3) -> TaskInput:
    """Images, and the sizes of a ViT of two blocks."""
    B, side, p, classes, d = draw.sizes(5, 2, 7)
    heads = draw.integers(2, 4, 1).item()
    build = (side * p, p, channels, classes + 2, heads * d, 2, heads, 3 * d)
    return TaskInput((2 * draw(B, channels, side * p, side * p),), build=build)


def a_batch(draw: Draw) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images, one-hot targets, partners that are no swaps, and a weight for each image."""
    B, C, H, W, K = draw.sizes(5, 3, 8)
    B += 2
    labels = torch.arange(B) % (K + 1)
    order = draw(B).argsort()
    partner = torch.empty(B, dtype=torch.long)
    partner[order] = order.roll(1)  # a single cycle: nobody is the partner of her partner
    weight = (1 + draw.integers(0, 8, B)) / 10
    weight[0], weight[1] = 0.3, 0.8
    return draw(B, C, H, W), nn.functional.one_hot(labels, K + 1).float(), partner, weight


def attention_maps(draw: Draw, *, front: int = 1) -> tuple[Tensor, int, int, int]:
    """Attention between a class token and the patches of a grid, each row a distribution."""
    *axes, height, width = draw.sizes(front + 2, 2, 6)
    T = height * width + 1
    return (2 * draw(*axes, T, T)).softmax(-1), height, width, draw.integers(2, 17, 1).item()


def distributions(draw: Draw, *, front: int = 1, zeros: bool = False) -> tuple[Tensor]:
    """Attention weights, perhaps some of them zero."""
    *axes, T = draw.sizes(front + 1, 3, 7)
    scores = 2 * draw(*axes, T, T)
    if zeros:
        scores = scores.masked_fill(scores < scores.amax(dim=-1, keepdim=True) - 3, -math.inf)
        scores[..., 0, :] = -math.inf
        scores[..., 0, 0] = 0.0  # all weight of the first query is on one token
    return (scores.softmax(-1),)


def table_and_grids(draw: Draw, *, change: str = "larger") -> tuple[Tensor, tuple[int, int], tuple[int, int]]:
    """Positions of a grid, and two sizes."""
    h, w, D, more, wider = draw.sizes(5, 2, 7)
    old, new = (h, w), (h + more, w + wider)
    if change == "smaller":
        old, new = new, old
    return draw(1, 1 + old[0] * old[1], D), old, old if change == "none" else new


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


def starts(probe: Probe) -> list[Finding]:
    """Whether the numbers before training are those of the text."""
    made = probe.call(24, 3, 3, 7, 48, 1, 2, 16)
    said = TASKS["vit"].finding
    parts = [getattr(made, name, None) for name in ("cls_token", "pos_embed", "head")]
    if any(part is None for part in parts) or not isinstance(parts[2], nn.Module):
        raise CheckFailed(
            Finding("part missing", "A part of the model is missing.", "The names of all parts are in the text.")
        )
    cls_token, pos_embed, head = parts
    found = []
    if any(bool(one.detach().any()) for one in head.parameters()):
        found.append(said("head does not start at zero"))
    if not 0.017 < pos_embed.detach().std().item() < 0.023:
        found.append(said("positions of another size at the start"))
    if bool(cls_token.detach().any()):
        found.append(said("class token does not start at zero"))
    return found


STARTS = Check(
    name="the numbers before training",
    detects=(
        "head does not start at zero",
        "positions of another size at the start",
        "class token does not start at zero",
    ),
    run=starts,
)
CASES = {
    "patchify": (
        Case("colour images, row by row", an_image),
        Case("grey images", lambda draw: an_image(draw, channels=1)),
    ),
    "kernel": (
        Case("colour", matrix),
        Case("grey", lambda draw: matrix(draw, channels=1)),
    ),
    "tokens": (Case("the class token, then the patches, each with its position", embedded),),
    "block": (
        Case("two sublayers, each with a norm and a residual connection", some_tokens),
        Case("numbers that hardly differ", lambda draw: some_tokens(draw, scale=2e-3), tolerance=1e-3),
    ),
    "vit": (
        Case("logits of colour images", square_images, tolerance=1e-3),
        Case("logits of grey images", lambda draw: square_images(draw, channels=1), tolerance=1e-3),
    ),
    "mixup": (Case("images and targets, blended alike", a_batch),),
    "attention_distance": (
        Case("the mean distance, in pixels", attention_maps),
        Case("images, blocks and heads in front", lambda draw: attention_maps(draw, front=3)),
    ),
    "effective": (
        Case("a number for each head", distributions),
        Case("some weights are zero", lambda draw: distributions(draw, zeros=True)),
        Case("images, blocks and heads in front", lambda draw: distributions(draw, front=3)),
    ),
    "fit_positions": (
        Case("the positions of a larger grid, the class token's as it was", table_and_grids),
        Case("a smaller grid", lambda draw: table_and_grids(draw, change="smaller")),
        Case("nothing changes where the grid is the same", lambda draw: table_and_grids(draw, change="none")),
    ),
    "unpatchify": (
        Case("the colour image", pieces),
        Case("grey images", lambda draw: pieces(draw, channels=1)),
    ),
    "mixer_block": (Case("first across the patches, then across the channels, each added to x", four_parts),),
}


def part(name: str) -> Callable[..., nn.Module]:
    """What a learner's ViT takes if she has no such part of her own: that of the solution."""
    return lambda *sizes: TASKS[name].module(*sizes)


def tokens(*given: Tensor) -> Tensor:
    """What a learner's ViT takes if she has no function of her own."""
    return TASKS["tokens"].reference(*given)


PARTS = {"MultiHeadAttention": TASKS_05["multi_head"].module, "Block": part("block"), "tokens": tokens}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS, vit={"checks": (STARTS,)})
