"""Lesson 15: Transformers everywhere, each on a small task of its field."""

from course_lib.lessons.lesson_15.recipes import boltzmann, control, pictures_and_words

RECIPES = {**control.RECIPES, **pictures_and_words.RECIPES, **boltzmann.RECIPES}
