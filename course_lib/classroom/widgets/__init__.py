"""Things to play with: one definition each, for the live form and for frames drawn in advance."""

from course_lib.classroom.widgets.controls import Choice, PaintGrid, Slider, TextBox
from course_lib.classroom.widgets.digits import as_digit
from course_lib.classroom.widgets.drawings import heat_map, linked, token_bars
from course_lib.classroom.widgets.explorer import Explorer, Frame
from course_lib.classroom.widgets.goals import Goal
from course_lib.classroom.widgets.keys import Keys
from course_lib.classroom.widgets.pad import Pad, shaken
from course_lib.classroom.widgets.pen import Pen
from course_lib.classroom.widgets.pick import Pick
from course_lib.classroom.widgets.pictures import Pictures
from course_lib.classroom.widgets.pixels import in_base64, in_rows, pixel_image
from course_lib.classroom.widgets.sentence import Sentence
from course_lib.classroom.widgets.squares import Squares
from course_lib.classroom.widgets.steps import Steps
from course_lib.classroom.widgets.votes import Votes

__all__ = [
    "Choice",
    "Explorer",
    "Frame",
    "Goal",
    "Keys",
    "Pad",
    "PaintGrid",
    "Pen",
    "Pick",
    "Pictures",
    "Sentence",
    "Slider",
    "Squares",
    "Steps",
    "TextBox",
    "Votes",
    "as_digit",
    "heat_map",
    "in_base64",
    "in_rows",
    "linked",
    "pixel_image",
    "shaken",
    "token_bars",
]
