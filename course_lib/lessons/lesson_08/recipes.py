"""Lesson 08: a GPT of a dictionary; a GPT and LSTMs of it, for as long as the lesson trains; a GPT on the characters
of English prose, on equal terms with the RNN and the LSTM of lessons 03 and 04; induction heads; and the parts of
today's decoders."""

from dataclasses import replace

from course_lib.lessons.lesson_08 import definitions, induction, modern
from course_lib.training.language_models import (
    DictionarySettings,
    LanguageSettings,
    language_recipe,
    score_language_model,
    tokenized_dictionary,
    train_in_half,
    train_language_model,
)
from course_lib.training.recipe import Recipe, Scores, Trained, each

HERO = DictionarySettings(
    model="gpt",
    vocab_size=2048,
    dim=256,
    depth=4,
    batch_size=32,
    steps=12_000,
    learning_rate=2e-3,
    dropout=0.1,
)
HERO_LSTM = replace(  # as many parameters, in as much time
    HERO, model="lstm", dim=700, depth=1, steps=15_000, learning_rate=8e-3, dropout=0.5
)

SHORT = DictionarySettings(
    model="gpt",
    vocab_size=2048,
    dim=64,
    depth=1,
    context_length=32,
    batch_size=32,
    steps=2000,
    learning_rate=1e-2,
)  # what the lesson trains
SHORT_LSTM = replace(SHORT, model="lstm", dim=40, steps=3000, learning_rate=4e-2)  # as many parameters, in as much time
LARGE_LSTM = replace(SHORT_LSTM, dim=128, steps=1500, learning_rate=2e-2)  # 2.7 times as many, in the same time

DEFINED = 200  # invented words
ENTRIES = 600  # of the split that is scored
PARTS = ((0, 1), (1, 4), (4, 9), (9, 24))  # of a definition: its tokens from one number to before the other


def saved_in(part: tuple[int, int]) -> str:
    """What the score of a part of the definitions is called; the tokens are counted from 1."""
    first, last = part[0] + 1, part[1]
    return f"saved at token {last}" if first == last else f"saved at tokens {first} to {last}"


def score_definitions(trained: Trained, split: str) -> Scores:
    """Bits per byte; on the test split also how a definition depends on its headword.

    That is the fraction of invented words whose stem their definition uses, and what a true headword saves against
    one of another entry, in nats per token: at the first token of a definition, and at later ones.
    """
    scores = score_language_model(trained, split)
    if split != "test":
        return scores
    text = tokenized_dictionary(trained.settings.vocab_size)
    stems = definitions.stems_copied(trained.model, text.tokenizer, DEFINED)
    saved = definitions.saved_by_headword(trained.model, text.tokenizer, definitions.held_out_entries(ENTRIES))
    return scores | {"stems copied": stems} | {saved_in(of): float(saved[slice(*of)].mean()) for of in PARTS}


DICTIONARY = replace(
    language_recipe(
        "GPT of a dictionary, on the tokens of a byte-level BPE, and an LSTM of its size",
        "08",
        HERO,
        minutes=420,
        train=train_in_half,
    ),
    variants={"GPT": HERO, "LSTM": HERO_LSTM},
    ships="GPT",
    scores=each(score_definitions),
    chosen_by="bits per byte, GPT",
)

RECIPES = {
    "dictionary": DICTIONARY,
    "gpt_characters": language_recipe(
        "GPT on characters",
        "08",
        LanguageSettings(model="gpt", dim=128, depth=3, context_length=64, steps=3830, learning_rate=4e-3),
        minutes=3,
    ),
    "gpt_short": Recipe(
        title="GPT and LSTM on the same tokens, for as long as the lesson trains",
        lesson="08",
        data=DICTIONARY.data,
        licence=DICTIONARY.licence,
        minutes=2,
        variants={"GPT": SHORT, "LSTM": SHORT_LSTM, "larger LSTM": LARGE_LSTM},
        train=train_language_model,
        scores=each(score_language_model),
        ships="GPT",
        chosen_by="bits per byte, GPT",
        timed=("GPT", "LSTM", "larger LSTM"),
    ),
    "induction": induction.RECIPE,
    "modern_decoder": modern.RECIPE,
}
