"""Lesson 01, transfer learning: what the check cells of its assignment ask; the grader's tables are in hidden/01."""

import torch
from torch import Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Draw, Finding, Task, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# characters of an invented script ---------------------------------------------------------------------------

KNOWN, NEW = 20, 12
SHAPES, STROKES = 10, 4
PER_CHARACTER = 2  # labelled images of each new character


class Script:
    """Characters of three shapes each, the known ones first, then the new ones."""

    def __init__(self, draw: Draw):
        self.random = draw.generator
        self.shapes = self.draw(SHAPES)
        triples = torch.combinations(torch.arange(SHAPES), 3)
        self.characters = triples[torch.randperm(len(triples), generator=self.random)[: KNOWN + NEW]]

    def draw(self, count: int) -> Tensor:
        """Shapes, (count, 4, 2, 2): both ends of each of four strokes, which connect five points of a 3 x 3 grid."""
        points = torch.rand(count, 9, generator=self.random).argsort(dim=1)[:, : STROKES + 1]
        points = 2.5 * torch.stack([points // 3, points % 3], dim=-1)
        return torch.stack([points[:, :-1], points[:, 1:]], dim=2)

    def images(self, count: int, *, new: bool) -> tuple[Tensor, Tensor]:
        """Images, (count, 16, 16), of the known or of the new characters in equal numbers, and their labels.

        In each image the three shapes lie in three of its quarters, and a meaningless one in the fourth.
        """
        labels = torch.randperm(count, generator=self.random) % (NEW if new else KNOWN)
        shapes = self.shapes[self.characters[labels + (KNOWN if new else 0)]]
        other = self.draw(count)[:, None]
        order = torch.rand(count, 4, generator=self.random).argsort(dim=1)
        ends = torch.cat([shapes, other], dim=1)[torch.arange(count)[:, None], order]
        corners = torch.tensor([[0, 0], [0, 8], [8, 0], [8, 8]])[:, None, None]
        ends = ends + corners + 2 * torch.rand(count, 4, 1, 1, 2, generator=self.random)
        ends = ends + 0.25 * torch.randn(ends.shape, generator=self.random)
        steps = torch.linspace(0, 1, 12)[:, None]
        ink = ends[..., :1, :] * (1 - steps) + ends[..., 1:, :] * steps
        rows, columns = ink.round().long().clamp(0, 15).flatten(1, 3).unbind(dim=-1)
        pixels = torch.zeros(count, 16, 16)
        pixels[torch.arange(count)[:, None], rows, columns] = 1.0
        strength = 0.6 + 0.8 * torch.rand(count, 1, 1, generator=self.random)
        return strength * pixels + 0.1 * torch.randn(pixels.shape, generator=self.random), labels


NEIGHBOURS = Finding(
    "answers depend on the other images",
    "The logits of an image change with the other images of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
NOT_LEARNED = Finding(
    "not learned",
    "New images of the new characters are classified hardly better than by a guess.",
    "Does the training loss fall? Was the backbone trained on the known characters first, and did it keep its weights?",
)
NO_TRANSFER = Finding(
    "no gain from the known characters",
    "The accuracy on the new characters is not above what training on their few images alone can reach.",
    "Keep the backbone that has learned the known characters, and fit a new head on it. A high learning rate, or batch "
    "norms in training mode, can destroy what it has learned.",
)


def accuracy(model: ModuleProbe, images: Tensor, labels: Tensor) -> float:
    """The fraction classified correctly; a CheckFailed if it depends on chance, or on the other images."""
    shape = (len(images), NEW)
    logits = model.tensor(images, shape=shape)
    if not torch.allclose(logits, model.tensor(images, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    few = torch.arange(len(images)).flip(0)[:5]  # at other indices of another batch
    if not torch.allclose(logits[few], model.tensor(images[few], shape=(5, NEW)), atol=1e-3, rtol=1e-3):
        raise CheckFailed(NEIGHBOURS)
    return (logits.argmax(dim=1) == labels).float().mean().item()


def classifies(name: str, points: float, *, above: float) -> Check:
    """The accuracy on new images of the new characters is above this; a guess is right in one of twelve cases."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Script]:
        script = Script(probe.draw)
        source, target = script.images(4_000, new=False), script.images(PER_CHARACTER * NEW, new=True)
        model, shown = probe.make("train", *source, *target), script.images(204, new=True)
        in_parameters(model, shown[0], knows=lambda: accuracy(model, *shown) > 0.2)
        return model, script

    def run(probe: Probe) -> list[Finding]:
        model, script = probe.once("trained", trained)
        found = accuracy(model, *script.images(600, new=True))
        return [] if found > above else [(NOT_LEARNED if found < 0.13 else NO_TRANSFER)]

    told = (NEIGHBOURS, NOT_LEARNED, NO_TRANSFER)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

FIELD = ((torch.tensor([[3, 1], [3, 2], [3, 1]]),), 9.0)
SIZED = ((torch.tensor([[3, 2, 1, 1], [3, 1, 0, 2]]), 10), 1.0)
NORMED = (
    ([[[[1.0, 3.0]]], [[[5.0, 7.0]]]], [0.0], [1.0], [2.0], [10.0], True),
    [[[[7.3167, 9.1056]]], [[[10.8944, 12.6833]]]],
)
GROUPED = (
    ([[[[1.0]], [[3.0]], [[5.0]], [[9.0]]]], [2.0, 2.0, 1.0, 3.0], [10.0, 0.0, 0.0, 10.0], 2),
    [[[[8.0]], [[2.0]], [[-1.0]], [[13.0]]]],
)
PREPROCESSED = (
    (torch.tensor([[[[255, 0], [51, 102]]]]), [0.5, 0.2], [0.5, 0.1]),
    [[[[1.0, -0.6]], [[-2.0, 2.0]]]],
)
MAPPED = (
    ([[[[1.0, 0.0]], [[2.0, 4.0]]]], [[1.0, 0.0], [-1.0, 1.0]], torch.tensor([1])),
    [[[0.25, 1.0]]],
)
EVIDENCE = (
    ([[[[1.0, 0.0]], [[2.0, 4.0]]]], [[[[-1.0, -1.0]], [[0.0, 2.0]]]], 2),
    [[[0.25, 0.25, 1.0, 1.0], [0.25, 0.25, 1.0, 1.0]]],
)
NORMS = ("batch_norm", "native_batch_norm", "instance_norm", "layer_norm", "group_norm")
NORMS += ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm2d")

SHOWN = (
    Task("receptive_field", "Receptive fields", asks="layers", example=(FIELD,)),
    Task("feature_map_size", "Sizes of feature maps", asks="layers, side", example=(SIZED,)),
    Task(
        "batch_norm",
        "Batch normalisation with two modes",
        asks="x, running_mean, running_var, weight, bias, training",
        forbids=NORMS,
        also=(keeps_type,),
        example=(NORMED,),
    ),
    Task(
        "grouped_norm",
        "Normalisation in groups",
        asks="x, weight, bias, groups",
        forbids=(*NORMS, "native_group_norm", "GroupNorm", "LayerNorm", "InstanceNorm2d"),
        also=(keeps_type,),
        example=(GROUPED,),
    ),
    Task("preprocess", "Images as the network knows them", asks="pixels, mean, std", example=(PREPROCESSED,)),
    Task(
        "class_activation_map",
        "Class activation maps",
        asks="feature_maps, weight, labels",
        example=(MAPPED,),
    ),
    Task("grad_cam", "Maps of evidence by gradients", asks="feature_maps, gradients, factor", example=(EVIDENCE,)),
    Task(
        "train",
        "Twelve new characters",
        asks="source, source_labels, target, target_labels",
        seconds=TRAINING_SECONDS,
        checks=(
            classifies("The new characters: accuracy above 35 %", 6, above=0.35),
            classifies("The new characters: accuracy above 76 %, more than from scratch", 12, above=0.76),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
