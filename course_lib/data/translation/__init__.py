"""English-to-French sentence pairs with gold word alignments, from a grammar written for this course.

The grammar follows the example of Bahdanau et al. 2015 (ICLR, arXiv 1409.0473), figure 3, where attention
crosses over: "the European Economic Area", la zone économique européenne. Word lists, rules and alignments
were written for this course and are licensed as it is; nothing was taken from a corpus.

French differs from English in the order of words (adjectives after the noun in mirrored order, pronouns
before the verb, ne and pas around it) and in agreement, elision and contraction; see `grammar` for what
links to what. An English sentence has exactly one translation here: "they" and "them" are masculine, "it"
and "you" do not occur.

"The European Economic Area" can serve as a demonstration on unseen words: (area, european) and (area,
economic) occur in the test split only, while "european economic" before other nouns, and "area" with other
adjectives, are in the training split.

    splits = translation_splits(train=20_000)
    pair = splits.test[0]
    pair.english, pair.french, pair.alignment
"""

from course_lib.data.translation.grammar import (
    Adjunct,
    Clause,
    NounPhrase,
    Pronoun,
    Sentence,
    SentencePair,
    realize,
)
from course_lib.data.translation.parser import translate
from course_lib.data.translation.sampling import TranslationSplits, combinations_of_split, translation_splits
from course_lib.data.translation.text import detokenize_french, english_words, french_words, tokenize_english

__all__ = [
    "Adjunct",
    "Clause",
    "NounPhrase",
    "Pronoun",
    "Sentence",
    "SentencePair",
    "TranslationSplits",
    "combinations_of_split",
    "detokenize_french",
    "english_words",
    "french_words",
    "realize",
    "tokenize_english",
    "translate",
    "translation_splits",
]
