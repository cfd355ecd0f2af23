"""Lesson 03, Recurrent networks: what its exercises are tried with; tasks.md has their text and mistakes."""

from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def one_step(draw: Draw, *, first: bool = False) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step; `first`: the state is still empty."""
    B, D, H = draw.sizes(3)
    h = draw(B, H)
    return draw(B, D), 0 * h if first else h, draw(H, D) / D**0.5, draw(H, H) / H**0.5, draw(H)


def sequence(draw: Draw, *, length: int | None = None) -> tuple[nn.Module, Tensor, Tensor]:
    """A step with drawn weights, sequences, and the states before the first step."""
    B, T, D, H = draw.sizes(4)
    step = nn.RNNCell(D, H)
    for weight in step.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    return step.requires_grad_(False), draw(B, length or T, D), draw(B, H)


def states_and_slopes(draw: Draw, *, only_last: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A matrix, the states that it made, and the loss's own slope in each of them."""
    T, H = draw.sizes(2, 3, 7)
    theta, A = draw(H, H) / H**0.5, [draw(H)]
    for _ in range(T):
        A.append(theta @ A[-1] + draw(H))
    dA = draw(T, H)
    if only_last:
        dA[:-1] = 0
    return theta, torch.stack(A), dA


def some_gradients(draw: Draw, *, times: float = 3.0) -> tuple[list[Tensor], float]:
    """Gradients of three parameters, and a limit that their length is `times` as large as."""
    a, b, c = draw.sizes(3)
    found = [draw(a, b), 4 * draw(b), draw(c, a, b)]
    return found, (torch.cat([one.flatten() for one in found]).norm() / times).item()


def logits_heat_and_draws(draw: Draw, *, temperature: float | None = None) -> tuple[Tensor, float, Tensor]:
    """Logits of drawn sizes, a temperature, and a number between 0 and 1 for each row."""
    B, V = draw.sizes(2, 5, 9)
    heat = (0.5, 0.7, 1.6, 2.0)[draw.integers(0, 4, 1).item()] if temperature is None else temperature
    return 2 * draw(4 * B, V), heat, torch.rand(4 * B, generator=draw.generator)


CASES = {
    "rnn_step": (
        Case("the new state, from an input and the state before", one_step),
        Case("the first step, from an empty state", lambda draw: one_step(draw, first=True)),
    ),
    "unroll": (
        Case("the state after each step", sequence),
        Case("a sequence of a single symbol", lambda draw: sequence(draw, length=1)),
    ),
    "theta_gradient": (
        Case("a loss that looks at every state", states_and_slopes),
        Case("a loss that looks at the last state only", lambda draw: states_and_slopes(draw, only_last=True)),
    ),
    "clip": (
        Case("too long: all of them are shortened together", some_gradients),
        Case("short enough: nothing changes", lambda draw: some_gradients(draw, times=0.4)),
    ),
    "sample": (
        Case("symbols drawn with the numbers in u", logits_heat_and_draws),
        Case("temperature 1 draws from the shares", lambda draw: logits_heat_and_draws(draw, temperature=1.0)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
