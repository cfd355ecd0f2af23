"""Self-test questions: options to choose from, or a number to work out; every answer is explained."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.choices import Choices, button, html_options, plain_options
from course_lib.classroom.markup import code_html, details, inline_html, letter, plain_list, to_html, to_plain
from course_lib.classroom.output import GREEN, GREY, RED, in_notebook, panel, present
from course_lib.classroom.session import Session


@dataclass(frozen=True)
class Quiz:
    """A question with options, each explained: {text: why}; `answer` is the number of the right one, or several.

    `kind` is "choice", or "bug" where the learner is to find one in `code`.
    """

    question: str
    options: Mapping[str, str]
    answer: int | Sequence[int]
    kind: str = "choice"
    code: str = ""

    def __post_init__(self) -> None:
        if not self.right or not all(0 <= index < len(self.options) for index in self.right):
            raise ValueError(
                f"The answer of {self.question!r} must be an option's number from 0 to {len(self.options) - 1}, or a "
                f"list of them, but got {self.answer!r}."
            )

    @property
    def several(self) -> bool:
        """Whether more than one answer may be right."""
        return not isinstance(self.answer, int)

    @property
    def right(self) -> list[int]:
        """The numbers of the right options."""
        return sorted(set(self.answer)) if self.several else [self.answer]


@dataclass(frozen=True)
class Number:
    """A question whose answer is a number, right up to `tolerance`; `near` explains likely mistakes: {number: why}."""

    question: str
    answer: float
    tolerance: float = 0.0
    why: str = ""
    unit: str = ""
    near: Mapping[float, str] = field(default_factory=dict)

    def fits(self, number: float, wanted: float) -> bool:
        """Whether a learner's number means the wanted one."""
        return math.isclose(number, wanted, rel_tol=1e-9, abs_tol=self.tolerance)


class Question(ABC):
    """What both kinds of question share: a fold with the answer, a live form, and a record of the tries."""

    kind = "quizzes"

    def __init__(self, session: Session, name: str, quiz: Quiz | Number) -> None:
        self.session, self.name, self.quiz = session, name, quiz
        self.feedback = widgets.HTMLMath()
        self.close_button = button("Close", self.close)
        self.close_button.layout.display = "none"

    @abstractmethod
    def plain_question(self) -> str: ...

    @abstractmethod
    def plain_answer(self) -> str: ...

    @abstractmethod
    def html_question(self) -> str: ...

    @abstractmethod
    def html_answer(self) -> str: ...

    @abstractmethod
    def live_question(self) -> str: ...

    @abstractmethod
    def form(self) -> widgets.Widget: ...

    def show(self) -> None:
        """Put the question on the page."""
        self.session.change(self.kind, self.name, lambda entry: entry.setdefault("met", True))
        plain = f"Question. {self.plain_question()}\n{self.plain_answer()}"
        answer = panel(details("Show the answer", self.html_answer()), colour=GREY)
        present(plain, panel(self.html_question()) + answer, widget=self.widget() if in_notebook() else None)

    def widget(self) -> widgets.VBox:
        """Return the live form: the question, a way to answer, and room for what is said to it."""
        entry = self.session.entry(self.kind, self.name)
        before = ""
        if entry.get("right"):
            before = to_html("✓ You have answered this one right before.")
        elif entry.get("tries"):
            before = to_html("Not right yet when you last tried.")
        asked = widgets.HTMLMath(panel(self.live_question() + before))
        return widgets.VBox([asked, self.form(), self.feedback, self.close_button])

    def say(self, verdict: str, body: str = "", colour: str = RED) -> None:
        """Put the verdict, then its reasons, below the form, and have a screen reader speak it."""
        self.feedback.value = panel(to_html(verdict) + body, colour=colour, attributes='role="alert"')
        self.close_button.layout.display = ""

    def close(self) -> None:
        """Fold the explanation again, so that the question can be answered anew."""
        self.feedback.value = ""
        self.close_button.layout.display = "none"

    def count(self, *, right: bool) -> None:
        """Record a try."""

        def one_more(entry: dict[str, Any]) -> None:
            entry["tries"] = entry.get("tries", 0) + 1
            if right and not entry.get("right"):
                entry |= {"right": True, "first_try": entry["tries"] == 1}

        self.session.change(self.kind, self.name, one_more)


class ChoiceQuestion(Question):
    """A question with options: a wrong one is explained and may be tried again, the right one explains the others."""

    def __init__(self, session: Session, name: str, quiz: Quiz) -> None:
        super().__init__(session, name, quiz)
        self.options, self.why = list(quiz.options), list(quiz.options.values())
        self.choices = Choices(self.options, self._clicked, several=quiz.several)

    def plain_question(self) -> str:
        code = "\n" + self.quiz.code.strip("\n") if self.quiz.code else ""
        return f"{to_plain(self.quiz.question)}{code}\n{plain_options(self.options)}"

    def live_question(self) -> str:
        several = "\n\n*More than one answer may be right.*" if self.quiz.several else ""
        return to_html(f"**Question.** {self.quiz.question}{several}") + (
            code_html(self.quiz.code) if self.quiz.code else ""
        )

    def html_question(self) -> str:
        return self.live_question() + html_options(self.options)

    def plain_answer(self) -> str:
        rows = [f"  {letter(i)} {self._verdict(i)}: {to_plain(why)}" for i, why in enumerate(self.why)]
        return "\n".join([f"Answer: {_names(self.quiz.right)}", *rows])

    def html_answer(self) -> str:
        return self._explanations(range(len(self.why)))

    def form(self) -> widgets.Widget:
        if not self.quiz.several:
            return self.choices.box
        self.submit = button("Check my answer", lambda: self.answer(self._toggled()))
        return widgets.VBox([self.choices.box, self.submit])

    def answer(self, chosen: Sequence[int]) -> None:
        """Take an answer: mark the options, explain, and record it."""
        if not chosen:
            self.say("Choose at least one answer first.", colour=GREY)
            return
        right = sorted(chosen) == self.quiz.right
        others = [i for i in range(len(self.why)) if i not in chosen]
        if right:
            rest = details("Why not the others?", self._explanations(others)) if others else ""
            verb = "is" if len(chosen) == 1 else "are"
            self.say(f"✓ **{_names(chosen)} {verb} right.**", self._reasons(chosen) + rest, GREEN)
        elif self.quiz.several:
            missing = sum(i not in chosen for i in self.quiz.right)
            text = "✗ **Not yet.**" + (f" Still missing: {missing} of the right answers." if missing else "")
            self.say(text, self._explanations([i for i in chosen if i not in self.quiz.right]))
        else:
            self.say(f"✗ **{_names(chosen)} is not right.** Try again.", self._reasons(chosen))
        if not self.quiz.several:
            for index in range(len(self.why)):
                self.choices.mark(index, "" if index not in chosen else "✓" if right else "✗")
        self.count(right=right)

    def close(self) -> None:
        super().close()
        for index, own in enumerate(self.choices.buttons):
            if self.quiz.several:
                own.value = False
            self.choices.mark(index)

    def _clicked(self, index: int) -> None:
        if self.quiz.several:
            self.choices.mark(index, "●" if self.choices.buttons[index].value else "")
        else:
            self.answer([index])

    def _toggled(self) -> list[int]:
        return [index for index, button in enumerate(self.choices.buttons) if button.value]

    def _verdict(self, index: int) -> str:
        return "✓ (right)" if index in self.quiz.right else "✗ (wrong)"

    def _reasons(self, indices: Sequence[int]) -> str:
        return "".join(to_html(self.why[i]) for i in indices)

    def _explanations(self, indices: Sequence[int]) -> str:
        return plain_list(
            f"<strong>{letter(i)} {self._verdict(i)}</strong>: {inline_html(self.why[i])}" for i in indices
        )


class NumberQuestion(Question):
    """A question with a field for a number: near misses are explained, others may be tried again."""

    def __init__(self, session: Session, name: str, quiz: Number) -> None:
        super().__init__(session, name, quiz)
        self.field = widgets.Text(
            description="Your answer", placeholder="a number", continuous_update=False, layout={"width": "16em"}
        )
        self.field.observe(lambda change: self.answer(change["new"]), "value")  # Enter, or leaving the field

    def plain_question(self) -> str:
        return to_plain(self.quiz.question) + (f" (in {self.quiz.unit})" if self.quiz.unit else "")

    def live_question(self) -> str:
        return to_html(f"**Question.** {self.quiz.question}")

    html_question = live_question

    def plain_answer(self) -> str:
        near = [f"  {number:g} ✗ (wrong): {to_plain(why)}" for number, why in self.quiz.near.items()]
        return "\n".join([f"Answer: {to_plain(self._right())}", *near])

    def html_answer(self) -> str:
        near = (f"<strong>{number:g} ✗ (wrong)</strong>: {inline_html(why)}" for number, why in self.quiz.near.items())
        return to_html(self._right()) + (plain_list(near) if self.quiz.near else "")

    def form(self) -> widgets.HBox:
        self.submit = button("Check", lambda: None if self.feedback.value else self.answer(self.field.value))
        return widgets.HBox([self.field, widgets.Label(self.quiz.unit), self.submit])

    def answer(self, text: str) -> None:
        """Take what was typed: explain it, and record it if it is a number."""
        readings = numbers_in(text)
        if not readings:
            if text.strip():
                self.say(f"I cannot read `{text}` as a number. Try for example 8, 0.5 or 1/8.", colour=GREY)
            return
        if any(self.quiz.fits(number, self.quiz.answer) for number in readings):
            self.say(f"✓ **{text} is right.**", to_html(self.quiz.why) if self.quiz.why else "", GREEN)
            self.count(right=True)
            return
        near = [why for wanted, why in self.quiz.near.items() if any(self.quiz.fits(n, wanted) for n in readings)]
        self.say(f"✗ **{text} is not right.** Try again.", "".join(map(to_html, near[:1])))
        self.count(right=False)

    def close(self) -> None:
        self.field.value = ""
        super().close()

    def _right(self) -> str:
        unit = f" {self.quiz.unit}" if self.quiz.unit else ""
        return f"**{self.quiz.answer:g}{unit}**" + (f". {self.quiz.why}" if self.quiz.why else "")


def question(session: Session, name: str, quiz: Quiz | Number) -> Question:
    """Return the form that belongs to a question."""
    return (NumberQuestion if isinstance(quiz, Number) else ChoiceQuestion)(session, name, quiz)


_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")


def numbers_in(text: str) -> list[float]:
    """Return what a text can mean as a number: one for "0,5", "1/8" or "8.6e9", two for "8,192", none for "many"."""
    parts = re.sub(r"[\s_]", "", text.replace("−", "-")).split("/")
    if len(parts) > 2:
        return []
    meanings = product(*map(_readings, parts))
    return [top / below[0] if below else top for top, *below in meanings if below != [0.0]]


def _readings(part: str) -> list[float]:
    point = [float(part.replace(",", "."))] if _NUMBER.fullmatch(part) else []
    return point + ([float(part.replace(",", ""))] if _THOUSANDS.fullmatch(part) else [])


def _names(indices: Sequence[int]) -> str:
    return " and ".join(letter(i) for i in indices)
