"""Lesson 17: the trained mixture of experts and the trained Boltzmann machine that the learner's classes open."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.classroom.opening import Shipped
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_17.recipes import boltzmann
from course_lib.models.boltzmann import DBN, RBM
from course_lib.training.language_models import tokenized_prose

FEW = 50  # digits


def first_mixture() -> nn.Module:
    """The mixture of experts in the first block of the trained GPT."""
    return load_trained("experts").model.blocks[0].ffn


@torch.no_grad()
def inputs_of_the_mixture() -> tuple[Tensor]:
    """What it is given for a window of unseen text, (1, T, D)."""
    model, seen = load_trained("experts").model, []
    handle = model.blocks[0].ffn.register_forward_pre_hook(lambda _part, given: seen.append(given[0]))
    model(tokenized_prose(None).ids["test"][None, : model.config.context_length])
    handle.remove()
    return (seen[0],)


def sizes_of_a_mixture(layer: nn.Module) -> dict[str, int]:
    """The arguments of the learner's class."""
    first = layer.experts[0][0]
    return {
        "dim": first.in_features,
        "hidden": first.out_features,
        "num_experts": len(layer.experts),
        "k": layer.k,
    }


def first_machine() -> RBM:
    """The trained machine, or the first one of a stack."""
    model = load_trained("boltzmann").model
    return model.layers[0] if isinstance(model, DBN) else model


def inputs_of_the_machine() -> tuple[Tensor]:
    """Unseen digits in zeros and ones, and behind them their labels, if the machine has visible units for these."""
    digits = boltzmann.digits("test")
    pixels = digits.features[:FEW].round()
    if classes := first_machine().config.num_visible - pixels.shape[1]:
        pixels = torch.cat([pixels, F.one_hot(digits.labels[:FEW], classes).float()], dim=1)
    return (pixels,)


def sizes_of_a_machine(machine: RBM) -> dict[str, Any]:
    """The arguments of the learner's class."""
    return {"num_visible": machine.config.num_visible, "num_hidden": machine.config.num_hidden}


MODELS = {
    "MoE": Shipped(model=first_mixture, sizes=sizes_of_a_mixture, inputs=inputs_of_the_mixture),
    "RBM": Shipped(
        model=first_machine,
        sizes=sizes_of_a_machine,
        inputs=inputs_of_the_machine,
        names={"W": "weight", "b": "visible_bias", "c": "hidden_bias"},
    ),
}
