"""What BERT, a fresh network and a baseline without one learn from a few labelled sentences.

Devlin et al. 2019, arXiv 1810.04805, section 4, for fine-tuning.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor, nn

from course_lib.data.labelled import (
    PARTS_OF_SPEECH,
    LabelledSentence,
    TaggedSentence,
    gender_splits,
    part_of_speech,
    tagging_splits,
)
from course_lib.data.labelled import draw as few
from course_lib.lessons.lesson_07.recipes.pretraining import encode
from course_lib.models.baselines import LogisticRegression, MajorityClass, bag_of_words, word_windows
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.models.bert_tasks import BERTForSequenceClassification as Classifier
from course_lib.models.bert_tasks import BERTForTokenClassification as Tagger
from course_lib.text.tokenizer import pad_batch
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Scores, fit_by, mean_and_spread
from course_lib.training.seeding import seeded

NOT_SCORED = -100  # the label of signs and padding, as in `torch.nn.functional.cross_entropy`
COMPARISONS = (
    ("tagging", 3),
    ("tagging", 10),
    ("tagging", 30),
    ("hidden gender", 30),
    ("hidden gender", 100),
    ("zero-shot", 100),
)  # task, labelled sentences
DRAWS = 5


@dataclass(frozen=True, kw_only=True)
class FineTuningSettings:
    """How a task is learned from a few labelled sentences."""

    steps: int
    learning_rate: float
    scratch: bool = False  # on fresh weights instead of pretrained ones
    batch_size: int = 16
    dropout: float = 0.1
    seed: int = 0


# Of the pretrained and of the fresh network; steps and rates were chosen on the validation split.
FINE_TUNING = {
    "tagging": (
        FineTuningSettings(steps=150, learning_rate=1e-3),
        FineTuningSettings(steps=300, learning_rate=2e-3, scratch=True),
    ),
    "hidden gender": (
        FineTuningSettings(steps=120, learning_rate=3e-4),
        FineTuningSettings(steps=120, learning_rate=1e-3, scratch=True),
    ),
    "zero-shot": (
        FineTuningSettings(steps=60, learning_rate=1e-3),
        FineTuningSettings(steps=60, learning_rate=1e-3, scratch=True),
    ),
}


class LabelledBatch(NamedTuple):
    """Sentences with a label each, (B,), or one for each token, (B, T)."""

    tokens: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]
    labels: Int[Tensor, "B ..."]


class Task(NamedTuple):
    """A few labelled examples, and what is asked afterwards: for networks as batches, for the baseline as features."""

    kind: type[Tagger] | type[Classifier]
    num_classes: int
    given: LabelledBatch
    asked: LabelledBatch
    baseline: float  # its accuracy


# ------------------------------------------------------------------------------------------------- tasks

tagged_sentences = lru_cache(maxsize=2)(tagging_splits)
genders = lru_cache(maxsize=1)(gender_splits)


def tagging(count: int, draw: int, split: str = "test") -> Task:
    """French part of speech, gender and number of each word, from `count` labelled sentences."""
    splits = tagged_sentences(language="french")
    examples, asked = few(splits.train, count, seed=draw), getattr(splits, split)
    classes = sorted({tag for example in examples for tag in example.tags})
    return tagging_task(examples, asked, classes, LogisticRegression(l2=0.01))


def zero_shot(count: int, draw: int, split: str = "test") -> Task:
    """Parts of speech in French, from `count` labelled English sentences.

    The baseline is the commonest one: logistic regression knows no word of the other language.
    """
    english, french = (tagged_sentences(language=language) for language in ("english", "french"))
    examples = [parts_of_speech(example) for example in few(english.train, count, seed=draw)]
    asked = [parts_of_speech(example) for example in getattr(french, split)]
    return tagging_task(examples, asked, PARTS_OF_SPEECH, MajorityClass())


def hidden_gender(count: int, draw: int, split: str = "test") -> Task:
    """The gender of a French subject that does not show it, from `count` sentences with other subjects."""
    examples, asked = few(genders().train, count, seed=draw), getattr(genders(), split)
    share = baseline_accuracy(LogisticRegression(l2=0.1), bags_and_labels(examples), bags_and_labels(asked))
    return Task(Classifier, 2, labelled_batch(examples), labelled_batch(asked), share)


def tagging_task(
    examples: Sequence[TaggedSentence],
    asked: Sequence[TaggedSentence],
    classes: Sequence[str],
    baseline: LogisticRegression | MajorityClass,
) -> Task:
    """A tag of `classes` for each word."""
    share = baseline_accuracy(baseline, windows_and_tags(examples), windows_and_tags(asked))
    return Task(Tagger, len(classes), tagged_batch(examples, classes), tagged_batch(asked, classes), share)


TASKS: dict[str, Callable[[int, int, str], Task]] = {
    "tagging": tagging,
    "hidden gender": hidden_gender,
    "zero-shot": zero_shot,
}


def parts_of_speech(example: TaggedSentence) -> TaggedSentence:
    """The same without gender and number, which English has not."""
    return replace(example, tags=tuple(part_of_speech(tag) for tag in example.tags))


def tagged_batch(examples: Sequence[TaggedSentence], classes: Sequence[str]) -> LabelledBatch:
    """A label for each word; signs and padding have none. A tag that is not among the `classes` is never right."""
    tokens, valid = pad_batch([encode(example.words).ids for example in examples])
    number = {name: i for i, name in enumerate(classes)}
    rows = [[NOT_SCORED, *(number.get(tag, len(classes)) for tag in e.tags), NOT_SCORED] for e in examples]
    return LabelledBatch(tokens, valid, pad_batch(rows, pad_id=NOT_SCORED)[0])


def labelled_batch(examples: Sequence[LabelledSentence]) -> LabelledBatch:
    """A label for each sentence."""
    tokens, valid = pad_batch([encode(example.words).ids for example in examples])
    return LabelledBatch(tokens, valid, torch.tensor([example.label for example in examples]))


def windows_and_tags(examples: Sequence[TaggedSentence]) -> tuple[list[list[str]], list[str]]:
    """Of each word its neighbours and its last one, two and three letters; and its tag."""
    features = [
        window + [f"-{word[-length:]}" for length in (1, 2, 3)]
        for example in examples
        for word, window in zip(example.words, word_windows(example.words), strict=True)
    ]
    return features, [tag for example in examples for tag in example.tags]


def bags_and_labels(examples: Sequence[LabelledSentence]) -> tuple[list[list[str]], list[int]]:
    """Each sentence's words and pairs of words, and its label."""
    return [bag_of_words(example.words, longest=2) for example in examples], [example.label for example in examples]


def baseline_accuracy(
    baseline: LogisticRegression | MajorityClass, given: tuple[list, list], asked: tuple[list, list]
) -> float:
    """The accuracy of a baseline, from 0 to 1; `given` and `asked` are features and labels."""
    features, labels = asked
    return sum(map(operator.eq, baseline.fit(*given).predict(features), labels)) / len(labels)


# -------------------------------------------------------------------------------------------- fine-tuning


def fine_tune(pretrained: BERTForMaskedLM, task: Task, settings: FineTuningSettings) -> Tagger | Classifier:
    """The task's kind of classifier on the pretrained backbone, or on a fresh one (`scratch`); all weights learn."""
    config = replace(pretrained.config, num_classes=task.num_classes, dropout=settings.dropout)
    with seeded(settings.seed):
        model = task.kind(config)
    if not settings.scratch:  # a pooler, where there is one, stays fresh: filling gaps trains none
        model.bert.load_state_dict(model.bert.state_dict() | pretrained.bert.state_dict())
    given = task.given

    def loss(model: nn.Module, rows: Tensor) -> Tensor:
        logits = model(given.tokens[rows], valid=given.valid[rows])
        return F.cross_entropy(logits.flatten(0, -2), given.labels[rows].flatten(), ignore_index=NOT_SCORED)

    indices_at = shuffled_batches(len(given.tokens), settings.batch_size, settings.seed)
    warmup = settings.steps // 10
    return fit_by(settings, model, indices_at, loss, schedule="linear", warmup=warmup, weight_decay=0.01).model


@torch.no_grad()
def accuracy(model: nn.Module, batch: LabelledBatch, **given: Tensor) -> float:
    """Share of the labels that the model, which is also `given` this, gives right, from 0 to 1."""
    scored = batch.labels != NOT_SCORED
    right = model(batch.tokens, valid=batch.valid, **given).argmax(dim=-1) == batch.labels
    return right[scored].float().mean().item()


def compare(pretrained: BERTForMaskedLM, name: str, *, count: int, draw: int, split: str = "test") -> Scores:
    """A task of `TASKS` learned from `count` labelled sentences, with pre-training, without it, and by the baseline."""
    task = TASKS[name](count, draw, split)
    learned, fresh = (
        accuracy(fine_tune(pretrained, task, replace(settings, seed=draw)), task.asked)
        for settings in FINE_TUNING[name]
    )
    return {"pretrained": learned, "scratch": fresh, "baseline": task.baseline}


def few_label_scores(pretrained: BERTForMaskedLM, *, split: str = "test") -> Scores:
    """Mean and spread of each learner's accuracy over the draws, for all of `COMPARISONS`."""
    scores = {}
    for name, count in COMPARISONS:
        draws = [compare(pretrained, name, count=count, draw=draw, split=split) for draw in range(DRAWS)]
        for learner in draws[0]:
            values = [draw[learner] for draw in draws]
            scores |= mean_and_spread(f"{name}, {count} labelled sentences, {learner}", values)
    return scores
