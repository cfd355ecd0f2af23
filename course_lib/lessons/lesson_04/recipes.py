"""Lesson 04: the first of T symbols; an LSTM of English prose, on equal terms with the RNN of lesson 03; and a short
training of the three cells on the same prose."""

from course_lib.lessons.lesson_04 import remember
from course_lib.training.language_models import (
    LanguageSettings,
    language_recipe,
    score_language_model,
    train_language_model,
)
from course_lib.training.recipe import Recipe, each

CHARACTERS = language_recipe(
    "LSTM on characters",
    "04",
    LanguageSettings(model="lstm", dim=344, depth=1, steps=2440, learning_rate=8e-3),
    minutes=3,
)
SHORT = {"depth": 1, "steps": 1000}
CELLS = {
    "RNN": LanguageSettings(model="rnn", dim=400, learning_rate=8e-3, **SHORT),
    "GRU": LanguageSettings(model="gru", dim=224, learning_rate=8e-3, **SHORT),
    "LSTM": LanguageSettings(model="lstm", dim=192, learning_rate=3.2e-2, **SHORT),
}  # 0.22 million parameters each

RECIPES = {
    "lstm_characters": CHARACTERS,
    "first_symbol": remember.RECIPE,
    "three_cells": Recipe(
        title="RNN, GRU and LSTM on the same characters, a short training each",
        lesson="04",
        data=CHARACTERS.data,
        licence=CHARACTERS.licence,
        minutes=3,
        variants=CELLS,
        train=train_language_model,
        scores=each(score_language_model),
        ships="GRU",
        chosen_by="bits per byte, GRU",
        timed=tuple(CELLS),
        weights=False,
    ),
}
