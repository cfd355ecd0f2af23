"""The recipes of lesson 15."""

from course_lib.lessons.lesson_15.recipes import speech, t5_layouts, text_to_text

RECIPES = {**text_to_text.RECIPES, **t5_layouts.RECIPES, **speech.RECIPES}
