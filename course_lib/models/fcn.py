"""FCN: a classifier is a segmenter already, once its fully connected layer is read as a convolution.

Long, Shelhamer & Darrell, "Fully convolutional networks for semantic segmentation", CVPR 2015, arXiv 1411.4038.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.functional.images import COURSE_PIXELS, Normalisation, fully_connected_as_convolution
from course_lib.layers.segmentation import bilinear_upsampling, pad_to_multiple
from course_lib.layers.sizes import plain_integers
from course_lib.models.cnn import CNN, CNNConfig
from course_lib.models.resnet import ResNet, ResNetConfig


@dataclass(frozen=True, kw_only=True)
class FCNConfig:
    """A classifier's backbone, and what is made of its last maps."""

    backbone: CNNConfig | ResNetConfig
    window: int  # pixels a side of the last map at the size that the classifier was trained at
    averaged: bool = True  # the classifier's head sees the window's mean; False: all of it, place by place
    num_classes: int = 21
    num_skips: int = 0  # finer maps that are scored, too: with a stride of 32, 0 is FCN-32s, 1 FCN-16s, 2 FCN-8s

    def __post_init__(self):
        plain_integers(self)
        maps = len(self.backbone.widths)
        if not 0 <= self.num_skips < maps or self.window < 1:
            raise ValueError(
                f"a backbone with {maps} maps has 0 to {maps - 1} skips and a window of a pixel or more, got "
                f" num_skips={self.num_skips} and window={self.window}"
            )


class FCN(nn.Module):
    """The backbone, its head as a convolution (`score`), and upsampling that starts as bilinear interpolation (fig. 3).

    Skips, section 4.2: the scores of the last map grow twofold and are added to those of the map before it, and so on.
    Their scoring layers start at zero, so that a skip can be added to a trained net without any harm.
    Raises ValueError for settings that do not fit together.
    """

    normalisation: Normalisation | None = COURSE_PIXELS  # what it expects of pixels; None: nobody knows

    def __init__(self, config: FCNConfig):
        super().__init__()
        self.config = config
        backbone, K = config.backbone, config.num_classes
        kind = CNN if isinstance(backbone, CNNConfig) else ResNet
        self.backbone = kind(replace(backbone, num_classes=None))
        self.stride = coarsest_stride(backbone)
        self.score = nn.Conv2d(backbone.widths[-1], K, 1 if config.averaged else config.window)
        finer = list(reversed(backbone.widths[:-1]))[: config.num_skips]
        self.skip_scores = nn.ModuleList(nn.Conv2d(width, K, 1) for width in finer)
        self.ups = nn.ModuleList(bilinear_upsampling(K, 2) for _ in finer)
        left = self.stride >> config.num_skips
        self.last_up = bilinear_upsampling(K, left) if left > 1 else nn.Identity()
        for layer in self.skip_scores:
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def score_map(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K h w"]:
        """What the classifier says of every window of its own size, `stride` pixels apart; one answer at that size.

        The same net, but not quite the same as cutting the image up: where the classifier's convolutions saw the zeros
        around their image, they see here what lies beside the window.
        Raises ValueError for an image smaller than one window.
        """
        last, size = self.backbone.feature_maps(image)[-1], self.config.window
        if min(last.shape[-2:]) < size:
            raise ValueError(
                f"the last map is {last.shape[-2]} x {last.shape[-1]} pixels, the window {size} x {size}: the image is "
                "smaller than those that the classifier was trained on"
            )
        return self.score(F.avg_pool2d(last, size, stride=1) if self.config.averaged else last)

    def forward(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B K H W"]:
        """The logits of the classes of every pixel.

        A head that sees the window place by place stands with its middle on each pixel of the last map, zeros around
        the map. One that sees a mean is applied at every pixel of the map itself: the classifier's logits are the mean
        of what it says there.
        """
        height, width = image.shape[-2:]
        *finer, last = self.backbone.feature_maps(pad_to_multiple(image, self.stride))
        before, after = (self.score.kernel_size[0] - 1) // 2, self.score.kernel_size[0] // 2
        scores = self.score(F.pad(last, (before, after, before, after)))
        for up, score, x in zip(self.ups, self.skip_scores, reversed(finer), strict=False):
            scores = up(scores) + score(x)
        return self.last_up(scores)[:, :, :height, :width]


def coarsest_stride(backbone: CNNConfig | ResNetConfig) -> int:
    """Pixels of the image between two neighbours of the backbone's last map."""
    halvings = len(backbone.widths) - 1
    if isinstance(backbone, ResNetConfig):
        halvings += (2 if backbone.stem == "imagenet" else 0) + backbone.stride_in_first_stage
    return 1 << halvings


def fcn_from_classifier(
    classifier: CNN | ResNet, *, image_size: int | None = None, num_classes: int | None = None, num_skips: int = 0
) -> FCN:
    """The classifier turned convolutional with the same weights, section 3.1; it was trained on `image_size` pixels.

    A CNN knows its size. With another number of classes (a background, say) the scoring layer starts at zero, section
    4.1.
    Raises ValueError for a classifier without a head, and for a ResNet without an `image_size`.
    """
    config, head = classifier.config, classifier.head
    size = getattr(config, "image_size", None) if image_size is None else image_size
    if head is None or size is None:
        raise ValueError("need a classifier with its head, and the image_size that it was trained at, in pixels a side")
    stride = coarsest_stride(config)
    window = -(-size // stride) if isinstance(config, ResNetConfig) else size // stride  # what does not fit, is padded
    averaged = getattr(config, "pool", "mean") == "mean"
    classes = head.out_features if num_classes is None else num_classes
    model = FCN(FCNConfig(backbone=config, window=window, averaged=averaged, num_classes=classes, num_skips=num_skips))
    model.backbone.load_state_dict({k: v for k, v in classifier.state_dict().items() if not k.startswith("head.")})
    kernel = fully_connected_as_convolution(head.weight, *model.score.kernel_size)
    with torch.no_grad():
        same = classes == head.out_features
        model.score.weight.copy_(kernel) if same else model.score.weight.zero_()
        model.score.bias.copy_(head.bias) if same else model.score.bias.zero_()
    return model
