"""Lesson 07: the labelled examples of three small tasks, and what the page shows of the learner's models."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor, nn

from course_lib.data.labelled import TaggedSentence
from course_lib.data.labelled import draw as few
from course_lib.lessons.lesson_07.recipes.few_labels import NOT_SCORED, genders, tagged_batch, tagged_sentences
from course_lib.lessons.lesson_07.recipes.pretraining import encode, masked_batch, vocabulary
from course_lib.lessons.lesson_07.small import BLANKS, short_sentences
from course_lib.text.tokenizer import pad_batch
from course_lib.training.batches import shuffled_batches

LONGEST = 12  # tokens of an answer
Inputs = tuple[Int[Tensor, "B T"], Int[Tensor, "B T"], Bool[Tensor, "B T"]]  # tokens, segments, which are real


class Examples(NamedTuple):
    """Rows and their labels: of each token (B, T), of each row (B,), or the two ends of an answer (B, 2)."""

    inputs: Inputs
    labels: Int[Tensor, "B ..."]

    def batches(self, steps: int, size: int = 16, seed: int = 0) -> list[tuple[Inputs, Tensor]]:
        """Batches drawn in shuffled order, again and again."""
        at = shuffled_batches(len(self.labels), size, seed)
        rows = [at(step) for step in range(steps)]
        return [(tuple(part[i] for part in self.inputs), self.labels[i]) for i in rows]


class LabelledTask(NamedTuple):
    """A few labelled examples, many new ones, and the number of classes."""

    given: Examples
    asked: Examples
    num_classes: int


def tags(count: int, seed: int = 0, split: str = "test") -> LabelledTask:
    """A token task: part of speech, gender and number of each French word."""
    splits = tagged_sentences(language="french")
    given, asked = few(splits.train, count, seed=seed), getattr(splits, split)
    classes = sorted({tag for example in given for tag in example.tags})
    batches = (tagged_batch(examples, classes) for examples in (given, asked))
    return LabelledTask(*(Examples(_one_text(b.tokens, b.valid), b.labels) for b in batches), len(classes))


def gender(count: int, seed: int = 0, split: str = "test") -> LabelledTask:
    """A sentence task: the gender of a French subject whose sentence does not show it."""
    found = []
    for examples in (few(genders().train, count, seed=seed), getattr(genders(), split)):
        inputs = _one_text(*pad_batch([encode(example.words).ids for example in examples]))
        found.append(Examples(inputs, torch.tensor([example.label for example in examples])))
    return LabelledTask(*found, 2)


def answers(count: int, seed: int = 0, split: str = "test") -> LabelledTask:
    """A span task: the question is a verb of the passage, the answer its subject with all that belongs to it."""
    found = []
    for questions in (few(_questions("train"), count, seed=seed), _questions(split)):
        rows = [encode([question], passage) for question, passage, _, _ in questions]
        tokens, valid = pad_batch([row.ids for row in rows])
        segments, _ = pad_batch([row.segments for row in rows])
        ends = torch.tensor([[3 + first, 3 + last] for _, _, first, last in questions])  # after [CLS] verb [SEP]
        found.append(Examples((tokens, segments, valid), ends))
    return LabelledTask(*found, 0)


TASKS: Mapping[str, Callable[..., LabelledTask]] = {"tags": tags, "gender": gender, "answers": answers}


def _one_text(tokens: Tensor, valid: Tensor) -> Inputs:
    return tokens, torch.zeros_like(tokens), valid


@cache
def _questions(split: str) -> list[tuple[str, Sequence[str], int, int]]:
    """A question for each verb of the sentences that have two or more: verb, words, and the ends of its subject."""
    found = []
    for sentence in getattr(tagged_sentences(language="english"), split):
        asked = [(verb, *ends) for verb, word in enumerate(sentence.words) if (ends := subject(sentence, verb))]
        if len(asked) > 1:
            found += [(sentence.words[verb], sentence.words, first, last) for verb, first, last in asked]
    return found


def subject(sentence: TaggedSentence, verb: int) -> tuple[int, int] | None:
    """The ends of the noun phrase to the left of a verb; None if this is no verb, or its subject a pronoun."""
    kinds = [tag.partition("|")[0] for tag in sentence.tags]
    if kinds[verb] != "VERB" or sentence.words.count(sentence.words[verb]) > 1:
        return None
    last = verb - 1
    while last >= 0 and kinds[last] in ("AUX", "ADV"):
        last -= 1
    if last < 0 or kinds[last] != "NOUN":
        return None
    first = last
    while first > 0:
        before = first - 1
        if kinds[before] in ("ADJ", "DET") and kinds[first] != "DET":
            first = before
        elif before > 0 and kinds[first] == "DET" and sentence.words[before] == "of" and kinds[before - 1] == "NOUN":
            first = before - 1
        else:
            break
    return first, last


@torch.no_grad()
def accuracy(model: nn.Module, examples: Examples, choose: Callable[..., Tensor] | None = None) -> float:
    """The percentage of labels that a model predicts; of spans, both ends, as `choose(start, end, allowed, n)` says."""
    logits, labels = model(*examples.inputs), examples.labels
    if choose is None:
        scored = labels != NOT_SCORED
        return 100 * (logits.argmax(dim=-1) == labels)[scored].float().mean().item()
    _, segments, valid = examples.inputs
    found = choose(logits[:, 0], logits[:, 1], (segments == 1) & valid, LONGEST)
    return 100 * (found == labels).all(dim=1).float().mean().item()


def show_answers(model: nn.Module, task: LabelledTask, choose: Callable[..., Tensor], *, count: int = 4) -> None:
    """Print some questions, their passages, and the spans that a model finds."""
    tokens, segments, valid = (part[:count] for part in task.asked.inputs)
    with torch.no_grad():
        logits = model(tokens, segments, valid)
    spans = choose(logits[:, 0], logits[:, 1], (segments == 1) & valid, LONGEST)
    for row, real, (first, last) in zip(tokens, valid, spans.tolist(), strict=True):
        words = [vocabulary().id_to_token(i) for i in row[real].tolist()]
        print(f"{words[1]}?  {' '.join(words[first : last + 1])}    ({' '.join(words[3:-1])})")


def show_row(task: LabelledTask) -> None:
    """Print the shortest row of a span task as the model gets it: a line for each token, with segment and labels."""
    (tokens, segments, valid), labels = task.given
    row = valid.sum(dim=1).argmin()
    first, last = labels[row].tolist()
    for i, (token, segment) in enumerate(zip(tokens[row][valid[row]].tolist(), segments[row].tolist(), strict=False)):
        ends = ", ".join(name for name, end in (("first", first), ("last", last)) if i == end)
        print(f"{i:3}  {vocabulary().id_to_token(token):12} segment {segment}  {ends}".rstrip())


def measured() -> Mapping[str, Mapping[str, Sequence[float]]]:
    """The test accuracy (%) of each task and way to train, for five draws of the labels; `fine_tuning.py` made it."""
    file = Path(__file__).with_name("fine_tuning.json")
    return json.loads(file.read_text(encoding="utf-8"))["test accuracy (%)"]


def predictions(model: nn.Module, sentence: str, *, most: int = 3) -> str:
    """The most probable tokens for each [MASK] of a sentence, with their probabilities."""
    tokens = torch.tensor([encode(sentence.split()).ids])
    with torch.no_grad():
        logits = model(tokens)[tokens == vocabulary().mask_id]
    best = logits.softmax(dim=-1).topk(most)
    return "; ".join(
        ", ".join(f"{vocabulary().id_to_token(i)} {p:.2f}" for i, p in zip(ids, ps, strict=True))
        for ids, ps in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )


def fills(model: nn.Module) -> str:
    """For `page.watch`: what a model predicts in three blanks, as HTML."""
    return "".join(
        f"<p>{escape(blank.replace('[MASK]', '____'))}<br>{escape(predictions(model, blank))}</p>" for blank in BLANKS
    )


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """The masked-language-model loss in new sentences, in nats per chosen token."""
    batch = masked_batch(short_sentences("validation"), seed=0)
    logits = model(batch.tokens, batch.segments, batch.valid)
    return F.cross_entropy(logits[batch.masked], batch.hidden).item()
