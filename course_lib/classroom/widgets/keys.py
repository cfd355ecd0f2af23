"""A box for one character after the other, as in a game of guessing what comes next."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from course_lib.classroom.widgets.controls import Control

Rounds = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Keys(Control):
    """What was typed, character by character, in rounds of at most `most`: a tuple of texts, the last one growing.

    `again`, if given, is the button that begins a new round. `answer` says beside the box, and to screen readers, what
    came of the latest character.
    """

    most: int
    again: str = ""
    answer: Callable[[Rounds], str] | None = None

    @property
    def start(self) -> Rounds:
        return ("",)

    def check(self, value: Any) -> Rounds:
        rounds = tuple(value)
        if not rounds or not all(isinstance(typed, str) and len(typed) <= self.most for typed in rounds):
            raise ValueError(f"{self.label} takes rounds of at most {self.most} characters, but got {value!r}.")
        return rounds

    def words(self, value: Rounds) -> str:
        place = f"round {len(value)}, " if len(value) > 1 else ""
        return place + (f"typed “{value[-1]}”" if value[-1] else "nothing typed yet")

    def build(self, changed):
        def put(rounds: Rounds) -> None:
            box.rounds, box.said = rounds, self.answer(rounds) if self.answer else ""
            changed(rounds)

        def hear(_, content: dict, __) -> None:
            *before, typed = box.rounds
            if content.get("again"):
                put((*box.rounds, "") if typed else box.rounds)
            elif len(typed) < self.most:
                put((*before, typed + content["character"][:1]))

        box = KeysWidget(label=self.label, again=self.again, said=self.answer(self.start) if self.answer else "")
        box.rounds = self.start
        box.on_msg(hear)
        return box, put


class KeysWidget(anywidget.AnyWidget):
    """The box on the page."""

    _esm = Path(__file__).with_name("keys.js")
    label = traitlets.Unicode().tag(sync=True)
    again = traitlets.Unicode().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    rounds: Rounds = ("",)
