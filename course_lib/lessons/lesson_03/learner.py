"""Lesson 03: the learner's functions inside a reader of names, its training, clipped runs, and writing."""

import html
import re
from collections.abc import Callable, Sequence
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.data.names import LANGUAGE_NAMES
from course_lib.data.prose import prose_splits
from course_lib.functional.recurrent import gradient_norms, recurrent_matrix, rnn_step
from course_lib.generation import sample
from course_lib.layers.recurrent import RNN, RNNCell
from course_lib.lessons.lesson_03.recipes import names
from course_lib.models.recurrent import CharacterLM, SequenceClassifier
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.batches import text_windows
from course_lib.training.language_models import LanguageSettings, build_language_model, next_token_loss, tokenized_prose
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress

WORD = re.compile(r"[a-z]+")
Step = Callable[..., Tensor]  # step(x, h, W_ih, W_hh, b) -> the next h
LIVE = names.SETTINGS
SHOWN = ("görögország", "grèce", "güney afrika", "griechenland")  # while it learns; none is a training name


def step_of(cell: RNNCell, step: Step) -> Callable[[Tensor, Tensor], Tensor]:
    """The learner's step with the weights of a cell: (x, h) -> the next h."""
    return lambda x, h: step(x, h, cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh)


def with_learner_block(model: SequenceClassifier, step: Step, unroll: Callable[..., Tensor]) -> SequenceClassifier:
    """The same model, which reads by `unroll(step, x, h)`; padding stands behind a name, where nobody asks for it."""
    cell = model.rnn.cells[0]

    def encode(x: Tensor, state: Tensor | None = None, *, valid: Tensor | None = None) -> tuple[Tensor, Tensor]:
        states = unroll(step_of(cell, step), x, cell.initial_state(len(x)))
        last = valid.sum(dim=1) - 1 if valid is not None else torch.full((len(x),), x.shape[1] - 1)
        return states, states[torch.arange(len(x)), last][None]

    model.encode = encode
    return model


def build(step: Step, unroll: Callable[..., Tensor]) -> SequenceClassifier:
    """A reader of names that has learned nothing and goes the learner's way."""
    return with_learner_block(names.build(LIVE), step, unroll)


def train(model: SequenceClassifier, display: Progress) -> None:
    """As the recipe `names` trains."""
    fit(
        model,
        names.batches(LIVE),
        names.name_loss,
        config=FitConfig(
            steps=LIVE.steps, learning_rate=LIVE.learning_rate, warmup=100, weight_decay=LIVE.weight_decay
        ),
        progress=display,
    )


@torch.no_grad()
def beliefs(model: SequenceClassifier, tokenizer: Tokenizer, text: str) -> Float[Tensor, "T languages"]:
    """How probable each language is after each letter: the head, asked before the name is over."""
    states = model.features(torch.tensor([tokenizer.encode(text.lower())]))
    return model.head(states)[0].softmax(dim=-1)


def likeliest(probs: Float[Tensor, " languages"], count: int = 1) -> list[tuple[str, float]]:
    """The languages with the largest probabilities."""
    best = probs.topk(count)
    return [(LANGUAGE_NAMES[i], share) for share, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)]


def example(model: SequenceClassifier) -> str:
    """For `page.watch`: what the network makes of a few names, letter by letter."""
    rows = []
    for text in SHOWN:
        probs = beliefs(model, names.tokenizer(), text)
        guesses = "".join(f"<td>{html.escape(likeliest(row)[0][0][:3])}</td>" for row in probs)
        letters = "".join(f"<th>{html.escape(letter)}</th>" for letter in text)
        rows.append(f"<table style='font-size:12px'><tr>{letters}</tr><tr>{guesses}</tr></table>")
    return "The likeliest language after each letter:" + "".join(rows)


def two_layers(step: Step, unroll: Callable[..., Tensor]) -> float:
    """The largest difference between the library's RNN of two layers and the learner's loop over its cells, twice."""
    draw = torch.Generator().manual_seed(0)
    deep, x = RNN(5, 8, num_layers=2), torch.randn(4, 40, 5, generator=draw)
    states = x
    for cell in deep.cells:
        states = unroll(step_of(cell, step), states, cell.initial_state(len(x)))
    return (states - deep(x)[0]).abs().max().item()


# --------------------------------------------------------------------------------------------- gradients


RATES = (0.1, 0.5, 2.0, 5.0)  # of SGD


def sgd_run(rate: float, clip: Callable[..., Sequence[Tensor]] | None, *, seed: int, steps: int = 100) -> float:
    """The mean loss of the last twenty steps of a character RNN that is trained by SGD, in nats; it may be infinite.

    Its recurrent matrix begins orthogonal, times 0.9. Each step goes against `clip(gradients, 1.0)`, or against the
    gradients themselves.
    """
    torch.manual_seed(seed)
    model = build_language_model(LanguageSettings(model="rnn", dim=128, depth=1, steps=steps, learning_rate=rate))
    cell, text = model.rnn.cells[0], tokenized_prose().ids["train"]
    batch_at = text_windows(text, batch_size=16, length=101, seed=seed)
    with torch.no_grad():
        matrix = recurrent_matrix(128, 0.9, kind="orthogonal", generator=torch.Generator().manual_seed(seed))
        cell.weight_hh.copy_(matrix)
    weights, losses = list(model.parameters()), []
    for step in range(steps):
        loss = next_token_loss(model, batch_at(step))
        gradients = list(torch.autograd.grad(loss, weights))
        losses.append(loss.item())
        with torch.no_grad():
            for weight, gradient in zip(weights, clip(gradients, 1.0) if clip else gradients, strict=True):
                weight -= rate * gradient
    return sum(losses[-20:]) / 20


def one_unit_loss(w: Tensor, b: Tensor) -> Tensor:
    """(sigmoid(a_50) - 0.7)^2 for a_t = w sigmoid(a_{t-1}) + b, a_0 = 0.5: Pascanu et al. 2013, figure 6."""
    a = torch.full_like(w + b, 0.5)
    for _ in range(50):
        a = w * torch.sigmoid(a) + b
    return (torch.sigmoid(a) - 0.7) ** 2


def reach_of(model: nn.Module, *, length: int = 60, windows: int = 24) -> Float[Tensor, " T"]:
    """How strongly a trained reader's last state feels each letter before it, in prose that it has not seen."""
    ids = tokenized_prose().ids["test"]
    rows = ids[torch.arange(windows)[:, None] * 4000 + torch.arange(length)]
    generator = torch.Generator().manual_seed(0)
    direction = torch.nn.functional.normalize(torch.randn(windows, model.config.hidden_dim, generator=generator), dim=1)
    return gradient_norms(lambda x: model.rnn(x)[0], model.embed(rows).detach(), direction)


# --------------------------------------------------------------------------------------------- writing


def write(
    model: CharacterLM, tokenizer: Tokenizer, prompt: str, temperature: float, *, count: int = 180, rows: int = 12
) -> tuple[str, float]:
    """What a reader of prose writes after the prompt, and which share of its words, over so many texts, exist.

    A word exists if the training text has it.
    """
    start = torch.tensor([tokenizer.encode("\n" + prompt)]).expand(rows, -1)
    dice = torch.Generator().manual_seed(0)
    new = sample(model, start, max_new_tokens=count, temperature=temperature, generator=dice)
    texts = [tokenizer.decode(row) for row in new]
    found = [word for text in texts for word in WORD.findall(text.lower())[1:-1]]  # the first and last may be cut
    return prompt + texts[0].replace("\n", " / "), sum(word in vocabulary() for word in found) / len(found)


@cache
def vocabulary() -> frozenset[str]:
    """All words of the training prose."""
    return frozenset(WORD.findall(prose_splits().text("train").lower()))


# --------------------------------------------------------------------------------------------- by hand


def random_network(*, length: int, batch: int = 4, inputs: int = 5, width: int = 8) -> tuple[Tensor, ...]:
    """W_ih, W_hh, b, sequences and first states, in double precision."""
    draw = torch.Generator().manual_seed(0)
    sizes = (width, inputs), (width, width), (width,), (batch, length, inputs), (batch, width)
    return tuple(0.4 * torch.randn(*size, generator=draw, dtype=torch.float64) for size in sizes)


def autograd(W_ih: Tensor, W_hh: Tensor, b: Tensor, x: Tensor, h: Tensor) -> dict[str, Tensor]:
    """The gradients of the sum of all squared states in weights and inputs, as autograd finds them."""
    tensors = [tensor.clone().requires_grad_() for tensor in (W_ih, W_hh, b, x)]
    loss = 0.0
    for x_t in tensors[3].unbind(dim=1):
        h = rnn_step(x_t, h, *tensors[:3])
        loss = loss + h.square().sum()
    return dict(zip(("dW_ih", "dW_hh", "db", "dx"), torch.autograd.grad(loss, tensors), strict=True))
