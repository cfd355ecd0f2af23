"""Lesson 01, transfer learning: what the check cells of its assignment ask; the grader's tables are in hidden/01."""

import torch
from torch import Tensor

from course_lib.data.signs import Script
from course_lib.tasks import Check, Draw, Finding, Task, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# signs of a made script -------------------------------------------------------------------------------------

KNOWN, NEW = 10, 4


def pictures(script: Script, draw: Draw, count: int, *, new: bool) -> tuple[Tensor, Tensor]:
    """So many pictures, (count, 16, 16), of the known or of the new signs, and the number of the sign on each."""
    labels = draw.integers(0, NEW if new else KNOWN, count)
    return script.pictures(labels + (KNOWN if new else 0), draw.generator), labels


NEIGHBOURS = Finding(
    "answers depend on the other pictures",
    "What your network says of a picture changes with the others of its batch.",
    "A BatchNorm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
NOT_LEARNED = Finding(
    "not learned",
    "New pictures of the new signs are named hardly better than by a guess.",
    "Does the loss fall? Did the trunk learn the ten known signs first?",
)
ALONE = Finding(
    "no gain from the known signs",
    "The new signs are named about as well as by a network that has seen nothing else.",
    "Keep the trunk that learned the ten known signs, and give it a new head. Too high a rate wipes it out.",
)


def right(model: ModuleProbe, pixels: Tensor, labels: Tensor) -> float:
    """The share that is named right; a CheckFailed if that depends on chance, or on the other pictures."""
    shape = (len(pixels), NEW)
    found = model.tensor(pixels, shape=shape)
    if not torch.allclose(found, model.tensor(pixels, shape=shape), atol=1e-3, rtol=1e-3):
        raise CheckFailed(general(RANDOM))
    if not torch.allclose(found[:5], model.tensor(pixels[:5], shape=(5, NEW)), atol=1e-3, rtol=1e-3):
        raise CheckFailed(NEIGHBOURS)
    return (found.argmax(dim=1) == labels).float().mean().item()


def names(name: str, points: float, *, above: float) -> Check:
    """New pictures of the new signs are named right more often than this; a guess is right in one of four."""

    def trained(probe: Probe) -> tuple[ModuleProbe, Script]:
        script = Script(KNOWN + NEW, probe.draw.generator)
        many, few = pictures(script, probe.draw, 2_000, new=False), pictures(script, probe.draw, 60, new=True)
        model, shown = probe.make("train", *many, *few, seconds=60), pictures(script, probe.draw, 200, new=True)
        in_parameters(model, shown[0], knows=lambda: right(model, *shown) > 0.4)
        return model, script

    def run(probe: Probe) -> list[Finding]:
        model, script = probe.once("trained", trained)
        share = right(model, *pictures(script, probe.draw, 500, new=True))
        return [] if share > above else [(NOT_LEARNED if share < 0.35 else ALONE)]

    told = (NEIGHBOURS, NOT_LEARNED, ALONE)
    return Check(name=name, points=points, run=run, detects=(ELSEWHERE, *(one.misconception for one in told)))


# the examples -----------------------------------------------------------------------------------------------

FIELD = ((torch.tensor([[3, 1], [3, 2], [3, 1]]),), 9.0)
NORMED = (
    ([[[[1.0, 3.0]]], [[[5.0, 7.0]]]], [0.0], [1.0], [2.0], [10.0], True),
    [[[[7.3167, 9.1056]]], [[[10.8944, 12.6833]]]],
)
READY = (
    (torch.tensor([[[[255, 0], [51, 102]]]]), [0.5, 0.2], [0.5, 0.1]),
    [[[[1.0, -0.6]], [[-2.0, 2.0]]]],
)
SEEN = (
    ([[[[1.0, 0.0]], [[2.0, 4.0]]]], [[1.0, 0.0], [-1.0, 1.0]], torch.tensor([1])),
    [[[0.25, 1.0]]],
)

SHOWN = (
    Task("receptive_field", "How much does a place see?", asks="layers", example=(FIELD,)),
    Task(
        "batch_norm",
        "A norm with two modes",
        asks="x, mean, variance, gain, shift, training",
        also=(keeps_type,),
        example=(NORMED,),
    ),
    Task("make_ready", "As the checkpoint knows it", asks="pixels, mean, spread", example=(READY,)),
    Task(
        "class_map",
        "Where does it see that?",
        asks="maps, weight, labels",
        also=(keeps_type,),
        example=(SEEN,),
    ),
    Task(
        "train",
        "Four new signs",
        asks="many, many_labels, few, few_labels",
        seconds=60.0,
        checks=(
            names("The new signs: clearly better than a guess", 6, above=0.4),
            names("The new signs: better than 60 pictures alone allow", 12, above=0.72),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
