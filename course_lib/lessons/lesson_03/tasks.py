"""Lesson 03, Recurrent networks: what its exercises are tried with; tasks.md has their text and mistakes."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.tasks import Case, Draw, TaskInput
from course_lib.tasks.markdown import read_tasks


class RNN(nn.Module):
    """What a learner's recogniser takes if she has none of her own."""

    def __init__(self, input_dim: int, hidden_dim: int):
        super().__init__()
        self.ih, self.hh = nn.Linear(input_dim, hidden_dim), nn.Linear(hidden_dim, hidden_dim)

    def forward(self, x: Tensor, h: Tensor | None = None) -> Tensor:
        states, h = [], x.new_zeros(len(x), self.hh.in_features) if h is None else h
        for x_t in x.unbind(dim=1):
            h = torch.tanh(self.ih(x_t) + self.hh(h))
            states.append(h)
        return torch.stack(states, dim=1)


class Small(nn.Module):
    """A recogniser whose gradients are long, with drawn weights: what a training loop is tried on."""

    def __init__(self, draw: Draw, vocab_size: int, num_classes: int, dim: int):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(vocab_size, dim), RNN(dim, dim), nn.Linear(dim, num_classes)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(draw(*parameter.shape) / (1 if parameter.ndim == 1 else dim**0.5))
            self.head.weight.mul_(4)

    def forward(self, tokens: Tensor, valid: Tensor | None = None) -> Tensor:
        states = self.rnn(self.embed(tokens))
        last = torch.full((len(tokens),), -1) if valid is None else valid.sum(dim=1) - 1
        return self.head(states[torch.arange(len(tokens)), last])


class SmallWriter(nn.Module):
    """A character model with long gradients and drawn weights."""

    def __init__(self, draw: Draw, vocab_size: int, dim: int):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(vocab_size, dim), RNN(dim, dim), nn.Linear(dim, vocab_size)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(draw(*parameter.shape) / (1 if parameter.ndim == 1 else dim**0.5))
            self.head.weight.mul_(4)

    def forward(self, tokens: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h = self.rnn(self.embed(tokens), h)
        return self.head(h), h[:, -1]


def states_and_gradients(draw: Draw, *, only_last: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """A recurrent matrix, the states that it made, and the loss's direct gradient at each of them."""
    T, H = draw.sizes(2, 3, 7)
    W, h = draw(H, H) / H**0.5, [torch.tanh(draw(H))]
    for _ in range(T):
        h.append(torch.tanh(W @ h[-1] + draw(H)))
    dh = draw(T, H)
    if only_last:
        dh[:-1] = 0
    return W, torch.stack(h), dh


def sequences(draw: Draw, *, length: int | None = None, given: bool = False) -> TaskInput:
    """Sequences of vectors, and, if `given`, the states before them."""
    B, T, D, H = draw.sizes(4)
    x = draw(B, length or T, D)
    return TaskInput((x, draw(B, H)) if given else (x,), build=(D, H))


def some_names(draw: Draw, *, padded: bool = True) -> TaskInput:
    """Symbols, in rows of several lengths where `padded`, and the sizes of a recogniser."""
    B, T, V, D, H = draw.sizes(5, 3, 7)
    tokens, lengths = draw.integers(0, V, B, T), draw.integers(1, T, B)
    lengths[0] = T
    valid = torch.arange(T) < lengths[:, None]
    return TaskInput((tokens, valid) if padded else (tokens,), build=(V, 4, D, H))


def model_and_batches(draw: Draw) -> tuple[nn.Module, list, float]:
    """A small model with long gradients, some batches for it, and a learning rate."""
    V, D = draw.sizes(2, 4, 7)
    batches = []
    for _ in range(6):
        (tokens, valid), *_ = (some_names(draw).args,)
        batches.append((tokens % V, valid, draw.integers(0, 3, len(tokens))))
    return Small(draw, V, 3, D), batches, 0.05


def model_and_pieces(draw: Draw) -> tuple[nn.Module, list[Tensor], float]:
    """A small character model, consecutive pieces of a text, and a learning rate."""
    V, D, B, T = draw.sizes(4, 3, 7)
    return SmallWriter(draw, V, D), list(draw.integers(0, V, 5, B, T + 1)), 0.05


def model_and_prompts(draw: Draw) -> tuple[nn.Module, Tensor, int, float, Callable[[Tensor], Tensor]]:
    """A small character model, prompts, a number of characters, a temperature, and what draws from probabilities."""
    V, D, B, T = draw.sizes(4, 3, 7)
    u = torch.rand(B, 1, generator=draw.generator)

    def sample(probs: Tensor) -> Tensor:
        return (probs.cumsum(dim=-1) > u).int().argmax(dim=-1)

    temperature = (0.5, 0.7, 1.6, 2.0)[draw.integers(0, 4, 1).item()]
    return SmallWriter(draw, V, D).eval(), draw.integers(0, V, B, T), 12, temperature, sample


def logits_and_draws(draw: Draw, *, temperature: float | None = None) -> tuple[Tensor, float, Tensor]:
    """Logits of drawn sizes, a temperature, and a number between 0 and 1 for each row."""
    B, V = draw.sizes(2, 5, 9)
    drawn = (0.5, 0.7, 1.6, 2.0)[draw.integers(0, 4, 1).item()] if temperature is None else temperature
    return 2 * draw(4 * B, V), drawn, torch.rand(4 * B, generator=draw.generator)


CASES = {
    "bptt": (
        Case("a loss that uses every state", states_and_gradients),
        Case("a loss that uses the last state only", lambda draw: states_and_gradients(draw, only_last=True)),
    ),
    "rnn": (
        Case("the state after each step", sequences),
        Case("reading on from a given state", lambda draw: sequences(draw, given=True)),
        Case("a sequence of a single symbol", lambda draw: sequences(draw, length=1)),
    ),
    "recogniser": (
        Case("names of one length", lambda draw: some_names(draw, padded=False)),
        Case("names of several lengths in one batch", some_names),
    ),
    "train": (Case("the losses of six batches, one after another", model_and_batches),),
    "train_text": (Case("the losses of five pieces, one after another", model_and_pieces),),
    "generate": (Case("prompts and twelve more characters", model_and_prompts),),
    "sample": (
        Case("symbols drawn with the numbers in u", logits_and_draws),
        Case("temperature 1 draws from the probabilities", lambda draw: logits_and_draws(draw, temperature=1.0)),
    ),
}
TASKS = read_tasks(Path(__file__).with_name("tasks.md"), CASES, {"RNN": RNN})
