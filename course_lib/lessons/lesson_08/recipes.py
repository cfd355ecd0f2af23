"""Lesson 08: a GPT of a dictionary; one of English prose on tokens, and one on characters, on equal terms with the RNN
and the LSTM; the lesson's own short training beside an LSTM on the same tokens; induction heads; and the parts of
today's decoders."""

from course_lib.lessons.lesson_08 import induction, modern
from course_lib.training.language_models import (
    DictionarySettings,
    LanguageSettings,
    language_recipe,
    score_language_model,
    train_in_half,
    train_language_model,
)
from course_lib.training.recipe import Recipe, each

SHORT = LanguageSettings(
    model="gpt",
    vocab_size=1024,
    dim=64,
    depth=2,
    context_length=64,
    batch_size=8,
    steps=1500,
    learning_rate=4e-3,
)  # what the lesson trains
SHORT_LSTM = LanguageSettings(
    model="lstm",
    vocab_size=1024,
    dim=64,
    depth=1,
    context_length=64,
    batch_size=8,
    steps=2500,
    learning_rate=2e-2,
)  # as many parameters, in as much time

GPT = language_recipe(
    "GPT on the tokens of a byte-level BPE",
    "08",
    LanguageSettings(model="gpt", vocab_size=1024, dim=128, depth=4, batch_size=8, steps=8000, learning_rate=4e-3),
    minutes=12,
)

DICTIONARY = language_recipe(
    "GPT of a dictionary, on the tokens of a byte-level BPE",
    "08",
    DictionarySettings(model="gpt", vocab_size=2048, dim=256, depth=4, batch_size=32, steps=4000, learning_rate=2e-3),
    minutes=50,
    train=train_in_half,
)

RECIPES = {
    "dictionary": DICTIONARY,
    "gpt": GPT,
    "gpt_characters": language_recipe(
        "GPT on characters",
        "08",
        LanguageSettings(model="gpt", dim=128, depth=3, context_length=64, steps=3830, learning_rate=4e-3),
        minutes=3,
    ),
    "gpt_short": Recipe(
        title="GPT and LSTM on the same tokens, for as long as the lesson trains",
        lesson="08",
        data=GPT.data,
        licence=GPT.licence,
        minutes=1,
        variants={"GPT": SHORT, "LSTM": SHORT_LSTM},
        train=train_language_model,
        scores=each(score_language_model),
        ships="GPT",
        chosen_by="bits per byte, GPT",
        timed=("GPT", "LSTM"),
    ),
    "induction": induction.RECIPE,
    "modern_decoder": modern.RECIPE,
}
