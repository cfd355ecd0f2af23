"""The Swin Transformer: attention in windows, on maps that get coarser from stage to stage.

Liu et al., "Swin Transformer: hierarchical vision Transformer using shifted windows", ICCV 2021, arXiv 2103.14030.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.functional.positions import interpolate_positions
from course_lib.layers.patches import PatchEmbed
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import normal_weights
from course_lib.layers.windows import PatchMerging, SwinBlock, WindowAttention


@dataclass(frozen=True, kw_only=True)
class SwinConfig:
    """Swin-T by default, section 3.3."""

    image_size: int | tuple[int, int] | None = None  # H, W in pixels of learned absolute positions; None: without them
    patch_size: int = 4  # pixels
    in_channels: int = 3
    num_classes: int | None = 1000  # None: no head
    dim: int = 96  # C, channels of stage 1; each later stage has twice those of the one before
    depths: tuple[int, ...] = (2, 2, 6, 2)  # blocks of each stage
    num_heads: tuple[int, ...] = (3, 6, 12, 24)  # of each stage
    window_size: int = 7  # M, patches
    shifted: bool = True  # every second block shifts its windows by half a window; False: none does
    mlp_ratio: float = 4.0  # alpha, width of the MLP over that of its stage
    qkv_bias: bool = True  # queries, keys and values have a bias
    drop_path: float = 0.1  # stochastic depth of the last block; it grows from 0 in the first

    @property
    def grid(self) -> tuple[int, int] | None:
        """Patches in a column and in a row of an image of `image_size`; None if that is None."""
        if self.image_size is None:
            return None
        height, width = (self.image_size, self.image_size) if isinstance(self.image_size, int) else self.image_size
        return height // self.patch_size, width // self.patch_size

    def __post_init__(self):
        plain_integers(self)
        if len(self.depths) != len(self.num_heads) or min(self.depths, default=0) < 1:
            raise ValueError(
                f"depths={self.depths} and num_heads={self.num_heads} must have a number for each stage, depths of at "
                "least 1"
            )
        if self.window_size < 1 or self.patch_size < 1 or self.mlp_ratio * self.dim < 1:
            raise ValueError(
                f"window_size={self.window_size} and patch_size={self.patch_size} must be at least 1, and so must "
                f"mlp_ratio={self.mlp_ratio} times dim={self.dim}"
            )
        if self.grid is not None:
            height, width = (patches * self.patch_size for patches in self.grid)
            if self.image_size not in (height, (height, width)) or 0 in (height, width):
                raise ValueError(
                    f"image_size={self.image_size} is no whole number of patches of {self.patch_size} pixels a side: "
                    "absolute positions need one"
                )


class Swin(nn.Module):
    """Patches, stages of blocks with patch merging between them, the mean of all places, a linear head: figure 3.

    Images may have any size: one that is no whole number of patches is padded with zeros below and on the right, and so
    are the maps inside (see `WindowAttention` and `PatchMerging`). Weights start from N(0, 0.02^2).
    Raises ValueError for settings that do not fit together.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: SwinConfig):
        super().__init__()
        self.config = config
        places = None if config.grid is None else config.grid[0] * config.grid[1]
        self.pos_embed = None if places is None else nn.Parameter(torch.randn(1, places, config.dim) * 0.02)
        self.patch_norm = nn.LayerNorm(config.dim)
        widths = [config.dim * 2**i for i in range(len(config.depths))]
        number, last = 0, max(sum(config.depths) - 1, 1)  # blocks so far, and the number of the last one
        self.stages = nn.ModuleList()
        for width, depth, num_heads in zip(widths, config.depths, config.num_heads, strict=True):
            stage = nn.Sequential()
            for i in range(depth):
                shift = config.window_size // 2 if config.shifted and i % 2 else 0
                attn = WindowAttention(width, num_heads, config.window_size, shift=shift, qkv_bias=config.qkv_bias)
                drop_path = config.drop_path * number / last
                stage.append(SwinBlock(attn, width, int(config.mlp_ratio * width), drop_path=drop_path))
                number += 1
            self.stages.append(stage)
        self.merges = nn.ModuleList(PatchMerging(width) for width in widths[:-1])
        self.norm = nn.LayerNorm(widths[-1])
        self.head = None if config.num_classes is None else nn.Linear(widths[-1], config.num_classes)
        normal_weights(self)
        self.patch_embed = PatchEmbed(config.patch_size, config.in_channels, config.dim)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, " B *K"]:
        """Logits of the classes; without a head the features of all places, (B, N, D)."""
        features = self.features(image)
        return features if self.head is None else self.head(features.mean(dim=1))

    def features(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N D"]:
        """The last stage's map, place by place, normalised."""
        return self.encode(self.embed(image))

    def encode(self, x: Float[Tensor, "B h w D"]) -> Float[Tensor, "B N E"]:
        """A map of embedded patches through all stages, place by place, normalised."""
        return self.norm(self._stage_maps(x)[-1].flatten(1, 2))

    def feature_maps(self, image: Float[Tensor, "B C H W"]) -> list[Float[Tensor, "B _ _ _"]]:
        """What each stage returns, fine to coarse, as (B, channels, height, width): for dense tasks."""
        return [rearrange(x, "b h w d -> b d h w") for x in self._stage_maps(self.embed(image))]

    def embed(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B h w D"]:
        """The map of all patches, normalised, with absolute positions if there are some."""
        size = self.config.patch_size
        height, width = image.shape[-2:]
        if height % size or width % size:
            image = F.pad(image, (0, -width % size, 0, -height % size))
        grid = (image.shape[-2] // size, image.shape[-1] // size)
        patches = self.patch_norm(self.patch_embed(image)).unflatten(1, grid)
        if self.pos_embed is None:
            return patches
        positions = self.pos_embed[0].unflatten(0, self.config.grid)
        return patches + (positions if grid == self.config.grid else interpolate_positions(positions, *grid))

    def _stage_maps(self, x: Tensor) -> list[Tensor]:
        maps = [self.stages[0](x)]
        for merge, stage in zip(self.merges, self.stages[1:], strict=True):
            maps.append(stage(merge(maps[-1])))
        return maps


def swin_tiny(**overrides) -> Swin:
    """Swin-T, 28.3 M parameters, section 3.3 and table 1."""
    return Swin(SwinConfig(**{"drop_path": 0.2} | overrides))


def swin_small(**overrides) -> Swin:
    """Swin-S, 49.6 M parameters, section 3.3 and table 1."""
    return Swin(SwinConfig(**{"depths": (2, 2, 18, 2), "drop_path": 0.3} | overrides))


def swin_base(**overrides) -> Swin:
    """Swin-B, 87.8 M parameters, section 3.3 and table 1."""
    sizes = {"dim": 128, "depths": (2, 2, 18, 2), "num_heads": (4, 8, 16, 32), "drop_path": 0.5}
    return Swin(SwinConfig(**sizes | overrides))
