"""Lesson 15: one T5, five tasks as text; first it fills gaps in plain text, then it sees a few examples of each task.

Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text Transformer", JMLR 2020.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data.draws import generator
from course_lib.data.translation import NounPhrase, Pronoun, Sentence, SentencePair, combinations_of_split, realize
from course_lib.data.translation.lexicon import NOUNS
from course_lib.data.translation.sampling import SentenceSampler
from course_lib.functional.language import corrupt_spans, random_spans
from course_lib.functional.losses import cross_entropy
from course_lib.generation import greedy
from course_lib.models.t5 import T5, T5Config
from course_lib.text.tokenizer import SPECIALS, pad_batch
from course_lib.text.words import WordTokenizer
from course_lib.training.batches import shuffled_batches
from course_lib.training.recipe import Recipe, Scores, Trained, common, each, fit_by, plain
from course_lib.training.seeding import seeded

PLAIN = 6000  # sentences without a task
SCORED = {"validation": 100, "test": 200}  # held-out sentences of each task
LONGEST = 9  # words of a sentence
STORY = 3  # sentences
GAPS_SCORED = 400  # windows of held-out text
GAP = "___"  # where `fill` shall write
SENTINELS = tuple(f"<extra_{i}>" for i in range(8))
WINDOW = 32  # tokens of plain text out of which spans are taken


class Example(NamedTuple):
    """What is read and what is to be written."""

    source: str  # "negate: the law is new ."
    target: str


def changed(sentence: Sentence, **of_clause) -> SentencePair:
    """The one clause with something else in it."""
    (clause,) = sentence.clauses
    return realize(replace(sentence, clauses=(replace(clause, **of_clause),)))


def other_number(sentence: Sentence, pair: SentencePair, count: int) -> tuple[int, str]:
    """A place in the French sentence, and the word that stood there if its subject were several, or one."""
    subject = sentence.clauses[0].subject
    other = changed(sentence, subject=replace(subject, plural=not subject.plural)).french
    positions = [i for i, (here, there) in enumerate(zip(pair.french, other, strict=False)) if here != there]
    position = positions[count // 2 % len(positions)]
    return position, other[position]


def acceptable(sentence: Sentence, pair: SentencePair, count: int) -> tuple[Sequence[str], str]:
    """Is this French? In every other sentence one word of the subject or the verb has the wrong number."""
    if count % 2:
        return pair.french, "yes"
    position, wrong = other_number(sentence, pair, count)
    return (*pair.french[:position], wrong, *pair.french[position + 1 :]), "no"


def choose(sentence: Sentence, pair: SentencePair, count: int) -> tuple[Sequence[str], str]:
    """Which of the two words with "or" between them goes with the others?"""
    position, wrong = other_number(sentence, pair, count)
    right = pair.french[position]
    both = (wrong, "or", right) if count % 2 else (right, "or", wrong)
    return (*pair.french[:position], *both, *pair.french[position + 1 :]), right


def kind(sentence: Sentence, pair: SentencePair, count: int) -> tuple[Sequence[str], str]:
    """What the subject is."""
    kinds = NOUNS[sentence.clauses[0].subject.noun].kinds
    return pair.english, next((name for name in ("person", "body") if name in kinds), "thing")


def who(sentence: Sentence, pair: SentencePair, count: int) -> tuple[Sequence[str], str]:
    """The words of the subject."""
    shorter = changed(sentence, subject=Pronoun(word="he")).english
    length = len(pair.english) - len(shorter) + 1
    return pair.english, " ".join(pair.english[:length])


def negate(sentence: Sentence, pair: SentencePair, count: int) -> tuple[Sequence[str], str]:
    """A sentence says no, and one that said no says yes."""
    negation = None if sentence.clauses[0].negation else "not"
    return pair.english, " ".join(changed(sentence, negation=negation, frequency=None).english)


TASKS: dict[str, Callable[[Sentence, SentencePair, int], tuple[Sequence[str], str]]] = {
    each.__name__: each for each in (acceptable, choose, kind, who, negate)
}


@lru_cache(maxsize=4)
def sentences(split: str, count: int) -> tuple[tuple[Sentence, SentencePair], ...]:
    """Different sentences of one clause, about the, my or our something; nouns go with adjectives as in the split."""
    order = ("train", "validation", "test").index(split)
    sampler = SentenceSampler(combinations=combinations_of_split(split), seed=15 + order, max_clauses=1)
    found: dict[tuple[str, ...], tuple[Sentence, SentencePair]] = {}
    while len(found) < count:
        sentence = sampler.sentence()
        subject, pair = sentence.clauses[0].subject, realize(sentence)
        one = isinstance(subject, NounPhrase) and subject.determiner in ("the", "my", "our")
        apart = split == "train" or pair.combinations  # without an adjective a sentence could be in two splits
        if one and apart and len(pair.english) <= LONGEST and not isinstance(sentence.clauses[0].predicate, NounPhrase):
            found.setdefault(pair.english, (sentence, pair))
    return tuple(found.values())


def examples(task: str, given: Sequence[tuple[Sentence, SentencePair]]) -> list[Example]:
    """One of each sentence."""
    made = [TASKS[task](sentence, pair, count) for count, (sentence, pair) in enumerate(given)]
    return [Example(f"{task}: {' '.join(words)}", target) for words, target in made]


@lru_cache(maxsize=1)
def tokenizer() -> WordTokenizer:
    """All words of the training sentences and of what the tasks make of them; names of tasks; sentinels."""
    given = sentences("train", PLAIN)
    texts = [text for task in TASKS for example in examples(task, given) for text in example]
    return WordTokenizer.train(texts, specials=(*SPECIALS, *SENTINELS), cut_punctuation=False)


@lru_cache(maxsize=4)
def plain_text(split: str = "train") -> Int[Tensor, " T"]:
    """English and French stories in random order, no pair side by side but by chance; </s> behind each.

    A story is a few sentences about the same subject, as texts are: what stands in a gap may stand elsewhere, too.
    """
    about: dict[tuple[str, bool], list[Sentence]] = {}
    for sentence, _ in sentences(split, PLAIN if split == "train" else SCORED[split]):
        subject = sentence.clauses[0].subject
        about.setdefault((subject.noun, subject.plural), []).append(sentence)
    stories = [some[i : i + STORY] for some in about.values() for i in range(0, len(some), STORY)]
    texts = []
    for story in stories:
        told = [changed(sentence, subject=story[0].clauses[0].subject) for sentence in story]
        texts += [" ".join(word for pair in told for word in getattr(pair, name)) for name in ("english", "french")]
    order, words = torch.randperm(len(texts), generator=generator("plain text")).tolist(), tokenizer()
    return torch.tensor([i for position in order for i in (*words.encode(texts[position]), words.token_to_id("</s>"))])


# --------------------------------------------------------------------------------------------- learning


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """A small T5, how long it fills gaps, and how long it then learns its tasks of few examples."""

    pretraining: int = 4000  # steps; 0: none
    gap_rate: float = 4e-3  # its peak learning rate
    per_task: int = 300  # examples
    steps: int = 1500  # of tuning
    dim: int = 64
    depth: int = 2
    num_heads: int = 4
    head_dim: int = 16
    mlp_dim: int = 128
    num_buckets: int = 16
    max_distance: int = 32
    dropout: float = 0.0
    batch_size: int = 32
    learning_rate: float = 4e-3
    seed: int = 0


class Batch(NamedTuple):
    """Padded at the right."""

    source: Int[Tensor, "B T_k"]
    source_valid: Bool[Tensor, "B T_k"]
    target: Int[Tensor, "B T_q"]
    target_valid: Bool[Tensor, "B T_q"]


def with_gaps(settings: TextSettings, step: int) -> Batch:
    """Windows of plain text with 15 % of their tokens missing, in spans of 3 on average: section 3.1.4."""
    return corrupted(plain_text(), settings.batch_size, generator("spans", settings.seed, step))


def corrupted(text: Int[Tensor, " T"], count: int, random: torch.Generator) -> Batch:
    """So many windows of a text, each with gaps, and what was in them."""
    first = tokenizer().token_to_id(SENTINELS[-1])  # sentinels count down
    starts = torch.randint(len(text) - WINDOW, (count,), generator=random).tolist()
    pairs = [
        corrupt_spans(text[i : i + WINDOW], random_spans(WINDOW, generator=random), first_sentinel=first)
        for i in starts
    ]
    return Batch(*pad_batch([p.source.tolist() for p in pairs]), *pad_batch([p.target.tolist() for p in pairs]))


def as_batch(given: Sequence[Example]) -> Batch:
    """Examples as tokens, </s> behind each."""
    words = tokenizer()
    return Batch(
        *words.encode_batch([each.source for each in given], end=True),
        *words.encode_batch([each.target for each in given], end=True),
    )


def loss(model: Callable[..., Tensor], batch: Batch) -> Float[Tensor, ""]:
    """-ln p of each token to be written, in nats; as T5 does, writing starts at the padding token."""
    read = torch.cat([torch.zeros_like(batch.target[:, :1]), batch.target[:, :-1]], dim=1)
    logits = model(batch.source, read, source_valid=batch.source_valid)
    return cross_entropy(logits, batch.target, scored=batch.target_valid)


def build(settings: TextSettings) -> T5:
    """Fresh; its first weights depend on the seed alone."""
    with seeded(settings.seed):
        return T5(T5Config(**common(settings, T5Config), vocab_size=len(tokenizer())))


def few(settings: TextSettings) -> list[Example]:
    """The examples that a model is tuned with, of all tasks."""
    given = sentences("train", PLAIN)[: settings.per_task]
    return [example for task in TASKS for example in examples(task, given)]


def train(settings: TextSettings, *, checkpoint: Path | None = None) -> Trained:
    """Gaps, if asked for, then all tasks mixed. Variants beside each other share the gaps: they are the same."""
    model = build(settings)
    if settings.pretraining:
        gaps = replace(settings, steps=settings.pretraining, learning_rate=settings.gap_rate)
        fill_gaps(gaps, model, checkpoint=checkpoint and checkpoint.parent / "gaps")
    return tune(settings, model, checkpoint=checkpoint)


def tune(settings: TextSettings, model: nn.Module, *, checkpoint: Path | None = None) -> Trained:
    """The second part: all tasks mixed."""
    given = few(settings)
    indices_at = shuffled_batches(len(given), settings.batch_size, settings.seed)
    return fit_by(
        settings,
        model,
        lambda step: as_batch([given[i] for i in indices_at(step).tolist()]),
        loss,
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
        extra={"tokenizer": tokenizer().state_dict()},
    )


def fill_gaps(settings: TextSettings, model: T5, *, checkpoint: Path | None = None) -> Trained:
    """The first part: plain text alone."""
    return fit_by(
        settings,
        model,
        partial(with_gaps, settings),
        loss,
        warmup=settings.steps // 10,
        checkpoint=checkpoint,
        extra={"tokenizer": tokenizer().state_dict()},
    )


def train_gaps(settings: TextSettings, *, checkpoint: Path | None = None) -> Trained:
    """The first part alone, for a model to look at."""
    return fill_gaps(settings, build(settings), checkpoint=checkpoint)


# ----------------------------------------------------------------------------------------------- scores


@torch.no_grad()
def answers(model: nn.Module, sources: Sequence[str]) -> list[list[int]]:
    """What the model generates by greedy decoding."""
    words = tokenizer()
    source, valid = words.encode_batch(sources, end=True)
    start = torch.zeros(len(sources), 1, dtype=torch.long)
    longest, end = 2 * LONGEST, words.token_to_id("</s>")
    return [row.tolist() for row in greedy(model.given(source, valid), start, max_new_tokens=longest, end_id=end)]


def written(model: nn.Module, sources: Sequence[str]) -> list[str]:
    """Its answers as text."""
    return [tokenizer().decode(row, strip_specials=True) for row in answers(model, sources)]


def fill(model: T5, text: str) -> str:
    """The text with each "___" filled by the model: the words behind the gap's sentinel, up to the next sentinel."""
    words, number = tokenizer(), text.split().count(GAP)
    marks = [words.token_to_id(name) for name in reversed(SENTINELS)]
    for name in SENTINELS[::-1][:number]:
        text = text.replace(GAP, name, 1)
    (row,) = answers(model, [text])
    for mark in marks[:number]:
        found = row[row.index(mark) + 1 :] if mark in row else []
        found = found[: next((i for i, token in enumerate(found) if token in marks), None)]
        text = text.replace(words.vocabulary[mark], words.decode(found, strip_specials=True))
    return " ".join(text.split())


def scores(trained: Mapping[str, Trained], split: str) -> Scores:
    """Of each variant and task the share of held-out sentences that come out exactly, and the mean of all tasks."""
    found = {}
    for name, one in trained.items():
        rights = []
        for task in TASKS:
            held_out = examples(task, sentences(split, SCORED[split]))
            guesses = written(one.model, [each.source for each in held_out])
            wanted = [tokenizer().decode(tokenizer().encode(each.target)) for each in held_out]
            rights.append(sum(map(str.__eq__, guesses, wanted)) / len(held_out))
            found[f"exact, {task}, {name}"] = rights[-1]
        found[f"exact, {name}"] = sum(rights) / len(rights)
    return found


@torch.no_grad()
def score_gaps(trained: Trained, split: str) -> Scores:
    """Of the words that are missing in held-out text the share named right, what stands before them being given."""
    batch = corrupted(plain_text(split), GAPS_SCORED, generator("held-out gaps"))
    read = torch.cat([torch.zeros_like(batch.target[:, :1]), batch.target[:, :-1]], dim=1)
    named = trained.model(batch.source, read, source_valid=batch.source_valid).argmax(dim=-1)
    marks = torch.tensor([tokenizer().token_to_id(name) for name in SENTINELS])
    words = batch.target_valid & ~torch.isin(batch.target, marks)
    return {"gap words right": float((named == batch.target)[words].double().mean())}


SETTINGS = TextSettings()
COUNTS = (100, 300, 1000)
LONGER = SETTINGS.pretraining + SETTINGS.steps
VARIANTS = {
    f"{start}, {count} examples": replace(SETTINGS, per_task=count, **others)
    for count in COUNTS
    for start, others in {"pre-trained": {}, "from scratch": {"pretraining": 0}}.items()
} | {"from scratch, 300 examples, longer": replace(SETTINGS, pretraining=0, steps=LONGER)}

RECIPE = Recipe(
    title="A small T5: gaps first, then five tasks as text",
    lesson="15",
    data=f"{PLAIN:,} sentences of one clause by course_lib.data.translation, in English and in French: stories of "
    f"{STORY} or fewer about the same subject, unpaired and without tasks, to fill gaps in; what the tasks make of "
    f"{', '.join(map(str, COUNTS))} of them. Held out are {SCORED['validation']} and {SCORED['test']} sentences with "
    "other pairs of nouns and adjectives",
    minutes=4,
    variants=VARIANTS,
    train=train,
    scores=scores,
    ships="pre-trained, 1000 examples",
    chosen_by="exact, pre-trained, 1000 examples",
    mode="max",
    timed=tuple(VARIANTS),
)
GAP_SETTINGS = replace(SETTINGS, steps=SETTINGS.pretraining, learning_rate=SETTINGS.gap_rate)
GAPS = Recipe(
    title="The small T5 before its tasks: it fills gaps",
    lesson="15",
    data=f"the same {PLAIN:,} sentences as `text_to_text`, as plain text; scored are {GAPS_SCORED} windows of {WINDOW} "
    "tokens of held-out sentences",
    minutes=2,
    variants={"": GAP_SETTINGS},
    train=train_gaps,
    scores=each(score_gaps),
    chosen_by="gap words right",
    mode="max",
    settings=plain(GAP_SETTINGS, "pretraining", "gap_rate", "per_task"),
)
RECIPES = {"text_to_text": RECIPE, "gaps": GAPS}
