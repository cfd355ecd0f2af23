"""Lesson 03: the answers of the recogniser, gradients through time, and generated text."""

import html
import math
import re
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.names import LANGUAGE_NAMES
from course_lib.data.prose import prose_splits
from course_lib.functional.recurrent import gradient_norms
from course_lib.generation import sample
from course_lib.lessons.lesson_03.recipes import names
from course_lib.models.recurrent import CharacterLM
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.language_models import (
    fitted_n_gram,
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
