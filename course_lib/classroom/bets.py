"""Bets that a learner makes before a result is seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.choices import Choices, button, html_options, plain_options
from course_lib.classroom.markup import letter, to_html, to_plain
from course_lib.classroom.output import BLUE, GREY, in_notebook, panel, present
from course_lib.classroom.session import Session
from course_lib.classroom.widgets.goals import GoalList


@dataclass(frozen=True)
class Bet:
    """A guess before the result: one of some `options`, or a number from `low` to `high` on a slider."""

    question: str
    options: Sequence[str] = ()
    low: float = 0.0
    high: float = 0.0
    step: float = 1.0
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.options and not (self.low < self.high and self.step > 0):
            raise ValueError(
                f"The bet {self.question!r} needs options, or low < high and a step above 0 for a slider, but got "
                f"low={self.low}, high={self.high}, step={self.step}."
            )

    def takes(self, value: Any) -> bool:
        """Whether `value` can be a bet: the number of an option, or a number on the slider."""
        if self.options:
            return type(value) is int and 0 <= value < len(self.options)
        return type(value) is float and math.isfinite(value)  # an int is a choice from the first edition

    def words(self, value: float) -> str:
        """Return a bet, or what came, as a reader would say it (with markup)."""
        if self.options:
            return f"**{letter(int(value))}** ({self.options[int(value)]})"
        number = f"{value:.{self.places}f}"
        return f"**{number} {self.unit}**" if self.unit else f"**{number}**"

    @property
    def places(self) -> int:
        """Decimal places of a number on the slider."""
        return max(0, -math.floor(math.log10(self.step) + 1e-9))

    def beside(self, choice: Any, came: Any) -> str:
        """Return a bet and what came, in one sentence (with markup); a tick only for an option that came true."""
        said = f"you bet {self.words(choice)}"
        if came is None:
            return said
        if not self.options:
            return f"{said}, it came to {self.words(came)}"
        return f"✓ {said}, and that came true" if choice == came else f"✗ {said}, but {self.words(came)} came true"


@dataclass
class Placed:
    """The learner's bet as it is recorded."""

    session: Session
    name: str
    bet: Bet

    kind = "predictions"  # as the progress files of the first edition call it

    def choice(self, which: str = "choice") -> Any:
        """Return the bet as it stands, or with "first" the one that was placed first; None if there is none."""
        choice = self.session.entry(self.kind, self.name).get(which)
        return choice if self.bet.takes(choice) else None

    def place(self, value: Any) -> None:
        """Record a bet, and remember the first one; after the result was seen it is none."""

        def put(entry: dict[str, Any]) -> None:
            entry["choice"] = value
            entry.setdefault("first", value)

        if not self.closed():
            self.session.change(self.kind, self.name, put)

    def closed(self) -> bool:
        """Whether the result of the same name has been seen."""
        return bool(self.session.entry("parts", self.name).get("seen"))

    def story(self) -> str:
        """Return what was bet first and what came, with markup; empty without a bet."""
        first = self.choice("first") if self.choice("first") is not None else self.choice()
        came = self.session.entry("parts", self.name).get("came")
        return "" if first is None else self.bet.beside(first, came if self.bet.takes(came) else None)


class BetForm:
    """A bet on the page: it may be changed until its result has been seen."""

    def __init__(self, session: Session, name: str, bet: Bet) -> None:
        self.bet, self.placed = bet, Placed(session, name, bet)
        self.said = widgets.HTMLMath()
        if bet.options:
            self.choices = Choices(bet.options, self.placed.place)
            self.controls, self.form = self.choices.buttons, self.choices.box
            return
        start = self.placed.choice()
        self.slider = widgets.FloatSlider(
            value=bet.low + (bet.high - bet.low) / 2 if start is None else start,
            min=bet.low,
            max=bet.high,
            step=bet.step,
            description="Your bet",
            readout_format=f".{bet.places}f",
            layout={"width": "min(34em, 90%)"},
        )
        submit = button("This is my bet", lambda: self.placed.place(self.slider.value))
        self.controls = [self.slider, submit]
        row = [self.slider, widgets.Label(bet.unit), submit, GoalList(())]  # the last names the slider aloud
        self.form = widgets.HBox(row, layout={"flex_flow": "row wrap"}).add_class("course-explorer")

    def show(self) -> None:
        """Put the bet on the page."""
        self.placed.session.change("predictions", self.placed.name, lambda entry: entry.setdefault("met", True))
        bet, question = self.bet, f"**Make your bet.** {self.bet.question}"
        if bet.options:
            plain, static = plain_options(bet.options), html_options(bet.options)
        else:
            plain = f"A number from {bet.low:g} to {bet.high:g} {bet.unit}".rstrip() + "."
            static = to_html(plain)
        live = None
        if in_notebook():
            self.update()
            live = widgets.VBox([widgets.HTMLMath(panel(to_html(question))), self.form, self.said])
        present(f"{to_plain(question)}\n{plain}", panel(to_html(question) + static), widget=live)

    def update(self) -> None:
        """Show the bet as it is recorded."""
        choice, closed = self.placed.choice(), self.placed.closed()
        for control in self.controls:
            control.disabled = closed
        for index in range(len(self.bet.options)):
            self.choices.mark(index, *("●", "● your bet") if index == choice else ())
        if choice is not None:
            after = "The result is open." if closed else "Run on and see; until then you may change it."
            text, colour = f"● You bet {self.bet.words(choice)}. {after}", BLUE
        else:
            text, colour = "The result was opened without a bet." if closed else "", GREY
        self.said.value = panel(to_html(text), colour=colour, attributes='role="status"') if text else ""
