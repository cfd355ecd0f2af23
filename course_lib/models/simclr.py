"""SimCLR: an encoder that learns without labels, from pairs of views of the same image.

Chen, Kornblith, Norouzi & Hinton, "A simple framework for contrastive learning of visual representations", ICML 2020,
arXiv 2002.05709. The loss is `course_lib.functional.losses.nt_xent`.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation
from course_lib.layers.sizes import plain_integers
from course_lib.models.resnet import ResNet, ResNetConfig
from course_lib.models.vit import ViT, ViTConfig


@dataclass(frozen=True, kw_only=True)
class SimCLRConfig:
    """ResNet-50 with a projection to 128 dimensions by default, section 2.3."""

    encoder: ResNetConfig | ViTConfig = ResNetConfig(num_classes=None)
    projection_dim: int = 128  # of z
    hidden_norm: bool = True  # batch normalisation of the hidden layer, as in the released code; the paper has none

    def __post_init__(self):
        plain_integers(self)
        if self.encoder.num_classes is not None:
            raise ValueError(
                f"the encoder must return features, but has a head of {self.encoder.num_classes} classes: "
                "set its num_classes to None"
            )


class ProjectionHead(nn.Module):
    """z = W2 relu(W1 h), section 2.1; the hidden layer is as wide as h."""

    def __init__(self, dim: int, projection_dim: int, *, norm: bool):
        super().__init__()
        self.hidden_proj = nn.Linear(dim, dim, bias=not norm)
        self.norm = nn.BatchNorm1d(dim) if norm else nn.Identity()
        self.out_proj = nn.Linear(dim, projection_dim, bias=False)

    def forward(self, h: Float[Tensor, "B D"]) -> Float[Tensor, "B P"]:
        return self.out_proj(F.relu(self.norm(self.hidden_proj(h))))


class SimCLR(nn.Module):
    """An encoder f with a projection head g: h = f(x), z = g(h), section 2.1.

    The loss looks at z. h keeps more of the image, section 4.2: what is learned for other tasks is `features`.
    Raises ValueError if the encoder has a head of its own.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: SimCLRConfig):
        super().__init__()
        self.config = config
        is_vit = isinstance(config.encoder, ViTConfig)
        self.encoder = ViT(config.encoder) if is_vit else ResNet(config.encoder)
        dim = config.encoder.dim if is_vit else config.encoder.widths[-1]
        self.projection = ProjectionHead(dim, config.projection_dim, norm=config.hidden_norm)

    def features(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D"]:
        """h, what the encoder says of an image."""
        features = self.encoder.features(image)
        return self.encoder.pool(features) if isinstance(self.encoder, ViT) else features

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P"]:
        """z, to be compared with the other views' by the loss."""
        return self.projection(self.features(image))
