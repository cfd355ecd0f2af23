"""Assignment 05, Attention: what its check cells ask, in the learner's own kernel and with public numbers.

The examples are those that the tasks work out by hand. The grader asks more, and with numbers of its own.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_lib.tasks import attention as checks
from course_lib.tasks.core import (
    Check,
    ModuleProbe,
    Probe,
    has_type,
    lets_gradients_through,
    repeats,
    worked_example,
)

LN_2, LN_3 = math.log(2), math.log(3)
MAPS = tuple(f"{letter}_proj.{part}" for letter in "qkvo" for part in ("weight", "bias"))


def _softmax(probe: Probe) -> Tensor:
    return probe.tensor(torch.tensor([0.0, LN_2, 0.0]), shape=(3,))


def _attention(probe: Probe) -> Tensor:
    """The answers to one query that may see both keys, only the first, none."""
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    k = torch.tensor([[LN_3, 1.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    v = torch.tensor([[4.0, 0.0], [0.0, 8.0]])
    masks = [torch.tensor([row]) for row in ([True, True], [True, False], [False, False])]
    return torch.cat([probe.tensor(q, k, v, mask=mask, shape=(1, 2)) for mask in masks])


def _additive(probe: Probe) -> Tensor:
    h = torch.tensor([[[0.0], [20.0]]])
    return probe.tensor(torch.zeros(1, 1, 1), h, torch.ones(1, 1), torch.ones(1, 1), torch.tensor([LN_3]))[0, 0]


def _heads(probe: Probe) -> Tensor:
    layer: ModuleProbe = probe.make("MultiHeadAttention", 2, 2)
    factors = {"q": LN_3, "k": 1.0, "v": 1.0, "o": 1.0}
    weights = {f"{letter}_proj.weight": factor * torch.eye(2) for letter, factor in factors.items()}
    layer.set_parameters(weights | {f"{letter}_proj.bias": torch.zeros(2) for letter in factors})
    return layer.tensor(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), shape=(1, 2, 2))[0]


def _positions(probe: Probe) -> Tensor:
    return probe.tensor(2, 4, shape=(2, 4))


def _same_type(*shapes: tuple[int, ...]) -> Check:
    """Inputs of these shapes, of 32 and of 64 bits, give results of their own type."""

    def compute(probe: Probe) -> Iterator[tuple[Any, torch.dtype]]:
        for number_type in (torch.float32, torch.float64):
            yield probe.call(*(probe.random(*shape).to(number_type) for shape in shapes)), number_type

    return has_type(compute, name="numbers of the type of the inputs")


def _gradients(**shapes: tuple[int, ...]) -> Check:
    """Gradients reach all inputs of a function, given by name with their shapes."""

    def compute(probe: Probe) -> tuple[Probe, dict[str, Tensor]]:
        return probe, {name: probe.random(*shape) for name, shape in shapes.items()}

    return lets_gradients_through(compute)


def _heads_and_input(probe: Probe) -> tuple[Probe, dict[str, Tensor]]:
    return probe.make("MultiHeadAttention", 6, 2), {"x": probe.random(2, 4, 6)}


def _repeats(*inputs: tuple[int, ...] | int) -> Check:
    """The same inputs, tensors of these shapes or whole numbers, give the same result twice."""

    def compute(probe: Probe) -> tuple[Any, Any]:
        given = [probe.random(*value) if isinstance(value, tuple) else value for value in inputs]
        return probe.call(*given), probe.call(*given)

    return repeats(compute)


def _heads_asked_twice(probe: Probe) -> tuple[Any, Any]:
    layer, x = probe.make("MultiHeadAttention", 6, 2), probe.random(2, 4, 6)
    return layer.call(x), layer.call(x)


CHECKS = {
    "softmax": [
        _repeats((2, 5)),
        *checks.SOFTMAX,
        _same_type((2, 5)),
        _gradients(x=(2, 5)),
        worked_example(_softmax, [0.25, 0.5, 0.25]),
    ],
    "attention": [
        _repeats((2, 4, 3), (2, 5, 3), (2, 5, 6)),
        *checks.SCALED_DOT_PRODUCT_ATTENTION,
        *checks.LARGE_SCORES_OF_ATTENTION,
        *checks.QUERY_THAT_SEES_NOTHING,
        _same_type((2, 4, 3), (2, 5, 3), (2, 5, 6)),
        _gradients(q=(2, 4, 3), k=(2, 5, 3), v=(2, 5, 6)),
        worked_example(_attention, [[3.0, 2.0], [4.0, 0.0], [0.0, 0.0]]),
    ],
    "additive_attention": [
        _repeats((2, 3, 4), (2, 5, 6), (7, 4), (7, 6), (7,)),
        *checks.ADDITIVE_ATTENTION,
        _gradients(q=(2, 3, 4), h=(2, 5, 6), W=(7, 4), U=(7, 6), v=(7,)),
        worked_example(_additive, [15.0]),
    ],
    "MultiHeadAttention": [
        repeats(_heads_asked_twice),
        *checks.MULTI_HEAD_ATTENTION,
        lets_gradients_through(_heads_and_input, parameters=MAPS),
        worked_example(_heads, [[0.5, 0.75], [0.75, 0.5]]),
    ],
    "position_codes": [
        _repeats(5, 6),
        *checks.SINUSOIDAL_POSITIONS,
        has_type(lambda probe: [(probe.call(3, 4), torch.float32)], name="numbers of 32 bits"),
        worked_example(_positions, [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 0.99995]]),
    ],
    "train": checks.LOOK_UP,
}
SECONDS = {"train": 5.0}  # what the task promises for one training
