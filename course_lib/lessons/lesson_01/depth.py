"""Lesson 01, the experiment on depth: plain and residual networks of 8 and 44 layers learn clean digits on the page."""

from dataclasses import replace

from course_lib.lessons.lesson_01.recipes import depth
from course_lib.models.resnet import ResNet
from course_lib.training.config import FitConfig
from course_lib.training.loop import fit
from course_lib.training.progress import Progress
from course_lib.training.vision import classification_loss, seed_of_step

STEPS = 100


def deep_network(kind: str, layers: int) -> ResNet:
    """An untrained network for clean digits, plain or residual."""
    return depth.build(replace(depth.SETTINGS, kind=kind, num_layers=layers))


def learn_digits(model: ResNet, display: Progress | None = None, steps: int = STEPS) -> list[float]:
    """Trains on clean digits, new ones in each step, and returns the loss of each step."""
    settings = replace(depth.SETTINGS, steps=steps)
    history = fit(
        model,
        lambda step: depth.digits(settings, "train", settings.batch_size, seed_of_step(1, step)),
        classification_loss,
        config=FitConfig(steps=steps, learning_rate=settings.learning_rate, warmup=steps // 10),
        progress=display,
    )
    return [float(loss) for loss in history.losses]
