"""Lesson 03: an RNN of English prose, beside the LSTM of lesson 04 and the GPT of lesson 08."""

from course_lib.training.language_models import LanguageSettings, language_recipe

RECIPES = {
    "rnn_characters": language_recipe(
        "RNN on characters",
        "03",
        LanguageSettings(model="rnn", dim=704, depth=1, steps=2540, learning_rate=2e-3),
        minutes=3,
    )
}
