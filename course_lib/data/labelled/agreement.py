"""Minimal pairs: a sentence and the same with one agreement broken, with an attractor between the two that must agree.

After Linzen, Dupoux & Goldberg 2016, "Assessing the ability of LSTMs to learn syntax-sensitive dependencies" (TACL 4,
arXiv 1611.01368), and Marvin & Linzen 2018 (EMNLP, arXiv 1808.09031): "the member of the committees signs".
"""

from dataclasses import dataclass, replace
from functools import cache

from course_lib.data.labelled.tags import tag_sentence
from course_lib.data.translation import lexicon
from course_lib.data.translation.grammar import Clause, NounPhrase, Sentence
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, REPORTING_VERBS, VERBS
from course_lib.data.translation.sampling import Dice

KINDS = ("verb", "gender")  # number of the verb; gender of the adjective after être
LANGUAGES = ("english", "french")


@dataclass(frozen=True, kw_only=True)
class MinimalPair:
    """A sentence and the same with one agreement broken: one word differs.

    `features` are those of the subject and of the attractor: plural for "verb", feminine for "gender".
    """

    good: tuple[str, ...]
    bad: tuple[str, ...]
    kind: str
    features: tuple[bool, bool]


def minimal_pair(
    sentence: Sentence, dice: Dice, *, kind: str, features: tuple[bool, bool], language: str
) -> MinimalPair | None:
    """Gives a fitting clause a subject with an attractor, and breaks its agreement; None if there is no such clause.

    "verb" keeps the subject and sets the two numbers. "gender" chooses adjective, subject and attractor anew, the
    adjective first and whatever the genders: no form of it is more often right than wrong.
    """
    change = _numbered if kind == "verb" else _gendered
    for position, clause in enumerate(sentence.clauses):
        changed = change(clause, dice, features)
        if changed is not None:
            clauses = (*sentence.clauses[:position], changed, *sentence.clauses[position + 1 :])
            return _broken(replace(sentence, clauses=clauses), position, kind, features, language)
    return None


def _numbered(clause: Clause, dice: Dice, plural: tuple[bool, bool]) -> Clause | None:
    """The members of the committee sign. Not "are important": the adjective beside it would give away a wrong verb."""
    subject = clause.subject
    if clause.verb == "be" or not isinstance(subject, NounPhrase):
        return None
    choices = _complements(subject.noun)
    if subject.complement is None and not choices:
        return None
    preposition, phrase = subject.complement or _complement(*dice.pick(choices), dice)
    if subject.determiner in ("two", "several") or (plural[1] and phrase.determiner == "a"):  # no "of some" here
        return None
    phrase = replace(phrase, plural=plural[1])
    return replace(clause, subject=replace(subject, plural=plural[0], complement=(preposition, phrase)))


def _gendered(clause: Clause, dice: Dice, feminine: tuple[bool, bool]) -> Clause | None:
    """La décision du comité est importante."""
    if not isinstance(clause.predicate, str):
        return None
    adjective = dice.pick(_PREDICATES)
    noun, preposition, other = dice.pick(_subjects(adjective, feminine))
    subject = NounPhrase(
        noun=noun,
        determiner=dice.pick(("the", "the", "this")),
        plural=dice.chance(0.35),
        complement=_complement(preposition, other, dice),
    )
    return replace(clause, subject=subject, predicate=adjective, negation=None, frequency=None, adjuncts=())


def _complement(preposition: str, noun: str, dice: Dice) -> tuple[str, NounPhrase]:
    return preposition, NounPhrase(noun=noun, determiner=dice.pick(("the", "the", "this")), plural=dice.chance(0.35))


@cache
def _complements(noun: str) -> tuple[tuple[str, str], ...]:
    """of country, about election: what the noun may take."""
    return tuple(
        (preposition, name)
        for preposition, table in lexicon.COMPLEMENTS.items()
        for name, other in NOUNS.items()
        if noun in table and lexicon.fits(other, table[noun])
    )


@cache
def _subjects(adjective: str, feminine: tuple[bool, bool]) -> tuple[tuple[str, str, str], ...]:
    """Nouns that the adjective describes, with a complement, both of these genders."""
    return tuple(
        (name, preposition, other)
        for name, noun in NOUNS.items()
        if lexicon.fits(noun, ADJECTIVES[adjective].kinds)
        for preposition, other in _complements(name)
        if (noun.feminine, NOUNS[other].feminine) == feminine
    )


# adjectives that show their gender and describe nouns with every combination of genders
_PREDICATES = tuple(
    word
    for word, adjective in ADJECTIVES.items()
    if adjective.predicative
    and adjective.masculine != adjective.feminine
    and all(_subjects(word, (one, other)) for one in (False, True) for other in (False, True))
)


def _broken(
    sentence: Sentence, position: int, kind: str, features: tuple[bool, bool], language: str
) -> MinimalPair | None:
    tagged = tag_sentence(sentence)[LANGUAGES.index(language)]
    words, tags = list(tagged.words), tagged.tags
    finite = [i for i, tag in enumerate(tags) if tag.startswith(("VERB|", "AUX|"))][position]  # one in each clause
    if kind == "gender":
        wrong = next(i for i in range(finite, len(tags)) if tags[i].startswith("ADJ"))
        adjective = ADJECTIVES[sentence.clauses[position].predicate]
        other = adjective.french(feminine=not features[0], plural=tags[wrong].endswith("p"))
    else:
        wrong, other = finite, OTHER_NUMBER[language].get(words[finite])
    if other is None:  # English verbs show their number in the present only
        return None
    words[wrong] = other
    return MinimalPair(good=tagged.words, bad=tuple(words), kind=kind, features=features)


def _both_ways(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return {one: other for pair in pairs for one, other in (pair, pair[::-1])}


# finite forms: the singular of each plural, and the other way round
OTHER_NUMBER = {
    "english": _both_ways(
        [("does", "do"), *((verb.third, verb.base) for verb in VERBS.values())]
        + [forms[:2] for forms in REPORTING_VERBS.values()]
    ),
    "french": _both_ways(
        [lexicon.AVOIR]
        + [(verb.french_singular, verb.french_plural) for verb in VERBS.values()]
        + [(verb.french_future(plural=False), verb.french_future(plural=True)) for verb in VERBS.values()]
        + [forms[2:] for forms in REPORTING_VERBS.values()]
    ),
}
