"""Lesson 04, LSTM and GRU: what its exercises are tried with; their text and their mistakes are in tasks.md."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Check, Draw, Finding, TaskInput
from course_lib.tasks.core import Probe
from course_lib.tasks.findings import CUT_OFF, GRADIENT_DIFFERS, general
from course_lib.tasks.markdown import read_tasks


def lstm_cell(a: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """What a learner's LSTM takes if she has no step of her own: h and c from the pre-activations (B, 4H)."""
    a_i, a_f, a_g, a_o = a.chunk(4, dim=-1)
    c = a_f.sigmoid() * c + a_i.sigmoid() * a_g.tanh()
    return a_o.sigmoid() * c.tanh(), c


class LSTM(nn.Module):
    """What a learner's character model takes if she has no layer of her own."""

    def __init__(self, input_dim: int, hidden_dim: int):
        super().__init__()
        self.ih, self.hh = nn.Linear(input_dim, 4 * hidden_dim), nn.Linear(hidden_dim, 4 * hidden_dim)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state or (x.new_zeros(len(x), self.hh.in_features),) * 2
        outputs = []
        for x_t in x.unbind(dim=1):
            h, c = lstm_cell(self.ih(x_t) + self.hh(h), c)
            outputs.append(h)
        return torch.stack(outputs, dim=1), (h, c)


def pre_activations(draw: Draw) -> tuple[Tensor, Tensor]:
    """The pre-activations of the four parts, and a cell state."""
    B, H = draw.sizes(2)
    return draw(B, 4 * H), 2 * draw(B, H)


def a_step_back(draw: Draw) -> tuple[Tensor, ...]:
    """Gradients that arrive at a step, and values of its forward pass."""
    B, H = draw.sizes(2)
    return draw(B, H), draw(B, H), 2 * draw(B, H), 2 * draw(B, H), draw(B, H).sigmoid(), draw(B, H).sigmoid()


def sequences(draw: Draw, *, parts: int = 2, length: int | None = None, given: bool = False) -> TaskInput:
    """Sequences of vectors, and, if `given`, a state of so many `parts` before them."""
    B, T, D, H = draw.sizes(4)
    x, state = draw(B, length or T, D), tuple(draw(B, H) for _ in range(parts))
    return TaskInput((x, state if parts > 1 else state[0]) if given else (x,), build=(D, H))


def some_text(draw: Draw, *, given: bool = False) -> TaskInput:
    """Characters, the sizes of a language model, and, if `given`, a state before them."""
    B, T, V, E, H = draw.sizes(5, 3, 7)
    tokens, state = draw.integers(0, V, B, T), (draw(B, H), draw(B, H))
    return TaskInput((tokens, state) if given else (tokens,), build=(V, E, H))


def gradients_of_outputs(name: str, probe: Probe) -> list[Finding]:
    """Whether a gradient flows back from all outputs of a layer to its inputs, and is right."""
    task, found = TASKS[name], []
    given = task.draw(None, probe.draw)
    for layer in (task.whom(probe, given).call, lambda x: task.right(replace(given, args=(x,)))):
        x = given.args[0].clone().requires_grad_()
        outputs = layer(x)[0]
        if not outputs.requires_grad:
            return [general(CUT_OFF)]
        found += torch.autograd.grad(outputs.square().sum(), x)
    return [] if torch.allclose(*found, atol=1e-3, rtol=1e-3) else [general(GRADIENT_DIFFERS)]


def gradients(name: str) -> dict[str, tuple[Check, ...]]:
    """The check of a layer's gradients: its result is a pair, which `also: gradients` does not take."""
    run = partial(gradients_of_outputs, name)
    return {"checks": (Check(name="gradients flow back", detects=(CUT_OFF, GRADIENT_DIFFERS), run=run),)}


def steps_and_fraction(draw: Draw) -> tuple[int, float]:
    """How many steps there are, and which fraction is left after them."""
    return draw.integers(5, 300, 1).item(), draw.integers(10, 90, 1).item() / 100


def padded(draw: Draw, *, full: bool = False) -> tuple:
    """A step with drawn weights, padded sequences, first states, and how long each sequence is."""
    B, T, D, H = draw.sizes(4, 3, 8)
    step = nn.RNNCell(D, H)
    for weight in step.parameters():
        weight.data = draw(*weight.shape) / weight.shape[-1] ** 0.5
    lengths = torch.full((B,), T) if full else draw.integers(1, T, B)
    return step.requires_grad_(False), draw(B, T, D), draw(B, H), lengths


CASES = {
    "lstm_cell": (Case("the new hidden state and the new cell state", pre_activations),),
    "forget_backward": (Case("the gradients at the gate's pre-activation and at the old cell state", a_step_back),),
    "lstm": (
        Case("the states after all steps", sequences),
        Case("reading on from a given state", lambda draw: sequences(draw, given=True)),
        Case("a sequence of a single symbol", lambda draw: sequences(draw, length=1)),
    ),
    "gru": (
        Case("the states after all steps", lambda draw: sequences(draw, parts=1)),
        Case("reading on from a given state", lambda draw: sequences(draw, parts=1, given=True)),
        Case("a sequence of a single symbol", lambda draw: sequences(draw, parts=1, length=1)),
    ),
    "character_model": (
        Case("the logits at each position, and the last state", some_text),
        Case("reading on from a given state", lambda draw: some_text(draw, given=True)),
    ),
    "long_bias": (Case("the bias that leaves this fraction after so many steps", steps_and_fraction),),
    "masked_steps": (
        Case("each sequence's state after its own last symbol", padded),
        Case("without padding: the last state", lambda draw: padded(draw, full=True)),
    ),
}
PARTS = {"lstm_cell": lstm_cell, "LSTM": LSTM}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, PARTS, lstm=gradients("lstm"), gru=gradients("gru"))
