"""Labelled sentences of the English-French grammar: tagging, acceptability, and the gender of a noun that hides it.

Every task has three splits that share no sentence, drawn with the noun-adjective combinations of the splits of
`course_lib.data.translation`. For tagging each sentence for validation and test has one of its own, so a model that was
pretrained on the training split there has not read it. The same seed gives the same sentences everywhere.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from course_lib.data.labelled.agreement import KINDS, LANGUAGES, MinimalPair, minimal_pair
from course_lib.data.labelled.gender import with_hidden_gender
from course_lib.data.labelled.tags import TaggedSentence, tag_sentence
from course_lib.data.translation.grammar import Sentence, realize
from course_lib.data.translation.sampling import (
    MAX_CLAUSES,
    MAX_LENGTH,
    SPLITS,
    Dice,
    SentenceSampler,
    combinations_of_split,
)

T = TypeVar("T")
_TRIES_PER_EXAMPLE = 3_000


@dataclass(frozen=True, kw_only=True)
class LabelledSentence:
    """Words and a label, 0 or 1; `kind` says what the example tests."""

    words: tuple[str, ...]
    label: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class LabelledSplits(Generic[T]):
    """The examples of a task; no sentence is in two splits."""

    train: tuple[T, ...]
    validation: tuple[T, ...]
    test: tuple[T, ...]


def tagging_splits(
    *, language: str = "french", train: int = 1_000, validation: int = 300, test: int = 500, seed: int = 0
) -> LabelledSplits[TaggedSentence]:
    """Sentences with part of speech, gender and number of each word; see `tags`.

    Raises ValueError for another language than english or french, and for a negative size or seed.
    """
    _check_language(language)

    def make(sentence: Sentence, stand: _Stand) -> _Made:
        return "any", tag_sentence(sentence)[LANGUAGES.index(language)]

    return _splits(make, ["any"], {"train": train, "validation": validation, "test": test}, seed)


def minimal_pair_splits(
    *,
    kinds: Sequence[str] = KINDS,
    language: str = "french",
    train: int = 1_000,
    validation: int = 300,
    test: int = 500,
    seed: int = 0,
) -> LabelledSplits[MinimalPair]:
    """Pairs of which the second breaks the agreement of a clause's verb or predicate with its subject.

    The kinds: "verb" (its number) and "gender" (of the adjective after être). Before the word that must agree stands a
    complement of the subject, "the member of the committees signs": an attractor. The four combinations of the features
    of subject and attractor are equally frequent, so neither single words nor the last words before the verb tell good
    from bad: one has to find the subject. English has the kind "verb" only.

    Raises ValueError for an unknown kind or language, and for a negative size or seed.
    """
    _check_language(language)
    if not kinds or not set(kinds) <= set(KINDS) or (language == "english" and set(kinds) != {"verb"}):
        raise ValueError(f"kinds must be some of {KINDS}, in english ('verb',) alone, got {tuple(kinds)} in {language}")
    every = [(kind, (one, other)) for kind in kinds for one in (False, True) for other in (False, True)]

    def make(sentence: Sentence, stand: _Stand) -> _Made:
        kind, features = cell = stand.dice.pick(stand.open_cells)
        pair = minimal_pair(sentence, stand.dice, kind=kind, features=features, language=language)
        return pair and (cell, pair)

    return _splits(make, every, {"train": train, "validation": validation, "test": test}, seed)


def acceptability(pairs: Sequence[MinimalPair], *, seed: int = 0) -> tuple[LabelledSentence, ...]:
    """One sentence of each pair, half of them good (label 1) and half bad (label 0); which one is drawn at random."""
    order = Dice(seed).shuffled(range(len(pairs)))
    good = set(order[: len(pairs) // 2])
    return tuple(
        LabelledSentence(words=pair.good if i in good else pair.bad, label=int(i in good), kind=pair.kind)
        for i, pair in enumerate(pairs)
    )


def gender_splits(
    *, train: int = 1_000, validation: int = 300, test: int = 500, seed: int = 0
) -> LabelledSplits[LabelledSentence]:
    """French sentences that hide their subject's gender: label 1 where it is feminine, 0 where it is masculine.

    Les lois sont difficiles: neither les nor difficiles tells. A model must know it from elsewhere, such as the
    agreement in unlabelled text, for the subjects of the three splits are different nouns: labels alone cannot teach
    it. Half of the sentences have each label; `kind` is the English noun.

    Raises ValueError for a negative size or seed.
    """

    def make(sentence: Sentence, stand: _Stand) -> _Made:
        if len(sentence.clauses) > 1:
            return None
        label, is_state = cell = stand.dice.pick(stand.open_cells)
        clause = with_hidden_gender(sentence.clauses[0], stand.dice, split=stand.split, feminine=bool(label))
        if clause is None or (clause.verb == "be") != is_state:
            return None
        words = realize(Sentence(clauses=(clause,))).french
        return cell, LabelledSentence(words=words, label=label, kind=clause.subject.noun)

    cells = [(label, is_state) for label in (0, 1) for is_state in (False, True)]
    return _splits(make, cells, {"train": train, "validation": validation, "test": test}, seed)


def draw(examples: Sequence[T], count: int, *, seed: int) -> tuple[T, ...]:
    """`count` of the examples at random: a few labels to learn from. Raises ValueError if there are fewer."""
    if not 0 <= count <= len(examples):
        raise ValueError(f"can draw 0 to {len(examples)} of {len(examples)} examples, got {count}")
    return tuple(Dice(seed).shuffled(examples)[:count])


@dataclass(frozen=True, kw_only=True)
class _Stand:
    """How far a split is: the cells that need more examples."""

    split: str
    dice: Dice
    open_cells: list


_Made = tuple[Hashable, T] | None  # an example and its cell; all cells are equally frequent


def _splits(
    make: Callable[[Sentence, _Stand], _Made],
    cells: Sequence[Hashable],
    sizes: dict[str, int],
    seed: int,
) -> LabelledSplits:
    """Draws sentences until each cell has its share of examples, the test split first: it depends on no other size."""
    if seed < 0 or any(size < 0 for size in sizes.values()):
        raise ValueError(f"sizes and seed must be 0 or more, got {sizes} and seed {seed}")
    seen: set[tuple[str, ...]] = set()
    splits = {}
    for index, split in reversed(list(enumerate(SPLITS))):
        size, dice = sizes[split], Dice(3 * seed + index)
        room = {cell: size // len(cells) + (i < size % len(cells)) for i, cell in enumerate(cells)}
        sampler = SentenceSampler(
            combinations=combinations_of_split(split), seed=3 * seed + index, max_clauses=MAX_CLAUSES
        )
        found: list = []
        stand = _Stand(split=split, dice=dice, open_cells=[cell for cell in cells if room[cell]])
        for _ in range(_TRIES_PER_EXAMPLE * size):
            if not stand.open_cells:
                break
            sentence = sampler.sentence()
            made = make(sentence, stand)
            if made and _is_new(made[1], seen) and (split == "train" or realize(sentence).combinations):
                cell, example = made
                found.append(example)
                room[cell] -= 1
                if not room[cell]:
                    stand.open_cells.remove(cell)
        if len(found) < size:
            raise ValueError(f"found only {len(found)} of {size} sentences for {split}: ask for fewer")
        splits[split] = tuple(dice.shuffled(found))
    return LabelledSplits(**splits)


def _is_new(example: Any, seen: set[tuple[str, ...]]) -> bool:
    """True, and remembered, for a short sentence that was not seen before."""
    versions = [example.good, example.bad] if isinstance(example, MinimalPair) else [example.words]
    if len(versions[0]) > MAX_LENGTH or not seen.isdisjoint(versions):
        return False
    seen.update(versions)
    return True


def _check_language(language: str) -> None:
    if language not in LANGUAGES:
        raise ValueError(f"the language must be one of {LANGUAGES}, got {language!r}")
