"""Squares of a drawing to click off and on, such as the patches of a picture."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.widgets.controls import ROW, Control, button
from course_lib.classroom.widgets.steps import Clicks


@dataclass(frozen=True, kw_only=True)
class Squares(Control):
    """Which of `count` squares are hidden: a set of numbers from 1; `at_first`, before a click.

    What the drawing marks with `data-step="3"` is square 3: a click, Enter or space there hides it or shows it again.
    """

    count: int
    at_first: frozenset[int] = frozenset()

    @property
    def start(self) -> frozenset[int]:
        return self.at_first

    def check(self, value: Any) -> frozenset[int]:
        hidden = frozenset(value)
        if not hidden <= self.all:
            raise ValueError(f"{self.label} takes numbers from 1 to {self.count}, but got {sorted(hidden)}.")
        return hidden

    @property
    def all(self) -> frozenset[int]:
        """Every square."""
        return frozenset(range(1, self.count + 1))

    def words(self, value: Iterable[int]) -> str:
        return ", ".join(map(str, sorted(value))) or "none"

    def build(self, changed):
        now, clicks = [self.start], Clicks()

        def put(hidden: frozenset[int]) -> None:
            now[0] = hidden
            changed(hidden)

        def heard(_, message: dict, __) -> None:
            if (square := message.get("step")) in self.all:
                put(now[0] ^ {square})

        clicks.on_msg(heard)
        buttons = [
            button("Show all", lambda _: put(frozenset())),
            button("Swap seen and hidden", lambda _: put(self.all - now[0])),
        ]
        return widgets.HBox([*buttons, clicks], layout=ROW), put
