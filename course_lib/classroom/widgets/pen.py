"""Buttons to write with, token by token: which token that is, the model and the dice say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.widgets.controls import ROW, Control, button

Strokes = tuple[int, str]
LIKELIEST, DRAWN = "t", "d"


@dataclass(frozen=True, kw_only=True)
class Pen(Control):
    """The seed, and how each token so far was chosen: "t" the argmax, "d" drawn; at most `most`.

    "Draw 40" takes them one at a time, so that the text is seen to grow.
    """

    most: int
    value: Strokes = (1, "")

    @property
    def start(self) -> Strokes:
        return self.value

    def check(self, value: Any) -> Strokes:
        dice, strokes = value
        if dice < 1 or set(strokes) - {LIKELIEST, DRAWN} or len(strokes) > self.most:
            raise ValueError(
                f"{self.label} takes dice from 1 on and up to {self.most} strokes of {LIKELIEST!r} and {DRAWN!r}, "
                f"but got {value!r}."
            )
        return dice, strokes

    def words(self, value: Strokes) -> str:
        dice, strokes = value
        return f"{len(strokes)} tokens written, dice {dice}" if strokes else "nothing written"

    def remark(self, value: Strokes) -> str:
        return f"The page is full with {self.most} tokens: clear it." if len(value[1]) == self.most else ""

    def build(self, changed):
        now = [self.value]

        def put(value: Strokes) -> None:
            now[0] = value
            changed(value)

        def write(strokes: str) -> None:
            for stroke in strokes[: self.most - len(now[0][1])]:
                put((now[0][0], now[0][1] + stroke))

        def turn(change: Callable[[int, str], Strokes]) -> Callable[[Any], None]:
            return lambda _: put(change(*now[0]))

        buttons = [
            button("Take the likeliest", lambda _: write(LIKELIEST)),
            button("Draw one", lambda _: write(DRAWN)),
            button("Draw 40", lambda _: write(40 * DRAWN)),
            button("One back", turn(lambda dice, strokes: (dice, strokes[:-1]))),
            button("Clear", turn(lambda dice, _: (dice, ""))),
            button("Other dice", turn(lambda dice, strokes: (dice + 1, strokes))),
        ]
        return widgets.HBox([widgets.Label(value=f"{self.label}:"), *buttons], layout=ROW), put
