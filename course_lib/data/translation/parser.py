"""The gold translation of a sentence that somebody types, where the grammar covers it.

Parsing is generous: it looks for any structure that the words may have. `realize` is strict: only a structure
whose English is the typed sentence, word for word, counts. So "she sign the law" has no translation.
"""

from collections.abc import Iterator

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
from course_lib.data.translation.text import tokenize_english

_DETERMINERS = {word: word for word in lexicon.DETERMINERS} | {
    "an": "a",
    "some": "a",
    "any": "a",
    "these": "this",
}
_HEADS = {noun.singular: (name, False) for name, noun in NOUNS.items()} | {
    noun.plural: (name, True) for name, noun in NOUNS.items()
}
# finite form: (verb, tense)
_FINITE = {verb.past: (base, "past") for base, verb in VERBS.items()} | {
    form: (base, "present") for base, verb in VERBS.items() for form in (verb.base, verb.third)
}
_REPORTING = {form: base for base, forms in lexicon.REPORTING_VERBS.items() for form in forms[:2]}
_BE = {form: tense for tense, (forms, _) in lexicon.BE.items() if tense != "future" for form in forms}
_COMPLEMENT_PREPOSITIONS = frozenset(lexicon.COMPLEMENTS)
_ADJUNCT_PREPOSITIONS = frozenset(lexicon.PREPOSITIONS) - _COMPLEMENT_PREPOSITIONS - {"to"}


def translate(text: str) -> SentencePair | None:
    """The sentence pair for an English sentence, or None where the grammar does not cover it."""
    tokens = tokenize_english(text)
    if not tokens:
        return None
    for sentence in _Parser(tokens).sentences():
        try:
            pair = realize(sentence)
        except ValueError:  # not French that the grammar knows: "he saw them"
            continue
        if pair.english == tokens:
            return pair
    return None


class _Parser:
    """Recursive descent; yields each structure that starts at `start` and the place after it."""

    def __init__(self, tokens: tuple[str, ...]):
        self.tokens = tokens

    def at(self, position: int) -> str:
        return self.tokens[position] if position < len(self.tokens) else ""

    def sentences(self) -> Iterator[Sentence]:
        for clauses, conjunctions in self.clauses(0):
            yield Sentence(clauses=clauses, conjunctions=conjunctions)

    def clauses(self, start: int) -> Iterator[tuple[tuple[Clause, ...], tuple[str, ...]]]:
        for clause, position in self.clause(start):
            joint = self.at(position)
            if joint == "." and position == len(self.tokens) - 1 and clause.verb not in lexicon.REPORTING_VERBS:
                yield (clause,), ()
            elif joint in lexicon.CONJUNCTIONS and (joint == "that") == (clause.verb in lexicon.REPORTING_VERBS):
                for clauses, conjunctions in self.clauses(position + 1):
                    yield (clause, *clauses), (joint, *conjunctions)

    def noun_phrase(self, start: int) -> Iterator[tuple[NounPhrase, int]]:
        determiner = _DETERMINERS.get(self.at(start))
        position = start + 1
        while self.at(position) in ADJECTIVES:
            position += 1
        if determiner is None or self.at(position) not in _HEADS:
            return
        noun, plural = _HEADS[self.at(position)]
        parts = {
            "noun": noun,
            "determiner": determiner,
            "adjectives": self.tokens[start + 1 : position],
            "plural": plural,
        }
        position += 1
        if self.at(position) in _COMPLEMENT_PREPOSITIONS:
            for phrase, end in self.noun_phrase(position + 1):
                yield NounPhrase(**parts, complement=(self.at(position), phrase)), end
        else:
            yield NounPhrase(**parts), position

    def participant(self, start: int, pronouns: dict) -> Iterator[tuple[Subject, int]]:
        """A pronoun or a noun phrase: "her" may begin either."""
        if self.at(start) in pronouns:
            yield Pronoun(word=self.at(start)), start + 1
        yield from self.noun_phrase(start)

    def clause(self, start: int) -> Iterator[tuple[Clause, int]]:
        for subject, position in self.participant(start, lexicon.SUBJECT_PRONOUNS):
            for group, behind in self.verb_group(position):
                for complements, end in self.complements(group["verb"], behind):
                    for adjuncts, stop in self.adjuncts(end):
                        yield Clause(subject=subject, adjuncts=adjuncts, **group, **complements), stop

    def verb_group(self, start: int) -> Iterator[tuple[dict, int]]:
        """Verb, tense, negation and frequency."""
        position = start
        auxiliary = self.at(position) if self.at(position) in ("will", "do", "does", "did") else None
        be_tense = _BE.get(self.at(position))
        if auxiliary or be_tense:
            position += 1
        group: dict[str, str] = {}
        if self.at(position) in lexicon.NEGATIONS:
            group["negation"] = self.at(position)
            position += 1
        elif self.at(position) in lexicon.FREQUENCIES:
            group["frequency"] = self.at(position)
            position += 1
        if be_tense:
            yield group | {"verb": "be", "tense": be_tense}, position
        elif auxiliary:
            tense = {"will": "future", "did": "past"}.get(auxiliary, "present")
            if self.at(position) == "be" or self.at(position) in VERBS:
                yield group | {"verb": self.at(position), "tense": tense}, position + 1
        elif self.at(position) in _REPORTING:
            yield group | {"verb": _REPORTING[self.at(position)]}, position + 1
        elif self.at(position) in _FINITE:
            verb, tense = _FINITE[self.at(position)]
            yield group | {"verb": verb, "tense": tense}, position + 1

    def complements(self, verb: str, start: int) -> Iterator[tuple[dict, int]]:
        """What the verb asks for: predicate, object, recipient, or nothing."""
        pattern = VERBS[verb].pattern if verb in VERBS else verb
        if verb in lexicon.REPORTING_VERBS:
            yield {}, start
        elif pattern == "be":
            if self.at(start) in ADJECTIVES:
                yield {"predicate": self.at(start)}, start + 1
            for phrase, end in self.noun_phrase(start):
                yield {"predicate": phrase}, end
        elif pattern == "direct":
            for thing, end in self.participant(start, lexicon.OBJECT_PRONOUNS):
                yield {"object": thing}, end
        elif pattern == "to":
            if self.at(start) == "to":
                for person, end in self.participant(start + 1, lexicon.OBJECT_PRONOUNS):
                    yield {"recipient": person}, end
        else:
            if self.at(start) in lexicon.OBJECT_PRONOUNS:
                for thing, end in self.noun_phrase(start + 1):
                    yield {"object": thing, "recipient": Pronoun(word=self.at(start))}, end
            for thing, position in self.noun_phrase(start):
                if self.at(position) == "to":
                    for person, end in self.noun_phrase(position + 1):
                        yield {"object": thing, "recipient": person}, end

    def adjuncts(self, start: int) -> Iterator[tuple[tuple[Adjunct, ...], int]]:
        for adjunct, position in self.adjunct(start):
            for others, end in self.adjuncts(position):
                yield (adjunct, *others), end
        yield (), start

    def adjunct(self, start: int) -> Iterator[tuple[Adjunct, int]]:
        word = self.at(start)
        if word in lexicon.TIMES:
            yield Adjunct(time=word), start + 1
        elif word == "in" and self.at(start + 1) in lexicon.SEASONS:
            yield Adjunct(season=self.at(start + 1)), start + 2
        elif word in _ADJUNCT_PREPOSITIONS:
            for phrase, end in self.noun_phrase(start + 1):
                yield Adjunct(preposition=word, noun_phrase=phrase), end
