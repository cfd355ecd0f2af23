"""Lesson 07: BERT learns two languages from unlabelled sentences, and then a task from a few labelled ones.

Devlin et al. 2019, arXiv 1810.04805, for pre-training and fine-tuning; Lample & Conneau, "Cross-lingual language model
pretraining", NeurIPS 2019, arXiv 1901.07291, for two languages in one model.
"""

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data.labelled import (
    PARTS_OF_SPEECH,
    LabelledSentence,
    LabelledSplits,
    TaggedSentence,
    gender_splits,
    part_of_speech,
    tagging_splits,
)
from course_lib.data.labelled import draw as few
from course_lib.data.translation import english_words, french_words, translation_splits
from course_lib.functional.language import mask_tokens
from course_lib.models.baselines import LogisticRegression, MajorityClass, bag_of_words, word_windows
from course_lib.models.bert import BERTConfig
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.models.bert_tasks import BERTForSequenceClassification as Classifier
from course_lib.models.bert_tasks import BERTForTokenClassification as Tagger
from course_lib.text.tokenizer import pad_batch
from course_lib.text.words import WordTokenizer
from course_lib.training.batches import bucketed_batches, shuffled_batches
from course_lib.training.history import History
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Progress
from course_lib.training.registry import Recipe, Trained
from course_lib.training.seeding import seeded

CONTEXT_LENGTH = 80  # tokens: two sentences of the grammar and their signs
VALIDATION_SENTENCES = 300
NOT_SCORED = -100  # the label of signs and padding, as in `torch.nn.functional.cross_entropy`


@dataclass(frozen=True, kw_only=True)
class PretrainingRecipe:
    """A small BERT, and the unlabelled sentences from which it learns English and French."""

    dim: int = 96
    depth: int = 3
    num_heads: int = 4
    sentences: int = 20_000  # half of them English, half French
    parallel: bool = False  # some side by side with their translation: TLM, Lample & Conneau 2019, section 3.3
    steps: int = 12_000
    batch_size: int = 32
    learning_rate: float = 1e-3
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class FineTuningRecipe:
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
        FineTuningRecipe(steps=150, learning_rate=1e-3),
        FineTuningRecipe(steps=300, learning_rate=2e-3, scratch=True),
    ),
    "hidden gender": (
        FineTuningRecipe(steps=120, learning_rate=3e-4),
        FineTuningRecipe(steps=120, learning_rate=1e-3, scratch=True),
    ),
    "zero-shot": (
        FineTuningRecipe(steps=60, learning_rate=1e-3),
        FineTuningRecipe(steps=60, learning_rate=1e-3, scratch=True),
    ),
}


PRETRAINING = PretrainingRecipe()
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
class PretrainedBERT:
    """A finished pre-training: its recipe, its model and what happened."""

    recipe: PretrainingRecipe
    model: BERTForMaskedLM
    history: History


@dataclass(frozen=True, kw_only=True)
class FewLabelScores:
    """Accuracies after one draw of labelled sentences, from 0 to 1."""

    task: str
    count: int  # labelled sentences
    draw: int
    pretrained: float
    scratch: float  # the same network without pre-training
    baseline: float  # without a network


class Encoded(NamedTuple):
    """Token ids, and to which sentence each of them belongs."""

    ids: list[int]
    segments: list[int]


class MaskedBatch(NamedTuple):
    """Sentences with gaps, and the words that stood there."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]
    masked: Bool[Tensor, "B T"]
    hidden: Int[Tensor, " N"]


class LabelledBatch(NamedTuple):
    """Sentences with a label each, (B,), or one for each token, (B, T)."""

    tokens: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"]
    labels: Int[Tensor, "B ..."]


@lru_cache(maxsize=1)
def vocabulary() -> WordTokenizer:
    """The words of both languages of the grammar: one that both have is one token."""
    specials, words = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"), sorted({*english_words(), *french_words()})
    return WordTokenizer([*specials, *words], specials=specials, cut_punctuation=False)


def encode(first: Sequence[str], second: Sequence[str] = ()) -> Encoded:
    """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
    ids = vocabulary().encode(" ".join(first), start=True, end=True)
    more = vocabulary().encode(" ".join(second), end=True) if second else []
    return Encoded(ids + more, [0] * len(ids) + [1] * len(more))


# ------------------------------------------------------------------------------------------ pre-training


def texts(recipe: PretrainingRecipe, split: str = "train") -> list[Encoded]:
    """The unlabelled sentences of a split: English ones, then French ones that do not translate them.

    With `recipe.parallel` half of the English ones have their translation beside them, in place of as many French ones.
    """
    splits = translation_splits(train=recipe.sentences, validation=VALIDATION_SENTENCES, test=0)
    pairs = {"train": splits.train, "validation": splits.validation}[split]
    half = len(pairs) // 2
    english, french, count = pairs[:half], pairs[half:], half // 2 if recipe.parallel else 0
    return (
        [encode(pair.english, pair.french) for pair in english[:count]]
        + [encode(pair.english) for pair in english[count:]]
        + [encode(pair.french) for pair in french[count:]]
    )


def masked_batch(sentences: Sequence[Encoded], *, seed: int) -> MaskedBatch:
    """The sentences as one padded batch with gaps; the same seed makes the same gaps."""
    tokens, valid = pad_batch([sentence.ids for sentence in sentences])
    segments, _ = pad_batch([sentence.segments for sentence in sentences])
    mask_id, end = vocabulary().mask_id, len(vocabulary())
    noise = torch.rand(3, *tokens.shape, generator=torch.Generator().manual_seed(seed))
    given, masked = mask_tokens(tokens, noise, maskable=tokens > mask_id, mask_id=mask_id, word_ids=(mask_id + 1, end))
    return MaskedBatch(given, segments, valid, masked, tokens[masked])


def masked_lm_loss(model: BERTForMaskedLM, batch: MaskedBatch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the words in the gaps, in nats per word."""
    return F.cross_entropy(
        model(batch.tokens, segments=batch.segments, valid=batch.valid, masked=batch.masked), batch.hidden
    )


def build_masked_lm(recipe: PretrainingRecipe) -> BERTForMaskedLM:
    """A fresh model; its first weights depend on the seed alone."""
    config = BERTConfig(
        vocab_size=len(vocabulary()),
        dim=recipe.dim,
        depth=recipe.depth,
        num_heads=recipe.num_heads,
        mlp_dim=4 * recipe.dim,
        context_length=CONTEXT_LENGTH,
        dropout=0.0,  # the sentences are seen too few times to be learned by heart
    )
    with seeded(recipe.seed):
        return BERTForMaskedLM(config)


def pretrain(
    recipe: PretrainingRecipe, *, checkpoint=None, checkpoint_every: int | None = None, progress=None
) -> PretrainedBERT:
    """Learns to fill gaps; with a folder `checkpoint` an interrupted run goes on, see `fit`."""
    model, sentences = build_masked_lm(recipe), texts(recipe)
    held_out = masked_batch(texts(recipe, "validation"), seed=0)
    indices_at = bucketed_batches([len(sentence.ids) for sentence in sentences], recipe.batch_size, recipe.seed)

    def batch_at(step: int) -> MaskedBatch:
        chosen = [sentences[i] for i in indices_at(step).tolist()]
        return masked_batch(chosen, seed=recipe.seed * 2**32 + step + 1)

    config = FitConfig(
        steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        schedule="linear",
        warmup=min(200, recipe.steps // 4),
        betas=(0.9, 0.98),
        weight_decay=0.01,
        evaluate_every=max(1, recipe.steps // 10),
        checkpoint_every=checkpoint_every,
        seed=recipe.seed,
    )
    history = fit(
        model,
        batch_at,
        masked_lm_loss,
        config=config,
        validate=lambda trained: float(masked_lm_loss(trained, held_out)),
        checkpoint=checkpoint,
        progress=progress,
    )
    return PretrainedBERT(recipe=recipe, model=model, history=history)


@torch.no_grad()
def fill_in(model: BERTForMaskedLM, words: Sequence[str], *, most: int = 5) -> list[list[tuple[str, float]]]:
    """For each "[MASK]" among the words the `most` likely ones, with their probabilities."""
    tokens = torch.tensor([encode(words).ids])
    gaps = model(tokens, masked=tokens == vocabulary().mask_id).softmax(dim=-1).topk(most)
    names = vocabulary().vocabulary
    return [
        [(names[i], p) for i, p in zip(ids, ps, strict=True)]
        for ids, ps in zip(gaps.indices.tolist(), gaps.values.tolist(), strict=True)
    ]


# -------------------------------------------------------------------------------------------- fine-tuning


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


def fine_tune(
    kind: type[Tagger] | type[Classifier],
    pretrained: BERTForMaskedLM,
    batch: LabelledBatch,
    recipe: FineTuningRecipe,
    *,
    num_classes: int,
    progress=None,
) -> Tagger | Classifier:
    """A `kind` of classifier on the pretrained trunk, or on a fresh one (`recipe.scratch`); all its weights learn."""
    config = replace(pretrained.config, num_classes=num_classes, dropout=recipe.dropout)
    with seeded(recipe.seed):
        model = kind(config)
    if not recipe.scratch:  # a pooler, where there is one, stays fresh: filling gaps trains none
        model.bert.load_state_dict(model.bert.state_dict() | pretrained.bert.state_dict())
    indices_at = shuffled_batches(len(batch.tokens), recipe.batch_size, recipe.seed)

    def loss(model: nn.Module, rows: Tensor) -> Tensor:
        logits = model(batch.tokens[rows], valid=batch.valid[rows])
        return F.cross_entropy(logits.flatten(0, -2), batch.labels[rows].flatten(), ignore_index=NOT_SCORED)

    config = FitConfig(
        steps=recipe.steps,
        learning_rate=recipe.learning_rate,
        schedule="linear",
        warmup=recipe.steps // 10,
        weight_decay=0.01,
        seed=recipe.seed,
    )
    fit(model, indices_at, loss, config=config, progress=progress)
    return model


@torch.no_grad()
def accuracy(model: nn.Module, batch: LabelledBatch) -> float:
    """Share of the labels that the model gives right, from 0 to 1."""
    scored = batch.labels != NOT_SCORED
    right = model(batch.tokens, valid=batch.valid).argmax(dim=-1) == batch.labels
    return right[scored].float().mean().item()


# -------------------------------------------------------------------------------------------- comparisons


class Task(NamedTuple):
    """A few labelled examples, and what is asked afterwards: for networks as batches, for the baseline as features."""

    kind: type[Tagger] | type[Classifier]
    num_classes: int
    given: LabelledBatch
    asked: LabelledBatch
    baseline: float  # its accuracy


def tagging(count: int, draw: int, split: str = "test") -> Task:
    """French part of speech, gender and number of each word, from `count` labelled sentences."""
    splits = tagged_sentences("french")
    examples, asked = few(splits.train, count, seed=draw), getattr(splits, split)
    classes = sorted({tag for example in examples for tag in example.tags})
    baseline = LogisticRegression(l2=0.01).fit(*windows_and_tags(examples))
    return Task(
        kind=Tagger,
        num_classes=len(classes),
        given=tagged_batch(examples, classes),
        asked=tagged_batch(asked, classes),
        baseline=share_right(baseline, *windows_and_tags(asked)),
    )


def hidden_gender(count: int, draw: int, split: str = "test") -> Task:
    """The gender of a French subject that does not show it, from `count` sentences with other subjects."""
    splits = genders()
    examples, asked = few(splits.train, count, seed=draw), getattr(splits, split)
    baseline = LogisticRegression(l2=0.1).fit(*bags_and_labels(examples))
    return Task(
        kind=Classifier,
        num_classes=2,
        given=labelled_batch(examples),
        asked=labelled_batch(asked),
        baseline=share_right(baseline, *bags_and_labels(asked)),
    )


def zero_shot(count: int, draw: int, split: str = "test") -> Task:
    """Parts of speech in French, from `count` labelled English sentences.

    The baseline is the commonest one: logistic regression knows no word of the other language.
    """
    english, french = (tagged_sentences(language) for language in ("english", "french"))
    examples = [parts_of_speech(example) for example in few(english.train, count, seed=draw)]
    asked = [parts_of_speech(example) for example in getattr(french, split)]
    baseline = MajorityClass().fit(*windows_and_tags(examples))
    return Task(
        kind=Tagger,
        num_classes=len(PARTS_OF_SPEECH),
        given=tagged_batch(examples, PARTS_OF_SPEECH),
        asked=tagged_batch(asked, PARTS_OF_SPEECH),
        baseline=share_right(baseline, *windows_and_tags(asked)),
    )


TASKS: dict[str, Callable[[int, int, str], Task]] = {
    "tagging": tagging,
    "hidden gender": hidden_gender,
    "zero-shot": zero_shot,
}


def compare(
    pretrained: BERTForMaskedLM, task: str, *, count: int, draw: int, split: str = "test", progress=None
) -> FewLabelScores:
    """A task of `TASKS` learned from `count` labelled sentences, with pre-training, without it, and by the baseline."""
    posed = TASKS[task](count, draw, split)
    scores = {}
    for recipe in FINE_TUNING[task]:
        recipe = replace(recipe, seed=draw)
        model = fine_tune(posed.kind, pretrained, posed.given, recipe, num_classes=posed.num_classes, progress=progress)
        scores["scratch" if recipe.scratch else "pretrained"] = accuracy(model, posed.asked)
    return FewLabelScores(task=task, count=count, draw=draw, baseline=posed.baseline, **scores)


@lru_cache(maxsize=2)
def tagged_sentences(language: str) -> LabelledSplits[TaggedSentence]:
    return tagging_splits(language=language)


@lru_cache(maxsize=1)
def genders() -> LabelledSplits[LabelledSentence]:
    return gender_splits()


def parts_of_speech(example: TaggedSentence) -> TaggedSentence:
    """The same without gender and number, which English has not."""
    return replace(example, tags=tuple(part_of_speech(tag) for tag in example.tags))


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


def share_right(baseline: LogisticRegression | MajorityClass, features: list[list[str]], labels: list) -> float:
    return sum(map(operator.eq, baseline.predict(features), labels)) / len(labels)


# -------------------------------------------------------------------------------------- for `course train`


def all_scores(pretrained: BERTForMaskedLM, *, split: str = "test", progress=None) -> dict[str, float]:
    """Mean and standard deviation of each learner's accuracy over `DRAWS` draws, for all of `COMPARISONS`."""
    scores = {}
    for name, count in COMPARISONS:
        draws = [
            compare(pretrained, name, count=count, draw=draw, split=split, progress=progress) for draw in range(DRAWS)
        ]
        for learner in ("pretrained", "scratch", "baseline"):
            accuracies = [getattr(each, learner) for each in draws]
            scores[f"{name}, {count} labelled sentences, {learner}"] = statistics.mean(accuracies)
            scores[f"{name}, {count} labelled sentences, {learner}, spread"] = statistics.stdev(accuracies)
    return scores


def train(seed: int, checkpoint: Path, progress: Progress | None) -> Trained:
    """Pre-trains on both languages, then learns each task from each draw of labels."""
    run = pretrain(replace(PRETRAINING, seed=seed), checkpoint=checkpoint, checkpoint_every=500, progress=progress)
    return Trained(
        model=run.model,
        history=run.history,
        validation={"nats per hidden word": float(run.history.validation_values[-1])},
        test=all_scores(run.model, progress=progress),
        extra={"vocabulary": vocabulary().state_dict()},
    )


RECIPE = Recipe(
    title="BERT of English and French sentences",
    lesson="07",
    data="20,000 sentences that course_lib.data.translation makes by a grammar, half of them English, half French, "
    "none in both languages; labelled ones of course_lib.data.labelled: validation 300, test 500",
    licence="MIT",
    minutes=10,
    settings={name: value for name, value in asdict(PRETRAINING).items() if name != "seed"}
    | {name: [asdict(recipe) for recipe in pair] for name, pair in FINE_TUNING.items()}
    | {"comparisons": COMPARISONS, "draws": DRAWS},
    train=train,
    chosen_by="nats per hidden word",
    notes="Accuracies are means, spreads standard deviations, over draws of the labelled sentences. The baseline is "
    "logistic regression on words, and for zero-shot the commonest part of speech.",
)
