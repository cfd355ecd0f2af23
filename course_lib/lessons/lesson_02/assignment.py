"""Lesson 02, representation learning: what its assignment's check cells ask; the grader's tables are in hidden/02."""

import math
from statistics import mean

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.data.signs import Script
from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

KINDS, FEW, TIMES = 10, 5, 5  # signs; labelled images of each when the grader asks; how often it asks

NEIGHBOURS = Finding(
    "features depend on the other images",
    "The features of an image change with the other images of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
COLLAPSED = Finding(
    "collapsed features",
    "The features of different images have nearly the same direction.",
    "The loss needs a term that separates images, such as the negatives in the denominator of InfoNCE.",
)
NOT_LEARNED = Finding(
    "not learned",
    "The accuracy is hardly above that of an encoder with random weights.",
    "Does the loss fall? Do the two views differ in the *position* of the sign?",
)
MORE = Finding(
    "the views differ in too little",
    "The accuracy is above that of random weights, but it is still low.",
    "Which changes keep the sign the same? Its position and its ink vary. Move it further, or train longer.",
)


def some(script: Script, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
    """So many images, (count, 16, 16), and the number of the sign on each."""
    kinds = draw.integers(0, KINDS, count)
    return script.pictures(kinds, draw.generator), kinds


def features(model: ModuleProbe, pixels: Tensor) -> Tensor:
    """Directions of the features, (B, D); a CheckFailed if they depend on chance or other images, or collapsed."""
    found = model.tensor(pixels)
    if found.ndim != 2 or len(found) != len(pixels):
        model.tensor(pixels, shape=(len(pixels), found.shape[-1]))  # says what is wrong
    shape = tuple(found.shape)
    if not torch.allclose(found, model.tensor(pixels, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    if not torch.allclose(found[:5], model.tensor(pixels[:5], shape=(5, shape[1])), atol=1e-3, rtol=1e-3):
        raise CheckFailed(NEIGHBOURS)
    directions = F.normalize(found, dim=1)
    if (directions @ directions.T).mean() > 0.9995:
        raise CheckFailed(COLLAPSED)
    return directions


def named(model: ModuleProbe, few: tuple[Tensor, Tensor], asked: tuple[Tensor, Tensor]) -> float:
    """The accuracy of choosing, for each image, the sign whose few labelled images have the nearest mean."""
    stored, directions = features(model, few[0]), features(model, asked[0])
    means = torch.stack([stored[few[1] == kind].mean(dim=0) for kind in range(KINDS)])
    return (directions @ F.normalize(means, dim=1).T).argmax(dim=1).eq(asked[1]).float().mean().item()


def names(name: str, points: float, *, above: float) -> Check:
    """With five labels of each sign the accuracy on new images is above this; that of a guess is 0.1.

    The choice of the five changes the accuracy by 0.04 (standard deviation): it is the mean of several choices.
    """

    def trained(probe: Probe) -> tuple[ModuleProbe, Script]:
        script = Script(KINDS, probe.draw.generator)
        model = probe.make("train", some(script, probe.draw, 2_000)[0])
        few, asked = examples(script, probe.draw)
        in_parameters(model, few[0], knows=lambda: named(model, few, asked) > 0.35)
        return model, script

    def examples(script: Script, draw: Draw) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        kinds = torch.arange(KINDS).repeat(FEW)
        return (script.pictures(kinds, draw.generator), kinds), some(script, draw, 100)

    def run(probe: Probe) -> list[Finding]:
        model, script = probe.once("trained", trained)
        share = mean(named(model, *examples(script, probe.draw)) for _ in range(TIMES))
        return [] if share > above else [(NOT_LEARNED if share < 0.3 else MORE)]

    told = (NEIGHBOURS, COLLAPSED, NOT_LEARNED, MORE)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

TWINS = (([[3.0, 1.0], [1.0, 5.0]], [[0.0, 2.0], [-4.0, 0.0]], 0.5), 5.0)
VARIED = (([[1.0, 0.0], [3.0, 0.0]], [[1.0, 1.0], [3.0, 0.0]], 2.0, 1.0, 0.5), 2.14145)
FOUND = (([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]], [[2.0, 0.0], [3.0, 1.0], [0.0, 5.0]], 2), 0.6667)
ORDERED = (([[1.0, 0.0], [3.0, 1.0], [1.0, 1.0], [0.0, 2.0], [1.0, 2.0]], torch.tensor([0, 1, 0, 1, 0])), 0.25)
MEANS = (
    ([[1.0, 0.0], [0.0, 5.0], [0.0, -2.0]], torch.tensor([0, 0, 1]), [[0.0, 3.0], [1.0, 0.0]], 2),
    [[0.7071, -1.0], [0.7071, 0.0]],
)
LABELLED = [[2.0, 0.0], [3.0, 4.0], [0.0, 1.0], [-1.0, 0.0]], torch.tensor([0, 1, 1, 0])
VOTES = ((*LABELLED, [[5.0, 0.0], [-2.0, 0.0]], 2, 3, 0.2 / math.log(2)), [[0.7805, 0.2195], [0.9660, 0.0340]])

SHOWN = (
    Task(
        "twin_loss",
        "A loss without negatives",
        asks="first, second, weight",
        also=(keeps_type, gradients),
        example=(TWINS,),
    ),
    Task(
        "vicreg_loss",
        "Variance, invariance, covariance",
        asks="first, second, invariance, variance, covariance",
        also=(keeps_type, gradients),
        example=(VARIED,),
    ),
    Task("recall_at", "Is it among the first?", asks="queries, keys, k", example=(FOUND,)),
    Task("map_at_r", "How good is the order?", asks="features, labels", example=(ORDERED,)),
    Task(
        "nearest_mean",
        "A classifier that learns nothing",
        asks="features, labels, asked, num_classes",
        also=(keeps_type,),
        example=(MEANS,),
    ),
    Task(
        "neighbour_votes",
        "Votes of the neighbours",
        asks="features, labels, asked, num_classes, k, temperature",
        also=(keeps_type,),
        example=(VOTES,),
    ),
    Task(
        "train",
        "An encoder without a label",
        asks="pictures",
        seconds=TRAINING_SECONDS,
        checks=(
            names("Five labels of each sign: accuracy clearly above that of random weights", 7, above=0.35),
            names("Five labels of each sign: accuracy above 0.6", 11, above=0.6),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
