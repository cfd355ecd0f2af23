"""Things to play with: one definition each, for the live form and for frames drawn in advance."""

from course_lib.classroom.widgets.explorer import Choice, Explorer, Frame, PaintGrid, Slider, TextBox

__all__ = ["Choice", "Explorer", "Frame", "PaintGrid", "Slider", "TextBox"]
