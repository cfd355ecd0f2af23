"""Lesson 12: what windows cost, how far they see, and what is left of a Swin Transformer without one of its parts."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.data.checkpoints import load_trained
from course_lib.data.digits import LabelledImages
from course_lib.functional.cost import count_flops, median_seconds
from course_lib.functional.images import standardise
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.layers.windows import SwinBlock, WindowAttention, window_merge, window_partition
from course_lib.lessons.lesson_12 import learner
from course_lib.lessons.lesson_12.tasks import TASKS
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy

Curves = dict[str, list[float]]
PARTS = {name: TASKS[name].reference for name in ("in_windows", "shift_mask", "position_index", "patch_merging")}


@torch.no_grad()
def price(sides: Sequence[int]) -> tuple[Curves, Curves]:
    """Operations and seconds for one picture of each side, of a small ViT and a small Swin with patches of 4 pixels."""
    swin = Swin(SwinConfig(in_channels=1, num_classes=10, dim=32, depths=(2, 2), num_heads=(2, 4), window_size=4))
    operations, seconds = ({"ViT": [], "Swin": []} for _ in range(2))
    for side in sides:
        sizes = {"image_size": side, "patch_size": 4, "in_channels": 1, "num_classes": 10}
        vit = ViT(ViTConfig(**sizes, dim=48, depth=4, num_heads=3, mlp_dim=192))
        image = torch.zeros(1, 1, side, side)
        for name, model in (("ViT", vit), ("Swin", swin)):
            run = partial(model.eval(), image)
            operations[name].append(count_flops(run))
            seconds[name].append(median_seconds(run, repeats=3))
    return operations, seconds


def reach(blocks: int, *, shifted: bool, side: int = 8, size: int = 2) -> Bool[Tensor, "H W"]:
    """Which places of a map change what `blocks` blocks of random weights say at (3, 3): where a gradient arrives."""
    with seeded(0):
        shifts = [size // 2 if shifted and number % 2 else 0 for number in range(blocks)]
        layers = nn.Sequential(*(SwinBlock(WindowAttention(8, 2, size, shift=shift), 8, 16) for shift in shifts))
        x = torch.randn(1, side, side, 8, requires_grad=True)
    layers(x)[0, 3, 3].square().sum().backward()
    return x.grad[0].abs().sum(dim=-1) > 0


@torch.no_grad()
def padded(attn: WindowAttention, x: Float[Tensor, "B H W D"]) -> tuple[Float[Tensor, "B H W D"], int]:
    """Shifted windows without a cyclic shift, and how many: what sticks out at the borders is padded, and hidden."""
    size, shift = attn.window_size, attn.shift
    around = (size - shift, shift, size - shift, shift)  # left, right, above, below
    wide = F.pad(x, (0, 0, *around))
    real = F.pad(torch.ones_like(x[..., :1]), (0, 0, *around))
    windows, keys = window_partition(wide, size), window_partition(real, size)[..., 0] > 0
    bias = attn.position_bias(size).masked_fill(~keys.flatten(0, 1)[:, None, None], float("-inf"))
    found = MultiHeadAttention.forward(attn, windows.flatten(0, 1), score_bias=bias).unflatten(0, windows.shape[:2])
    height, width = x.shape[1:3]
    whole = window_merge(found, *wide.shape[1:3])
    return whole[:, around[2] : around[2] + height, around[0] : around[0] + width], windows.shape[1]


def offset_maps(attn: WindowAttention) -> Float[Tensor, "heads offsets offsets"]:
    """Each head's bias by where the key lies, as seen from a query in the middle."""
    side = 2 * attn.window_size - 1
    return attn.bias_table.detach().T.reshape(-1, side, side).flip(1, 2)  # the table counts query minus key


def _with_parts(model: Swin, **other: Callable[..., Tensor]) -> None:
    learner.with_yours(model, *(PARTS | other).values())


def _none_hidden(height: int, width: int, size: int, shift: int) -> Tensor:
    return torch.ones_like(PARTS["shift_mask"](height, width, size, shift))


def _nothing(model: Swin) -> None:
    pass


def _no_mask(model: Swin) -> None:
    _with_parts(model, shift_mask=_none_hidden)


@torch.no_grad()
def _no_offsets(model: Swin) -> None:
    for attn in _attentions(model):
        attn.bias_table.zero_()


def _no_shift(model: Swin) -> None:
    for attn in _attentions(model):
        attn.shift = 0


@torch.no_grad()
def _no_positions(model: Swin) -> None:
    model.pos_embed.zero_()


def _rows_first(model: Swin) -> None:
    others = (("left[:, 1::2], right[:, 0::2]", "right[:, 0::2], left[:, 1::2]"),)
    _with_parts(model, patch_merging=PARTS["patch_merging"].changed(others))


def _attentions(model: Swin) -> list[WindowAttention]:
    return [module for module in model.modules() if isinstance(module, WindowAttention)]


SWITCHES: dict[str, Callable[[Swin], None]] = {
    "as it is": _nothing,
    "mask off": _no_mask,
    "relative bias off": _no_offsets,
    "shift off": _no_shift,
    "absolute positions off": _no_positions,
    "merged row by row": _rows_first,
}


def switched(pictures: LabelledImages) -> dict[str, float]:
    """Share of the pictures that `swin` names right with one part at a time taken away, without any new training."""
    found = {}
    for name, change in SWITCHES.items():
        model = load_trained("swin").model
        change(model)
        found[name] = accuracy(model, *pictures)
    return found


@torch.no_grad()
def stirred(model: Swin, picture: Float[Tensor, "1 1 H W"]) -> list[Float[Tensor, "h w"]]:
    """How far each place of each stage's map is from that of an empty, black picture; pixels from 0 to 1."""
    maps = (model.eval().feature_maps(standardise(image)) for image in (picture, torch.zeros_like(picture)))
    return [(found - empty).norm(dim=1)[0] for found, empty in zip(*maps, strict=True)]
