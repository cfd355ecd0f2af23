"""Sentences that hide the gender of their subject, and which nouns belong to which split."""

from dataclasses import replace

from course_lib.data.translation import lexicon
from course_lib.data.translation.grammar import Clause, NounPhrase
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, VERBS
from course_lib.data.translation.sampling import Dice

SHARES = {"train": 0.4, "validation": 0.2, "test": 0.4}  # of the nouns of each gender
_NOUNS_SEED = 47  # gives each split women or companies that act, and things of both genders
# none of les, des, ces, nos, leurs, deux, plusieurs shows a gender
_DETERMINERS = ("the", "the", "the", "a", "a", "this", "our", "their", "two", "several")


def _nouns_of_split() -> dict[str, frozenset[str]]:
    chosen: dict[str, set[str]] = {split: set() for split in SHARES}
    dice = Dice(_NOUNS_SEED)
    for feminine in (False, True):
        nouns = dice.shuffled([name for name, noun in NOUNS.items() if noun.feminine == feminine])
        first = round(SHARES["train"] * len(nouns))
        second = first + round(SHARES["validation"] * len(nouns))
        for split, part in zip(SHARES, (nouns[:first], nouns[first:second], nouns[second:]), strict=True):
            chosen[split].update(part)
    return {split: frozenset(nouns) for split, nouns in chosen.items()}


NOUNS_OF_SPLIT = _nouns_of_split()


def with_hidden_gender(clause: Clause, dice: Dice, *, split: str, feminine: bool) -> Clause | None:
    """The clause with a plural noun of the split and gender for its subject, whose gender no other word shows.

    None if that cannot be, or if the split has a noun that would suit for one gender only: what else the clause says
    must not tell which one it is.
    """
    if not isinstance(clause.subject, NounPhrase) or clause.verb in lexicon.REPORTING_VERBS:
        return None
    if isinstance(clause.predicate, str):
        adjective = ADJECTIVES[clause.predicate]
        if adjective.masculine_plural != adjective.feminine_plural:
            return None
        kinds = adjective.kinds
    elif clause.verb == "be":  # laws are a problem
        return None
    else:
        kinds = VERBS[clause.verb].subjects
    suitable = [noun for name, noun in NOUNS.items() if name in NOUNS_OF_SPLIT[split] and lexicon.fits(noun, kinds)]
    if {noun.feminine for noun in suitable} != {False, True}:
        return None
    noun = dice.pick([noun for noun in suitable if noun.feminine == feminine])
    subject = NounPhrase(noun=noun.singular, determiner=dice.pick(_DETERMINERS), plural=True)
    return replace(clause, subject=subject)
