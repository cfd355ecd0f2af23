"""Lesson 12: what windows cost, receptive fields, and the accuracy of a Swin Transformer without one of its parts."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.data.checkpoints import load_trained
from course_lib.data.digits import LabelledImages
from course_lib.functional.cost import count_flops, median_seconds
from course_lib.functional.images import standardise
from course_lib.layers.transformer import MultiHeadAttention
from course_lib.layers.windows import (
    PatchMerging,
    SwinBlock,
    WindowAttention,
    cyclic_shift,
    window_merge,
    window_partition,
)
from course_lib.models.swin import Swin, SwinConfig
from course_lib.models.vit import ViT, ViTConfig
from course_lib.training.seeding import seeded
from course_lib.training.vision import accuracy

Curves = dict[str, list[float]]


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


def effective_field(
    model: Swin, pixels: Float[Tensor, "B 1 S S"], stage: int, position: tuple[int, int]
) -> Float[Tensor, "h w"]:
    """The effective receptive field of a position, by patch, as a percentage of its sum (Luo et al. 2016).

    It is the mean absolute gradient of the squared length of the position's feature vector with respect to the pixels.
    """
    image = standardise(pixels).requires_grad_()
    row, column = position
    model.eval().feature_maps(image)[stage][:, :, row, column].square().sum().backward()
    by_pixel = image.grad.abs().mean(dim=(0, 1))
    size = model.config.patch_size
    by_patch = rearrange(by_pixel, "(h p) (w q) -> h w p q", p=size, q=size).mean(dim=(2, 3))
    return 100 * by_patch / by_patch.sum()


def _nothing(model: Swin) -> None:
    pass


def _no_mask(model: Swin) -> None:
    for attn in _parts(model, WindowAttention):
        attn.forward = partial(_without_mask, attn)


def _without_mask(attn: WindowAttention, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B H W D"]:
    height, width = x.shape[1:3]
    shift = attn.shift if min(height, width) > attn.window_size else 0
    windows = window_partition(cyclic_shift(x, shift), attn.window_size)
    bias = attn.position_bias(attn.window_size)
    found = MultiHeadAttention.forward(attn, windows.flatten(0, 1), score_bias=bias)
    return cyclic_shift(window_merge(found.unflatten(0, windows.shape[:2]), height, width), -shift)


@torch.no_grad()
def _no_offsets(model: Swin) -> None:
    for attn in _parts(model, WindowAttention):
        attn.bias_table.zero_()


def _no_shift(model: Swin) -> None:
    for attn in _parts(model, WindowAttention):
        attn.shift = 0


@torch.no_grad()
def _no_positions(model: Swin) -> None:
    model.pos_embed.zero_()


def _rows_first(model: Swin) -> None:
    for merging in _parts(model, PatchMerging):
        merging.forward = partial(_merged_row_by_row, merging)


def _merged_row_by_row(merging: PatchMerging, x: Float[Tensor, "B H W D"]) -> Float[Tensor, "B h w E"]:
    return merging.proj(merging.norm(rearrange(x, "b (h m) (w n) d -> b h w (m n d)", m=2, n=2)))


def _parts(model: Swin, kind: type[nn.Module]) -> list:
    return [module for module in model.modules() if isinstance(module, kind)]


SWITCHES: dict[str, Callable[[Swin], None]] = {
    "as trained": _nothing,
    "no mask": _no_mask,
    "no relative position bias": _no_offsets,
    "no shift": _no_shift,
    "no absolute positions": _no_positions,
    "merged row by row": _rows_first,
}


def switched(pictures: LabelledImages) -> dict[str, float]:
    """The accuracy of `swin` on these digits with one part at a time removed, without any new training."""
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
