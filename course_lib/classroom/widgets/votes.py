"""Buttons to say which of two is better, pair after pair."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.widgets.controls import ROW, Control, button

FIRST, SECOND, NEITHER = "a", "b", "="  # a vote


def told_apart(votes: str) -> int:
    """How many pairs were told apart."""
    return len(votes) - votes.count(NEITHER)


@dataclass(frozen=True, kw_only=True)
class Votes(Control):
    """Which of two was preferred, pair by pair, as a text of "a", "b" and "="; `others` vote by a button."""

    most: int
    others: Mapping[str, str]
    value: str = ""

    @property
    def start(self) -> str:
        return self.value

    def check(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > self.most or set(value) - {FIRST, SECOND, NEITHER}:
            raise ValueError(f"{self.label} takes up to {self.most} votes of a, b and =, but got {value!r}.")
        return value

    def words(self, value: str) -> str:
        named = [name for name, votes in self.others.items() if votes == value]
        return named[0] if named else f"{told_apart(value)} votes" if value else "no votes"

    def remark(self, value: str) -> str:
        return "All pairs are compared: start again." if len(value) == self.most else ""

    def build(self, changed: Callable[[Any], None]):
        now = [self.value]

        def put(value: str) -> None:
            now[0] = value[: self.most]
            changed(now[0])

        buttons = [
            button("The first", lambda _: put(now[0] + FIRST)),
            button("The second", lambda _: put(now[0] + SECOND)),
            button("No difference", lambda _: put(now[0] + NEITHER)),
            button("One back", lambda _: put(now[0][:-1])),
            button("Start again", lambda _: put("")),
            *(button(name, lambda _, votes=votes: put(votes)) for name, votes in self.others.items()),
        ]
        return widgets.HBox([widgets.Label(value=f"{self.label}:"), *buttons], layout=ROW), put
