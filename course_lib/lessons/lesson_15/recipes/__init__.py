"""Lesson 15: Transformers everywhere, each on a small task of its field."""

from course_lib.lessons.lesson_15.recipes import (
    boltzmann,
    control,
    efficient,
    pictures_and_words,
    speech,
    text_to_text,
)

RECIPES = {
    **control.RECIPES,
    **pictures_and_words.RECIPES,
    **boltzmann.RECIPES,
    **speech.RECIPES,
    **text_to_text.RECIPES,
    **efficient.RECIPES,
}
