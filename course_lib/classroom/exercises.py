"""Small exercises: a task, checks that answer at once, three graded hints, and a solution that opens last."""

import functools
import html
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from course_lib import tasks
from course_lib.classroom.markup import code_html, details, inline_html, to_html, to_plain
from course_lib.classroom.output import GREEN, GREY, RED, in_notebook, panel, present
from course_lib.classroom.session import Session, current_session


class Exercise:
    """A task with its checks and the help that opens step by step."""

    kind = "exercises"

    def __init__(
        self,
        session: Session,
        name: str,
        title: str,
        *,
        task: str = "",
        checks: Sequence[Any],
        hints: Sequence[str],
        solution: str | Callable[..., Any],
    ) -> None:
        if not checks or not hints:
            raise ValueError(
                f"Exercise {name!r} needs at least one check and one hint, but got {len(checks)} and {len(hints)}."
            )
        self.session, self.name, self.title, self.task = session, name, title, task
        self.checks, self.hints = list(checks), list(hints)
        self.solution = solution if isinstance(solution, str) else inspect.getsource(solution)
        self.solution = textwrap.dedent(self.solution).strip()
        self.button = widgets.Button(layout=widgets.Layout(width="auto", align_self="flex-start"))
        self.button.on_click(self.open_next)
        self.opened = widgets.HTMLMath()

    def help_opened(self) -> int:
        """Return how many of the hints, then the solution, the learner has opened."""
        count = self.session.entry(self.kind, self.name).get("help", 0)
        return min(count, len(self.hints) + 1) if isinstance(count, int) else 0

    def open_next(self, _button: Any = None) -> None:
        """Open the next hint, or after the last hint the solution."""
        last = len(self.hints) + 1

        def one_more(entry: dict[str, Any]) -> None:
            entry["help"] = min(entry.get("help", 0) + 1, last)

        self.session.store.change(self.session.lesson, self.kind, self.name, one_more)
        self._update()

    def widget(self) -> widgets.VBox:
        """Return the live form: the help opened so far, and one button for the next."""
        self._update()
        return widgets.VBox([self.opened, self.button])

    def plain_task(self) -> str:
        """Return title and task as plain text."""
        return f"Exercise: {to_plain(self.title)}" + (f"\n{to_plain(self.task)}" if self.task else "")

    def html_task(self) -> str:
        """Return title and task as HTML."""
        return panel(to_html(f"**Exercise: {self.title}**") + (to_html(self.task) if self.task else ""))

    def html_help(self) -> str:
        """Return hints and solution as blocks inside each other, so that they open in their order."""
        body = details("Show the solution", code_html(self.solution))
        for number in range(len(self.hints), 0, -1):
            body = details(self._hint_label(number), to_html(self.hints[number - 1]) + body)
        return panel(body, colour=GREY)

    def plain_help(self, count: int) -> str:
        """Return the first `count` pieces of help as plain text."""
        lines = [f"{self._hint_label(i + 1)}: {to_plain(hint)}" for i, hint in enumerate(self.hints[:count])]
        if count > len(self.hints):
            lines.append("Solution:\n" + textwrap.indent(self.solution, "    "))
        return "\n".join(lines)

    def opened_help(self, count: int) -> str:
        """Return the first `count` pieces of help as HTML."""
        shown = [f"**{self._hint_label(i + 1)}.** {hint}" for i, hint in enumerate(self.hints[:count])]
        body = "".join(map(to_html, shown))
        if count > len(self.hints):
            body += to_html("**The solution**") + code_html(self.solution)
        return panel(body, attributes='role="status"') if body else ""

    def _hint_label(self, number: int) -> str:
        return f"Hint {number} of {len(self.hints)}"

    def _update(self) -> None:
        count = self.help_opened()
        self.opened.value = self.opened_help(count)
        if count < len(self.hints):
            self.button.description = f"Open {self._hint_label(count + 1).lower()}"
        elif count == len(self.hints):
            self.button.description = "Show the solution"
        else:
            self.button.description = "All help is open"
        self.button.disabled = count > len(self.hints)


def exercise(
    name: str,
    title: str | None = None,
    *,
    task: str = "",
    checks: Sequence[Any] = (),
    hints: Sequence[str] = (),
    solution: str | Callable[..., Any] = "",
) -> None:
    """Set an exercise; with its name alone, the one of that name in the lesson's content.

    `checks` come from `course_lib.tasks`, the hints go from gentle to strong, `solution` is code or a function
    whose source is shown. Raises ValueError if there is no check or no hint, the name is unknown or no lesson is open.
    """
    session = current_session()
    parts = {"title": title, "task": task, "checks": checks, "hints": hints, "solution": solution}
    item = Exercise(session, name, **(session.written("exercises", name) if title is None else parts))
    session.register(item.kind, name, item)
    present(item.plain_task(), item.html_task())
    plain = f"Help: {len(item.hints)} hints, one after another with hint({name!r}); then solution({name!r})."
    present(plain, item.html_help(), widget=item.widget() if in_notebook() else None)


class _Watched:
    """A learner's function that remembers whether any call gave a result or a real error."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.called = self.written = False

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.called = True
            try:
                result = function(*args, **kwargs)
            except NotImplementedError:
                raise
            except Exception:
                self.written = True
                raise
            self.written = self.written or (result is not None and result is not Ellipsis)
            return result

        self.call = call


def check(name: str, function: Any) -> None:
    """Check a learner's solution: says what failed, what it probably comes from and how to go on; never a traceback.

    Raises ValueError if `exercise` has not set an exercise of this name.
    """
    session = current_session()
    item: Exercise = session.find("exercises", name, "exercise")
    if function is None or function is Ellipsis:
        _say_unwritten()
        return
    watched = _Watched(function) if inspect.isfunction(function) else None
    try:
        report = tasks.run_checks(watched.call if watched else function, item.checks)
    except Exception as error:  # the checks catch what a learner's code does; this is for a check that fails
        text = f"Your code could not be checked: {type(error).__name__}: {error}"
        present(f"✗ {text}", panel(f"<p>✗ {html.escape(text)}</p>", colour=RED))
        return
    if watched and watched.called and not watched.written:
        _say_unwritten()
    elif report.passed:
        session.record(item.kind, name, passed=True)
        count = f"{len(item.checks)} checks" if len(item.checks) > 1 else "its check"
        text = f"✓ All right: your code passes {count}."
        present(text, panel(to_html(f"✓ **All right**: your code passes {count}."), colour=GREEN))
    else:
        session.store.change(session.lesson, item.kind, name, _count_attempt)
        say_findings(report.findings)
    session.say_notices()


def say_findings(findings: Sequence[tasks.Finding]) -> None:
    """Tell the learner what the checks saw, with a hint for each."""
    plain, body = ["✗ Not yet. This is what the checks saw:"], ""
    for finding in findings:
        plain.append(f"  - {to_plain(finding.misconception)}: {to_plain(finding.message)}")
        plain += [f"    Hint: {to_plain(finding.hint)}"] if finding.hint else []
        advice = f"<br><em>Hint:</em> {inline_html(finding.hint)}" if finding.hint else ""
        body += (
            f"<li><strong>{inline_html(finding.misconception)}</strong>: {inline_html(finding.message)}{advice}</li>"
        )
    present(
        "\n".join(plain),
        panel(to_html("✗ **Not yet.** This is what the checks saw:") + f"<ul>{body}</ul>", colour=RED),
    )


def hint(name: str) -> None:
    """Open the next hint of an exercise as text and show those opened so far; raises ValueError if it is unknown."""
    item: Exercise = current_session().find("exercises", name, "exercise")
    if item.help_opened() < len(item.hints):
        item.open_next()
    count = min(item.help_opened(), len(item.hints))
    present(item.plain_help(count), item.opened_help(count))


def solution(name: str) -> None:
    """Show an exercise's solution, once all its hints are open; raises ValueError if it is unknown."""
    item: Exercise = current_session().find("exercises", name, "exercise")
    missing = len(item.hints) - item.help_opened()
    if missing > 0:
        verb = "hint is" if missing == 1 else "hints are"
        text = f"The solution opens after the hints: {missing} {verb} still closed. hint({name!r}) opens the next."
        present(text, panel(to_html(text), colour=GREY))
        return
    if item.help_opened() == len(item.hints):
        item.open_next()
    present(item.plain_help(item.help_opened()), item.opened_help(item.help_opened()))


def _count_attempt(entry: dict[str, Any]) -> None:
    entry["attempts"] = entry.get("attempts", 0) + 1


def _say_unwritten() -> None:
    text = "Not written yet: fill in the function above, run its cell, then run this one again."
    present(f"○ {text}", panel(to_html(f"○ {text}"), colour=GREY))
