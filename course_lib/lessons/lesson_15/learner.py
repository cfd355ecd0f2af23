"""Lesson 15: text with gaps, examples and melodies for the learner's models, and what is shown while they learn."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from textwrap import wrap

import torch
from matplotlib.figure import Figure
from torch import nn

from course_lib.data.checkpoints import load_trained
from course_lib.data.draws import generator
from course_lib.data.tones import NAMES, Melodies
from course_lib.functional.ctc import collapse, error_rate
from course_lib.functional.language import random_spans
from course_lib.lessons.lesson_15 import figures, models
from course_lib.lessons.lesson_15.recipes import speech, text_to_text
from course_lib.lessons.lesson_15.recipes.text_to_text import Batch, as_batch, tokenizer
from course_lib.models.conformer import Conformer
from course_lib.training.vision import seed_of_step

SHOWN = 3  # questions while a model learns
UNSEEN = 200  # sentences or melodies on which a model is scored
SEED = 99  # of melodies on the page; the recipes have others


# --------------------------------------------------------------------------------------------- text


def with_gaps(corrupt: Callable[..., tuple], *, count: int = 3) -> str:
    """Held-out text with spans dropped by the learner's function, and what the pre-trained T5 generates for them."""
    words, text = tokenizer(), text_to_text.plain_text("test")
    first = words.token_to_id(text_to_text.SENTINELS[-1])
    model, lines = load_trained("gaps").model, []
    for number in range(count):
        ids = text[number * 500 : number * 500 + text_to_text.WINDOW]
        dropped = random_spans(len(ids), generator=generator("look", number))
        source, target = corrupt(ids.tolist(), spans_of(dropped.tolist()), first)
        generated, closing = text_to_text.answers(model, [words.decode(list(source))])[0], target[-1]
        generated = generated[: generated.index(closing) + 1] if closing in generated else generated
        for name, row in (("source", source), ("target", target), ("T5", generated)):
            lines += wrap(words.decode(list(row)), 88, initial_indent=f"{name:8}", subsequent_indent=8 * " ")
        lines.append("")
    return "\n".join(lines[:-1])


def spans_of(dropped: Sequence[bool]) -> list[tuple[int, int]]:
    """The runs of True, as (first, one behind the last)."""
    edges = [i for i, (a, b) in enumerate(zip([False, *dropped], [*dropped, False], strict=True)) if a != b]
    return list(zip(edges[::2], edges[1::2], strict=True))


def sizes() -> dict[str, int]:
    """The arguments of the learner's class for a T5 of the shipped one's sizes."""
    return models.sizes_of_t5(load_trained("gaps").model)


def examples(task: str, count: int) -> Batch:
    """So many training examples of a task as padded tokens: source, source_valid, target, target_valid."""
    return as_batch(text_to_text.examples(task, text_to_text.sentences("train", text_to_text.PLAIN)[:count]))


def exact(model: nn.Module, task: str, count: int = UNSEEN) -> float:
    """The percentage of unseen sentences whose answer is correct, word for word."""
    asked = unseen(task, count)
    said = generated(model, [one.source for one in asked])
    return 100 * sum(answer == in_words(one.target) for answer, one in zip(said, asked, strict=True)) / count


def unseen(task: str, count: int) -> list[text_to_text.Example]:
    """Test examples of a task."""
    return text_to_text.examples(task, text_to_text.sentences("test", text_to_text.SCORED["test"]))[:count]


def in_words(text: str) -> str:
    """A text as it looks after the tokenizer."""
    return tokenizer().decode(tokenizer().encode(text))


@torch.no_grad()
def generated(model: nn.Module, sources: Sequence[str]) -> list[str]:
    """Greedy answers of a model that is called with source, target and `source_valid`: the learner's or the library's.

    Each step computes the whole target again, so the model needs no cache.
    """
    words = tokenizer()
    source, valid = words.encode_batch(sources, end=True)
    end = words.token_to_id("</s>")
    target = torch.zeros(len(sources), 1, dtype=torch.long)
    ended = torch.zeros(len(sources), dtype=torch.bool)
    for _ in range(2 * text_to_text.LONGEST):
        token = model.eval()(source, target, source_valid=valid)[:, -1].argmax(dim=-1)
        target = torch.cat([target, token.masked_fill(ended, 0)[:, None]], dim=1)
        ended |= token == end
        if ended.all():
            break
    rows = [row[: row.index(end)] if end in row else row for row in target[:, 1:].tolist()]
    return [words.decode(row, strip_specials=True) for row in rows]


def answering(task: str, count: int = SHOWN) -> Callable[[nn.Module], str]:
    """An example for `page.watch`: unseen questions, the model's answers, and the correct ones."""
    asked = unseen(task, 40)[:: 40 // count][:count]

    def example(model: nn.Module) -> str:
        lines = []
        for one, answer in zip(asked, generated(model, [one.source for one in asked]), strict=True):
            mark = "correct" if answer == in_words(one.target) else "wrong"
            lines.append(f"{escape(one.source)}<br>{escape(answer)} ({mark})")
        return "<br><br>".join(lines)

    return example


# --------------------------------------------------------------------------------------------- speech


def melodies(count: int, step: int = 0, *, noise: float = speech.TONES.noise) -> Melodies:
    """New melodies for a training step, of 3 to 8 tones."""
    return replace(speech.TONES, noise=noise).batch(count, seed_of_step(SEED, step))


def new_melodies(count: int = UNSEEN) -> Melodies:
    """Melodies of the test."""
    return speech.TONES.batch(count, speech.HELD_OUT["test"])


@torch.no_grad()
def transcripts(
    model: Conformer, melodies: Melodies, collapse: Callable[..., Sequence[int]] = collapse
) -> list[list[int]]:
    """The most probable symbol of each frame, collapsed to labels by the learner's function."""
    log_probs, lengths = speech.log_probs_of(model, melodies)
    best = log_probs.argmax(dim=-1)
    return [list(collapse(row[:n].tolist())) for row, n in zip(best, lengths.tolist(), strict=True)]


def errors(model: nn.Module, melodies: Melodies) -> float:
    """Edits per 100 tones of greedy decoding."""
    return 100 * error_rate(transcripts(model.eval(), melodies), melodies.spoken())


def hearing(tones: str = "CEGcc") -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: the probabilities of the symbols for one melody."""
    melody = speech.TONES.melody(tones)

    @torch.no_grad()
    def example(model: nn.Module) -> Figure:
        log_probs, lengths = speech.log_probs_of(model, melody)
        found = " ".join(NAMES[number - 1] for number in transcripts(model, melody)[0])
        return figures.growing(log_probs[0, : int(lengths[0])].exp(), NAMES, " ".join(tones), found)

    return example
