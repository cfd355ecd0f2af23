"""Lesson 03: languages of names, captions of digit scenes, tags of words, and an RNN of English prose."""

from course_lib.lessons.lesson_03.recipes import captions, names, tags
from course_lib.training.language_models import LanguageSettings, language_recipe

RECIPES = {
    "rnn_characters": language_recipe(
        "RNN on characters",
        "03",
        LanguageSettings(model="rnn", dim=704, depth=1, steps=2540, learning_rate=2e-3),
        minutes=3,
    ),
    "names": names.RECIPE,
    "captions": captions.RECIPE,
    "tags": tags.RECIPE,
}
