"""Lesson 08: a GPT of English prose on tokens, and one on characters, on equal terms with the RNN and the LSTM."""

from course_lib.training.language_models import LanguageSettings, language_recipe

RECIPES = {
    "gpt": language_recipe(
        "GPT on the tokens of a byte-level BPE",
        "08",
        LanguageSettings(model="gpt", vocab_size=1024, dim=128, depth=4, batch_size=8, steps=8000, learning_rate=4e-3),
        minutes=12,
    ),
    "gpt_characters": language_recipe(
        "GPT on characters",
        "08",
        LanguageSettings(model="gpt", dim=128, depth=3, context_length=64, steps=3830, learning_rate=4e-3),
        minutes=3,
    ),
}
