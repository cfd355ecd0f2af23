"""What a learner reads of a lesson, from Markdown: sections, questions, predictions, and the words of its results."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.classroom.cards import Section
from course_lib.classroom.predictions import Prediction
from course_lib.classroom.quizzes import Number, Quiz
from course_lib.tasks.headings import Lines, split_at, text_of

SLIDER = re.compile(r"from (\S+) to (\S+?)(?:, in steps of (\S+?))?(?:, (.+))?")
SLOT = re.compile(r"\{(\w+)(:[^{}]*)?\}")  # a value that a run gave, and how it is written


class Questions(NamedTuple):
    """All that questions.md holds."""

    sections: tuple[Section, ...]
    quizzes: Mapping[str, Quiz | Number]
    predictions: Mapping[str, Prediction]


@dataclass(frozen=True)
class ResultText:
    """The words of a result: the alt text of its figure, its claims by their keys, and what it means."""

    alt: str
    claims: Mapping[str, str]
    outcome: str = ""

    def filled(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """Alt text and outcome with these values in their slots, `{name:.2f}`. Raises ValueError for one without."""
        used: set[str] = set()

        def fill(slot: re.Match) -> str:
            name, form = slot.groups("")
            used.add(name)
            return format(values[name], form[1:]) if name in values else slot[0]

        alt, outcome = SLOT.sub(fill, self.alt), SLOT.sub(fill, self.outcome)
        if unused := sorted(values.keys() - used):
            raise ValueError(f"neither alt text nor outcome has a slot for {', '.join(unused)}")
        return alt, outcome


def read_questions(path: Path) -> Questions:
    """The sections, questions and predictions of a lesson.

    Raises ValueError with file and line for a text that is not as it should be.
    """
    text = path.read_text(encoding="utf-8")
    parts = {heading: body for heading, _, body in split_at(text, "# ")[1:]}
    if [*parts] != ["Sections", "Questions", "Predictions"]:
        raise ValueError(f"{path.name} has to have the parts Sections, Questions and Predictions, not {[*parts]}")
    rows = [(number, line) for number, line in parts["Sections"] if line.startswith("|")][2:]
    stops = [number for number, line in rows if re.fullmatch(r"\| stop \|[ |]*", line)]
    sections = [(number, _placed(path, number, _section, line)) for number, line in rows if number not in stops]
    return Questions(
        tuple(replace(section, sitting=1 + sum(stop < number for stop in stops)) for number, section in sections),
        _entries(path, parts["Questions"], _question),
        _entries(path, parts["Predictions"], _prediction),
    )


def read_results(path: Path) -> dict[str, ResultText]:
    """The words of a lesson's results by their names. Raises ValueError as `read_questions` does."""
    return _entries(path, path.read_text(encoding="utf-8"), _result, mark="# ")


def _entries(path: Path, lines: Lines | str, read: Callable[[Lines], Any], *, mark: str = "## ") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, number, body in split_at(lines, mark)[1:]:
        if name in found:
            raise ValueError(f"{path.name}:{number}: {name!r} comes twice")
        found[name] = _placed(path, number, read, body)
    return found


def _placed(path: Path, number: int, read: Callable[[Any], Any], text: Any) -> Any:
    try:
        return read(text)
    except (ValueError, IndexError) as problem:
        raise ValueError(f"{path.name}:{number}: {problem}") from problem


def _section(row: str) -> Section:
    title, minutes, holds = (cell.strip() for cell in row.strip().strip("|").split("|"))
    number, _, optional = minutes.partition(", ")
    if optional not in ("", "optional"):
        raise ValueError(f"the minutes of {title!r} are {minutes!r}; write `15` or `15, optional`")
    return Section(title, int(number), tuple(filter(None, holds.split(", "))), optional=bool(optional))


def _question(lines: Lines) -> Quiz | Number:
    """A number to work out if a line begins with `=`, else options; a question with code asks for its bug."""
    asked, code, answers = _parts(lines)
    if answers and answers[0].startswith("= "):
        answer, _, tolerance = answers[0].removeprefix("= ").partition(" ± ")
        near = [line.removeprefix("- ").partition(": ")[::2] for line in answers if line.startswith("- ")]
        why = next((line for line in answers[1:] if line and not line.startswith("- ")), "")
        return Number(asked, _number(answer), float(tolerance or 0), why, near={_number(n): said for n, said in near})
    chosen = [line[2:5] for line in answers if line.startswith("- ")]
    texts = [line.removeprefix(f"- {mark} ") for line in answers for mark in [line[2:5]] if line.startswith("- ")]
    whys = [line.strip() for line in answers if line.startswith("  ")]
    if not set(chosen) <= {"[ ]", "[x]"} or chosen.count("[x]") != 1 or len(whys) != len(texts):
        raise ValueError("a question has options, `- [ ] text` or `- [x] text`, one right, each explained below it")
    options = dict(zip(texts, whys, strict=True))
    return Quiz(asked, options, chosen.index("[x]"), kind="bug" if code else "choice", code=code)


def _prediction(lines: Lines) -> Prediction:
    asked, _, answers = _parts(lines)
    if answers[0].startswith("- "):
        return Prediction(asked, options=[line.removeprefix("- ") for line in answers if line])
    if not (slider := SLIDER.fullmatch(answers[0])):
        raise ValueError(f"a prediction has options, or `from 0 to 100, in steps of 5, unit`, not {answers[0]!r}")
    low, high, step, unit = slider.groups()
    return Prediction(asked, low=float(low), high=float(high), step=float(step or 1), unit=unit or "")


def _parts(lines: Lines) -> tuple[str, str, list[str]]:
    """What is asked, the code below it, and the lines of the answers."""
    asked, *rest = text_of(lines).split("\n\n", 1)
    code, answers = "", rest[0] if rest else ""
    if answers.startswith("```python\n"):
        code, answers = answers.removeprefix("```python").split("```\n", 1)
    return asked, code, [line for line in answers.splitlines() if line]


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"-?\d+", text) else float(text)


def _result(lines: Lines) -> ResultText:
    """The alt text, a list of claims by key, and below the heading Outcome what it means."""
    (_, _, head), *outcome = split_at(lines, "## ")
    if [heading for heading, *_ in outcome] not in ([], ["Outcome"]):
        raise ValueError("a result has its alt text, claims `- key: words`, and `## Outcome`")
    alt = " ".join(line for _, line in head if not line.startswith("- ")).strip()
    claims = [line.removeprefix("- ").partition(": ")[::2] for _, line in head if line.startswith("- ")]
    if not alt or not all(words for _, words in claims):
        raise ValueError("a result needs an alt text; a claim is `- key: words`")
    return ResultText(alt, dict(claims), text_of(outcome[0][2]) if outcome else "")
