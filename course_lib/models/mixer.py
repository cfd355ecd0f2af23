"""MLP-Mixer: patches talk to each other without attention, through an MLP across places.

Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision", NeurIPS 2021, arXiv 2105.01601.
"""

from dataclasses import dataclass

from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.layers.patches import PatchEmbed
from course_lib.layers.sizes import plain_integers
from course_lib.layers.transformer import FeedForward


@dataclass(frozen=True, kw_only=True)
class MixerConfig:
    """Mixer-B/16 by default, table 1."""

    image_size: int = 224  # pixels a side; the only size that the model can read
    patch_size: int = 16  # P, pixels
    in_channels: int = 3
    num_classes: int | None = 1000  # None: no head, `forward` returns features
    dim: int = 768  # C, channels of a patch
    depth: int = 12  # layers
    token_mlp_dim: int = 384  # D_S, hidden units of the MLP across patches
    mlp_dim: int = 3072  # D_C, hidden units of the MLP across channels
    activation: str = "gelu_tanh"  # as in the released code; the exact "gelu" is 1e-3 away
    norm_eps: float = 1e-6  # of LayerNorm, in the released code; PyTorch's own is 1e-5

    @property
    def num_patches(self) -> int:
        """S, of an image of `image_size`."""
        return (self.image_size // self.patch_size) ** 2

    def __post_init__(self):
        plain_integers(self)
        if self.image_size % self.patch_size or self.image_size < self.patch_size:
            raise ValueError(
                f"image_size must be a multiple of patch_size, got {self.image_size} and {self.patch_size}"
            )


class MixerBlock(nn.Module):
    """U = X + token-mixing MLP of the columns of LN(X), Y = U + channel-mixing MLP of the rows of LN(U): eq. (1).

    All channels share one token-mixing MLP, and all patches one channel-mixing MLP.
    """

    def __init__(
        self, num_patches: int, dim: int, token_mlp_dim: int, mlp_dim: int, *, activation: str, norm_eps: float
    ):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=norm_eps)
        self.token_mlp = FeedForward(num_patches, token_mlp_dim, activation=activation)
        self.norm2 = nn.LayerNorm(dim, eps=norm_eps)
        self.channel_mlp = FeedForward(dim, mlp_dim, activation=activation)

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B S C"]:
        columns = rearrange(self.norm1(x), "b s c -> b c s")
        x = x + rearrange(self.token_mlp(columns), "b c s -> b s c")
        return x + self.channel_mlp(self.norm2(x))


class Mixer(nn.Module):
    """Patches, mixing blocks, LayerNorm, mean over the patches, linear head: figure 1.

    There are no positions: each place has its own weights in the token-mixing MLPs, so that the number of patches is
    fixed. Weights start as in the released code, from N(0, 1 / inputs), those of the head from 0.
    Raises ValueError for an image size that is no multiple of the patch size and, in `forward`, for an image of another
    number of patches.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.config = config
        self.patch_embed = PatchEmbed(config.patch_size, config.in_channels, config.dim)
        self.blocks = nn.ModuleList(
            MixerBlock(
                config.num_patches,
                config.dim,
                config.token_mlp_dim,
                config.mlp_dim,
                activation=config.activation,
                norm_eps=config.norm_eps,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.head = None if config.num_classes is None else nn.Linear(config.dim, config.num_classes)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=part.in_features**-0.5)
                nn.init.zeros_(part.bias)
        if self.head is not None:
            nn.init.zeros_(self.head.weight)

    def forward(self, image: Float[Tensor, "B channels H W"]) -> Float[Tensor, " B *K"]:
        """Logits; without a head the features of all patches, (B, S, C)."""
        features = self.features(image)
        return features if self.head is None else self.head(features.mean(dim=1))

    def features(self, image: Float[Tensor, "B channels H W"]) -> Float[Tensor, "B S C"]:
        """All patches after the last norm."""
        return self.encode(self.embed(image))

    def embed(self, image: Float[Tensor, "B channels H W"]) -> Float[Tensor, "B S C"]:
        """The patches, row by row, each through the same matrix."""
        x = self.patch_embed(image)
        if x.shape[1] != self.config.num_patches:
            raise ValueError(
                f"this Mixer mixes {self.config.num_patches} patches, an image of {image.shape[-2]} x "
                f"{image.shape[-1]} pixels has {x.shape[1]}: resize it to {self.config.image_size} pixels a side"
            )
        return x

    def encode(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B S C"]:
        """Embedded patches through all blocks."""
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


SMALL = {"dim": 512, "depth": 8, "token_mlp_dim": 256, "mlp_dim": 2048}
LARGE = {"dim": 1024, "depth": 24, "token_mlp_dim": 512, "mlp_dim": 4096}
HUGE = {"dim": 1280, "depth": 32, "token_mlp_dim": 640, "mlp_dim": 5120}


def mixer_small_patch32(**overrides) -> Mixer:
    """Mixer-S/32, 19 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**SMALL | {"patch_size": 32} | overrides))


def mixer_small_patch16(**overrides) -> Mixer:
    """Mixer-S/16, 18 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**SMALL | overrides))


def mixer_base_patch32(**overrides) -> Mixer:
    """Mixer-B/32, 60 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**{"patch_size": 32} | overrides))


def mixer_base_patch16(**overrides) -> Mixer:
    """Mixer-B/16, 59 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**overrides))


def mixer_large_patch32(**overrides) -> Mixer:
    """Mixer-L/32, 206 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**LARGE | {"patch_size": 32} | overrides))


def mixer_large_patch16(**overrides) -> Mixer:
    """Mixer-L/16, 207 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**LARGE | overrides))


def mixer_huge_patch14(**overrides) -> Mixer:
    """Mixer-H/14, 431 M parameters without the head, table 1."""
    return Mixer(MixerConfig(**HUGE | {"patch_size": 14} | overrides))
