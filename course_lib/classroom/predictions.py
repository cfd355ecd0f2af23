"""Predictions that a learner makes before a result is seen."""

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
class Prediction:
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
                f"The prediction {self.question!r} needs options, or low < high and a step above 0 for a slider, but "
                f"got low={self.low}, high={self.high}, step={self.step}."
            )

    def takes(self, value: Any) -> bool:
        """Whether `value` can be a prediction: the number of an option, or a number on the slider."""
        if self.options:
            return type(value) is int and 0 <= value < len(self.options)
        return type(value) is float and math.isfinite(value)  # an int is a choice from the first edition

    def words(self, value: float) -> str:
        """Return a prediction, or what came, as a reader would say it (with markup)."""
        if self.options:
            return f"**{letter(int(value))}** ({self.options[int(value)]})"
        number = f"{value:.{self.places}f}"
        return f"**{number} {self.unit}**" if self.unit else f"**{number}**"

    @property
    def places(self) -> int:
        """Decimal places of a number on the slider."""
        return max(0, -math.floor(math.log10(self.step) + 1e-9))

    def beside(self, choice: Any, came: Any) -> str:
        """Return a prediction and the result, in one sentence (with markup); a tick if the option is right."""
        said = f"you predicted {self.words(choice)}"
        if came is None:
            return said
        if not self.options:
            return f"{said}; it was {self.words(came)}"
        return f"✓ {said}, and that was right" if choice == came else f"✗ {said}; it was {self.words(came)}"


@dataclass
class Placed:
    """The learner's prediction as it is recorded."""

    session: Session
    name: str
    prediction: Prediction

    kind = "predictions"  # as the progress files of the first edition call it

    def choice(self, which: str = "choice") -> Any:
        """Return the prediction as it stands, or with "first" the one that was placed first; None if there is none."""
        choice = self.session.entry(self.kind, self.name).get(which)
        return choice if self.prediction.takes(choice) else None

    def place(self, value: Any) -> None:
        """Record a prediction, and remember the first one; after the result was seen it is none."""

        def put(entry: dict[str, Any]) -> None:
            entry["choice"] = value
            entry.setdefault("first", value)

        if not self.closed():
            self.session.change(self.kind, self.name, put)

    def closed(self) -> bool:
        """Whether the result of the same name has been seen."""
        return bool(self.session.entry("parts", self.name).get("seen"))

    def story(self) -> str:
        """Return what was predicted first and what came, with markup; empty without a prediction."""
        first = self.choice("first") if self.choice("first") is not None else self.choice()
        came = self.session.entry("parts", self.name).get("came")
        return "" if first is None else self.prediction.beside(first, came if self.prediction.takes(came) else None)


class PredictionForm:
    """A prediction on the page: it may be changed until its result has been seen."""

    def __init__(self, session: Session, name: str, prediction: Prediction) -> None:
        self.prediction, self.placed = prediction, Placed(session, name, prediction)
        self.said = widgets.HTMLMath()
        if prediction.options:
            self.choices = Choices(prediction.options, self.placed.place)
            self.controls, self.form = self.choices.buttons, self.choices.box
            return
        start = self.placed.choice()
        self.slider = widgets.FloatSlider(
            value=prediction.low + (prediction.high - prediction.low) / 2 if start is None else start,
            min=prediction.low,
            max=prediction.high,
            step=prediction.step,
            description="Your prediction",
            readout_format=f".{prediction.places}f",
            layout={"width": "min(34em, 90%)"},
        )
        submit = button("This is my prediction", lambda: self.placed.place(self.slider.value))
        self.controls = [self.slider, submit]
        row = [self.slider, widgets.Label(prediction.unit), submit, GoalList(())]  # the last names the slider aloud
        self.form = widgets.HBox(row, layout={"flex_flow": "row wrap"}).add_class("course-explorer")

    def show(self) -> None:
        """Put the prediction on the page."""
        self.placed.session.change("predictions", self.placed.name, lambda entry: entry.setdefault("met", True))
        prediction, question = self.prediction, f"**Make your prediction.** {self.prediction.question}"
        if prediction.options:
            plain, static = plain_options(prediction.options), html_options(prediction.options)
        else:
            plain = f"A number from {prediction.low:g} to {prediction.high:g} {prediction.unit}".rstrip() + "."
            static = to_html(plain)
        live = None
        if in_notebook():
            self.update()
            live = widgets.VBox([widgets.HTMLMath(panel(to_html(question))), self.form, self.said])
        present(f"{to_plain(question)}\n{plain}", panel(to_html(question) + static), widget=live)

    def update(self) -> None:
        """Show the prediction as it is recorded."""
        choice, closed = self.placed.choice(), self.placed.closed()
        for control in self.controls:
            control.disabled = closed
        for index in range(len(self.prediction.options)):
            self.choices.mark(index, *("●", "● your prediction") if index == choice else ())
        if choice is not None:
            after = "The result is open." if closed else "Run on and see; until then you may change it."
            text, colour = f"● You predicted {self.prediction.words(choice)}. {after}", BLUE
        else:
            text, colour = "The result was opened without a prediction." if closed else "", GREY
        self.said.value = panel(to_html(text), colour=colour, attributes='role="status"') if text else ""
