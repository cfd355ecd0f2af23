"""The Vision Transformer: an image read as a sentence of patches.

Dosovitskiy et al., "An image is worth 16x16 words: Transformers for image recognition at scale", ICLR 2021,
arXiv 2010.11929.
"""

from dataclasses import dataclass
from functools import partial

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.functional.positions import fit_positions
from course_lib.layers.patches import ConvStem, PatchEmbed
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import FeedForward, MultiHeadAttention, TransformerBlock, xavier_weights

STEMS = {"patch": PatchEmbed, "conv": ConvStem}
POOLS = ("cls", "mlp", "mean")


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """ViT-B/16 by default, table 1.

    `pool` says what stands for the whole image: "cls", the class token; "mlp", the class token behind a hidden layer
    with tanh, the head of pre-training (section 3.1); "mean", the mean of all patches, with no class token (appendix
    D.3). `stem` says what becomes a token: "patch", the pixels of a patch, or "conv", features of a small CNN.
    """

    image_size: int | tuple[int, int] = 224  # H, W in pixels; other sizes work, with interpolated positions
    patch_size: int = 16  # P, pixels
    in_channels: int = 3  # C
    num_classes: int | None = 1000  # K; None: no head
    dim: int = 768  # D
    depth: int = 12  # L, blocks
    num_heads: int = 12  # k
    mlp_dim: int = 3072
    activation: str = "gelu"
    qkv_bias: bool = True  # queries, keys and values have a bias
    dropout: float = 0.0  # of embeddings and after every dense layer but those of queries, keys, values; appendix B.1
    norm_eps: float = 1e-6  # of LayerNorm, in the released code; PyTorch's own is 1e-5
    pool: str = "cls"
    stem: str = "patch"

    @property
    def grid(self) -> tuple[int, int]:
        """Patches in a column and in a row of an image of `image_size`."""
        height, width = (self.image_size, self.image_size) if isinstance(self.image_size, int) else self.image_size
        return height // self.patch_size, width // self.patch_size

    def __post_init__(self):
        plain_integers(self)
        for name, options in (("pool", POOLS), ("stem", STEMS)):
            if (given := getattr(self, name)) not in options:
                raise ValueError(f"{name} must be one of {', '.join(options)}, got {given!r}")
        height, width = (pixels * self.patch_size for pixels in self.grid)
        if self.image_size not in (height, (height, width)) or 0 in (height, width):
            raise ValueError(
                f"image_size={self.image_size} is no whole number of patches of {self.patch_size} pixels a side: "
                "choose a multiple of patch_size"
            )


class ViT(nn.Module):
    """Patches and a class token with learned positions, then pre-norm encoder blocks: eqs. (1)-(4).

    Weights start as in the released code: Xavier's for all dense layers, zeros for the class token and the head.
    Raises ValueError for settings that do not fit together and, when called, for an image of the wrong channels or of
    no whole number of patches.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = config
        norm = partial(nn.LayerNorm, config.dim, eps=config.norm_eps)
        self.blocks = nn.ModuleList(
            TransformerBlock(
                MultiHeadAttention(config.dim, config.num_heads, qkv_bias=config.qkv_bias),
                FeedForward(config.dim, config.mlp_dim, activation=config.activation, dropout=config.dropout),
                norm,
                dropout=config.dropout,
            )
            for _ in range(config.depth)
        )
        self.norm, self.dropout = norm(), nn.Dropout(config.dropout)
        self.pooler = nn.Linear(config.dim, config.dim) if config.pool == "mlp" else None
        self.head = None if config.num_classes is None else nn.Linear(config.dim, config.num_classes)
        xavier_weights(self)
        if self.head is not None:
            nn.init.zeros_(self.head.weight)
        self.patch_embed = STEMS[config.stem](config.patch_size, config.in_channels, config.dim)
        self.cls_token = None if config.pool == "mean" else nn.Parameter(torch.zeros(1, 1, config.dim))
        height, width = config.grid
        num_tokens = height * width + self.num_extra
        self.pos_embed = nn.Parameter(torch.randn(1, num_tokens, config.dim) * 0.02)

    @property
    def num_extra(self) -> int:
        """Tokens before those of the patches: 1, the class token, or 0."""
        return 0 if self.cls_token is None else 1

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, " B *K"]:
        """Logits of the classes; without a head the features of all tokens, (B, T, D)."""
        features = self.features(image)
        return features if self.head is None else self.head(self.pool(features))

    def features(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B T D"]:
        """All tokens after the last norm, the class token (if any) first: z_L of eq. (3), normalised."""
        return self.encode(self.embed(image))

    def embed(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N D"]:
        """Patches, row by row, with their positions: eq. (1) but for the class token."""
        grid = (image.shape[-2] // self.config.patch_size, image.shape[-1] // self.config.patch_size)
        patches, positions = self.patch_embed(image), self.pos_embed
        if grid != self.config.grid:
            positions = fit_positions(positions, self.config.grid, grid)
        return patches + positions[:, self.num_extra :]

    def encode(self, patches: Float[Tensor, "B N D"]) -> Float[Tensor, "B T D"]:
        """The class token and these patches, all or some of them, through all blocks: eqs. (2)-(3)."""
        x = self._with_class_token(patches)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def pool(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        """y, what stands for the whole image: eq. (4)."""
        if self.cls_token is None:
            return features.mean(dim=1)
        return features[:, 0] if self.pooler is None else self.pooler(features[:, 0]).tanh()

    def position_map(self) -> Float[Tensor, "h w D"]:
        """The positions of the patches, where they are in an image of `image_size`."""
        height, width = self.config.grid
        return rearrange(self.pos_embed[0, self.num_extra :], "(h w) d -> h w d", h=height, w=width)

    def _with_class_token(self, patches: Tensor) -> Tensor:
        if self.cls_token is not None:
            first = self.cls_token + self.pos_embed[:, :1]
            patches = torch.cat([first.expand(len(patches), -1, -1), patches], dim=1)
        return self.dropout(patches)


def vit_tiny_patch16(**overrides) -> ViT:
    """ViT-Ti/16, 5.7 M parameters: Touvron et al. 2021, arXiv 2012.12877, table 1."""
    return ViT(ViTConfig(**{"dim": 192, "num_heads": 3, "mlp_dim": 768} | overrides))


def vit_small_patch16(**overrides) -> ViT:
    """ViT-S/16, 22 M parameters: Touvron et al. 2021, arXiv 2012.12877, table 1."""
    return ViT(ViTConfig(**{"dim": 384, "num_heads": 6, "mlp_dim": 1536} | overrides))


def vit_base_patch16(**overrides) -> ViT:
    """ViT-B/16, 86 M parameters, table 1."""
    return ViT(ViTConfig(**overrides))


def vit_large_patch16(**overrides) -> ViT:
    """ViT-L/16, 307 M parameters by table 1, 304 M as counted."""
    return ViT(ViTConfig(**{"dim": 1024, "depth": 24, "num_heads": 16, "mlp_dim": 4096} | overrides))


def vit_huge_patch14(**overrides) -> ViT:
    """ViT-H/14, 632 M parameters, table 1."""
    sizes = {"patch_size": 14, "dim": 1280, "depth": 32, "num_heads": 16, "mlp_dim": 5120}
    return ViT(ViTConfig(**sizes | overrides))
