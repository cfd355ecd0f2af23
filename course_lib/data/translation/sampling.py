"""Random sentences of the grammar, and the three splits.

Only `random.Random(integer).random()` is drawn on, whose sequence Python promises to keep, and only choices
in a written order, never a set: the same seed gives the same sentences on every machine.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar, no_type_check

from course_lib.data.translation import lexicon
from course_lib.data.translation.grammar import (
    Adjunct,
    Clause,
    NounPhrase,
    Pronoun,
    Sentence,
    SentencePair,
    Subject,
    realize,
)
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, VERBS

T = TypeVar("T")

MAX_CLAUSES = 3
MAX_LENGTH = 30  # English tokens, full stop included
HELD_OUT_FRACTION = 0.1  # of all noun-adjective combinations, for validation and again for test
KEPT_FRACTION = 0.6  # of a noun's adjectives and of an adjective's nouns of one gender, for training at least
_COMBINATIONS_SEED = 1
_TRIES_PER_SENTENCE = 200

SPLITS = ("train", "validation", "test")
# "the european economic area" is the lesson's example: a model must not have seen these combinations
DEMONSTRATION = (("area", "european"), ("area", "economic"))
_DEMONSTRATED = ("european", "economic")


@dataclass(frozen=True, kw_only=True)
class TranslationSplits:
    """Three tuples that share no sentence and no noun-adjective combination."""

    train: tuple[SentencePair, ...]
    validation: tuple[SentencePair, ...]
    test: tuple[SentencePair, ...]


@no_type_check  # a hundred calls a sentence: checking each under test costs ten times the work itself
class Dice:
    """The few random choices that the grammar needs, all made of `random.Random.random`."""

    def __init__(self, seed: int):
        self.roll = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.roll() < probability

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, each as likely."""
        return choices[int(self.roll() * len(choices))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A new list in random order (Fisher and Yates)."""
        items = list(items)
        for last in range(len(items) - 1, 0, -1):
            other = int(self.roll() * (last + 1))
            items[last], items[other] = items[other], items[last]
        return items


@cache
def combinations_of_split(split: str) -> frozenset[tuple[str, str]]:
    """The (noun, adjective) combinations that a split may use, the same for every seed.

    A tenth of all combinations goes to validation and another tenth to test, spread so that training keeps at least
    three fifths of each noun's adjectives, and of the nouns of one gender that each adjective describes: gender can be
    learned from what is left. (area, european) and (area, economic) belong to test; with any other noun, european and
    economic stay in training, so that a model can learn the words of "the european economic area" but never sees them
    together.

    Raises ValueError for a split that is not train, validation or test.
    """
    if split not in SPLITS:
        raise ValueError(f"the split must be one of {SPLITS}, got {split!r}.")
    every = [
        (name, word)
        for name, noun in NOUNS.items()
        for word, adjective in ADJECTIVES.items()
        if lexicon.fits(noun, adjective.kinds)
    ]
    kept = Counter(group for combination in every for group in _groups(*combination))  # in training, so far
    least = {group: KEPT_FRACTION * count for group, count in kept.items()}
    room = dict.fromkeys(("test", "validation"), round(HELD_OUT_FRACTION * len(every)))
    chosen: dict[str, set[tuple[str, str]]] = {name: set() for name in SPLITS}
    shuffled = Dice(_COMBINATIONS_SEED).shuffled(every)
    shuffled.sort(key=lambda combination: combination not in DEMONSTRATION)  # a stable sort: these come first
    for noun, word in shuffled:
        groups = _groups(noun, word)
        if (noun, word) in DEMONSTRATION:
            goes_to = "test"
        elif word in _DEMONSTRATED or any(kept[group] - 1 < least[group] for group in groups):
            goes_to = "train"
        else:
            goes_to = next((name for name in room if len(chosen[name]) < room[name]), "train")
        chosen[goes_to].add((noun, word))
        if goes_to != "train":
            kept.subtract(groups)
    return frozenset(chosen[split])


def _groups(noun: str, adjective: str) -> tuple[tuple, tuple]:
    """What training must keep enough of: the adjectives of a noun, and an adjective's nouns of one gender."""
    return ("noun", noun), (adjective, NOUNS[noun].feminine)


def _nouns_of(kinds: frozenset[str] | tuple[str, ...]) -> tuple[str, ...]:
    """All nouns of these kinds; "area" three times, for the lesson's example needs it well learned."""
    fitting = [name for name, noun in NOUNS.items() if lexicon.fits(noun, kinds)]
    return tuple(name for name in fitting for _ in range(3 if name == "area" else 1))


# weighted choices are written out: a tuple in which a likelier choice stands more often
_DETERMINERS = ("the",) * 9 + ("a",) * 5 + ("this",) * 2 + ("my", "his", "her", "our", "their", "two", "several")
_SINGULAR_DETERMINERS = ("the",) * 5 + ("a", "a", "this", "my", "his", "their")
_COMPLEMENT_DETERMINERS = ("the",) * 5 + ("a", "this", "our")
_POSSESSIVES = frozenset({"my", "his", "her", "our", "their"})
_TENSES = ("present", "present", "past", "future")
_SUBJECTS = tuple(lexicon.SUBJECT_PRONOUNS)
_SINGULAR_SUBJECTS = tuple(word for word, (_, _, plural) in lexicon.SUBJECT_PRONOUNS.items() if not plural)
_OBJECTS = tuple(lexicon.OBJECT_PRONOUNS)
_SUBJECT_NOUNS = {base: _nouns_of(verb.subjects) for base, verb in VERBS.items()}
_OBJECT_NOUNS = {base: _nouns_of(verb.objects) for base, verb in VERBS.items()}
_PEOPLE = _nouns_of(("person",))
_SPEAKERS = _nouns_of(("person", "body"))
_EVENTS = _nouns_of(("event",))
_IN = _nouns_of(("building", "city", "country")) + ("area",) * 3
_AT = _nouns_of(("at",))
_INDOORS = frozenset({"sign", "study", "write", "see", "help", "examine", "talk", "show"})  # done somewhere
_COMPANY = frozenset({"sign", "study", "write", "examine", "visit", "talk"})  # done with someone
_NOMINAL_SUBJECTS = _nouns_of(("rule", "event", "project"))
_NOMINAL_PREDICATES = ("problem", "success")
_FOR_PEOPLE = frozenset({"important", "difficult", "interesting"})
_RECURRING = frozenset({"important", "difficult", "strange", "interesting"})
_KNOWN_DETERMINERS = ("the", "the", "the", "this", "my", "his", "her", "their")
_COMPLEMENTS = {
    head: tuple(
        (preposition, _nouns_of(table[head])) for preposition, table in lexicon.COMPLEMENTS.items() if head in table
    )
    for head in NOUNS
}
_VERBS = tuple(VERBS)
_JOINTS = ("and", "and", "but", "because", "because", "when", "if", "that", "that")
_CONDITIONS = frozenset({"when", "if"})


@no_type_check  # as above
class SentenceSampler:
    """Draws sentences whose noun-adjective combinations all belong to `combinations`."""

    def __init__(self, *, combinations: frozenset[tuple[str, str]], seed: int, max_clauses: int):
        self.dice = Dice(seed)
        self.max_clauses = max_clauses
        self.subject_pronouns: tuple[str, ...] = _SUBJECTS
        self.adjectives = {noun: tuple(word for word in ADJECTIVES if (noun, word) in combinations) for noun in NOUNS}
        self.predicates = {
            noun: tuple(word for word in words if ADJECTIVES[word].predicative)
            for noun, words in self.adjectives.items()
        }
        self.predicated = tuple(noun for noun in NOUNS if self.predicates[noun])

    def sentence(self) -> Sentence:
        """One to `max_clauses` clauses; nearly six in ten sentences have one where the bound allows more."""
        dice = self.dice
        self.subject_pronouns = _SUBJECTS
        wanted = 1
        if self.max_clauses > 1 and dice.chance(0.42):
            wanted = 3 if self.max_clauses > 2 and dice.chance(0.3) else 2
        clauses: list[Clause] = []
        conjunctions: list[str] = []
        tense = dice.pick(_TENSES)
        while len(clauses) < wanted - 1:
            joint = self.joint(tense, conjunctions)
            clauses.append(self.report() if joint == "that" else self.clause(tense))
            conjunctions.append(joint)
            if joint == "if":
                tense = "present"  # she will sign it if he helps: si with the future is wrong
            elif joint != "when":  # both sides of "when" share their tense
                tense = dice.pick(_TENSES)
        clauses.append(self.clause(tense))
        return Sentence(clauses=tuple(clauses), conjunctions=tuple(conjunctions))

    def joint(self, tense: str, used: Sequence[str]) -> str:
        """A conjunction that suits the clause before it and was not used yet."""
        joint = self.dice.pick(_JOINTS)
        if joint == "when" and tense == "future":
            joint = "if"
        elif joint == "if" and tense == "past":
            joint = "when"
        if joint in used or (joint in _CONDITIONS and not _CONDITIONS.isdisjoint(used)):
            return "but" if "and" in used else "and"
        return joint

    def clause(self, tense: str) -> Clause:
        return self.state(tense) if self.dice.chance(0.22) else self.action(tense)

    def subject(self, nouns: Sequence[str]) -> Subject:
        if self.dice.chance(0.2):
            return Pronoun(word=self.dice.pick(self.subject_pronouns))
        return self.noun_phrase(self.dice.pick(nouns))

    def noun_phrase(self, noun: str, determiners: Sequence[str] = _DETERMINERS, *, simple: bool = False) -> NounPhrase:
        """`simple`: at most one adjective, no complement, and singular where it is indefinite."""
        dice = self.dice
        determiner = dice.pick(determiners)
        if determiner in _POSSESSIVES and "unowned" in NOUNS[noun].kinds:
            determiner = "the"
        plural = determiner in ("two", "several") or (not (simple and determiner == "a") and dice.chance(0.35))
        if plural and NOUNS[noun].feminine:  # "they" might mean them, and then be elles
            self.subject_pronouns = _SINGULAR_SUBJECTS
        complement = None
        if not simple and _COMPLEMENTS[noun] and determiner in ("the", "a", "two", "several") and dice.chance(0.2):
            preposition, others = dice.pick(_COMPLEMENTS[noun])
            complement = (
                preposition,
                self.noun_phrase(dice.pick(others), _COMPLEMENT_DETERMINERS, simple=True),
            )
        return NounPhrase(
            noun=noun,
            determiner=determiner,
            adjectives=self.adjectives_for(noun, most=1 if simple else 2),
            plural=plural,
            complement=complement,
        )

    def adjectives_for(self, noun: str, most: int) -> tuple[str, ...]:
        dice = self.dice
        choices = self.adjectives[noun]
        roll = dice.roll()
        if roll < 0.3 or not choices:
            return ()
        first = dice.pick(choices)
        if most == 1 or roll < 0.65:
            return (first,)
        second = dice.pick(choices)
        one, two = sorted((ADJECTIVES[first], ADJECTIVES[second]), key=lambda adjective: adjective.rank)
        if one.rank == two.rank or (one.before_noun and two.before_noun):
            return (first,)
        return (one.english, two.english)

    def negation(self, probability: float) -> tuple[str | None, str | None]:
        """A negation or an adverb of frequency, or neither."""
        roll = self.dice.roll()
        if roll < probability:
            return ("never" if roll < 0.2 * probability else "not"), None
        if roll < probability + 0.1:
            return None, self.dice.pick(tuple(lexicon.FREQUENCIES))
        return None, None

    def action(self, tense: str) -> Clause:
        dice = self.dice
        base = dice.pick(_VERBS)
        verb = VERBS[base]
        subject = self.subject(_SUBJECT_NOUNS[base])
        negation, frequency = self.negation(0.38)
        pronoun = dice.chance(0.4 if tense == "past" else 0.25)
        noun = dice.pick(_OBJECT_NOUNS[base])
        direct: Subject | None = None
        recipient: Subject | None = None
        if verb.pattern == "direct":
            if pronoun and tense != "past":
                direct = Pronoun(word=dice.pick(_OBJECTS) if "person" in NOUNS[noun].kinds else "them")
            elif pronoun and "person" in NOUNS[noun].kinds:
                direct = Pronoun(word=dice.pick(("him", "her")))
            else:
                direct = self.noun_phrase(noun)
        else:
            if verb.pattern == "double":
                direct = self.noun_phrase(noun)
            if pronoun:
                recipient = Pronoun(word=dice.pick(_OBJECTS))
            else:
                recipient = self.noun_phrase(dice.pick(_PEOPLE), _SINGULAR_DETERMINERS, simple=True)
        adjuncts = ()
        if dice.chance(0.25):
            adjuncts = (self.adjunct(base, tense, timeless=bool(frequency) or negation == "never"),)
        return Clause(
            subject=subject,
            verb=base,
            tense=tense,
            negation=negation,
            frequency=frequency,
            object=direct,
            recipient=recipient,
            adjuncts=adjuncts,
        )

    def adjunct(self, base: str, tense: str, *, timeless: bool) -> Adjunct:
        """Where, when or with whom; `timeless` clauses (never, often) take no yesterday."""
        dice = self.dice
        kind = dice.pick(("season", "time", "event", "place", "place", "company"))
        if kind == "company" and base in _COMPANY:
            return self.setting("with", _PEOPLE)
        if kind == "place" and base in _INDOORS:
            return self.setting("in", _IN) if dice.chance(0.6) else self.setting("at", _AT, _KNOWN_DETERMINERS)
        if kind == "time" and not timeless:
            return Adjunct(time=dice.pick([time for time, tenses in lexicon.TIME_TENSES.items() if tense in tenses]))
        if kind == "season":
            return Adjunct(season=dice.pick(tuple(lexicon.SEASONS)))
        return self.setting(dice.pick(("before", "after")), _EVENTS)

    def setting(
        self, preposition: str, nouns: Sequence[str], determiners: Sequence[str] = _SINGULAR_DETERMINERS
    ) -> Adjunct:
        phrase = self.noun_phrase(self.dice.pick(nouns), determiners, simple=True)
        return Adjunct(preposition=preposition, noun_phrase=phrase)

    def state(self, tense: str) -> Clause:
        """The law is important; this decision was not a success."""
        dice = self.dice
        negation, frequency = self.negation(0.3)
        roll = dice.roll()
        adjuncts = ()
        predicate: str | NounPhrase
        if roll < 0.15:
            subject: Subject = Pronoun(word=dice.pick(self.subject_pronouns))
            predicate = dice.pick(_PERSONAL_PREDICATES)
        elif roll < 0.35:
            noun = dice.pick(_NOMINAL_SUBJECTS)
            subject = NounPhrase(noun=noun, determiner=self.known(noun), adjectives=self.adjectives_for(noun, most=1))
            noun = dice.pick(_NOMINAL_PREDICATES)
            predicate = NounPhrase(noun=noun, determiner="a", adjectives=self.adjectives_for(noun, most=2))
        else:
            noun = dice.pick(self.predicated)
            predicate = dice.pick(self.predicates[noun])
            plural = dice.chance(0.35)
            if plural and NOUNS[noun].feminine:
                self.subject_pronouns = _SINGULAR_SUBJECTS
            subject = NounPhrase(noun=noun, determiner=self.known(noun), plural=plural)
            if predicate in _FOR_PEOPLE and "topic" in NOUNS[noun].kinds and dice.chance(0.3):
                adjuncts = (self.setting("for", _PEOPLE),)
        if isinstance(predicate, str) and predicate not in _RECURRING:  # one is not often young
            negation, frequency = ("not" if negation else None), None
        elif tense == "past" and negation:  # never: n'a jamais été rather than the imparfait of this grammar
            negation = "not"
        return Clause(
            subject=subject,
            verb="be",
            tense=tense,
            negation=negation,
            frequency=frequency,
            predicate=predicate,
            adjuncts=adjuncts,
        )

    def known(self, noun: str) -> str:
        """A definite determiner."""
        determiner = self.dice.pick(_KNOWN_DETERMINERS)
        return "the" if determiner in _POSSESSIVES and "unowned" in NOUNS[noun].kinds else determiner

    def report(self) -> Clause:
        """They say (that ...)."""
        return Clause(subject=self.subject(_SPEAKERS), verb=self.dice.pick(tuple(lexicon.REPORTING_VERBS)))


_PERSONAL_PREDICATES = tuple(
    word for word, adjective in ADJECTIVES.items() if adjective.predicative and "person" in adjective.kinds
)


def translation_splits(
    *,
    train: int = 20_000,
    validation: int = 500,
    test: int = 1_000,
    seed: int = 0,
    max_clauses: int = MAX_CLAUSES,
) -> TranslationSplits:
    """The three splits: as many sentence pairs each as asked for, all distinct, each of at most 30 English
    tokens.

    Every validation and test sentence has at least one noun with an adjective, and no noun-adjective
    combination of one split occurs in another; which split owns a combination does not depend on the seed.
    The test sentences do not depend on the other sizes.

    Raises ValueError for a negative size or seed, for `max_clauses` outside 1 to 3, and if the grammar runs
    dry.
    """
    sizes = {"test": test, "validation": validation, "train": train}
    if any(size < 0 for size in sizes.values()):
        raise ValueError(f"a split cannot have a negative size, got {sizes}.")
    if seed < 0:
        raise ValueError(f"the seed must be 0 or more, got {seed}.")
    if not 1 <= max_clauses <= MAX_CLAUSES:
        raise ValueError(f"max_clauses must be 1 to {MAX_CLAUSES}, got {max_clauses}.")
    seen: set[tuple[str, ...]] = set()
    pairs = {}
    for index, (split, size) in enumerate(sizes.items()):
        sampler = SentenceSampler(
            combinations=combinations_of_split(split), seed=3 * seed + index, max_clauses=max_clauses
        )
        pairs[split] = _distinct(sampler, size, seen=seen, combination_needed=split != "train")
    return TranslationSplits(**pairs)


def _distinct(
    sampler: SentenceSampler, size: int, *, seen: set[tuple[str, ...]], combination_needed: bool
) -> tuple[SentencePair, ...]:
    pairs: list[SentencePair] = []
    tries = 0
    while len(pairs) < size:
        tries += 1
        if tries > _TRIES_PER_SENTENCE * size:
            raise ValueError(
                f"found only {len(pairs)} of {size} distinct sentences: ask for fewer, or allow more clauses."
            )
        pair = realize(sampler.sentence())
        too_long = len(pair.english) > MAX_LENGTH
        if too_long or pair.english in seen or (combination_needed and not pair.combinations):
            continue
        seen.add(pair.english)
        pairs.append(pair)
    return tuple(pairs)
