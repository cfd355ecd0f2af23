"""From what a learner types to English tokens, and from French tokens to text that one reads."""

import re
from collections.abc import Sequence

from course_lib.data.translation import lexicon
from course_lib.data.translation.lexicon import ADJECTIVES, NOUNS, REPORTING_VERBS, VERBS

_CONTRACTIONS = {
    "won't": ("will", "not"),
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "he's": ("he", "is"),
    "she's": ("she", "is"),
    "they're": ("they", "are"),
}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def tokenize_english(text: str) -> tuple[str, ...]:
    """Lower-case tokens with one full stop at the end: "They don't sign it!" gives they do not sign it .

    Contractions are written out (doesn't, won't, he's, he'll), commas and quotation marks dropped. Text
    without a word gives no tokens at all.
    """
    tokens: list[str] = []
    for word in _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")):
        if word in _CONTRACTIONS:
            tokens += _CONTRACTIONS[word]
        elif word.endswith("n't"):
            tokens += [word[:-3], "not"]
        elif word.endswith("'ll"):
            tokens += [word[:-3], "will"]
        else:
            tokens.append(word)
    return (*tokens, ".") if tokens else ()


def detokenize_french(tokens: Sequence[str]) -> str:
    """Text with the spaces of French: l' accord . becomes l'accord."""
    text = ""
    for token in tokens:
        glued = not text or text.endswith("'") or token == "."
        text += token if glued else " " + token
    return text


def english_words() -> tuple[str, ...]:
    """Every English token that the grammar can write, sorted."""
    words = {".", "a", "an", "some", "any", "these", "will", "be", "do", "does", "did"}
    for noun in NOUNS.values():
        words |= {noun.singular, noun.plural}
    for verb in VERBS.values():
        words |= {verb.base, verb.third, verb.past}
    for third, base, _, _ in REPORTING_VERBS.values():
        words |= {third, base}
    for forms, _ in lexicon.BE.values():
        words |= set(forms)
    for table in (
        ADJECTIVES,
        lexicon.DETERMINERS,
        lexicon.SUBJECT_PRONOUNS,
        lexicon.OBJECT_PRONOUNS,
        lexicon.NEGATIONS,
        lexicon.FREQUENCIES,
        lexicon.TIMES,
        lexicon.SEASONS,
        lexicon.PREPOSITIONS,
        lexicon.CONJUNCTIONS,
    ):
        words |= set(table)
    return tuple(sorted(words))


def french_words() -> tuple[str, ...]:
    """Every French token that the grammar can write, sorted."""
    words = {
        ".",
        "l'",
        "n'",
        "d'",
        "qu'",
        "s'",
        "ne",
        "de",
        "du",
        "au",
        "aux",
        "cet",
        "mon",
        "son",
        *lexicon.AVOIR,
    }
    for noun in NOUNS.values():
        words |= {noun.french_singular, noun.french_plural}
    for adjective in ADJECTIVES.values():
        described = [noun for noun in NOUNS.values() if lexicon.fits(noun, adjective.kinds)]
        for noun in described:
            words |= {adjective.french(feminine=noun.feminine, plural=plural) for plural in (False, True)}
            if adjective.before_noun and not noun.feminine and lexicon.french_vowel_sound(noun.french_singular):
                words.add(adjective.masculine_before_vowel)
    for verb in VERBS.values():
        words |= {verb.french_singular, verb.french_plural, verb.participle}
        words |= {verb.french_future(plural=False), verb.french_future(plural=True)}
        people = any(lexicon.fits(noun, verb.objects) and "person" in noun.kinds for noun in NOUNS.values())
        if verb.pattern == "direct" and people:  # "her" before the participle
            words.add(verb.agreeing_participle(feminine=True))
    for _, _, singular, plural in REPORTING_VERBS.values():
        words |= {singular, plural}
    for _, forms in lexicon.BE.values():
        words |= set(forms)
    for forms in lexicon.DETERMINERS.values():
        words |= {form for form in forms if form}
    words |= {french for french, _, _ in lexicon.SUBJECT_PRONOUNS.values()}
    for pair in (
        *lexicon.OBJECT_PRONOUNS.values(),
        *lexicon.SEASONS.values(),
        *lexicon.CONJUNCTIONS.values(),
    ):
        words |= set(pair)
    for table in (lexicon.NEGATIONS, lexicon.FREQUENCIES, lexicon.TIMES, lexicon.PREPOSITIONS):
        words |= set(table.values())
    return tuple(sorted(words))
