"""Lesson 14: a small diffusion model of icons, whose network is the lesson's U-Net.

Ho, Jain & Abbeel, "Denoising diffusion probabilistic models", NeurIPS 2020, arXiv 2006.11239. Here the
category is a condition beside the step, there is no attention, the schedule is a cosine (Nichol & Dhariwal 2021, arXiv
2102.09672), and the network predicts the velocity (Salimans & Ho 2022, arXiv 2202.00512).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.icons import CATEGORIES, Icons, icons
from course_lib.functional.diffusion import add_noise, cosine_schedule, velocity
from course_lib.functional.positions import sinusoidal_positions
from course_lib.lessons.lesson_11.icon_recipes import new_drawings
from course_lib.models.unet import UNet, UNetConfig
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, each, fit_by, rounded
from course_lib.training.seeding import seeded
from course_lib.training.vision import seed_of_step

STEPS = 200  # of noise
STEP_DIM = 32  # numbers of the sinusoidal code of a step
CODES = sinusoidal_positions(STEPS, STEP_DIM)
ERROR = "squared error of the velocity"
FEW = 16  # drawings at a time, where nothing is learned


@dataclass(frozen=True, kw_only=True)
class DiffusionSettings:
    """A U-Net that predicts the velocity, and its training."""

    widths: tuple[int, ...] = (32, 64, 96, 128)
    norm_groups: int = 8
    steps: int = 18_000
    batch_size: int = 32
    learning_rate: float = 1.5e-3
    ema: float = 0.999
    seed: int = 0


class NoisyBatch(NamedTuple):
    """Clean images from -1 to 1, what is added to them, and how much of it."""

    images: Float[Tensor, "B 3 H W"]
    categories: Int[Tensor, " B"]
    noise: Float[Tensor, "B 3 H W"]
    t: Int[Tensor, " B"]  # from 0


SCHEDULE = cosine_schedule(STEPS)


def scaled(drawings: Icons) -> Float[Tensor, "B 3 H W"]:
    """The drawings on white, from -1 to 1, as in section 3.3."""
    return 2 * drawings.on(1.0) - 1


def condition(t: Int[Tensor, " B"], categories: Int[Tensor, " B"]) -> Float[Tensor, "B D"]:
    """What the network is told beside the noisy image: the code of step t, and which of the categories it is."""
    return torch.cat([CODES[t], F.one_hot(categories, len(CATEGORIES)).float()], dim=1)


def batch_of(drawings: Icons, generator: torch.Generator, *, mirrored: bool) -> NoisyBatch:
    """Drawings with noise of a random step; half of them mirrored."""
    images = scaled(drawings)
    if mirrored:
        turned = torch.rand(len(images), generator=generator) < 0.5
        images = torch.where(turned[:, None, None, None], images.flip(3), images)
    noise = torch.randn(images.shape, generator=generator)
    t = torch.randint(0, STEPS, (len(images),), generator=generator)
    return NoisyBatch(images, drawings.categories, noise, t)


def velocity_loss(model: nn.Module, batch: NoisyBatch) -> Float[Tensor, ""]:
    """Mean squared error of the velocity, over all numbers."""
    noisy = add_noise(batch.images, batch.noise, batch.t, SCHEDULE)
    predicted = model(noisy, condition(batch.t, batch.categories))
    return F.mse_loss(predicted, velocity(batch.images, batch.noise, batch.t, SCHEDULE))


def build(settings: DiffusionSettings) -> UNet:
    """A fresh network; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        return UNet(
            UNetConfig(
                in_channels=3,
                num_classes=3,
                widths=settings.widths,
                norm_groups=settings.norm_groups,
                condition_dim=STEP_DIM + len(CATEGORIES),
            )
        )


def train(settings: DiffusionSettings, *, checkpoint: Path | None = None) -> Trained:
    """Learns from training drawings with noise; the weights are rounded to 16 bits."""
    drawings = icons("train")
    indices_at = shuffled_batches(len(drawings.names), settings.batch_size, settings.seed)

    def batch_at(step: int) -> NoisyBatch:
        generator = torch.Generator().manual_seed(seed_of_step(settings.seed, step))
        return batch_of(drawings.take(indices_at(step)), generator, mirrored=True)

    trained = fit_by(
        settings,
        build(settings),
        batch_at,
        velocity_loss,
        parts=8,
        warmup=min(200, settings.steps // 10),
        validate=lambda model: error_on(model, icons("validation")),
        checkpoint=checkpoint,
    )
    rounded(trained.model)
    return trained


@torch.no_grad()
def error_on(model: nn.Module, drawings: Icons) -> float:
    """The loss on drawings, with noise that is the same each time."""
    generator, total = torch.Generator().manual_seed(0), 0.0
    for rows in torch.arange(len(drawings.names)).split(FEW):
        batch = batch_of(drawings.take(rows), generator, mirrored=False)
        total += velocity_loss(model.eval(), batch).item() * len(rows)
    return total / len(drawings.names)


def score(trained: Trained, split: str) -> Scores:
    """The loss; on the test also that of training drawings, which it has seen."""
    drawings = new_drawings() if split == "test" else icons(split)
    found = {ERROR: error_on(trained.model, drawings)}
    if split == "test":
        found[f"{ERROR}, training drawings"] = error_on(trained.model, icons("train"))
    return found


RECIPES = {
    "diffusion_icons": Recipe(
        title="Diffusion model of icons",
        lesson="14",
        data="training drawings of course_lib.data.icons on white, 32 x 32 pixels in colour, half of them mirrored, "
        "with their categories; test: other drawings of known things, those of a designer of whom nothing is in the "
        "training, and 100 unseen things",
        minutes=90,
        variants={"": DiffusionSettings()},
        train=train,
        scores=each(score),
        chosen_by=ERROR,
    )
}
