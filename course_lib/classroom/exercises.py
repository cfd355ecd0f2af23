"""Small exercises: a task, a check that answers at once, graded hints, and a solution that opens last."""

import html
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from course_lib.classroom import carried
from course_lib.classroom.markup import code_html, details, inline_html, to_html, to_plain
from course_lib.classroom.output import GREEN, GREY, RED, in_notebook, panel, present, say
from course_lib.classroom.session import Session
from course_lib.tasks import Comparison, Finding, Report, Row, Task
from course_lib.tasks.values import written

SHOWN = 6  # numbers of a row


class Exercise:
    """A task on the page, its help, and its check; the verdict is the output of the check's own cell."""

    kind = "exercises"

    def __init__(self, session: Session, name: str, task: Task) -> None:
        self.session, self.name, self.task = session, name, task
        self.next, self.close = (_button(action) for action in (self.open_next, self.close_last))
        self.opened = widgets.HTMLMath()
        self.help = [(f"Hint {number} of {len(task.hints)}", text) for number, text in enumerate(task.hints, start=1)]
        self.help.append(("The solution", ""))

    def show(self) -> None:
        """Put the task and its help on the page."""
        self.session.change(self.kind, self.name, lambda entry: entry.setdefault("met", True))
        title = f"Exercise: {self.task.title}, {self.task.minutes} minutes"
        if self.task.stretch:
            title += ", a stretch"
        present(f"{title}\n{to_plain(self.task.text)}", panel(to_html(f"**{title}**") + to_html(self.task.text)))
        plain = f"Help: {len(self.task.hints)} hints, then the solution."
        present(plain, self.html_help(), widget=self.widget() if in_notebook() else None)

    def check(self, function: Any) -> bool:
        """Say whether a learner's function is right, and if not what is wrong and how to go on; never a traceback."""
        report = self.look(function)
        if not report.written:
            say_unwritten()
        elif report.passed:
            self.session.record(self.kind, self.name, passed=True, written=carried.written(function))
            text = f"✓ **All right**: your `{getattr(function, '__name__', self.name)}` passes its check."
            say(text, GREEN)
        else:
            self.session.change(self.kind, self.name, _count_attempt)
            say_findings(report.findings)
        return report.passed

    def passes(self, function: Any) -> bool | None:
        """Whether a function passes, without a word; None if it is not written yet."""
        report = self.look(function)
        return report.passed if report.written else None

    def look(self, function: Any) -> Report:
        """What the task says of a function; a check that cannot be carried out is a finding, too."""
        try:
            return self.task.run(function)
        except Exception as error:  # the checks catch what a learner's code does; this is for a check that fails
            text = f"{type(error).__name__}: {error}"
            return Report(findings=[Finding(misconception="could not be checked", message=text)])

    # help -------------------------------------------------------------------------------------------------------

    def help_open(self) -> int:
        """How many of the hints, then the solution, are open."""
        entry = self.session.entry(self.kind, self.name)
        count = entry.get("open", entry.get("help", 0))
        return min(count, len(self.help)) if isinstance(count, int) else 0

    def open_next(self, _button: Any = None) -> None:
        """Open the next hint, or after the last hint the solution."""
        self._set_open(min(self.help_open() + 1, len(self.help)))

    def close_last(self, _button: Any = None) -> None:
        """Close what was opened last."""
        self._set_open(max(self.help_open() - 1, 0))

    def _set_open(self, count: int) -> None:
        def note(entry: dict[str, Any]) -> None:
            entry["open"], entry["help"] = count, max(count, entry.get("help", 0))

        self.session.change(self.kind, self.name, note)
        self._update()

    def widget(self) -> widgets.VBox:
        """The live form: what is open so far, a button for the next piece, and one to close the last."""
        self._update()
        return widgets.VBox([self.opened, widgets.HBox([self.next, self.close])])

    def html_help(self) -> str:
        """Hints and solution as blocks inside each other, so that they open in their order."""
        body = details("Show the solution", code_html(self.task.solution))
        for label, hint in reversed(self.help[:-1]):
            body = details(label, to_html(hint) + body)
        return panel(body, colour=GREY)

    def _update(self) -> None:
        count = self.help_open()
        shown = "".join(to_html(f"**{label}.** {hint}") for label, hint in self.help[:count])
        shown += code_html(self.task.solution) if count == len(self.help) else ""
        self.opened.value = panel(shown, attributes='role="status"') if shown else ""
        labels = ["", *(_small(label) for label, _ in self.help), ""]
        self.next.description = f"Open {labels[count + 1]}"
        self.close.description = f"Close {labels[count]}"
        self.next.layout.display = "none" if count == len(self.help) else ""
        self.close.layout.display = "none" if count == 0 else ""


def say_findings(findings: Sequence[Finding]) -> None:
    """Tell a learner what the checks saw, with a hint for each."""
    plain, body = ["✗ Not yet. This is what the check saw:"], ""
    for finding in findings:
        rows = finding.rows if isinstance(finding, Comparison) else ()
        plain.append(f"  - {to_plain(finding.misconception)}: {to_plain(finding.message)}")
        plain += [f"      {line}" for line in _plain_rows(rows)]
        plain += [f"    Hint: {to_plain(finding.hint)}"] if finding.hint else []
        advice = f"<br><em>Hint:</em> {inline_html(finding.hint)}" if finding.hint else ""
        said = f"<strong>{inline_html(finding.misconception)}</strong>: {inline_html(finding.message)}"
        body += f"<li>{said}{_html_rows(rows)}{advice}</li>"
    verdict = to_html("✗ **Not yet.** This is what the check saw:")
    present("\n".join(plain), panel(f"{verdict}<ul>{body}</ul>", colour=RED))


def say_unwritten() -> None:
    """Tell a learner that there is nothing to check yet."""
    text = "○ Not written yet: write it, then run this check again."
    present(text, panel(to_html(text), colour=GREY))


def _plain_rows(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        place = f"row {', '.join(map(str, row.place))}: " if row.place else ""
        for label, numbers in (("yours", row.yours), ("wanted", row.wanted)):
            lines.append(f"{place}{label} " + " ".join(_marked(numbers, row.first, "[{}]")))
    return lines


def _html_rows(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    body = ""
    for row in rows:
        cells = []
        for numbers in (row.yours, row.wanted):
            text = " ".join(_marked([*numbers], row.first, "<mark>{}</mark>"))
            cells.append(f'<td style="text-align:left;white-space:nowrap;font-family:monospace">{text}</td>')
        place = html.escape(", ".join(map(str, row.place)))
        body += f'<tr><th scope="row">{place}</th>{"".join(cells)}</tr>'
    head = "".join(f'<th scope="col" style="text-align:left">{word}</th>' for word in ("row", "yours", "wanted"))
    return f'<table style="margin:0.4em 0"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _marked(numbers: Sequence[float], first: int | None, mark: str) -> list[str]:
    """The numbers of a row around the first difference, with a mark on it."""
    start = max(0, min((first or 0) - SHOWN // 2, len(numbers) - SHOWN))
    shown = [written(number) for number in numbers[start : start + SHOWN]]
    if first is not None:
        shown[first - start] = mark.format(shown[first - start])
    return (["…"] if start else []) + shown + (["…"] if start + SHOWN < len(numbers) else [])


def _button(action: Callable[..., None]) -> widgets.Button:
    button = widgets.Button(layout=widgets.Layout(width="auto", align_self="flex-start"))
    button.on_click(action)
    return button


def _small(label: str) -> str:
    return label[0].lower() + label[1:]


def _count_attempt(entry: dict[str, Any]) -> None:
    entry["attempts"] = entry.get("attempts", 0) + 1
