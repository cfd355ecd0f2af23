"""Part of speech, gender and number of every word, read off the structure that a sentence was written from.

The English and the French of a sentence share the tagset, so that a tagger trained on one can be tried on the other. A
tag is a part of speech with its features: "ADJ|f|p" is a feminine plural adjective in French, "ADJ|p" a plural one in
English, which has no gender there.

- Determiners, nouns and adjectives have gender (French only) and number, also where one does not see them: rouge
  says nothing of its gender, its noun does.
- Finite verbs and auxiliaries have the number of their subject, pronouns their own; participles and bases have none.
- The fused du, des, au, aux are prepositions (ADP); days, "not" and "often" are adverbs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import no_type_check

from course_lib.data.translation import lexicon
from course_lib.data.translation.grammar import Clause, NounPhrase, Pronoun, Sentence, realize
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, REPORTING_VERBS, VERBS

PARTS_OF_SPEECH = ("ADJ", "ADP", "ADV", "AUX", "CONJ", "DET", "NOUN", "PRON", "PUNCT", "VERB")
_NOMINAL = ("ADJ", "DET", "NOUN")


@dataclass(frozen=True, kw_only=True)
class TaggedSentence:
    """Words and one tag for each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def part_of_speech(tag: str) -> str:
    """ADJ of ADJ|f|p."""
    return tag.split("|")[0]


def tag_sentence(sentence: Sentence) -> tuple[TaggedSentence, TaggedSentence]:
    """The English and the French of a sentence with their gold tags."""
    pair = realize(sentence)
    words = _english(sentence, pair.english)
    links: dict[int, list[int]] = {}
    for english, french in sorted(pair.alignment):
        links.setdefault(french, []).append(english)
    french = [_french_tag(word, [words[i] for i in links[j]]) for j, word in enumerate(pair.french)]
    return (
        TaggedSentence(words=pair.english, tags=tuple(word.english_tag() for word in words)),
        TaggedSentence(words=pair.french, tags=tuple(french)),
    )


@dataclass(frozen=True, kw_only=True)
class _Word:
    """An English word: its part of speech, its clause, and the phrase that it agrees with."""

    part: str
    clause: Clause
    finite: bool = False
    feminine: bool = False
    plural: bool = False

    def english_tag(self) -> str:
        if self.part in (*_NOMINAL, "PRON") or self.finite:
            return f"{self.part}|{_number(self.plural)}"
        return self.part


def subject_features(clause: Clause) -> tuple[bool, bool]:
    """Is the subject feminine, is it plural?"""
    if isinstance(clause.subject, Pronoun):
        _, feminine, plural = lexicon.SUBJECT_PRONOUNS[clause.subject.word]
        return feminine, plural
    return NOUNS[clause.subject.noun].feminine, clause.subject.plural


_ENGLISH_PARTS = (
    dict.fromkeys(("a", "an", "some", "any", "these", *lexicon.DETERMINERS), "DET")
    | dict.fromkeys(ADJECTIVES, "ADJ")
    | dict.fromkeys((form for noun in NOUNS.values() for form in (noun.singular, noun.plural)), "NOUN")
    | dict.fromkeys(lexicon.SEASONS, "NOUN")
    | dict.fromkeys((form for verb in VERBS.values() for form in (verb.base, verb.third, verb.past)), "VERB")
    | dict.fromkeys((form for forms in REPORTING_VERBS.values() for form in forms[:2]), "VERB")
    | dict.fromkeys(("is", "are", "was", "were", "be", "will", "do", "does", "did"), "AUX")
    | dict.fromkeys((*lexicon.NEGATIONS, *lexicon.FREQUENCIES, *lexicon.TIMES), "ADV")
    | dict.fromkeys(lexicon.PREPOSITIONS, "ADP")
    | dict.fromkeys(lexicon.CONJUNCTIONS, "CONJ")
    | dict.fromkeys((*lexicon.SUBJECT_PRONOUNS, "him", "them"), "PRON")
    | {".": "PUNCT"}
)


@no_type_check  # called for every word: checking each call under test costs more than the work itself
def _english(sentence: Sentence, words: Sequence[str]) -> list[_Word]:
    """Walks over words and structure together: nouns stand in the order of the noun phrases."""
    clauses = iter(sentence.clauses)
    clause = next(clauses)
    phrases = _phrases(clause)
    phrase = None  # the noun phrase that a determiner or an adjective began
    verb_seen = False
    tagged = []
    for i, word in enumerate(words):
        part = _ENGLISH_PARTS.get(word)
        if word == "her":  # sees her today, sees her law
            part = "DET" if _ENGLISH_PARTS[words[i + 1]] in ("ADJ", "NOUN") else "PRON"
        feminine, plural = subject_features(clause)
        finite = False
        if part == "CONJ":
            clause = next(clauses)
            phrases, verb_seen = _phrases(clause), False
        elif part in ("VERB", "AUX"):
            finite, verb_seen = not verb_seen, True
        elif part == "PRON":
            plural = word in ("they", "them")
        elif part in _NOMINAL and (part != "ADJ" or phrase):  # else the subject is important
            phrase = phrase or next(phrases)
            feminine, plural = phrase
            phrase = None if part == "NOUN" else phrase
        tagged.append(_Word(part=part, clause=clause, finite=finite, feminine=feminine, plural=plural))
    return tagged


def _phrases(clause: Clause) -> Iterator[tuple[bool, bool]]:
    """Gender and number of the noun phrases of a clause, in the order of the English; seasons are masculine."""
    for phrase in (clause.subject, clause.object, clause.recipient, clause.predicate):
        yield from _with_complement(phrase)
    for adjunct in clause.adjuncts:
        if adjunct.season:
            yield False, False
        yield from _with_complement(adjunct.noun_phrase)


def _with_complement(phrase: object) -> Iterator[tuple[bool, bool]]:
    if isinstance(phrase, NounPhrase):
        yield NOUNS[phrase.noun].feminine, phrase.plural
        if phrase.complement:
            yield from _with_complement(phrase.complement[1])


_AVOIR = frozenset(lexicon.AVOIR)


@no_type_check  # as above
def _french_tag(word: str, sources: list[_Word]) -> str:
    """The tag of a French word, from the English words that it stands for."""
    parts = {source.part for source in sources}
    source = sources[-1]
    if parts <= {"AUX", "VERB"}:
        _, plural = subject_features(source.clause)
        action = source.clause.verb != "be"
        if action and source.clause.tense == "past" and word not in _AVOIR:
            return "VERB"
        part = "VERB" if action and source.clause.tense != "past" else "AUX"
        return f"{part}|{_number(plural)}"
    if "PRON" in parts:
        return f"PRON|{_number(source.plural)}"
    if "ADP" in parts:
        return "ADP"
    if source.part in _NOMINAL:
        return f"{source.part}|{'f' if source.feminine else 'm'}|{_number(source.plural)}"
    return source.part


def _number(plural: bool) -> str:
    return "p" if plural else "s"
