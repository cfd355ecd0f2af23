"""Things to play with: one definition each, for the live form and for frames drawn in advance."""

from course_lib.classroom.widgets.explorer import Choice, Explorer, Frame, PaintGrid, Slider, TextBox
from course_lib.classroom.widgets.masks import mask_painter
from course_lib.classroom.widgets.softmax import softmax_explorer
from course_lib.classroom.widgets.translation import translator

__all__ = [
    "Choice",
    "Explorer",
    "Frame",
    "PaintGrid",
    "Slider",
    "TextBox",
    "mask_painter",
    "softmax_explorer",
    "translator",
]
