"""Lesson 14: the learner's functions inside a U-Net, and its training: digit or background."""

from collections.abc import Callable
from dataclasses import dataclass

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.scenes import Scenes
from course_lib.functional.images import standardise
from course_lib.functional.segmentation import dice_loss
from course_lib.lessons.lesson_14 import figures
from course_lib.lessons.lesson_14.recipes import batch_seed, scenes
from course_lib.models.unet import UNet, UNetConfig
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress
from course_lib.training.seeding import seeded
from course_lib.training.vision import predictions

PIECE = 2  # pixels a side


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A U-Net for two classes that learns while one looks on."""

    widths: tuple[int, ...] = (8, 16, 32, 64)
    steps: int = 300
    batch_size: int = 32
    learning_rate: float = 3e-3
    seed: int = 0


class Up(nn.Module):
    """A transposed convolution that is computed by the learner's `function(image, kernel, stride)`.

    Stamps of 2 x 2 at a stride of 2 do not touch. So the map is cut into pieces of 2 x 2 pixels, which go through the
    function all at once: it makes four stamps, whether it works pixel by pixel or not.
    """

    def __init__(self, layer: nn.ConvTranspose2d, function: Callable[..., Tensor]):
        super().__init__()
        self.layer, self.function = layer, function

    def forward(self, x: Float[Tensor, "B C_in h w"]) -> Float[Tensor, "B C_out H W"]:
        cut, join = "b c (h i) (w j) -> (b h w) c i j", "(b h w) c i j -> b c (h i) (w j)"
        height, width = x.shape[-2:]
        x = F.pad(x, (0, width % PIECE, 0, height % PIECE))
        h, w = x.shape[-2] // PIECE, x.shape[-1] // PIECE
        pieces = self.function(
            rearrange(x, cut, i=PIECE, j=PIECE).contiguous(), self.layer.weight, self.layer.stride[0]
        )
        made = rearrange(pieces, join, h=h, w=w) + self.layer.bias[:, None, None]
        return made[..., : height * self.layer.stride[0], : width * self.layer.stride[0]]


def with_learner_parts(model: UNet, function: Callable[..., Tensor]) -> UNet:
    """The same model, whose decoder grows its maps by the learner's function."""
    for block in model.decoder:
        block.up = Up(block.up, function)
    return model


def build(settings: Settings, function: Callable[..., Tensor]) -> UNet:
    """A fresh U-Net that grows its maps by the learner's function."""
    with seeded(settings.seed):
        return with_learner_parts(UNet(UNetConfig(num_classes=2, widths=settings.widths)), function)


def digit_or_not(model: nn.Module, batch: Scenes) -> Float[Tensor, ""]:
    """Cross-entropy in nats per pixel, plus the Dice loss, of two classes."""
    logits, true = model(standardise(batch.pixels)), (batch.semantic > 0).long()
    return F.cross_entropy(logits, true) + dice_loss(logits, true)


def train(model: UNet, settings: Settings, display: Progress) -> None:
    """Trains on scenes that it has never seen before, at every step."""
    source = scenes("train")
    fit(
        model,
        lambda step: source.batch(settings.batch_size, seed=batch_seed(settings.seed, step)),
        digit_or_not,
        config=FitConfig(
            steps=settings.steps,
            learning_rate=settings.learning_rate,
            schedule="cosine",
            warmup=20,
            weight_decay=0.01,
            seed=settings.seed,
        ),
        progress=display,
    )


def shows(scene: Scenes) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: one picture, what the net takes for digit, and the true mask."""

    def example(model: nn.Module) -> Figure:
        digit = predictions(model, scene.pixels).softmax(dim=1)[0, 1]
        return figures.growing(scene.pixels[0, 0], digit, scene.semantic[0] > 0)

    return example
