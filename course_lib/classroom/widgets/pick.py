"""One mark of a drawing to pick by a click, such as a point of a map."""

from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.widgets.controls import LABELLED, Control
from course_lib.classroom.widgets.steps import Clicks


@dataclass(frozen=True, kw_only=True)
class Pick(Control):
    """A number from 1 to `count`, chosen by a click on what the drawing marks with `data-step`, or by its slider."""

    count: int
    value: int = 1

    @property
    def start(self) -> int:
        return self.value

    def check(self, value: Any) -> int:
        if value not in range(1, self.count + 1):
            raise ValueError(f"{self.label} must be a whole number from 1 to {self.count}, but got {value!r}.")
        return int(value)

    def words(self, value: Any) -> str:
        return str(value)

    def build(self, changed):
        slider = widgets.IntSlider(value=self.value, min=1, max=self.count, description=self.label, **LABELLED)
        clicks = Clicks()

        def heard(_, message: dict, __) -> None:
            if message.get("step") in range(1, self.count + 1):
                slider.value = message["step"]

        clicks.on_msg(heard)
        slider.observe(lambda change: changed(change["new"]), "value")
        return widgets.HBox([slider, clicks]), lambda value: setattr(slider, "value", value)
