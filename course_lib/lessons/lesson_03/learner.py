"""Lesson 03: the recogniser's answers, training by SGD with and without clipping, gradients, and generated text."""

import html
import math
import re
from collections.abc import Callable, Sequence
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.names import LANGUAGE_NAMES
from course_lib.data.prose import prose_splits
from course_lib.functional.recurrent import gradient_norms, recurrent_matrix
from course_lib.generation import sample
from course_lib.lessons.lesson_03.recipes import names
from course_lib.models.recurrent import CharacterLM
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.batches import text_windows
from course_lib.training.language_models import (
    LanguageSettings,
    build_language_model,
    fitted_n_gram,
    next_token_loss,
    tokenized_prose,
)

WORD = re.compile(r"[a-z]+")
SHOWN = ("görögország", "grèce", "güney afrika", "griechenland")  # none of them is in the training data


@torch.no_grad()
def beliefs(model: nn.Module, tokenizer: Tokenizer, text: str) -> Float[Tensor, "T languages"]:
    """The probability of each language after each letter: the recogniser reads every beginning of the name."""
    ids = torch.tensor([tokenizer.encode(text.lower())])
    length = ids.shape[1]
    return model(ids.expand(length, -1), valid=torch.ones(length, length).tril().bool()).softmax(dim=-1)


def most_probable(probs: Float[Tensor, " languages"], count: int = 1) -> list[tuple[str, float]]:
    """The languages with the largest probabilities."""
    best = probs.topk(count)
    return [(LANGUAGE_NAMES[i], prob) for prob, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)]


def example(model: nn.Module) -> str:
    """For `page.watch`: the answer of the network after each letter of a few names."""
    rows = []
    for text in SHOWN:
        probs = beliefs(model, names.tokenizer(), text)
        guesses = "".join(f"<td>{html.escape(most_probable(row)[0][0][:3])}</td>" for row in probs)
        letters = "".join(f"<th>{html.escape(letter)}</th>" for letter in text)
        rows.append(f"<table style='font-size:12px'><tr>{letters}</tr><tr>{guesses}</tr></table>")
    return "The most probable language after each letter:" + "".join(rows)


# --------------------------------------------------------------------------------------------- gradients


RATES = (0.5, 2.0, 5.0)  # learning rates of SGD
SIGMAS = (0.9, 1.3)  # all singular values of the recurrent matrix before the training


def sgd_run(
    rate: float, clip: Callable[..., Sequence[Tensor]] | None, *, sigma: float, seed: int, steps: int = 80
) -> tuple[float, float]:
    """Train a character RNN by SGD: the mean loss of the last twenty steps, in nats, and the largest gradient norm.

    Its recurrent matrix is at first an orthogonal one times `sigma`. Each step goes against `clip(gradients, 1.0)`,
    or, without a `clip`, against the gradients themselves.
    """
    torch.manual_seed(seed)
    model = build_language_model(LanguageSettings(model="rnn", dim=128, depth=1, steps=steps, learning_rate=rate))
    cell, text = model.rnn.cells[0], tokenized_prose().ids["train"]
    batch_at = text_windows(text, batch_size=16, length=101, seed=seed)
    with torch.no_grad():
        matrix = recurrent_matrix(128, sigma, kind="orthogonal", generator=torch.Generator().manual_seed(seed))
        cell.weight_hh.copy_(matrix)
    weights, losses, norms = list(model.parameters()), [], []
    for step in range(steps):
        loss = next_token_loss(model, batch_at(step))
        gradients = list(torch.autograd.grad(loss, weights))
        losses.append(loss.item())
        norms.append(torch.stack([gradient.norm() for gradient in gradients]).norm().item())
        with torch.no_grad():
            for weight, gradient in zip(weights, clip(gradients, 1.0) if clip else gradients, strict=True):
                weight -= rate * gradient
    return sum(losses[-20:]) / 20, max(norms)


def one_unit_loss(w: Tensor, b: Tensor) -> Tensor:
    """(sigmoid(a_50) - 0.7)^2 for a_t = w sigmoid(a_{t-1}) + b, a_0 = 0.5: Pascanu et al. 2013, figure 6."""
    a = torch.full_like(w + b, 0.5)
    for _ in range(50):
        a = w * torch.sigmoid(a) + b
    return (torch.sigmoid(a) - 0.7) ** 2


def reach_of(model: nn.Module, *, length: int = 60, windows: int = 24) -> Float[Tensor, " T"]:
    """The norm of the gradient of a character model's last state at each character before it, in unseen prose."""
    ids = tokenized_prose().ids["test"]
    rows = ids[torch.arange(windows)[:, None] * 4000 + torch.arange(length)]
    generator = torch.Generator().manual_seed(0)
    direction = torch.nn.functional.normalize(torch.randn(windows, model.config.hidden_dim, generator=generator), dim=1)
    return gradient_norms(lambda x: model.rnn(x)[0], model.embed(rows).detach(), direction)


# --------------------------------------------------------------------------------------------- writing


def prose() -> tuple[Int[Tensor, " N"], Tokenizer]:
    """The characters of the training prose as ids, and their tokenizer."""
    data = tokenized_prose()
    return data.ids["train"], data.tokenizer


def perplexity(model: nn.Module, count: int = 20_000) -> float:
    """The perplexity of a character model on validation text, which it reads in 20 parts from a zero state."""
    rows = tokenized_prose().ids["validation"][: count + 20].view(20, -1)
    with torch.no_grad():
        found = model(rows[:, :-1])
    logits = found[0] if isinstance(found, tuple) else found  # the page's model returns its state, too
    return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).exp().item()


def ngram_perplexity(n: int, count: int = 20_000) -> float:
    """The same of a Kneser-Ney n-gram of the training text."""
    ids = tokenized_prose().ids["validation"][: count + 1]
    return math.exp(-fitted_n_gram(n).log_probs(ids).mean())


def write(
    model: CharacterLM, tokenizer: Tokenizer, prompt: str, temperature: float, *, count: int = 180, rows: int = 12
) -> tuple[str, float]:
    """The model's continuation of the prompt, and the fraction of words, over `rows` such texts, that exist.

    A word exists if it occurs in the training text.
    """
    start = torch.tensor([tokenizer.encode("\n" + prompt)]).expand(rows, -1)
    generator = torch.Generator().manual_seed(0)
    new = sample(model, start, max_new_tokens=count, temperature=temperature, generator=generator)
    texts = [tokenizer.decode(row) for row in new]
    found = [word for text in texts for word in WORD.findall(text.lower())[1:-1]]  # the first and last may be cut
    return prompt + texts[0].replace("\n", " / "), sum(word in vocabulary() for word in found) / len(found)


@cache
def vocabulary() -> frozenset[str]:
    """All words of the training prose."""
    return frozenset(WORD.findall(prose_splits().text("train").lower()))
