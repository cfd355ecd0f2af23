"""Lesson 13, masked autoencoders: what the check cells of its assignment ask; the grader's tables are in hidden/13."""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, WRONG_SHAPE, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# images of fabrics, which are drawn anew for each training ----------------------------------------------------

SIDE, PATCHES = 16, 16  # an image of 16 x 16 pixels has 4 x 4 patches of 4 x 4 pixels
FABRICS, NOISE = 6, 0.25
UNLABELLED, LABELLED, NEW = 2_000, 200, 1_000  # images for the training, for the linear probe, and for the measurement
PENALTY, MOST_FEATURES = 10.0, 256


class Fabrics:
    """Images of six fabrics. Each fabric has two waves, whose phases and amplitudes differ from image to image."""

    def __init__(self, draw: Draw):
        waves = torch.cartesian_prod(torch.arange(1, 3), torch.arange(-2, 3))
        waves = waves[draw(len(waves)).argsort()[:FABRICS]]
        self.waves = torch.stack([waves, waves.roll(1, dims=0)], dim=1)  # each wave is in two fabrics

    def images(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        """Images (count, 16, 16) and their labels (count,). The waves have variance 1, and the noise 1/16."""
        labels = draw.integers(0, FABRICS, count)
        pixel = torch.arange(SIDE) / SIDE
        down, across = self.waves[labels].permute(2, 0, 1)[..., None, None]
        phase, amplitude = torch.rand(2, count, 2, 1, 1, generator=draw.generator)
        turns = down * pixel[:, None] + across * pixel + phase
        waves = ((0.5 + amplitude) * (2 * math.pi * turns).cos()).sum(1) / (13 / 12) ** 0.5
        return waves + NOISE * draw(*waves.shape), labels


def hidden_pixels(masked: Tensor) -> Tensor:
    """Masks of patches, (B, 16), as masks of pixels, (B, 16, 16)."""
    return masked.view(-1, 4, 4).repeat_interleave(4, dim=1).repeat_interleave(4, dim=2)


def probe_accuracy(known: Tensor, labels: Tensor, new: Tensor, targets: Tensor, penalty: float = PENALTY) -> float:
    """The accuracy of a linear probe with squared errors, fitted to the `known` features, on the `new` ones."""
    mean, std = known.mean(dim=0), (known.var(dim=0, correction=0) + 1e-6).sqrt()
    z, wanted = ((known - mean) / std).double(), one_hot(labels, FABRICS).double()
    middle, width = wanted.mean(dim=0), z.shape[1]
    rows = torch.cat([z, penalty**0.5 * torch.eye(width, dtype=z.dtype)])  # the penalty as more examples, of target 0
    weights = torch.linalg.lstsq(rows, torch.cat([wanted - middle, wanted.new_zeros(width, FABRICS)])).solution
    scores = ((new - mean) / std).double() @ weights + middle
    return (scores.argmax(dim=1) == targets).float().mean().item()


LOOKS = Finding(
    "hidden pixels are used",
    "The reconstruction changes when the hidden pixels change: the network gets the pixels that it should predict.",
    "Remove the hidden patches before anything else is computed. True in `masked` means hidden.",
)
NEIGHBOURS = Finding(
    "result depends on the other images",
    "The result for an image changes with the other images of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
NOT_LEARNED = Finding(
    "not learned",
    "The reconstruction error at hidden patches of new images is larger than asked for.",
    "Does the training loss fall until the end? Is another mask drawn in each step? Try another learning rate.",
)
MEMORISED = Finding(
    "memorised",
    "Images of the training are reconstructed much better than new images of the same fabrics.",
    "Draw each batch from all of the images.",
)
NOTHING_HIDDEN = Finding(
    "nothing hidden in training",
    "Visible patches are reproduced well, and hidden ones are not reconstructed.",
    "Hide patches in the training, other ones in each step, and compute the loss on the hidden patches.",
)
ONE_RATIO = Finding(
    "only one mask ratio",
    "With some mask ratios the reconstruction error is small enough, and with others it is not.",
    "Train with different numbers of hidden patches.",
)
POOR_FEATURES = Finding(
    "features of little use",
    "The images are reconstructed well, but a linear probe of the features does not tell the fabrics apart.",
    "Which layer are the features from, and what did the pretext task demand of it? Measure several with a probe.",
)


def errors(model: ModuleProbe, images: Tensor, hidden: int, draw: Draw) -> tuple[float, float]:
    """The squared error at hidden and at visible pixels.

    A CheckFailed if it depends on chance, on hidden pixels, or on the other images.
    """
    masked = draw(len(images), PATCHES).argsort(dim=1) < hidden
    pixels = hidden_pixels(masked)
    alone = model.tensor(images[:1], masked[:1], shape=(1, *images.shape[1:]))
    found = model.tensor(images, masked, shape=images.shape)
    if not torch.allclose(found, model.tensor(images, masked, shape=images.shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    others = torch.where(pixels, draw(*images.shape), images)
    if not torch.allclose(found, model.tensor(others, masked, shape=images.shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(LOOKS)
    if not torch.allclose(found[:1], alone, atol=1e-3, rtol=1e-3):
        raise CheckFailed(NEIGHBOURS)
    squared = (found - images).square()
    return squared[pixels].mean().item(), squared[~pixels].mean().item()


def features(model: ModuleProbe, images: Tensor) -> Tensor:
    """The features of whole images, (B, D); a CheckFailed if they depend on chance, or on the other images."""
    found = model.tensor(images)
    if found.ndim != 2 or len(found) != len(images) or found.shape[1] > MOST_FEATURES:
        wanted = f"({len(images)}, D) with D at most {MOST_FEATURES}"
        raise CheckFailed(
            general(WRONG_SHAPE, f"The features have shape {tuple(found.shape)}, but {wanted} is needed.")
        )
    if not torch.allclose(found, model.tensor(images), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    if not torch.allclose(found[:1], model.tensor(images[:1]), atol=1e-3, rtol=1e-3):
        raise CheckFailed(NEIGHBOURS)
    return found


def _trained(probe: Probe) -> tuple[ModuleProbe, Tensor, Fabrics]:
    fabrics = Fabrics(probe.draw)
    seen, _ = fabrics.images(probe.draw, UNLABELLED)
    model = probe.make("train", seen)
    images, _ = fabrics.images(probe.draw, 100)
    masked = torch.rand(100, PATCHES, generator=probe.draw.generator).argsort(dim=1) < PATCHES // 2
    pixels = hidden_pixels(masked)

    def reconstructs() -> bool:
        return (model.tensor(images, masked, shape=images.shape) - images)[pixels].square().mean().item() < 0.7

    in_parameters(model, images, masked, knows=reconstructs, at_least=500)
    return model, seen, fabrics


def reconstructs(name: str, points: float, *, below: float, hidden: int = 8) -> Check:
    """The error at hidden pixels of new images is below this; a reconstruction of zeros has the error 1.06."""

    def run(probe: Probe) -> list[Finding]:
        model, seen, fabrics = probe.once("trained", _trained)
        new, _ = fabrics.images(probe.draw, 500)
        error, _ = errors(model, new, hidden, probe.draw)
        if error < below:
            return []
        if errors(model, new, 4, probe.draw)[1] < error / 5 and errors(model, new, 4, probe.draw)[0] > 0.7:
            return [NOTHING_HIDDEN]
        if min(errors(model, some, hidden, probe.draw)[0] for some in (seen[:8], seen[-8:])) < error / 3:
            return [MEMORISED]
        others = min(errors(model, new, count, probe.draw)[0] for count in (4, 8, 12))
        return [(ONE_RATIO if others < ALL_RATIOS else NOT_LEARNED)]

    told = (LOOKS, NEIGHBOURS, NOT_LEARNED, MEMORISED, NOTHING_HIDDEN, ONE_RATIO)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


def probed(name: str, points: float, *, above: float) -> Check:
    """The accuracy of a linear probe on new images is above this; it is fitted to the features of 200 labelled ones."""

    def run(probe: Probe) -> list[Finding]:
        model, _, fabrics = probe.once("trained", _trained)
        known, labels = fabrics.images(probe.draw, LABELLED)
        new, targets = fabrics.images(probe.draw, NEW)

        def accuracy() -> float:
            return probe_accuracy(features(model, known), labels, features(model, new), targets)

        found = accuracy()
        in_parameters(model, known, knows=lambda: accuracy() > above / 2, at_least=500)
        if found > above:
            return []
        good = errors(model, new[:500], PATCHES // 2, probe.draw)[0] < ALL_RATIOS
        return [POOR_FEATURES if good else NOT_LEARNED]

    told = (NEIGHBOURS, NOT_LEARNED, POOR_FEATURES)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


ALL_RATIOS = 0.2  # an error that a network has with half of the patches hidden if it has learned

# the examples -----------------------------------------------------------------------------------------------

FIRST, SECOND = 5 + 10**0.5, 5.0
LENGTH = (FIRST**2 + SECOND**2) ** 0.5
HISTOGRAM = (([[[0.0, 3.0], [4.0, 4.0]]], 2, 3), [[[FIRST / LENGTH, SECOND / LENGTH, 0.0]]])
# features of two patches after three blocks, the mean of the last two normalised blocks being 0 and 1/2
BLOCKS = [[[[9.0, 1.0], [7.0, 3.0]]], [[[0.0, 4.0], [2.0, 2.0]]], [[[5.0, 1.0], [1.0, 1.0]]]]
TWO_MASKS = [[[True, True], [True, False]]]
TEACHER = ((BLOCKS, [[[[0.0, 1.0], [1.0, 1.0]], [[-1.0, -1.0], [5.0, 5.0]]]], torch.tensor(TWO_MASKS), 2), 1.5)
TWO_PATCHES = (
    (
        [[[[5.0, 6.0, 0.0, 0.0], [7.0, 8.0, 0.0, 4.0]]]],
        [[[9.0, 9.0, 9.0, 9.0], [1.0, 0.0, -1.0, 0.0]]],
        torch.tensor([[False, True]]),
        2,
    ),
    [[[[5.0, 6.0, 3.0, 1.0], [7.0, 8.0, -1.0, 1.0]]]],
)
ROW, RECONSTRUCTED = [[[[7.0, 4.0, 4.0, 2.0]]]], [[[[3.0, 0.0, 3.0, 2.0]]]]
LOW_VISIBLE, HIGH_VISIBLE = ((ROW, RECONSTRUCTED, 1.5, True), [0.5]), ((ROW, RECONSTRUCTED, 1.5, False), [9.5 / 3])
TWO = (([[0.0], [2.0]], torch.tensor([0, 1]), [[3.0], [1.0]], 2, 2.0), [[0.0, 1.0], [0.5, 0.5]])

ONE_AND_THREE = (
    ([[2.0, 2.0], [3.0, 5.0], [-2.0, 2.0], [0.0, -4.0]], torch.tensor([0, 1, 0, 0]), [[4.0, 2.0], [1.0, 2.0]], 2, 0.5),
    [[math.log(3 / 4), 2 - math.log(4)], [math.log(3 / 4), -1 - math.log(4)]],
)

SHOWN = (
    Task(
        "hog_target",
        "Oriented gradients as a target",
        asks="image, patch_size, bins",
        also=(keeps_type,),
        example=(HISTOGRAM,),
    ),
    Task(
        "teacher_loss",
        "The last blocks of a teacher as a target",
        asks="blocks, predicted, masked, K",
        also=(keeps_type,),
        example=(TEACHER,),
    ),
    Task(
        "reconstruct",
        "From normalised targets to an image",
        asks="image, predicted, masked, patch_size",
        also=(keeps_type, gradients),
        example=(TWO_PATCHES,),
    ),
    Task(
        "frequency_loss",
        "A loss of hidden frequencies",
        asks="image, predicted, radius, low_visible",
        also=(keeps_type, gradients),
        example=(LOW_VISIBLE, HIGH_VISIBLE),
    ),
    Task(
        "probe_scores",
        "A linear probe in closed form",
        asks="features, labels, new, num_classes, penalty",
        also=(keeps_type,),
        example=(TWO,),
    ),
    Task(
        "discriminant_scores",
        "Linear discriminant analysis",
        asks="features, labels, new, num_classes, shrinkage",
        also=(keeps_type,),
        example=(ONE_AND_THREE,),
    ),
    Task(
        "train",
        "Fabrics without labels",
        asks="images",
        seconds=TRAINING_SECONDS,
        checks=(
            reconstructs("8 of 16 patches hidden: error below 0.18", 7, below=0.18),
            reconstructs("12 of 16 patches hidden: error below 0.3", 6, below=0.3, hidden=12),
            probed("Linear probe of the features: accuracy above 75 %", 10, above=0.75),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
