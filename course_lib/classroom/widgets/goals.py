"""Goals of a playground: what to try, and how the page knows that it was reached."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anywidget
import traitlets


@dataclass(frozen=True)
class Goal:
    """Something to try: what the learner reads, and whether a state reaches it.

    A state for which `reached` raises ValueError, as one that cannot be drawn, does not.
    """

    text: str
    reached: Callable[[dict[str, Any]], bool]

    def __call__(self, state: dict[str, Any]) -> bool:
        try:
            return bool(self.reached(state))
        except ValueError:
            return False


class GoalList(anywidget.AnyWidget):
    """The goals with a tick at each that was reached, and how many they are, said aloud when it changes.

    Without a goal there is nothing to see: it only names the explorer's sliders for screen readers. `held` is true
    while a pointer holds one of these sliders.
    """

    _esm = Path(__file__).with_name("goals.js")
    texts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    reached = traitlets.List(traitlets.Bool()).tag(sync=True)
    held = traitlets.Bool(False).tag(sync=True)

    def __init__(self, goals: tuple[Goal, ...]):
        super().__init__(texts=[goal.text for goal in goals], reached=[False] * len(goals))
        self.goals = goals

    def see(self, state: dict[str, Any]) -> None:
        """Tick what this state reaches; what was reached before stays so."""
        self.reached = [before or goal(state) for before, goal in zip(self.reached, self.goals, strict=True)]
