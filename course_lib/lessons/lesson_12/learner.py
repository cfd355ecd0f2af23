"""Lesson 12: digits for the learner's own loop, and what a network makes of a few of them."""

from collections.abc import Callable

from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.digits import CleanDigits, LabelledImages
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_12 import figures, recipes
from course_lib.training.vision import predictions, seed_of_step

SIZE = recipes.SETTINGS.size


def batch(size: int, step: int) -> tuple[Float[Tensor, "B 1 S S"], Int[Tensor, " B"]]:
    """Training digits that are drawn for this step, standardised, and their labels."""
    digits = CleanDigits(split="train", size=SIZE).batch(size, seed_of_step(0, step))
    return standardise(digits.pixels), digits.labels


def test_digits(count: int = 1000) -> LabelledImages:
    """Clean digits that no network has seen; pixels from 0 to 1."""
    return CleanDigits(split="test", size=SIZE).batch(count, 0)


def showing(digits: LabelledImages, *, count: int = 6) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: the most probable class of the first of these digits, with its probability."""
    few = LabelledImages(digits.pixels[:count], digits.labels[:count])

    def example(model: nn.Module) -> Figure:
        probs = predictions(model, few.pixels).softmax(dim=-1)
        return figures.guesses(few.pixels[:, 0], probs, few.labels)

    return example


def test_batch(count: int) -> tuple[Float[Tensor, "B 1 S S"], Int[Tensor, " B"]]:
    """The test digits, standardised, and their labels."""
    digits = test_digits(count)
    return standardise(digits.pixels), digits.labels
