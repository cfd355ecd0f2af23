"""Lesson 01: digits on textures, deeper and deeper nets, and what a trained one gives to another task."""

from course_lib.lessons.lesson_01.recipes import depth, resnet, transfer

RECIPES = {"resnet": resnet.RECIPE, "depth": depth.RECIPE, "transfer": transfer.RECIPE}
