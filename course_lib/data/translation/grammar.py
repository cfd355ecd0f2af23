"""From the structure of a sentence to its English, its French and the links between their words.

A `Sentence` is made of `Clause`s, a clause of `NounPhrase`s, pronouns and a verb; all name words by their
English form. `realize` writes both languages and remembers which English words each French word stands for:

- determiner, adjective, noun, preposition, pronoun, conjunction: one to one ("because": parce and que);
- a fused word links to both parts: du to "of" and "the", au to "to" and "the" ("au printemps": to "in");
- ne and pas to "not", ne and jamais to "never"; "do" and "does" link to nothing, "did" of "did not sign" to
  the auxiliary a of n'a pas signé;
- passé composé: auxiliary and participle both to the English verb;
- future: one French verb to "will" and the verb;
- a pronoun recipient of "talks to him" (lui parle) links to "to" and to the pronoun.
"""

from dataclasses import dataclass
from typing import no_type_check

from course_lib.data.translation import lexicon
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, VERBS, Adjective, Noun

French = list[tuple[str, tuple[int, ...]]]  # words, each with the places of its English words

TENSES = ("present", "past", "future")


@dataclass(frozen=True, kw_only=True)
class SentencePair:
    """An English sentence, its French translation and the gold word alignment.

    `alignment` holds (English index, French index). `combinations` holds the (noun, adjective) pairs that
    occur, also across the verb: "the law is new" has (law, new).
    """

    english: tuple[str, ...]
    french: tuple[str, ...]
    alignment: frozenset[tuple[int, int]]
    clauses: int
    combinations: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class NounPhrase:
    """A determiner, adjectives in English order, a noun, and perhaps a complement: ("of", noun phrase).

    The determiner "a" is the indefinite one: a, an; some in the plural; any under a negation.
    """

    noun: str
    determiner: str = "the"
    adjectives: tuple[str, ...] = ()
    plural: bool = False
    complement: "tuple[str, NounPhrase] | None" = None


@dataclass(frozen=True, kw_only=True)
class Pronoun:
    """A subject (he, she, they) or an object (him, her, them)."""

    word: str


@dataclass(frozen=True, kw_only=True)
class Adjunct:
    """A preposition with its noun phrase, a season ("in may"), or a time ("today") alone."""

    preposition: str | None = None
    noun_phrase: NounPhrase | None = None
    season: str | None = None
    time: str | None = None


Subject = NounPhrase | Pronoun


@dataclass(frozen=True, kw_only=True)
class Clause:
    """Subject, verb and what follows.

    `verb` is a key of `VERBS`, of `REPORTING_VERBS`, or "be"; then `predicate` is an adjective or a noun
    phrase. `negation` is "not" or "never", `frequency` one of often, always, rarely.
    """

    subject: Subject
    verb: str
    tense: str = "present"
    negation: str | None = None
    frequency: str | None = None
    object: Subject | None = None
    recipient: Subject | None = None
    predicate: str | NounPhrase | None = None
    adjuncts: tuple[Adjunct, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """Clauses joined by conjunctions: one conjunction less than clauses."""

    clauses: tuple[Clause, ...]
    conjunctions: tuple[str, ...] = ()


def realize(sentence: Sentence) -> SentencePair:
    """The sentence in English and French, with its gold alignment.

    Raises ValueError for a word that the lexicon lacks and for a structure that the grammar does not cover.
    """
    if len(sentence.conjunctions) != len(sentence.clauses) - 1:
        raise ValueError(
            f"{len(sentence.clauses)} clauses need {len(sentence.clauses) - 1} conjunctions, "
            f"got {len(sentence.conjunctions)}."
        )
    writer = _Writer()
    for index, clause in enumerate(sentence.clauses):
        if index:
            writer.conjunction(sentence.conjunctions[index - 1])
        writer.clause(clause)
    writer.french.append((".", (writer.say("."),)))
    french, alignment = _fuse(writer.french)
    return SentencePair(
        english=tuple(writer.english),
        french=french,
        alignment=alignment,
        clauses=len(sentence.clauses),
        combinations=frozenset(writer.combinations),
    )


# --------------------------------------------------------------------------------- elision and fusion

# before a vowel sound: article, pronoun, negation, "de", "que"; cet accord, mon école
_BEFORE_VOWEL = {
    "le": "l'",
    "la": "l'",
    "ne": "n'",
    "de": "d'",
    "que": "qu'",
    "ce": "cet",
    "ma": "mon",
    "sa": "son",
}
_FUSED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def _fuse(words: French) -> tuple[tuple[str, ...], frozenset[tuple[int, int]]]:
    """Apply elision (le accord: l' accord) and contraction (de le: du), from right to left."""
    fused: French = []  # reversed
    following = "."
    for word, links in reversed(words):
        if word in _BEFORE_VOWEL:
            if lexicon.french_vowel_sound(following):
                word = _BEFORE_VOWEL[word]
        elif word == "si" and following in ("il", "ils"):
            word = "s'"
        if (word, following) in _FUSED:
            word, links = _FUSED[word, following], links + fused.pop()[1]
        fused.append((word, links))
        following = word
    fused.reverse()
    alignment = frozenset((i, j) for j, (_, links) in enumerate(fused) for i in links)
    return tuple(word for word, _ in fused), alignment


# ------------------------------------------------------------------------------------- both languages


@no_type_check  # called for every word: checking each call under test costs ten times the work itself
class _Writer:
    """Appends English words as it goes and puts the French ones together clause by clause."""

    def __init__(self):
        self.english: list[str] = []
        self.french: French = []
        self.combinations: set[tuple[str, str]] = set()

    def say(self, word: str) -> int:
        self.english.append(word)
        return len(self.english) - 1

    def conjunction(self, word: str) -> None:
        position = self.say(word)
        self.french += [(french, (position,)) for french in _look_up(lexicon.CONJUNCTIONS, word, "conjunction")]

    def clause(self, clause: Clause) -> None:
        if clause.tense not in TENSES:
            raise ValueError(f"the tense must be one of {TENSES}, got {clause.tense!r}.")
        if clause.negation and clause.frequency:
            raise ValueError(f"take {clause.negation!r} or {clause.frequency!r}: not both in one clause.")
        subject = self.subject(clause.subject)
        if clause.verb == "be":
            self.french += subject + self.copula(clause)
        elif clause.verb in lexicon.REPORTING_VERBS:
            self.french += subject + self.reporting(clause)
        else:
            self.french += subject + self.action(clause)
        for adjunct in clause.adjuncts:
            self.french += self.adjunct(adjunct)

    # noun phrases -----------------------------------------------------------------------------------

    def noun_phrase(self, phrase: NounPhrase, *, negated: bool = False) -> French:
        """`negated`: the direct object of a negated verb, where an indefinite article becomes de."""
        noun = _look_up(NOUNS, phrase.noun, "noun")
        adjectives = [_look_up(ADJECTIVES, word, "adjective") for word in phrase.adjectives]
        self.combinations.update((phrase.noun, word) for word in phrase.adjectives)

        head = noun.plural if phrase.plural else noun.singular
        determiner_place = self.say(_english_determiner(phrase, head, negated=negated))
        positions = [self.say(word) for word in phrase.adjectives]
        noun_place = self.say(head)

        french_head = noun.french_plural if phrase.plural else noun.french_singular
        before: French = []
        after: French = []
        for adjective, position in zip(reversed(adjectives), reversed(positions), strict=True):
            if adjective.before_noun:
                following = before[0][0] if before else french_head
                word = _attributive(adjective, noun, plural=phrase.plural, following=following)
                before.insert(0, (word, (position,)))
            else:  # what stands farther from the noun in English does so in French
                after.append((adjective.french(feminine=noun.feminine, plural=phrase.plural), (position,)))
        determiner = _french_determiner(phrase, noun, negated=negated, adjective_first=bool(before))
        french = [
            (determiner, (determiner_place,)),
            *before,
            (french_head, (noun_place,)),
            *after,
        ]
        if phrase.complement:
            french += self.prepositional(*phrase.complement)
        return french

    def prepositional(self, preposition: str, phrase: NounPhrase) -> French:
        french = _look_up(lexicon.PREPOSITIONS, preposition, "preposition")
        if preposition == "of" and phrase.plural and phrase.determiner == "a":
            raise ValueError('"of some" is not covered: take "the", "these", "several" or a singular after "of".')
        return [(french, (self.say(preposition),)), *self.noun_phrase(phrase)]

    def adjunct(self, adjunct: Adjunct) -> French:
        if adjunct.time:
            return [(_look_up(lexicon.TIMES, adjunct.time, "time"), (self.say(adjunct.time),))]
        if adjunct.season:
            preposition, name = _look_up(lexicon.SEASONS, adjunct.season, "season")
            return [(preposition, (self.say("in"),)), (name, (self.say(adjunct.season),))]
        return self.prepositional(adjunct.preposition, adjunct.noun_phrase)

    def subject(self, subject: Subject) -> French:
        if isinstance(subject, NounPhrase):
            return self.noun_phrase(subject)
        french, _, _ = _look_up(lexicon.SUBJECT_PRONOUNS, subject.word, "subject pronoun")
        return [(french, (self.say(subject.word),))]

    # verbs ------------------------------------------------------------------------------------------

    def action(self, clause: Clause) -> French:
        verb = _look_up(VERBS, clause.verb, "verb")
        plural = _is_plural(clause.subject)
        finite, participle, negation, adverb = self.verb_group(clause, verb, plural)

        clitic: French = []
        rest: French = []
        if isinstance(clause.object, Pronoun):
            direct, _ = _look_up(lexicon.OBJECT_PRONOUNS, clause.object.word, "object pronoun")
            if participle:
                if clause.object.word == "them":
                    raise ValueError('"them" hides its gender, so that a past participle cannot agree: use him or her.')
                participle = [(verb.agreeing_participle(feminine=direct == "la"), links) for _, links in participle]
            clitic = [(direct, (self.say(clause.object.word),))]
        elif isinstance(clause.recipient, Pronoun):
            _, indirect = _look_up(lexicon.OBJECT_PRONOUNS, clause.recipient.word, "object pronoun")
            to = (self.say("to"),) if verb.pattern == "to" else ()
            clitic = [(indirect, (*to, self.say(clause.recipient.word)))]
        if isinstance(clause.object, NounPhrase):
            rest = self.noun_phrase(clause.object, negated=clause.negation is not None)
        if isinstance(clause.recipient, NounPhrase):
            rest += self.prepositional("to", clause.recipient)

        ne, second = _negate(clause, negation)
        return ne + clitic + finite + second + adverb + participle + rest

    def verb_group(self, clause: Clause, verb: lexicon.Verb, plural: bool) -> tuple[French, French, int, French]:
        """Say the English verb group; give finite verb, participle, place of the negation, adverb."""
        adverb: French = []
        negation = -1
        helper: int | None = None
        if clause.tense == "future":
            helper = self.say("will")
        elif clause.negation == "not":
            helper = self.say("did" if clause.tense == "past" else "do" if plural else "does")
        if clause.negation:
            negation = self.say(clause.negation)
        if clause.frequency:
            french = _look_up(lexicon.FREQUENCIES, clause.frequency, "frequency")
            adverb = [(french, (self.say(clause.frequency),))]
        if helper is not None:
            main = self.say(verb.base)
        else:
            main = self.say(verb.past if clause.tense == "past" else verb.english_present(plural=plural))

        if clause.tense == "past":
            auxiliary = main if helper is None else helper
            return [(lexicon.AVOIR[plural], (auxiliary,))], [(verb.participle, (main,))], negation, adverb
        if clause.tense == "future":
            return [(verb.french_future(plural=plural), (helper, main))], [], negation, adverb
        return [(verb.french_present(plural=plural), (main,))], [], negation, adverb

    def copula(self, clause: Clause) -> French:
        plural = _is_plural(clause.subject)
        english, french = lexicon.BE[clause.tense]
        links = [self.say(english[plural])]
        negation = self.say(clause.negation) if clause.negation else -1
        adverb: French = []
        if clause.frequency:
            word = _look_up(lexicon.FREQUENCIES, clause.frequency, "frequency")
            adverb = [(word, (self.say(clause.frequency),))]
        if clause.tense == "future":
            links.append(self.say("be"))
        if isinstance(clause.predicate, NounPhrase):
            predicate = self.noun_phrase(clause.predicate)  # after être, un and une stay under a negation
        else:
            predicate = [self.predicative_adjective(clause)]
        ne, second = _negate(clause, negation)
        return [*ne, (french[plural], tuple(links)), *second, *adverb, *predicate]

    def predicative_adjective(self, clause: Clause) -> tuple[str, tuple[int, ...]]:
        adjective = _look_up(ADJECTIVES, clause.predicate, "adjective")
        if isinstance(clause.subject, NounPhrase):
            self.combinations.add((clause.subject.noun, adjective.english))
            feminine = NOUNS[clause.subject.noun].feminine
        else:
            _, feminine, _ = lexicon.SUBJECT_PRONOUNS[clause.subject.word]
        word = adjective.french(feminine=feminine, plural=_is_plural(clause.subject))
        return word, (self.say(adjective.english),)

    def reporting(self, clause: Clause) -> French:
        if clause.tense != "present" or clause.negation:
            raise ValueError(f"{clause.verb!r} stands in the present and without a negation in this grammar.")
        third, base, singular, plural_form = lexicon.REPORTING_VERBS[clause.verb]
        plural = _is_plural(clause.subject)
        return [(plural_form if plural else singular, (self.say(base if plural else third),))]


def _look_up(table: dict, word: str | None, what: str):
    try:
        return table[word]
    except KeyError:
        raise ValueError(f"the lexicon has no {what} {word!r}; choose one of {', '.join(sorted(table))}.") from None


def _is_plural(subject: Subject) -> bool:
    if isinstance(subject, NounPhrase):
        return subject.plural
    return lexicon.SUBJECT_PRONOUNS[subject.word][2]


def _negate(clause: Clause, position: int) -> tuple[French, French]:
    """ne and pas (or jamais), both linked to the English negation at `place`."""
    if clause.negation is None:
        return [], []
    return [("ne", (position,))], [(_look_up(lexicon.NEGATIONS, clause.negation, "negation"), (position,))]


def _english_determiner(phrase: NounPhrase, head: str, *, negated: bool) -> str:
    if phrase.determiner == "a":
        if phrase.plural:
            return "any" if negated else "some"
        following = phrase.adjectives[0] if phrase.adjectives else head
        return "an" if lexicon.english_vowel_sound(following) else "a"
    if phrase.determiner == "this" and phrase.plural:
        return "these"
    return phrase.determiner


def _french_determiner(phrase: NounPhrase, noun: Noun, *, negated: bool, adjective_first: bool) -> str:
    """de after a negation (pas de loi) and before a plural adjective (de nouvelles lois)."""
    if phrase.determiner == "a" and (negated or (phrase.plural and adjective_first)):
        return "de"
    masculine, feminine, plural = _look_up(lexicon.DETERMINERS, phrase.determiner, "determiner")
    form = plural if phrase.plural else feminine if noun.feminine else masculine
    if form is None:
        raise ValueError(f"{phrase.determiner!r} needs a plural noun, got {phrase.noun!r} in the singular.")
    return form


def _attributive(adjective: Adjective, noun: Noun, *, plural: bool, following: str) -> str:
    """The form before `following`: nouveau, but nouvel accord."""
    if not plural and not noun.feminine and lexicon.french_vowel_sound(following):
        return adjective.masculine_before_vowel
    return adjective.french(feminine=noun.feminine, plural=plural)
