"""Results of a lesson: figure, claims and outcome, closed until the learner's prediction is made."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from course_lib.classroom.choices import button
from course_lib.classroom.markup import details, inline_html, to_html, to_plain
from course_lib.classroom.output import GREEN, GREY, RED, in_notebook, panel, picture_html, present
from course_lib.classroom.predictions import Placed
from course_lib.classroom.session import Session
from course_lib.classroom.texts import ResultText
from course_lib.data.place import CannotStart, course_folder
from course_lib.tasks.claims import DIFFERENT, ClaimError, measurements, record, strict

SHIPPED = "course_claims"  # of a notebook's metadata: what was measured for each claim when it was built


@dataclass(frozen=True)
class Result:
    """What a lesson measured: a Figure (or HTML), whether its claims hold, and the number that a prediction was about.

    Its words come from results.md, from the entry of its name, with a comma and `variant` behind it if there is one.
    `claims` maps a claim's key there to its condition, or to several that must all hold; `above` and `below` of
    `course_lib.tasks.claims` make conditions that say what was measured. `came` is a number where the prediction was
    one, or the number of the option that came true. `values` are written into the slots of the alt text and of the
    outcome.
    """

    figure: Figure | str
    alt: str = ""
    claims: Mapping[str, Any] = field(default_factory=dict)
    came: float | int | None = None
    outcome: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""

    def told(self, name: str, texts: Mapping[str, ResultText]) -> "Result":
        """The result in the words of its entry. Raises ValueError for a key that only the result or its entry has."""
        entry = f"{name}, {self.variant}" if self.variant else name
        if entry not in texts:
            raise ValueError(f"results.md has no entry {entry!r}")
        text = texts[entry]
        if differing := text.claims.keys() ^ self.claims.keys():
            raise ValueError(f"results.md, {entry}: only one of text and code has the claim {sorted(differing)[0]!r}")
        claims = {text.claims[key]: conditions for key, conditions in self.claims.items()}
        alt, outcome = text.filled(self.values)
        return replace(self, alt=alt, claims=claims, outcome=outcome)

    def conditions(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Each claim with its conditions."""
        return [(text, held if isinstance(held, tuple) else (held,)) for text, held in self.claims.items()]

    def plain(self, shipped: Mapping[str, str] | None = None) -> str:
        """Return alt text, claims and outcome as plain text, with what `shipped` says of each claim that fails."""
        claims = [f"{'✓' if all(conditions) else '✗'} {to_plain(text)}" for text, conditions in self.conditions()]
        texts = [
            f"Figure: {' '.join(self.alt.split())}",
            *claims,
            to_plain(self.difference(shipped)),
            to_plain(self.outcome),
        ]
        return "\n".join(filter(None, texts))

    def html(self, prediction: str = "", shipped: Mapping[str, str] | None = None) -> str:
        """Return figure, a row of badges, then the outcome under a sentence about the learner's prediction, as HTML."""
        picture = picture_html(self.figure, alt=self.alt) if isinstance(self.figure, Figure) else self.figure
        badges = "".join(_badge(text, all(conditions)) for text, conditions in self.conditions())
        row = f'<div style="display:flex;flex-wrap:wrap;gap:0.4em;margin:0.5em 0">{badges}</div>' if badges else ""
        difference, text = self.difference(shipped), "\n\n".join(filter(None, [prediction, self.outcome]))
        note = panel(to_html(difference), colour=RED) if difference else ""
        return picture + row + note + (panel(to_html(text)) if text else "")

    def failed(self) -> list[tuple[str, str]]:
        """Return the claims that do not hold, each with what was measured."""
        return [(text, measurements(conditions)) for text, conditions in self.conditions() if not all(conditions)]

    def difference(self, shipped: Mapping[str, str] | None = None) -> str:
        """Return what was expected, measured and shipped of the claims that do not hold; empty if all do."""
        lines = [
            f"- Expected: {text}. "
            + (f"Measured here: {measured}. " if measured else "")
            + (f"In the shipped lesson: {shipped[text]}." if shipped and text in shipped else "")
            for text, measured in self.failed()
        ]
        if not lines:
            return ""
        return (
            f"**{DIFFERENT}** The lesson goes on, and its text describes the shipped one.\n\n"
            + "\n".join(map(str.rstrip, lines))
            + "\n\nUsual reasons: a cell above was changed, left out or run twice (restart the kernel and run all "
            "cells), or another machine or library version (compare with `course doctor`)."
        )


def shipped_measurements(lesson: str) -> Mapping[str, str]:
    """Return what was measured for each claim when the lesson was built; nothing where its notebook is not at hand."""
    try:
        paths = list(course_folder().glob(f"notebooks/{lesson}_*.ipynb"))
    except CannotStart:
        return {}
    for path in paths:
        try:
            return json.loads(path.read_text(encoding="utf-8"))["metadata"].get(SHIPPED, {})
        except (OSError, ValueError, KeyError):
            continue
    return {}


class ResultView:
    """A result on the page; `placed` is the prediction of the same name, if the lesson has one."""

    def __init__(self, session: Session, name: str, measure: Callable[..., Result], placed: Placed | None) -> None:
        self.session, self.name, self.measure, self.placed = session, name, measure, placed
        self.result = measure(predicted=None)
        options = placed.prediction.options if placed else ()
        if options and self.result.came not in (None, *range(len(options))):
            raise ValueError(
                f"{name!r} came to {self.result.came}; its prediction has {len(options)} options, from 0 on."
            )
        self.shipped: Mapping[str, str] = {}
        self.open = False
        self.box = widgets.VBox()

    def show(self) -> None:
        """Put the result on the page; a claim that does not hold is marked, and stops the course's own tests."""
        for text, conditions in self.result.conditions():
            record(text, conditions)
        failed = self.result.failed()
        self.shipped = shipped_measurements(self.session.lesson) if failed else {}
        stops = bool(failed) and strict()
        behind_a_bet = self.placed and not stops
        static = self.result.html(shipped=self.shipped)
        if behind_a_bet:
            static = details("The result: make your prediction, then open it", static)
        if in_notebook() and behind_a_bet:
            self.update()
        plain = self.result.plain(self.shipped)
        present(plain, static, widget=self.box if in_notebook() and behind_a_bet else None)
        if in_notebook() and not self.placed:
            self.note_seen()
        if stops:
            text, measured = failed[0]
            said = f"{to_plain(text)}. Measured: {measured}." if measured else f"{to_plain(text)}."
            raise ClaimError(f"✗ This result did not come out as the lesson says: {said}")

    def update(self) -> None:
        """Open the result once a prediction is placed, or if it was seen before; until then say what is missing."""
        if self.open:
            return
        if self.placed.choice() is not None or self.placed.closed():
            self.open_up()
        elif not self.box.children:
            text = to_html("**Make your prediction first**: the result opens as soon as you have made it.")
            self.box.children = (
                widgets.HTMLMath(panel(text, colour=GREY, attributes='role="status"')),
                button("Show me anyway", self.open_up),
            )

    def open_up(self) -> None:
        """Draw the result with the learner's prediction in it."""
        self.open = True
        choice = self.placed.choice()
        result = self.result if choice is None else self.measure(predicted=choice)
        said = "" if choice is None else _capital(self.placed.prediction.beside(choice, result.came)) + "."
        self.box.children = (widgets.HTMLMath(result.html(said, self.shipped)),)
        self.note_seen()

    def note_seen(self) -> None:
        """Record that the result was seen, and what came."""
        values: dict[str, Any] = {"seen": True}
        if self.placed and self.result.came is not None:
            values["came"] = int(self.result.came) if self.placed.prediction.options else float(self.result.came)
        self.session.record("parts", self.name, **values)


def _badge(text: str, holds: bool) -> str:
    colour = GREEN if holds else RED
    return (
        f'<span style="border:1px solid {colour};border-radius:1em;padding:0.1em 0.8em">'
        f"{'✓' if holds else '✗'} {inline_html(text)}</span>"
    )


def _capital(sentence: str) -> str:
    return re.sub(r"[a-z]", lambda first: first[0].upper(), sentence, count=1)
