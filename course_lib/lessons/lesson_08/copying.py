"""Which head of the dictionary's GPT copies the stem of an invented word into its definition.

A head that attends to the headword need not use what it finds there. So each head is also switched off, and the stems
are counted again (an ablation, as in Olsson et al. 2022, arXiv 2209.11895).
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_08.definitions import Invented, copying, define
from course_lib.models.gpt import GPT
from course_lib.text.tokenizer import Tokenizer

Ablation = Callable[[int], AbstractContextManager]  # inside the `with` block this head of a block hands on zeros


@torch.no_grad()
def attention_to_headword(
    model: GPT, tokenizer: Tokenizer, words: Sequence[Invented], written: Sequence[str]
) -> Float[Tensor, "N H"]:
    """How much of its attention each head of each block has on the headword when the model writes the word's stem.

    That is at the token before the stem, on average over the words whose definition, in `written`, contains it.
    """
    found = []
    for word, definition in zip(words, written, strict=True):
        stem = re.search(rf"\b{word.stem}", definition.lower())
        if not stem:
            continue
        prompt = tokenizer.encode("\n" + word.prompt)
        before = tokenizer.encode(definition[: stem.start()].rstrip())
        headword = slice(1, len(tokenizer.encode("\n" + word.word)))
        with record_attention(model) as record:
            model(torch.tensor([prompt + before]))
        found.append(record.maps()[0, :, :, -1, headword].sum(dim=-1))
    return torch.stack(found).mean(dim=0)


def stems_without(model: GPT, tokenizer: Tokenizer, words: Sequence[Invented], without_head: Ablation) -> list[float]:
    """The fraction of stems that the model copies `with without_head(h):`, for each head h of a block."""
    fractions = []
    for head in range(model.config.num_heads):
        with without_head(head):
            written = define(model, tokenizer, [word.prompt for word in words])
        fractions.append(copying(written, words)["all"])
    return fractions
