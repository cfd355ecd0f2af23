"""Lesson 04, LSTM and GRU: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from pathlib import Path

import torch
from torch import Tensor

from course_lib.tasks import Case, Draw
from course_lib.tasks.markdown import read_tasks


def one_step(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), 2 * draw(B, H), draw(4 * H, D), draw(4 * H, H), draw(4 * H)


def a_step_back(draw: Draw) -> tuple[Tensor, ...]:
    """Gradients that arrive at a step, and what its forward pass has kept."""
    B, H = draw.sizes(2)
    return draw(B, H), draw(B, H), 2 * draw(B, H), 2 * draw(B, H), draw(B, H).sigmoid(), draw(B, H).sigmoid()


def steps_and_share(draw: Draw) -> tuple[int, float]:
    """How many steps there are, and which share is left after them."""
    return draw.integers(5, 300, 1).item(), draw.integers(10, 90, 1).item() / 100


def padded(draw: Draw, *, full: bool = False) -> tuple:
    """A step with drawn weights, padded sequences, first states, and how long each sequence is."""
    B, T, D, H = draw.sizes(4, 3, 8)
    step = torch.nn.RNNCell(D, H)
    for weight in step.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    return step.requires_grad_(False), draw(B, T, D), draw(B, H), lengths


def gru_inputs(draw: Draw) -> tuple[Tensor, ...]:
    """An input, a state and the weights of one step."""
    B, D, H = draw.sizes(3)
    return draw(B, D), draw(B, H), draw(3 * H, D), draw(3 * H, H), draw(3 * H), draw(3 * H)


CASES = {
    "lstm_step": (Case("the new output and the new cell", one_step),),
    "forget_backward": (Case("the gate's sum, and the cell before", a_step_back),),
    "long_bias": (Case("the bias with which so much is left after so many steps", steps_and_share),),
    "masked_steps": (
        Case("each sequence's state after its own last symbol", padded),
        Case("without padding: the last state", lambda draw: padded(draw, full=True)),
    ),
    "gru_step": (Case("the new state", gru_inputs),),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES)
