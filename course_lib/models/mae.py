"""The masked autoencoder: a Vision Transformer that learns to see by painting what is hidden.

He et al., "Masked autoencoders are scalable vision learners", CVPR 2022, arXiv 2111.06377.
"""

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.functional.positions import fit_positions, sinusoidal_positions_2d
from course_lib.layers.patches import RandomMask, patch_statistics, patchify, random_mask, take_patches, unpatchify
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import FeedForward, MultiHeadAttention, TransformerBlock, xavier_weights
from course_lib.models.vit import ViT, ViTConfig


@dataclass(frozen=True, kw_only=True)
class MAEConfig:
    """MAE with a ViT-B/16 by default, sections 3 and 4.1. Raises ValueError for a head or a ratio of 0 or 1."""

    encoder: ViTConfig = field(default_factory=partial(ViTConfig, num_classes=None))
    decoder_dim: int = 512
    decoder_depth: int = 8  # blocks
    decoder_num_heads: int = 16
    decoder_mlp_dim: int = 2048
    mask_ratio: float = 0.75  # share of the patches that are hidden
    normalised: bool = True  # predict each patch less its mean and divided by its spread: table 1 (d)

    def __post_init__(self):
        plain_integers(self)
        if self.encoder.num_classes is not None:
            raise ValueError(f"an encoder under pre-training has num_classes=None, got {self.encoder.num_classes}")
        if not 0 < self.mask_ratio < 1:
            raise ValueError(f"mask_ratio is a share of the patches between 0 and 1, got {self.mask_ratio}")


class VisibleFeatures(NamedTuple):
    """What the encoder makes of the patches that it sees."""

    features: Float[Tensor, "B T D"]  # the class token, if any, then the visible patches in the order of `mask.keep`
    mask: RandomMask


class MAEOutput(NamedTuple):
    """What the decoder paints."""

    patches: Float[Tensor, "B N P"]  # of all places, though only those at hidden ones count; order as in `patchify`
    masked: Bool[Tensor, "B N"]  # True where a patch was hidden


class MAEEncoder(ViT):
    """A ViT with fixed positions that sees only some of the patches: section 3, "MAE encoder"."""

    def __init__(self, config: ViTConfig, mask_ratio: float = 0.75):
        super().__init__(config)
        self.mask_ratio = mask_ratio
        self.pos_embed = fixed_positions(config.grid, config.dim, self.num_extra)
        if self.cls_token is not None:
            nn.init.normal_(self.cls_token, std=0.02)

    def see(self, image: Float[Tensor, "B C H W"], noise: Float[Tensor, "B N"]) -> VisibleFeatures:
        """The features of the patches with the smallest `noise`, such as torch.rand(B, N); see `random_mask`."""
        mask, patches = random_mask(noise, self.mask_ratio), self.embed(image)
        if noise.shape[1] != patches.shape[1]:
            raise ValueError(f"noise has a number for each of {patches.shape[1]} patches, got {noise.shape[1]}")
        return VisibleFeatures(self.encode(take_patches(patches, mask.keep)), mask)


class MAEDecoder(nn.Module):
    """Paints all patches from the visible ones and a learned token in place of the others: section 3, "MAE decoder"."""

    def __init__(self, config: MAEConfig):
        super().__init__()
        dim, encoder = config.decoder_dim, config.encoder
        norm = partial(nn.LayerNorm, dim, eps=encoder.norm_eps)
        attn = partial(MultiHeadAttention, dim, config.decoder_num_heads)
        ffn = partial(FeedForward, dim, config.decoder_mlp_dim, activation="gelu")
        self.grid, self.num_extra = encoder.grid, int(encoder.pool != "mean")
        self.embed = nn.Linear(encoder.dim, dim)
        self.blocks = nn.ModuleList(TransformerBlock(attn(), ffn(), norm) for _ in range(config.decoder_depth))
        self.norm = norm()
        self.pred = nn.Linear(dim, encoder.patch_size**2 * encoder.in_channels)
        xavier_weights(self)
        self.mask_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embed = fixed_positions(encoder.grid, dim, self.num_extra)

    def forward(self, visible: VisibleFeatures, grid: tuple[int, int]) -> Float[Tensor, "B N P"]:
        """The patches of an image of `grid` patches (down, across), which may differ from that of `image_size`."""
        known, restore, extra = self.embed(visible.features), visible.mask.restore, self.num_extra
        unknown = self.mask_token.expand(len(known), restore.shape[1] + extra - known.shape[1], -1)
        places = F.pad(restore + extra, (extra, 0))  # the class token stays where it is
        positions = self.pos_embed if grid == self.grid else fit_positions(self.pos_embed, self.grid, grid)
        x = take_patches(torch.cat([known, unknown], dim=1), places) + positions
        for block in self.blocks:
            x = block(x)
        return self.pred(self.norm(x)[:, extra:])


class MAE(nn.Module):
    """Encoder and decoder in pre-training, figure 1. Raises ValueError as `ViT` and `random_mask` do."""

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: MAEConfig):
        super().__init__()
        self.config = config
        self.encoder = MAEEncoder(config.encoder, config.mask_ratio)
        self.decoder = MAEDecoder(config)

    def forward(self, image: Float[Tensor, "B C H W"], noise: Float[Tensor, "B N"]) -> MAEOutput:
        """Hides patches by `noise` and paints them."""
        visible = self.encoder.see(image, noise)
        grid = tuple(length // self.config.encoder.patch_size for length in image.shape[-2:])
        return MAEOutput(self.decoder(visible, grid), visible.mask.masked)

    def loss(self, image: Float[Tensor, "B C H W"], noise: Float[Tensor, "B N"]) -> Float[Tensor, ""]:
        """Mean squared error of the hidden patches: section 3, "Reconstruction target"."""
        painted, masked = self(image, noise)
        error = (painted - self.target(image)).square().mean(dim=-1)
        return (error * masked).sum() / masked.sum()

    def target(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N P"]:
        """What is to be painted: the pixels of each patch, (x - mean) / sqrt(variance + 1e-6) if `normalised`."""
        pixels = patchify(image, self.config.encoder.patch_size)
        if not self.config.normalised:
            return pixels
        mean, std = patch_statistics(pixels)
        return (pixels - mean) / std

    def features(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B T D"]:
        """The features of the class token (if any) and all patches: what remains of MAE after pre-training."""
        return self.encoder.features(image)

    def embed(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B N D"]:
        """All patches with their positions."""
        return self.encoder.embed(image)

    def encode(self, patches: Float[Tensor, "B N D"]) -> Float[Tensor, "B T D"]:
        """The class token (if any) and these patches, all or some of them, through the encoder."""
        return self.encoder.encode(patches)

    @torch.no_grad()
    def reconstruct(self, image: Float[Tensor, "B C H W"], noise: Float[Tensor, "B N"]) -> Float[Tensor, "B C H W"]:
        """The image with its hidden patches painted and the visible ones as they are.

        With `normalised` the model does not say how bright a patch is: its mean and spread come from the image.
        """
        painted, masked = self(image, noise)
        patch_size = self.config.encoder.patch_size
        pixels = patchify(image, patch_size)
        if self.config.normalised:
            mean, std = patch_statistics(pixels)
            painted = painted * std + mean
        return unpatchify(torch.where(masked[..., None], painted, pixels), patch_size, *image.shape[-2:])


def encoder_of(mae: MAE, *, num_classes: int | None = None, pool: str | None = None) -> ViT:
    """A plain ViT with a copy of the encoder's weights, for probes and fine-tuning; a head is fresh.

    `pool` as in `ViTConfig`, and the encoder's if not given: "mean" leaves a class token out. Positions may now learn.
    Raises ValueError if `pool` needs a class token that the encoder has not.
    """
    config = mae.config.encoder
    pool = config.pool if pool is None else pool
    vit, weights = ViT(replace(config, num_classes=num_classes, pool=pool)), mae.encoder.state_dict()
    if vit.num_extra > mae.encoder.num_extra:
        raise ValueError(f"pool={pool!r} reads a class token, and this encoder was trained without one: use 'mean'")
    if vit.num_extra < mae.encoder.num_extra:
        del weights["cls_token"]
        weights["pos_embed"] = weights["pos_embed"][:, 1:]
    vit.load_state_dict(vit.state_dict() | weights)
    return vit


def fixed_positions(grid: tuple[int, int], dim: int, num_extra: int) -> nn.Parameter:
    """Sinusoids for each patch and zeros for a class token, as a parameter that no training moves."""
    table = F.pad(sinusoidal_positions_2d(*grid, dim), (0, 0, num_extra, 0))
    return nn.Parameter(table[None], requires_grad=False)


def mae_base(**overrides) -> MAE:
    """MAE with ViT-B/16, 112 M parameters with the decoder; `overrides` go to `MAEConfig` or its `ViTConfig`."""
    ours = {each.name: overrides.pop(each.name) for each in fields(MAEConfig) if each.name in overrides}
    return MAE(MAEConfig(**{"encoder": ViTConfig(**{"num_classes": None} | overrides)} | ours))


def mae_large(**overrides) -> MAE:
    """MAE with ViT-L/16, 330 M parameters."""
    return mae_base(**{"dim": 1024, "depth": 24, "num_heads": 16, "mlp_dim": 4096} | overrides)


def mae_huge(**overrides) -> MAE:
    """MAE with ViT-H/14, 657 M parameters."""
    return mae_large(**{"patch_size": 14, "dim": 1280, "depth": 32, "mlp_dim": 5120} | overrides)
