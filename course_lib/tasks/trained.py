"""Whether what a module knows lies in its parameters: not in a table beside them, nor in a rule in its code."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import CUT_OFF, CheckFailed, Finding

ELSEWHERE = "not learned by its parameters"
_HINT = (
    "The network has to find it out in its training: compute what it returns from parameters that a gradient reaches, "
    "and leave them trainable."
)


def in_parameters(model: ModuleProbe, *inputs: Any, knows: Callable[[], bool], at_least: int = 1) -> None:
    """A CheckFailed if the module still `knows` with all parameters at 0 that a gradient reaches for these inputs.

    Likewise if these are fewer numbers than `at_least`, too few to hold what is learned. Afterwards the parameters are
    what they were.
    """
    shape = model.tensor(*inputs).shape
    try:
        reached = model.gradients(*inputs, output_gradient=torch.ones(shape)).parameters
    except CheckFailed as fault:
        if fault.finding.misconception != CUT_OFF:
            raise
        reached = {}
    if not reached:
        raise CheckFailed(Finding(ELSEWHERE, "No gradient reaches any parameter of what you return.", _HINT))
    own = model.parameters()
    if (count := sum(value.numel() for value in reached.values())) < at_least:
        seen = f"Of what you return, {count} numbers are trained: too few to hold what it knows."
        raise CheckFailed(Finding(ELSEWHERE, seen, _HINT))
    zeros = {name: torch.zeros_like(value) if _is_one_of(value, own, reached) else value for name, value in own.items()}
    model.set_parameters(zeros)
    try:
        still = knows()
    except CheckFailed:  # 0/0, say
        still = False
    model.set_parameters(own)
    if still:
        seen = "With all parameters of what you return set to 0, it answers as if nothing had happened."
        raise CheckFailed(Finding(ELSEWHERE, seen, _HINT))


def _is_one_of(value: Tensor, own: dict[str, Tensor], names: dict[str, Tensor]) -> bool:
    """Whether it is one of the parameters with these names, under whichever of its names."""
    return any(value.shape == own[name].shape and torch.equal(value, own[name]) for name in names)
