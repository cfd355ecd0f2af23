"""Lesson 01: the learner's functions inside the networks, the trainings of the page, and the accidents."""

from collections.abc import Callable
from dataclasses import replace
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW

from course_lib.data.checkpoints import TrainedModel
from course_lib.data.scenes import DigitScenes
from course_lib.functional.images import standardise
from course_lib.layers.convolution import ResidualBlock
from course_lib.lessons.lesson_01.recipes import depth
from course_lib.lessons.lesson_01.recipes import transfer as task
from course_lib.models.resnet import ResNet
from course_lib.training.batches import shuffled_batches
from course_lib.training.config import FitConfig
from course_lib.training.history import History
from course_lib.training.loop import fit
from course_lib.training.probes import Labelled, label_draw, tuned_probe
from course_lib.training.progress import Progress
from course_lib.training.recipe import Trained
from course_lib.training.vision import accuracy, classification_loss, seed_of_step

COUNTS = (2, 10, 30)  # labels of each of the four digits: 8, 40 and 120 in all
DEPTH_STEPS = 100
WAYS = ("scratch", "frozen", "fine-tuned", "rates by layer")


# depth --------------------------------------------------------------------------------------------------


def with_block(model: ResNet, block: Callable[..., torch.Tensor]) -> ResNet:
    """The same network, whose residual blocks compute `block(x, branch, shortcut)`; a plain net stays as it is."""
    for part in model.modules():
        if isinstance(part, ResidualBlock) and part.shortcut is not None:
            part.forward = MethodType(lambda self, x: block(x, self.convs, self.shortcut), part)
    return model


def deep_net(kind: str, layers: int, block: Callable[..., torch.Tensor] | None = None) -> ResNet:
    """A fresh net for clean digits, plain or residual, on the learner's block."""
    net = depth.build(replace(depth.SETTINGS, kind=kind, num_layers=layers))
    return net if block is None else with_block(net, block)


def learn_digits(net: ResNet, display: Progress | None = None, steps: int = DEPTH_STEPS) -> list[float]:
    """Trains on clean digits, new ones in each step, and returns the loss of each step."""
    settings = replace(depth.SETTINGS, steps=steps)
    history = fit(
        net,
        lambda step: depth.digits(settings, "train", settings.batch_size, seed_of_step(1, step)),
        classification_loss,
        config=FitConfig(steps=steps, learning_rate=settings.learning_rate, warmup=steps // 10),
        progress=display,
    )
    return [float(loss) for loss in history.losses]


# transfer -----------------------------------------------------------------------------------------------


def source_of(trained: TrainedModel) -> Trained:
    """The shipped network of the source task, as the recipe takes it."""
    settings = replace(task.SETTINGS, seed=trained.card["seed"])
    return Trained(settings=settings, model=trained.model, history=History.blank(0, []))


def parts_of(model: ResNet) -> list[nn.Module]:
    """Head first, stem last."""
    return [model.head, *reversed(model.stages), model.stem]


def trunk_of(model: ResNet) -> nn.ModuleList:
    """All but the head."""
    return nn.ModuleList([model.stem, *model.stages])


def keep_frozen(model: ResNet, freeze: Callable[[nn.Module], Any]) -> ResNet:
    """Freezes the trunk by `freeze(trunk)` now, and again after each `model.train()`."""

    def train(self: ResNet, mode: bool = True) -> ResNet:
        ResNet.train(self, mode)
        if mode:
            freeze(trunk_of(self))
        return self

    model.train = MethodType(train, model)
    freeze(trunk_of(model))
    return model


def few_labels(per_class: int, draw: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Some scenes of the target task with their labels."""
    pixels, labels = task.target_scenes("train")
    chosen = label_draw(labels, per_class, seed=draw)
    return pixels[chosen], labels[chosen]


def learn_target(
    model: ResNet,
    groups: list[dict[str, Any]],
    per_class: int,
    steps: int,
    display: Progress | None = None,
) -> ResNet:
    """Trains on a few labels of the target task with AdamW on these parameter groups."""
    pixels, labels = few_labels(per_class)
    indices_at = shuffled_batches(len(labels), min(32, len(labels)), 0)
    fit(
        model,
        lambda step: (pixels[indices_at(step)], labels[indices_at(step)]),
        classification_loss,
        config=FitConfig(steps=steps, learning_rate=max(group["lr"] for group in groups), warmup=min(10, steps)),
        optimizer=AdamW(groups, weight_decay=0.01),
        progress=display,
    )
    return model


def frozen_head(source: Trained, freeze: Callable[[nn.Module], Any], per_class: int) -> float:
    """Test accuracy of a new head, fitted to convergence, on what a trunk says that `freeze` holds in training."""
    model = keep_frozen(task.with_new_head(source, 0), freeze).train()
    with torch.no_grad():
        few, validation, test = (
            Labelled(torch.cat([model.features(standardise(part)) for part in pixels.split(500)]), labels)
            for pixels, labels in (few_labels(per_class), task.target_scenes("validation"), task.target_scenes("test"))
        )
    return tuned_probe(few, validation).accuracy(*test)


def four_ways(
    source: Trained,
    freeze: Callable[[nn.Module], Any],
    groups: Callable[..., list[dict[str, Any]]],
    per_class: int,
    watch: Callable[..., Progress] | None = None,
) -> dict[str, float]:
    """Test accuracy of each way on one draw of labels, on the learner's `freeze` and parameter `groups`."""
    found = {"frozen": frozen_head(source, freeze, per_class)}
    names = {"scratch": "scratch", "fine-tuned": "fine-tuned", "rates by layer": "fine-tuned, rates by layer"}
    for way, name in names.items():
        if way == "scratch" and per_class > 10:  # 400 steps: its card has them
            continue
        settings = task.VARIANTS[name][per_class]
        model = task.build(source.settings, len(task.TARGET), 0) if settings.scratch else task.with_new_head(source, 0)
        given = groups(parts_of(model), settings.learning_rate, settings.decay)
        learn_target(
            model, given, per_class, settings.steps, watch and watch(model, title=f"{4 * per_class} labels, {way}")
        )
        found[way] = target_accuracy(model)
    return {way: found[way] for way in WAYS if way in found}


def target_accuracy(model: nn.Module) -> float:
    """Share of the target task's test scenes that are named right."""
    return accuracy(model, *task.target_scenes("test"))


# accidents ----------------------------------------------------------------------------------------------


def source_scenes(count: int = 1000) -> tuple[torch.Tensor, torch.Tensor]:
    """Test scenes of the digits that the trunk was trained on."""
    return DigitScenes(split="test", classes=task.SOURCE).batch(count, seed=0).classification()


def old_task(trunk: ResNet, source: Trained) -> float:
    """Accuracy on the source task of this trunk under the old head: what it still knows."""
    model = task.build(source.settings, len(task.SOURCE), 0)
    model.load_state_dict({**trunk.state_dict(), **{f"head.{k}": v for k, v in source.model.head.state_dict().items()}})
    return accuracy(model, *source_scenes())


def drifted(source: Trained, shade: float, steps: int = 80) -> float:
    """The old task after a trunk read batches of the target task in training mode; no weight is moved.

    The pictures are darkened to this `shade`; 1 leaves them as they are.
    """
    model, (pixels, labels) = task.with_new_head(source, 0), few_labels(10)
    indices_at = shuffled_batches(len(labels), 32, 0)
    model.train()
    with torch.no_grad():
        for step in range(steps):
            model(standardise(shade * pixels[indices_at(step)]))
    return old_task(model, source)


@torch.no_grad()
def old_task_with(source: Trained, prepare: Callable[[torch.Tensor], torch.Tensor]) -> float:
    """The old task, the pictures prepared in this way instead of the checkpoint's."""
    pixels, labels = source_scenes()
    return (source.model.eval()(prepare(pixels)).argmax(dim=1) == labels).float().mean().item()


def accidents(source: Trained, rates: tuple[float, ...] = (1e-3, 1e-2, 1e-1)) -> dict[str, Any]:
    """What each of three accidents costs: norms that go on, another normalisation, rates that are too high."""
    by_rate = {}
    for rate in rates:
        model = task.with_new_head(source, 0)
        learn_target(model, [{"params": list(model.parameters()), "lr": rate}], 10, 80)
        by_rate[rate] = (target_accuracy(model), old_task(model, source))
    return {
        "norms": {"as shipped": old_task(source.model, source), "target pictures": drifted(source, 1.0),
                  "darker ones": drifted(source, 0.4)},
        "pixels": {"(p - 0.5) / 0.25": old_task_with(source, standardise),
                   "p, from 0 to 1": old_task_with(source, lambda pixels: pixels),
                   "255 p": old_task_with(source, lambda pixels: 255 * pixels)},
        "rates": by_rate,
    }  # fmt: skip
