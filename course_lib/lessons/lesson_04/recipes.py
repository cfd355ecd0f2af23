"""Lesson 04: an LSTM of English prose, on equal terms with the RNN of lesson 03."""

from course_lib.training.language_models import LanguageSettings, language_recipe

RECIPES = {
    "lstm_characters": language_recipe(
        "LSTM on characters",
        "04",
        LanguageSettings(model="lstm", dim=344, depth=1, steps=2440, learning_rate=8e-3),
        minutes=3,
    )
}
