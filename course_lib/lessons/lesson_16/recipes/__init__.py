"""The recipes of lesson 16."""

from course_lib.lessons.lesson_16.recipes import control, icon_words, pictures_and_words

RECIPES = {**control.RECIPES, **pictures_and_words.RECIPES, **icon_words.RECIPES}
