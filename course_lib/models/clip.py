"""CLIP: images and texts in one space, where those that belong together are near each other.

Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021, arXiv 2103.00020.
With a frozen image encoder this is locked-image tuning: Zhai et al., "LiT: zero-shot transfer with locked-image text
tuning", CVPR 2022, arXiv 2111.07991.
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.layers.transformer import check_sizes
from course_lib.models.gpt import GPT, GPTConfig


@dataclass(frozen=True, kw_only=True)
class CLIPConfig:
    """The text encoder of Radford et al., section 2.4, by default. Raises ValueError for a size below 1."""

    text: GPTConfig = field(
        default_factory=lambda: GPTConfig(
            vocab_size=49_408, context_length=77, dim=512, num_heads=8, dropout=0.0, head=None
        )
    )
    image_dim: int = 768  # of the features that the image encoder gives for a whole image
    joint_dim: int = 512  # of the space that both are projected to
    temperature: float = 0.07  # at the start of the training: the scale of the cosines is its inverse

    def __post_init__(self):
        check_sizes(self, "image_dim", "joint_dim")
        if self.text.head is not None:
            raise ValueError("the text encoder gives features: set its head to None")


class CLIP(nn.Module):
    """Embeddings of images and texts, and the logits of which belongs to which.

    The text encoder is a causal Transformer, section 2.4. Differs from the paper in that the features of a text are the
    mean over its tokens, not those of the last one, and that the image encoder is no part of the model: it is given
    the encoder's features.
    """

    def __init__(self, config: CLIPConfig):
        super().__init__()
        self.config = config
        self.text = GPT(config.text)
        self.image_proj = nn.Linear(config.image_dim, config.joint_dim, bias=False)
        self.text_proj = nn.Linear(config.text.dim, config.joint_dim, bias=False)
        self.log_scale = nn.Parameter(torch.tensor(1 / config.temperature).log())

    def forward(
        self, features: Float[Tensor, "N C"], tokens: Int[Tensor, "M T"], lengths: Int[Tensor, " M"]
    ) -> Float[Tensor, "N M"]:
        """The cosine of each image with each text, times the scale."""
        images, texts = self.embed_images(features), self.embed_texts(tokens, lengths)
        return self.log_scale.exp() * images @ texts.T

    def embed_images(self, features: Float[Tensor, "N C"]) -> Float[Tensor, "N J"]:
        """Vectors of length 1."""
        return F.normalize(self.image_proj(features), dim=-1)

    def embed_texts(self, tokens: Int[Tensor, "M T"], lengths: Int[Tensor, " M"]) -> Float[Tensor, "M J"]:
        """Vectors of length 1; padding may follow the `lengths` first tokens of a text."""
        features = self.text(tokens)
        real = torch.arange(tokens.shape[1]) < lengths[:, None]
        mean = (features * real[..., None]).sum(dim=1) / lengths[:, None]
        return F.normalize(self.text_proj(mean), dim=-1)
