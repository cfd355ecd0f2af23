"""Results of a lesson: a figure, the claims that hold, and what it means, closed until the learner's bet is made."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from course_lib.classroom.bets import Placed
from course_lib.classroom.choices import button
from course_lib.classroom.markup import details, inline_html, to_html, to_plain
from course_lib.classroom.output import GREEN, GREY, RED, in_notebook, panel, picture_html, present
from course_lib.classroom.session import Session
from course_lib.tasks.claims import ClaimError


@dataclass(frozen=True)
class Result:
    """What a lesson measured: a Figure (or HTML), its alt text, (text, holds) for each claim, what came, what it means.

    `came` is a number where the bet was one, or the number of the option that came true. Texts are the same on every
    machine: they name thresholds, never what was measured.
    """

    figure: Figure | str
    alt: str
    claims: tuple[tuple[str, Any], ...] = ()
    came: float | int | None = None
    outcome: str = ""

    def plain(self) -> str:
        """Return alt text, claims and outcome as plain text."""
        claims = [f"{'✓' if holds else '✗'} {to_plain(text)}" for text, holds in self.claims]
        return "\n".join([f"Figure: {' '.join(self.alt.split())}", *claims, *filter(None, [to_plain(self.outcome)])])

    def html(self, bet: str = "") -> str:
        """Return figure, a row of badges, then the outcome under a sentence about the learner's bet, as HTML."""
        picture = picture_html(self.figure, alt=self.alt) if isinstance(self.figure, Figure) else self.figure
        badges = "".join(_badge(text, bool(holds)) for text, holds in self.claims)
        row = f'<div style="display:flex;flex-wrap:wrap;gap:0.4em;margin:0.5em 0">{badges}</div>' if badges else ""
        text = "\n\n".join(filter(None, [bet, self.outcome]))
        return picture + row + (panel(to_html(text)) if text else "")

    def failed(self) -> list[str]:
        """Return the claims that do not hold."""
        return [text for text, holds in self.claims if not holds]


class ResultView:
    """A result on the page; `placed` is the bet of the same name, if the lesson has one."""

    def __init__(self, session: Session, name: str, measure: Callable[..., Result], placed: Placed | None) -> None:
        self.session, self.name, self.measure, self.placed = session, name, measure, placed
        self.result = measure(bet=None)
        self.open = False
        self.box = widgets.VBox()

    def show(self) -> None:
        """Put the result on the page, and stop the notebook with one line if a claim does not hold."""
        static, failed = self.result.html(), self.result.failed()
        behind_a_bet = self.placed and not failed
        if behind_a_bet:
            static = details("The result: make your bet, then open it", static)
        if in_notebook() and behind_a_bet:
            self.update()
        present(self.result.plain(), static, widget=self.box if in_notebook() and behind_a_bet else None)
        if in_notebook() and not self.placed:
            self.note_seen()
        if failed:
            raise ClaimError(f"✗ This result did not come out as the lesson says: {to_plain(failed[0])}.")

    def update(self) -> None:
        """Open the result once a bet is placed, or if it was seen before; until then say what is missing."""
        if self.open:
            return
        if self.placed.choice() is not None or self.placed.closed():
            self.open_up()
        elif not self.box.children:
            text = to_html("**Make your bet first**: the result opens as soon as you have placed it.")
            self.box.children = (
                widgets.HTMLMath(panel(text, colour=GREY, attributes='role="status"')),
                button("Show me anyway", self.open_up),
            )

    def open_up(self) -> None:
        """Draw the result with the learner's bet in it."""
        self.open = True
        choice = self.placed.choice()
        result = self.result if choice is None else self.measure(bet=choice)
        said = "" if choice is None else _capital(self.placed.bet.beside(choice, result.came)) + "."
        self.box.children = (widgets.HTMLMath(result.html(said)),)
        self.note_seen()

    def note_seen(self) -> None:
        """Record that the result was seen, and what came."""
        values: dict[str, Any] = {"seen": True}
        if self.placed and self.result.came is not None:
            values["came"] = int(self.result.came) if self.placed.bet.options else float(self.result.came)
        self.session.record("parts", self.name, **values)


def _badge(text: str, holds: bool) -> str:
    colour = GREEN if holds else RED
    return (
        f'<span style="border:1px solid {colour};border-radius:1em;padding:0.1em 0.8em">'
        f"{'✓' if holds else '✗'} {inline_html(text)}</span>"
    )


def _capital(sentence: str) -> str:
    return re.sub(r"[a-z]", lambda first: first[0].upper(), sentence, count=1)
