"""Steps of a drawing: a slider over them, and each part of the drawing that stands for one can be clicked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as widgets

from course_lib.classroom.widgets.controls import LABELLED, Control


@dataclass(frozen=True, kw_only=True)
class Steps(Control):
    """A step, from 1, and what was clicked there: a pair (number, text), the text empty where the slider chose.

    What the drawing marks with `data-step="3"`, and perhaps `data-item="text"`, can be clicked or reached by the
    keyboard; on what has the class `course-steps` the page keeps its place. The slider ends at the last step that is
    drawn, at `most` before anything is. What is marked `hidden data-live` is shown where clicks are heard.
    """

    value: int = 1
    most: int = 99

    @property
    def start(self) -> tuple[int, str]:
        return self.value, ""

    def check(self, value: Any) -> tuple[int, str]:
        step, item = value
        if not 1 <= step <= self.most or not isinstance(item, str):
            raise ValueError(f"{self.label} must be a number from 1 to {self.most} and a text, but got {value!r}.")
        return int(step), item

    def build(self, changed):
        slider = widgets.IntSlider(value=self.value, min=1, max=self.most, description=self.label, **LABELLED)
        clicks = Clicks()
        quiet = [False]

        def put(step: int, item: str) -> None:
            quiet[0] = True  # one new drawing, not two
            try:
                slider.max = max(slider.max, step)
                slider.value = step
            finally:
                quiet[0] = False
            changed((step, item))

        def heard(_, message: dict, __) -> None:
            if "count" in message:
                slider.max = max(1, min(self.most, int(message["count"])))
            elif "step" in message:
                put(max(1, min(self.most, int(message["step"]))), str(message.get("item", "")))

        clicks.on_msg(heard)
        slider.observe(lambda change: quiet[0] or changed((change["new"], "")), "value")
        return widgets.HBox([slider, clicks]), lambda value: put(*value)

    def words(self, value: Any) -> str:
        return str(value[0])


class Clicks(anywidget.AnyWidget):
    """What can be clicked in the drawing beside it; it shows nothing itself."""

    _esm = Path(__file__).with_name("steps.js")
