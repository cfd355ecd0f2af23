"""What a learner reads of a lesson, from Markdown: sections, questions, predictions, and the words of its results."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from course_lib.classroom.cards import Section
from course_lib.classroom.predictions import Prediction
from course_lib.classroom.quizzes import Number, Quiz
from course_lib.tasks.headings import Lines, entries_of, lines_of, split_at, text_of

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
    place: str = "results.md"  # and the line of its heading

    def filled(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """Alt text and outcome with these values in their slots, `{name:.2f}`.

        Raises ValueError for a value without a slot, and for a slot with a format but without a value. `{x}` alone, and
        what is below or above a letter as in `x_{1:T}`, may be LaTeX.
        """
        used: set[str] = set()

        def fill(slot: re.Match) -> str:
            name, form = slot.groups("")
            used.add(name)
            if name not in values:
                if form and not slot.string[: slot.start()].endswith(("_", "^")):
                    raise ValueError(f'{self.place}: {slot[0]} has no value; give `values={{"{name}": ...}}`')
                return slot[0]
            try:
                return format(values[name], form[1:])
            except (TypeError, ValueError) as problem:
                raise ValueError(f"{self.place}: {slot[0]} cannot show the value {values[name]!r}") from problem

        alt, outcome = SLOT.sub(fill, self.alt), SLOT.sub(fill, self.outcome)
        if unused := sorted(values.keys() - used):
            raise ValueError(f"{self.place}: neither alt text nor outcome has a slot for {', '.join(unused)}")
        return alt, outcome


def read_questions(path: Path) -> Questions:
    """The sections, questions and predictions of a lesson.

    Raises ValueError with file and line for a text that is not as it should be.
    """
    parts = split_at(lines_of(path.read_bytes(), path.name), "# ")[1:]
    if (headings := [heading for heading, *_ in parts]) != ["Sections", "Questions", "Predictions"]:
        raise ValueError(f"{path.name} has to have the parts Sections, Questions and Predictions, not {headings}")
    (_, number, table), (_, _, questions), (_, _, predictions) = parts
    head, rows = table[:2], [(number, line) for number, line in table[2:] if line.strip()]
    if not rows or not re.fullmatch(r"\|[-:| ]+\|", head[1][1]):
        raise ValueError(f"{path.name}:{number}: the table of sections has a head, a line `|---|---|---|`, and rows")
    stops = [number for number, line in rows if re.fullmatch(r"\| stop \|[ |]*", line)]
    sections = [(number, _placed(path, number, _section, line)) for number, line in rows if number not in stops]
    return Questions(
        tuple(replace(section, sitting=1 + sum(stop < number for stop in stops)) for number, section in sections),
        {
            name: _placed(path, number, _question, body)
            for name, number, body in entries_of(questions, "## ", path.name)
        },
        {
            name: _placed(path, number, _prediction, body)
            for name, number, body in entries_of(predictions, "## ", path.name)
        },
    )


def read_results(path: Path) -> dict[str, ResultText]:
    """The words of a lesson's results by their names. Raises ValueError as `read_questions` does."""
    entries = entries_of(lines_of(path.read_bytes(), path.name), "# ", path.name)
    if not entries:
        raise ValueError(f"{path.name} has no entries: each begins with `# name`")
    return {
        name: replace(_placed(path, number, _result, body), place=f"{path.name}:{number}")
        for name, number, body in entries
    }


def _placed(path: Path, number: int, read: Callable[[Any], Any], text: Any) -> Any:
    try:
        return read(text)
    except ValueError as problem:
        raise ValueError(f"{path.name}:{number}: {problem}") from problem


def _once(pairs: Iterable[tuple[Any, str]], what: str) -> dict[Any, str]:
    """The pairs as a dictionary. Raises ValueError for a key that comes twice."""
    found: dict[Any, str] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the {what} {key!r} comes twice")
        found[key] = value
    return found


def _section(row: str) -> Section:
    cells = [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]
    if len(cells) != 3 or not row.startswith("|"):
        raise ValueError(f"{row!r} is no row of the table; write `| title | minutes | names |`")
    title, minutes, holds = cells
    if not (read := re.fullmatch(r"([1-9]\d*)(, optional)?", minutes)):
        raise ValueError(f"the minutes of {title!r} are {minutes!r}; write `15` or `15, optional`")
    return Section(title, int(read[1]), tuple(filter(None, holds.split(", "))), optional=bool(read[2]))


def _question(lines: Lines) -> Quiz | Number:
    """A number to work out if a line begins with `=`, else options; a question with code asks for its bug."""
    asked, code, answers = _parts(lines)
    if answers and answers[0].startswith("= "):
        answer, _, tolerance = answers[0].removeprefix("= ").partition(" ± ")
        near = [line.removeprefix("- ").partition(": ")[::2] for line in answers if line.startswith("- ")]
        whys = [line for line in answers[1:] if not line.startswith("- ")]
        if len(whys) != 1 or not all(said for _, said in near):
            raise ValueError(
                "below a number is its explanation, one line, then likely mistakes, `- 0.5: what is wrong`"
            )
        near = _once(((_number(number), said) for number, said in near), "mistake")
        return Number(asked, _number(answer), float(_number(tolerance or "0")), whys[0], near=near)
    chosen, texts = [line[:6] for line in answers[::2]], [line[6:] for line in answers[::2]]
    whys = [line.strip() for line in answers[1::2] if line.startswith("  ")]
    if not {*chosen} <= {"- [ ] ", "- [x] "} or chosen.count("- [x] ") != 1 or len(whys) != len(texts):
        raise ValueError("a question has options, `- [ ] text` or `- [x] text`, one right, each explained below it")
    options = _once(zip(texts, whys, strict=True), "option")
    return Quiz(asked, options, chosen.index("- [x] "), kind="bug" if code else "choice", code=code)


def _prediction(lines: Lines) -> Prediction:
    asked, _, answers = _parts(lines)
    if answers and all(line.startswith("- ") for line in answers):
        return Prediction(asked, options=[*_once(((line.removeprefix("- "), "") for line in answers), "option")])
    if len(answers) != 1 or not (slider := SLIDER.fullmatch(answers[0])):
        raise ValueError(f"a prediction has options, or `from 0 to 100, in steps of 5, unit`, not {answers}")
    low, high, step, unit = slider.groups()
    low, high, step = (float(_number(number)) for number in (low, high, step or "1"))
    return Prediction(asked, low=low, high=high, step=step, unit=unit or "")


def _parts(lines: Lines) -> tuple[str, str, list[str]]:
    """What is asked, the code below it, and the lines of the answers."""
    asked, *rest = text_of(lines).split("\n\n", 1)
    code, answers = "", rest[0] if rest else ""
    if answers.startswith("```python\n"):
        code, _, answers = f"{answers}\n".removeprefix("```python").partition("```\n")
    return asked, code, [line for line in answers.splitlines() if line.strip()]


def _number(text: str) -> float:
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError as problem:
        raise ValueError(f"{text!r} is not a number") from problem


def _result(lines: Lines) -> ResultText:
    """The alt text, a list of claims by key, and below the heading Outcome what it means."""
    (_, _, head), *outcome = split_at(lines, "## ")
    if [heading for heading, *_ in outcome] not in ([], ["Outcome"]):
        raise ValueError("a result has its alt text, claims `- key: words`, and `## Outcome`")
    alt = " ".join(line for _, line in head if not line.startswith("- ")).strip()
    claims = [line.removeprefix("- ").partition(": ")[::2] for _, line in head if line.startswith("- ")]
    if not alt or not all(words for _, words in claims):
        raise ValueError("a result needs an alt text; a claim is `- key: words`")
    return ResultText(alt, _once(claims, "claim"), text_of(outcome[0][2]) if outcome else "")
