"""Questions with explained answers, and predictions that a learner makes before a result."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.markup import details, inline_html, letter, plain_list, to_html, to_plain
from course_lib.classroom.output import BLUE, GREEN, GREY, RED, in_notebook, panel, present
from course_lib.classroom.session import Session, current_session


class Question:
    """What a quiz and a prediction share: a text, options named A, B, C, ... and one button for each."""

    kind: str
    heading: str

    def __init__(self, session: Session, name: str, question: str, options: Sequence[str]) -> None:
        if not 2 <= len(options) <= 26:
            raise ValueError(f"{name!r} needs 2 to 26 options to choose from, but got {len(options)}.")
        self.session, self.name, self.question, self.options = session, name, question, list(options)
        self.buttons: list[Any] = []
        self.feedback = widgets.HTMLMath()

    def plain_question(self) -> str:
        """Return the question and its options as plain text."""
        lines = [f"  {letter(i)}. {to_plain(option)}" for i, option in enumerate(self.options)]
        return "\n".join([f"{self.heading}. {to_plain(self.question)}", *lines])

    def html_question(self) -> str:
        """Return the question and its options as HTML."""
        named = [f"<strong>{letter(i)}.</strong> {inline_html(option)}" for i, option in enumerate(self.options)]
        return panel(to_html(f"**{self.heading}.** {self.question}") + plain_list(named))

    def button_row(self, make: Callable[..., Any]) -> widgets.HBox:
        """Return the buttons, made by `make`, behind a label."""
        self.buttons = [
            make(
                description=letter(i),
                tooltip=f"{letter(i)}: {to_plain(option)}",
                layout=widgets.Layout(width="4.5em"),
            )
            for i, option in enumerate(self.options)
        ]
        return widgets.HBox([widgets.Label(value="Your answer:"), *self.buttons])

    def say(self, body: str, colour: str) -> None:
        """Put an answer below the buttons, and have a screen reader speak it."""
        self.feedback.value = panel(body, colour=colour, attributes='role="alert"')

    def names(self, indices: Sequence[int]) -> str:
        """Return the letters of some options: 'B', 'A and C'."""
        return " and ".join(letter(i) for i in indices)


class Quiz(Question):
    """A self-test question; an answer is explained at once, and a wrong one may be tried again."""

    kind, heading = "quizzes", "Question"

    def __init__(
        self,
        session: Session,
        name: str,
        question: str,
        *,
        options: Sequence[str],
        answer: int | Sequence[int],
        why: Sequence[str],
    ) -> None:
        super().__init__(session, name, question, options)
        self.several = not isinstance(answer, int)
        self.answer = sorted(set(answer)) if self.several else [answer]
        self.why = list(why)
        if len(self.why) != len(self.options):
            raise ValueError(
                f"{name!r} has {len(self.options)} options and {len(self.why)} explanations: give one for each."
            )
        if not self.answer or not all(0 <= index < len(self.options) for index in self.answer):
            raise ValueError(
                f"The answer of {name!r} must be an option's number from 0 to {len(self.options) - 1}, or a list "
                f"of them, but got {answer!r}."
            )
        if self.several:
            self.question += "\n\n*More than one answer may be right.*"

    def plain_answer(self) -> str:
        """Return the answer and the explanations as plain text."""
        return "\n".join(
            [f"Answer: {self.names(self.answer)}"]
            + [f"  {letter(i)} {self._verdict(i)}: {to_plain(why)}" for i, why in enumerate(self.why)]
        )

    def html_answer(self) -> str:
        """Return the answer as a block that the reader opens."""
        return panel(details("Show the answer", self._explanations(range(len(self.options)))), colour=GREY)

    def widget(self) -> widgets.VBox:
        """Return the live form: buttons, and room for what is said to the answer."""
        if self.several:
            row = self.button_row(widgets.ToggleButton)
            submit = widgets.Button(description="Check my answer", layout=widgets.Layout(width="auto"))
            submit.on_click(lambda _: self.choose([i for i, button in enumerate(self.buttons) if button.value]))
            row.children = (*row.children, submit)
        else:
            row = self.button_row(widgets.Button)
            for index, button in enumerate(self.buttons):
                button.on_click(partial(self._on_click, index))
        entry = self.session.entry(self.kind, self.name)
        if entry.get("right"):
            self.feedback.value = panel(to_html("✓ You have answered this one right before."), colour=GREEN)
        elif entry.get("tries"):
            self.feedback.value = panel(to_html("✗ Not right yet when you last tried."), colour=RED)
        return widgets.VBox([row, self.feedback])

    def choose(self, chosen: Sequence[int]) -> None:
        """Take an answer: mark the buttons, explain, and record it."""
        if not chosen:
            self.say(to_html("Choose at least one answer first."), GREY)
            return
        right = sorted(chosen) == self.answer
        for index, button in enumerate(self.buttons):
            sign = "" if index not in chosen else f" {'✓' if self.several and right else ''}"
            if index in chosen and not self.several:
                sign = " ✓" if right else " ✗"
            button.description = (letter(index) + sign).strip()
        if right:
            rest = [i for i in range(len(self.options)) if i not in chosen]
            others = details("Why not the others?", self._explanations(rest)) if rest else ""
            self.say(to_html(f"✓ **{self.names(chosen)} is right.**") + self._why(chosen) + others, GREEN)
        elif self.several:
            extra = [i for i in chosen if i not in self.answer]
            missing = sum(i not in chosen for i in self.answer)
            text = "✗ **Not yet.**" + (f" Still missing: {missing} of the right answers." if missing else "")
            self.say(to_html(text) + self._explanations(extra), RED)
        else:
            self.say(to_html(f"✗ **{self.names(chosen)} is not right.**") + self._why(chosen), RED)
        self.session.store.change(self.session.lesson, self.kind, self.name, partial(_count_try, right=right))

    def _on_click(self, index: int, _button: Any) -> None:
        self.choose([index])

    def _verdict(self, index: int) -> str:
        return "✓ (right)" if index in self.answer else "✗ (wrong)"

    def _why(self, indices: Sequence[int]) -> str:
        return "".join(to_html(self.why[i]) for i in indices)

    def _explanations(self, indices: Sequence[int]) -> str:
        items = (f"<strong>{letter(i)} {self._verdict(i)}</strong>: {inline_html(self.why[i])}" for i in indices)
        return plain_list(items)


def _count_try(entry: dict[str, Any], *, right: bool) -> None:
    entry["tries"] = entry.get("tries", 0) + 1
    if right and not entry.get("right"):
        entry |= {"right": True, "first_try": entry["tries"] == 1}


class Prediction(Question):
    """A guess before the result; `reveal` sets it beside what was measured."""

    kind, heading = "predictions", "Predict before you run"

    def __init__(self, session: Session, name: str, question: str, *, options: Sequence[str]) -> None:
        super().__init__(session, name, question, options)
        self.revealed: Callable[[], None] = lambda: None

    def widget(self) -> widgets.VBox:
        """Return the live form: one button for each option."""
        row = self.button_row(widgets.Button)
        for index, button in enumerate(self.buttons):
            button.on_click(partial(self.choose, index))
        if self.choice() is not None:
            self._confirm()
        return widgets.VBox([row, self.feedback])

    def choice(self) -> int | None:
        """Return the option that the learner has chosen, if any."""
        choice = self.session.entry(self.kind, self.name).get("choice")
        return choice if isinstance(choice, int) and 0 <= choice < len(self.options) else None

    def choose(self, index: int, _button: Any = None) -> None:
        """Record a prediction; it may be changed."""
        self.session.record(self.kind, self.name, choice=index)
        self._confirm()
        self.revealed()

    def _confirm(self) -> None:
        choice = self.choice()
        for index, button in enumerate(self.buttons):
            button.description = letter(index) + (" ✓" if index == choice else "")
        self.say(to_html(f"You predict **{letter(choice)}**. Run on and see."), BLUE)

    def comparison(self, text: str, answer: int | None) -> str:
        """Return what happened, beside what the learner had predicted, as HTML."""
        choice = self.choice()
        if choice is None:
            return panel(to_html(text), colour=GREY)
        said = f"You predicted **{letter(choice)}**: {self.options[choice]}"
        if answer is None:
            return panel(to_html(said) + to_html(text), colour=BLUE)
        came_true = choice == answer
        verdict = (
            "✓ and that came true." if came_true else f"✗ but **{letter(answer)}** came true: {self.options[answer]}"
        )
        return panel(to_html(f"{said}\n\n{verdict}") + to_html(text), colour=GREEN if came_true else RED)


def quiz(
    name: str,
    question: str | None = None,
    *,
    options: Sequence[str] = (),
    answer: int | Sequence[int] = 0,
    why: Sequence[str] = (),
) -> None:
    """Ask a self-test question; with its name alone, the one of that name in the lesson's content.

    `answer` is the number of the right option, or a list of several; `why` explains each option.
    Raises ValueError if the parts do not fit together, the name is unknown or no lesson is open.
    """
    session = current_session()
    parts = {"question": question, "options": options, "answer": answer, "why": why}
    item = Quiz(session, name, **(session.written("quizzes", name) if question is None else parts))
    session.register(item.kind, name, item)
    present(item.plain_question(), item.html_question())
    present(item.plain_answer(), item.html_answer(), widget=item.widget() if in_notebook() else None)


def predict(name: str, question: str | None = None, *, options: Sequence[str] = ()) -> None:
    """Ask for a guess before the result is on the page; `reveal` with the same name comes after it.

    With its name alone, the prediction of that name in the lesson's content.
    Raises ValueError if there are fewer than two options, the name is unknown or no lesson is open.
    """
    session = current_session()
    parts = {"question": question, "options": options}
    item = Prediction(session, name, **(session.written("predictions", name) if question is None else parts))
    session.register(item.kind, name, item)
    present(item.plain_question(), item.html_question())
    plain = "Choose one before you read on."
    present(plain, panel(to_html(plain), colour=GREY), widget=item.widget() if in_notebook() else None)


def reveal(name: str, text: str | None = None, *, answer: int | None = None) -> None:
    """Say what happened, beside the learner's own prediction; `answer` is the number of the option that came true.

    With its name alone, text and answer come from the OUTCOMES of the lesson's content. The stored text never holds
    the prediction. Raises ValueError if there is no such prediction, outcome or option.
    """
    session = current_session()
    item: Prediction = session.find("predictions", name, "predict")
    if text is None:
        written = session.written("outcomes", name)
        text, answer = written["text"], written.get("answer") if answer is None else answer
    if answer is not None and not 0 <= answer < len(item.options):
        raise ValueError(f"{name!r} has options 0 to {len(item.options) - 1}, but answer={answer}.")
    outcome = "" if answer is None else f"**{letter(answer)}** came true: {item.options[answer]}\n\n"
    live = None
    if in_notebook():
        live = widgets.HTMLMath()

        def update() -> None:
            live.value = item.comparison(text if item.choice() is not None else outcome + text, answer)

        item.revealed = update
        update()
    present(to_plain(outcome + text), panel(to_html(outcome + text)), widget=live)
