"""The recipes of lesson 17."""

from course_lib.lessons.lesson_17.recipes import boltzmann, efficient, experts

RECIPES = {**boltzmann.RECIPES, **efficient.RECIPES, **experts.RECIPES}
