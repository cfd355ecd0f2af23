"""Lesson 02: the digits that the page trains on and asks about, and what it shows of the learner's training."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from statistics import mean

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data.augmentations import two_views
from course_lib.data.digits import LabelledImages
from course_lib.data.draws import generator
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_02 import figures, recipes
from course_lib.models.simclr import SimCLR
from course_lib.training.probes import features_of, label_draw, nearest_neighbours
from course_lib.training.progress import Progress

EVERY = 20  # steps between two measurements by neighbours
NEIGHBOURS = 3

Views = Callable[[Tensor, Tensor], Tensor]
Vote = Callable[[Tensor, Tensor, Tensor, int], Tensor]
Encoder = Callable[[Tensor], Tensor]


def fresh() -> SimCLR:
    """The network of `simclr` with its first weights."""
    return recipes.build(recipes.SETTINGS)


def digits(count: int, seed: int, split: str = "train") -> Float[Tensor, "B 1 28 28"]:
    """Digits with pixels from 0 to 1, the same for the same seed."""
    return recipes.DIGITS[split].batch(count, seed).pixels


def labels_of(count: int, seed: int, split: str = "train") -> Int[Tensor, " B"]:
    """The labels of `digits`."""
    return recipes.DIGITS[split].batch(count, seed).labels


def few_and_many(per_class: int, seen: int = 600) -> tuple[LabelledImages, LabelledImages]:
    """A few labelled training images, and test images to ask about."""
    pixels, labels = recipes.images("train")
    few = label_draw(labels, per_class, seed=0)
    asked, names = recipes.images("test")
    return LabelledImages(pixels[few], labels[few]), LabelledImages(asked[:seen], names[:seen])


def neighbour_accuracy(encoder: Encoder, draws: int = 5) -> float:
    """The fraction of 600 images that three neighbours among 50 labelled ones classify correctly, over some draws."""
    (pixels, labels), asked = recipes.images("train"), few_and_many(1)[1]
    scores = []
    for draw in range(draws):
        few = label_draw(labels, 5, seed=draw)
        probe = nearest_neighbours(encoder(pixels[few]), labels[few], k=NEIGHBOURS)
        scores.append(probe.accuracy(encoder(asked.pixels), asked.labels))
    return mean(scores)


def asked_neighbours(encoder: Encoder, vote: Vote, per_class: int = 5) -> float:
    """The same by the learner's `vote(h, stored, labels, k)`, with so many labels of each digit."""
    few, many = few_and_many(per_class)
    found = vote(encoder(many.pixels), encoder(few.pixels), few.labels, NEIGHBOURS)
    return (found == many.labels).double().mean().item()


class Batches:
    """So many batches of views, made when the loop asks for them: new digits and new noise in each step."""

    def __init__(self, views: Views, *, steps: int, size: int, seed: int = 0):
        self.views, self.steps, self.size, self.seed = views, steps, size, seed

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Float[Tensor, "2B 1 28 28"]]:
        draws = generator("views of the page", self.seed)
        for step in range(self.steps):
            noise = torch.rand(2, 7, self.size, generator=draws)
            yield standardise(self.views(digits(self.size, 1000 * self.seed + step), noise))


class UntilStopped:
    """Batches that end after the step in which a display is stopped; the length stays as planned."""

    def __init__(self, batches: Collection[Tensor], display: Progress):
        self.batches, self.display = batches, display

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Tensor]:
        for batch in self.batches:
            yield batch
            if getattr(self.display, "stopped", False):
                return


class Log:
    """Called with the loss of each step: tells it to the display.

    It asks the neighbours every 20 steps, after the last one, and where the display is stopped.
    """

    def __init__(self, model: nn.Module, vote: Vote, display: Progress | None = None, *, steps: int):
        self.model, self.vote, self.display, self.total = model, vote, display, steps
        self.losses: list[float] = []
        self.steps, self.votes = [0], [self._ask()]

    def __call__(self, loss: float) -> None:
        self.losses.append(float(loss))
        done = len(self.losses)
        stopped = getattr(self.display, "stopped", False)
        if done % EVERY == 0 or done == self.total or stopped:
            self.steps.append(done)
            self.votes.append(self._ask())
        if self.display is not None:
            self.display.update(done, self.total, loss=self.losses[-1], neighbours=self.votes[-1])

    def _ask(self) -> float:
        return asked_neighbours(encoder_of(self.model), self.vote)


def told(display: Progress, total: int) -> Callable[[float], None]:
    """A function for the page's loop that tells the display the loss of each step."""
    losses: list[float] = []

    def report(loss: float) -> None:
        losses.append(loss)
        display.update(len(losses), total, loss=loss)

    return report


def encoder_of(model: nn.Module) -> Encoder:
    """A function from pixels to h of the learner's model, or of ours."""
    inside = model.features if isinstance(model, SimCLR) else model.encoder

    @torch.no_grad()
    def encode(pixels: Tensor) -> Tensor:
        training = model.training
        model.eval()
        h = inside(standardise(pixels))
        model.train(training)
        return h

    return encode


def showing(images: LabelledImages) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: the cosine of each first view with each second view."""
    views = two_views(images.pixels, generator("watched", 0), recipes.SETTINGS.augmentation)

    def example(model: nn.Module) -> Figure:
        first, second = (F.normalize(features_of(model, view), dim=1) for view in views)
        return figures.cosines(first @ second.T, *(view[:, 0] for view in views))

    return example


pixels_alone = partial(torch.flatten, start_dim=1)  # images as their own features
