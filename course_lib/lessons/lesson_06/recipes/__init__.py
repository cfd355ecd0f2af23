"""Lesson 06: a small Transformer translates from English to French, and what each part of its training buys."""

from course_lib.lessons.lesson_06.recipes import translator, tricks

RECIPES = {"translator": translator.RECIPE, **tricks.RECIPES}
