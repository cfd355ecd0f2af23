"""Lesson 01: icons, digits on textures, deeper and deeper networks, and the gain of another task."""

from course_lib.lessons.lesson_01.recipes import depth, icon_names, resnet, transfer

RECIPES = {
    "resnet": resnet.RECIPE,
    "depth": depth.RECIPE,
    "transfer": transfer.RECIPE,
    "icon_names": icon_names.RECIPE,
}
