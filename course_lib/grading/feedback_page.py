"""A student's feedback page: what it says, and its HTML, which needs nothing but itself.

All text that is not ours is escaped, and the page's own policy forbids scripts, so that nothing a student wrote can
act in a reader's browser.
"""

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files as package_files

from course_lib.classroom.markup import inline_html
from course_lib.grading.judge import NOT_JUDGED, NOT_YET
from course_lib.grading.wording import counted, one_line, points, visible
from course_lib.tasks import Finding

LONGEST_ANSWER = 40_000  # characters of an answer that a page shows
LONGEST_LINE = 1_000  # characters of a line that a page shows
FIRST_STEPS = 4  # tasks named under "What to do next"


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One check: what was expected, and what was found instead."""

    name: str
    points: float
    possible: float
    passed: bool
    findings: tuple[Finding, ...] = ()

    @property
    def judged(self) -> bool:
        """Whether the judge could carry it out; what it found wrong it always says."""
        reasons = {finding.misconception for finding in self.findings}
        return self.passed or bool(reasons - {NOT_JUDGED})


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """One task that was judged by its checks; `points` counts, whether it comes from them or is `by_hand`."""

    title: str
    points: float
    possible: float
    checks: tuple[CheckResult, ...]
    by_hand: bool = False
    answered: bool = True
    answer: str = ""
    comment: str = ""
    readable: bool = True  # False: nothing could be taken from the file

    @property
    def unjudged(self) -> int:
        """How many checks of an answer the judge could not carry out."""
        return sum(not check.judged for check in self.checks) if self.answered and self.readable else 0

    @property
    def open_checks(self) -> int:
        """How many of them wait for a person, who has given no points for the task yet."""
        return 0 if self.by_hand else self.unjudged


@dataclass(frozen=True, kw_only=True)
class WrittenResult:
    """One answer in words; `points` is None until somebody has read it."""

    title: str
    points: float | None
    possible: float
    answer: str = ""
    comment: str = ""
    readable: bool = True


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """All that a student's page says."""

    assignment: str  # "05"
    title: str  # "Attention"
    student: str
    parts: tuple[TaskResult | WrittenResult, ...]
    penalty: float = 0.0  # points
    submitted: datetime | None = None
    seconds_late: float = 0.0
    submission: str = ""  # SHA-256 of the notebook that was judged
    notes: tuple[str, ...] = ()
    needs_attention: bool = False
    trusted: bool = False

    @property
    def points(self) -> float:
        """What counts: all points less the penalty, and never below 0."""
        return max(0.0, sum(part.points or 0.0 for part in self.parts) - self.penalty)

    @property
    def possible(self) -> float:
        return sum(part.possible for part in self.parts)

    @property
    def readable(self) -> bool:
        """Whether there was a notebook to take anything from."""
        return all(part.readable for part in self.parts)

    @property
    def answered(self) -> bool:
        """Whether any cell holds an answer."""
        return any(
            part.answered if isinstance(part, TaskResult) else part.points is None or part.answer.strip()
            for part in self.parts
        )

    @property
    def open_checks(self) -> int:
        """How many checks the judge could not carry out, in tasks that nobody has given points for yet."""
        return sum(part.open_checks for part in self.tasks)

    @property
    def unjudged(self) -> int:
        """How many checks the judge could not carry out, whoever has given points since."""
        return sum(part.unjudged for part in self.tasks)

    @property
    def tasks(self) -> list[TaskResult]:
        """What was judged by checks."""
        return [part for part in self.parts if isinstance(part, TaskResult)]

    @property
    def unread(self) -> list[WrittenResult]:
        """The written answers that nobody has graded yet."""
        return [part for part in self.parts if isinstance(part, WrittenResult) and part.points is None]


def page(sheet: Sheet) -> str:
    """The whole page as HTML."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    heading = f"{_line(sheet.assignment)} {_line(sheet.title)}"
    body = "\n".join(
        [
            _header(sheet, heading),
            *_notices(sheet),
            _table(sheet),
            _next_steps(sheet),
            *(_part(number, part) for number, part in enumerate(sheet.parts, 1)),
        ]
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>Feedback on {heading} for {_line(sheet.student)}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{_footer(sheet)}
</body>
</html>
"""


@cache
def _style() -> str:
    """The style sheet together with nothing else: the page's policy allows exactly this text."""
    return (package_files("course_lib.grading") / "feedback.css").read_text(encoding="utf-8")


def _line(text: str) -> str:
    return html.escape(one_line(text))


def _markup(text: str) -> str:
    """A sentence of the checks, whose `code` and **strong** words become HTML."""
    return inline_html(visible(text))


def _header(sheet: Sheet, heading: str) -> str:
    when = "" if sheet.submitted is None else f" on {sheet.submitted.day} {sheet.submitted:%B %Y at %H:%M} UTC"
    late = f", {_duration(sheet.seconds_late)} after the deadline" if sheet.seconds_late > 0 else ""
    share = sheet.points / sheet.possible if sheet.possible else 0.0
    so_far = " so far" if sheet.unread or sheet.open_checks else ""
    lines = [
        f'<p class="for">Feedback for <bdi>{_line(sheet.student)}</bdi></p>',
        f"<h1>{heading}</h1>",
        f'<p class="facts">Handed in{when}{late}.</p>' if when or late else "",
        '<div class="score">',
        f'<p class="total">{points(sheet.points)} of {points(sheet.possible)} points{so_far}</p>',
        '<svg class="bar" viewBox="0 0 100 2" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="whole" width="100" height="2"/>'
        f'<rect class="earned" width="{min(100.0, 100 * share):.1f}" height="2"/></svg>',
        f"<p>{_verdict_in_words(sheet)}</p>",
        "</div>",
    ]
    return "\n".join(line for line in lines if line)


def _verdict_in_words(sheet: Sheet) -> str:
    checks = [check for part in sheet.tasks for check in part.checks if check.judged or not part.by_hand]
    passed = sum(check.passed for check in checks)
    if not sheet.readable:
        words = ["No answer could be taken from your file."]
    elif not sheet.answered:
        words = ["There is no answer in the notebook that you handed in."]
    elif not checks:
        words = ["Graded by hand."]
    elif passed == len(checks):
        words = ["All checks passed: well done."]
    elif sheet.open_checks == len(checks):
        words = ["Your submission has not been judged yet."]
    else:
        words = [f"{passed} of {counted(len(checks), 'check')} passed{_waits(sheet.open_checks, ', and')}."]
    if sheet.unread:
        possible = points(sum(part.possible for part in sheet.unread))
        noun = "answer is" if len(sheet.unread) == 1 else "answers are"
        words.append(f"Your written {noun} not graded yet and can add up to {possible} points.")
    if sheet.penalty > 0:
        words.append(f"{points(sheet.penalty)} points were taken off because it came late.")
    return " ".join(words)


def _duration(seconds: float) -> str:
    """Days and hours, hours and minutes, or minutes; started minutes count."""
    minutes = -(-int(seconds) // 60) or 1
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    units = [(days, "day"), (hours, "hour")] if days else [(hours, "hour"), (rest, "minute")]
    return " and ".join(counted(number, noun) for number, noun in units if number)


def _notices(sheet: Sheet) -> Iterable[str]:
    if not sheet.readable:
        wrong = " ".join(_markup(one_line(note, 500)) for note in sheet.notes)
        yield (
            f'<div class="note"><p><strong>Nothing in your file could be judged.</strong> {wrong}</p><p>The points '
            "below stay as they are until you have submitted another file, and your instructor has graded again.</p>"
            "</div>"
        )
    elif not sheet.answered:
        yield _note(
            "No answers",
            "All cells for answers are as they were handed out, empty or missing. Did you write any? Then save the "
            f"notebook in JupyterLab, and hand it in again: course assign submit {one_line(sheet.assignment)}",
        )
    elif sheet.open_checks:
        yield _note(
            "Needs attention",
            "The program could not judge everything in this submission. Your instructor looks at what is left, and "
            "the points may still rise; it is nothing that you have to repair.",
        )
    elif sheet.needs_attention and not sheet.unjudged:
        yield _note(
            "Needs attention",
            "Something went wrong when this submission was judged. Your instructor looks at it, and the points below "
            "may still change.",
        )
    if sheet.notes and sheet.readable:
        items = "".join(f"<li>{_markup(one_line(note, 500))}</li>" for note in sheet.notes)
        yield f'<div class="note"><p><strong>About your file</strong></p><ul>{items}</ul></div>'
    if sheet.trusted:
        yield _note(
            "Trusted students",
            "This submission was judged without a sandbox (trusted students): your code ran without walls on your "
            "instructor’s machine. That changes nothing about your points.",
        )


def _note(title: str, text: str) -> str:
    return f'<div class="note"><p><strong>{html.escape(title)}.</strong> {html.escape(text)}</p></div>'


def _table(sheet: Sheet) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="#task-{number}">{_line(part.title)}</a></th>'
        f"<td>{_state(part)}</td>"
        f'<td class="points">{_score(part)}</td></tr>'
        for number, part in enumerate(sheet.parts, 1)
    )
    if sheet.penalty > 0:
        rows += f'<tr><th scope="row">Late</th><td></td><td class="points">−{points(sheet.penalty)}</td></tr>'
    return (
        "<table><caption>Your points</caption>"
        '<thead><tr><th scope="col">Task</th><th scope="col">Result</th>'
        '<th scope="col" class="points">Points</th></tr></thead>'
        f"<tbody>{rows}</tbody>"
        '<tfoot><tr><th scope="row">Total</th><td></td>'
        f'<td class="points">{points(sheet.points)} of {points(sheet.possible)}</td></tr></tfoot></table>'
    )


def _state(part: TaskResult | WrittenResult) -> str:
    if not part.readable:
        return "graded by hand" if part.points else "not judged"
    if isinstance(part, WrittenResult):
        if part.points is None:
            return "not graded yet"
        return "graded by hand" if part.answer.strip() else "no answer"
    if part.by_hand:
        return "graded by hand"
    if not part.answered:
        return "no answer"
    if part.open_checks == len(part.checks):
        return "waits for your instructor"
    passed = sum(check.passed for check in part.checks)
    return f"{passed} of {len(part.checks)} passed{_waits(part.open_checks, ',')}"


def _waits(number: int, before: str) -> str:
    return f"{before} {number} {'waits' if number == 1 else 'wait'} for your instructor" if number else ""


def _score(part: TaskResult | WrittenResult) -> str:
    return f"{'–' if part.points is None else points(part.points)} of {points(part.possible)}"


def _next_steps(sheet: Sheet) -> str:
    """Where to start: the first thing that each unfinished task asks for."""
    steps = [(number, part.title, step) for number, part in enumerate(sheet.parts, 1) if (step := _first_step(part))]
    if not steps:
        return ""
    items = "".join(
        f'<li><a href="#task-{number}">{_line(title)}</a>: {step}</li>' for number, title, step in steps[:FIRST_STEPS]
    )
    more = len(steps) - FIRST_STEPS
    rest = f"<p>{counted(more, 'further task')} can be improved, too: see below.</p>" if more > 0 else ""
    return (
        '<section class="next"><h2>What to do next</h2>'
        f"<p>Repair one thing at a time, and begin with the first.</p><ol>{items}</ol>{rest}"
        "<p>Work in your notebook and run the check below each task; then "
        f"<code>course assign validate {_line(sheet.assignment)}</code> runs them all in the grader's own "
        "surroundings.</p></section>"
    )


def _first_step(part: TaskResult | WrittenResult) -> str:
    """What to do first about a task; nothing if there is nothing to do."""
    if not part.readable or part.points == part.possible:
        return ""
    if isinstance(part, WrittenResult):
        return "you wrote no answer yet." if part.points is not None and not part.answer.strip() else ""
    if not part.answered:
        return "it has no answer yet. Even a first version can earn some of the points."
    missed = [check for check in part.checks if check.judged and not check.passed]
    findings = [finding for check in missed for finding in check.findings if finding.misconception != NOT_YET]
    if findings:
        first = findings[0]
        return f"<strong>{_markup(first.misconception)}</strong>. {_markup(f'{first.message} {first.hint}')}"
    return _markup(missed[0].name) if missed else ""


def _part(number: int, part: TaskResult | WrittenResult) -> str:
    inside = _written(part) if isinstance(part, WrittenResult) else _task(part)
    score = f"{points(part.possible)} points, not graded yet" if part.points is None else f"{_score(part)} points"
    return (
        f'<section class="task" id="task-{number}" aria-labelledby="title-{number}">'
        f'<div class="head"><h2 id="title-{number}">{_line(part.title)}</h2>'
        f"<p>{score}</p></div>\n{inside}\n</section>"
    )


def _task(part: TaskResult) -> str:
    pieces = []
    if not part.readable:
        pieces.append("<p>Nothing could be taken from your file, so nothing was checked.</p>")
    elif not part.answered:
        pieces.append("<p>There is no answer to this task in your notebook, so nothing was checked.</p>")
    elif part.checks and part.open_checks == len(part.checks):
        pieces.append("<p>This task has not been judged yet. Your instructor looks at it.</p>")
    if part.checks:
        said: set[Finding] = set()
        items = "".join(_check(check, part, said) for check in part.checks)
        pieces += ["<h3>What was expected</h3>", f'<ul class="checks">{items}</ul>']
    if part.by_hand:
        alone = f"; the checks alone gave {points(sum(check.points for check in part.checks))}"
        known = any(check.judged for check in part.checks)
        pieces.append(
            f"<p>Your instructor gave {points(part.points)} points for this task by hand{alone if known else ''}.</p>"
        )
    pieces += _comment(part.comment)
    if part.answered and part.answer.strip():
        pieces += ["<h3>Your answer</h3>", code_html(part.answer)]
    return "\n".join(pieces)


def _check(check: CheckResult, part: TaskResult, said: set[Finding]) -> str:
    """One line of a task's checks; what was `said` of an earlier one is not said again in full."""
    if check.passed:
        kind, sign, word = "passed", "✓", "Passed"
    elif part.open_checks and not check.judged:
        kind, sign, word = "open", "–", "Waits"
    elif not (part.answered and check.judged) or any(found.misconception == NOT_YET for found in check.findings):
        kind, sign, word = "open", "–", "Open"
    else:
        kind, sign, word = "missed", "✗", "Not yet"
    findings = ""
    if part.answered and not check.passed:
        findings = "".join(_finding(finding, again=finding in said) for finding in check.findings)
        said.update(check.findings)
    return (
        f'<li class="check"><p class="state {kind}"><span aria-hidden="true">{sign}</span> {word}</p>'
        f'<p class="expected">{_markup(check.name)}</p>'
        f'<p class="points">{points(check.points)} of {points(check.possible)}</p>'
        + (f'<div class="findings">{findings}</div>' if findings else "")
        + "</li>"
    )


def _finding(finding: Finding, *, again: bool) -> str:
    if finding.misconception in (NOT_YET, NOT_JUDGED):
        return f'<p class="later">{_markup(finding.message)}</p>'
    title = _markup(finding.misconception[:1].upper() + finding.misconception[1:])
    if again:
        return f'<div class="finding"><p><strong>{title}</strong>, as above.</p></div>'
    hint = f"<p><strong>Hint:</strong> {_markup(finding.hint)}</p>" if finding.hint else ""
    return f'<div class="finding"><p><strong>{title}.</strong> {_markup(finding.message)}</p>{hint}</div>'


def _written(part: WrittenResult) -> str:
    pieces = []
    if part.points is None:
        pieces.append("<p>A person reads this answer, and gives points for it later.</p>")
    pieces += _comment(part.comment)
    if part.answer.strip():
        text, left_out = _shortened(part.answer)
        pieces += ["<h3>Your answer</h3>", f'<pre class="written">{html.escape(visible(text))}</pre>{left_out}']
    else:
        missing = "You wrote no answer here." if part.readable else "Nothing could be taken from your file."
        pieces.append(f"<p>{missing}</p>")
    return "\n".join(pieces)


def _comment(text: str) -> Sequence[str]:
    if not text.strip():
        return []
    return ["<h3>Your instructor’s comment</h3>", f'<div class="comment">{html.escape(visible(text.strip()))}</div>']


def code_html(source: str) -> str:
    """A program as an HTML block with coloured words; what is too long is cut off, and says so."""
    text, left_out = _shortened(source)
    return f'<pre dir="ltr"><code>{_coloured(visible(text))}</code></pre>{left_out}'


def _shortened(text: str) -> tuple[str, str]:
    """What a page shows of an answer, and a sentence on what it leaves out."""
    lines = text[:LONGEST_ANSWER].strip("\n").split("\n")
    shown = "\n".join(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …" for line in lines)
    whole = len(text) <= LONGEST_ANSWER and all(len(line) <= LONGEST_LINE for line in lines)
    return shown, "" if whole else "<p>Very long parts are left out here; your notebook has them all.</p>"


def _footer(sheet: Sheet) -> str:
    number = ""
    if sheet.submission:
        number = f" The file that was judged has the SHA-256 number <code>{_line(sheet.submission)}</code>."
    return (
        "<footer><p>The checks use inputs that stay hidden and differ from submission to submission; what they expect "
        f"is said above in full.{number}</p>"
        "<p>If you think that something was judged wrongly, tell your instructor which check it is.</p></footer>"
    )


def _coloured(source: str) -> str:
    """Tokens in spans; every piece of text is escaped here, whatever the lexer made of it."""
    from pygments.lexers.python import PythonLexer
    from pygments.token import STANDARD_TYPES, Token

    pieces = []
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens(source):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        name = "" if kind in Token.Text or kind in Token.Error else STANDARD_TYPES[kind]
        pieces.append(f'<span class="{name}">{html.escape(text)}</span>' if name else html.escape(text))
    return "".join(pieces)
