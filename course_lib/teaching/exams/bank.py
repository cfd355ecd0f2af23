"""A bank of exam questions, `exams/NN.md`, read into `Question`s; lesson 08's bank shows every kind.

What stands below a heading: a line of facts, `draw:` lines, the text, the answer in the form of its kind, and `>` lines
with the solution. A slip is a ValueError that names file and line.
"""

import re
from pathlib import Path
from typing import NamedTuple, NoReturn

from course_lib.tasks.headings import Lines, entries_of, lines_of, split_at
from course_lib.teaching.exams.arithmetic import CONSTANTS, FUNCTIONS, evaluate, values_of
from course_lib.teaching.exams.markup import fill

KINDS = {  # what the answer of each kind is made of, one of these
    "number": ("answer",),
    "choice": ("options",),
    "short": ("answer",),
    "bug": ("options", "aspects"),
    "order": ("steps",),
    "gaps": ("gaps",),
    "written": ("aspects",),
}
FACTS = re.compile(r"(\w+) · (\d+) points? · (\d+) minutes?")
DRAW = re.compile(r"([A-Za-z_]\w+) = (.+)")
OPTION, ASPECT = re.compile(r"- \[([x ])\] (.+)"), re.compile(r"- (\d+) points?: (.+)")
STEP, GAP = re.compile(r"\d+\. (.+)"), re.compile(r"\[\[([^\[\]]+)\]\]")
ANSWER = re.compile(r"(.+?)(?: ± ([\d.]+)( %)?)?")
MOST_POINTS, MINUTES = 20, (2, 8)


class Option(NamedTuple):
    """An option, whether it is right, and why."""

    text: str
    right: bool
    why: str


class Aspect(NamedTuple):
    """What a written answer has to say, and the points for it."""

    points: int
    text: str


class Question(NamedTuple):
    """A question before a seed has drawn its numbers; texts and formulas use the names of `draws`."""

    lesson: str
    name: str
    place: str
    kind: str
    points: int
    minutes: int
    text: str
    solution: str
    draws: tuple[tuple[str, str], ...] = ()
    answer: str = ""  # a formula, or the accepted words
    tolerance: tuple[float, bool] = (0.0, False)  # and whether it is relative
    mistakes: tuple[tuple[str, str], ...] = ()  # what was done, the formula
    options: tuple[Option, ...] = ()
    steps: tuple[str, ...] = ()
    gaps: tuple[tuple[str, ...], ...] = ()  # of each gap the right text, then wrong ones
    aspects: tuple[Aspect, ...] = ()


def read_bank(path: Path) -> tuple[Question, ...]:
    """The questions of a bank. Raises ValueError with file and line for a slip."""
    (_, _, before), *sections = split_at(lines_of(path.read_bytes(), path.name), "# ")
    if before or len(sections) != 1:
        _slip(path.name, 1, "a bank begins with one line `# Title of the lesson`, and has no other such line")
    entries = entries_of(sections[0][2], "## ", path.name)
    return tuple(_Reader(path.name, number, body).question(path.stem, name) for name, number, body in entries)


def _slip(file: str, line: int, problem: object) -> NoReturn:
    raise ValueError(f"{file}:{line}: {problem}.")


class _Reader:
    """Reads one question, and tries each formula with the first numbers that its draws allow."""

    def __init__(self, file: str, line: int, body: Lines):
        self.file, self.line, self.body = file, line, body
        self.values: dict[str, float] = {}
        self.draws: list[tuple[str, str]] = []
        self.text: list[str] = []
        self.solution: list[str] = []
        self.options: list[Option] = []
        self.found: dict[str, list] = {"mistakes": [], "steps": [], "aspects": []}
        self.answer, self.tolerance, self.kind = "", (0.0, False), ""

    def question(self, lesson: str, name: str) -> Question:
        number, facts = self.body[0] if self.body else (self.line, "")
        read = FACTS.fullmatch(facts.strip())
        if not read or read[1] not in KINDS:
            kinds = ", ".join(KINDS)
            _slip(self.file, number, f"below a heading stands `number · 3 points · 4 minutes`; kinds: {kinds}")
        self.kind, points, minutes = read[1], int(read[2]), int(read[3])
        if not 1 <= points <= MOST_POINTS or not MINUTES[0] <= minutes <= MINUTES[1]:
            _slip(self.file, number, f"a question has 1 to {MOST_POINTS} points and takes 2 to 8 minutes")
        fenced = False
        for number, line in self.body[1:]:
            fenced ^= line.startswith("```")
            try:
                if fenced or line.startswith("```") or not self.takes(line):
                    self.text.append(line)
            except ValueError as problem:
                _slip(self.file, number, problem)
        try:
            return self.finished(lesson=lesson, name=name, points=points, minutes=minutes)
        except ValueError as problem:
            _slip(self.file, self.line, f"{name!r}: {problem}")

    def takes(self, line: str) -> bool:
        """Whether the line is something other than text; if so, it is kept."""
        key, _, rest = line.partition(": ")
        if key == "draw":
            for one in rest.rstrip(";").split(";"):
                self.draw(one.strip())
        elif key == "answer":
            self.take_answer(rest.strip())
        elif line.startswith(">"):
            self.solution.append(line[1:].strip())
        elif self.options and line.startswith("  ") and line.strip():
            last = self.options.pop()
            self.options.append(last._replace(why=f"{last.why} {self.tried(line.strip())}".strip()))
        elif found := OPTION.fullmatch(line):
            self.options.append(Option(self.tried(found[2].strip()), found[1] == "x", ""))
        elif self.kind in ("written", "bug") and (found := ASPECT.fullmatch(line)):
            self.found["aspects"].append(Aspect(int(found[1]), self.tried(found[2])))
        elif self.kind == "order" and (found := STEP.fullmatch(line)):
            self.found["steps"].append(self.tried(found[1]))
        elif self.kind == "number" and self.answer and line.startswith("- "):
            why, _, formula = line[2:].rpartition(": ")
            evaluate(formula, self.values)
            self.found["mistakes"].append((self.tried(why), formula))
        else:
            return False
        return True

    def tried(self, text: str) -> str:
        fill(text, self.values)
        return text

    def draw(self, line: str) -> None:
        found = DRAW.fullmatch(line)
        if not found or found[1] in (*FUNCTIONS, *CONSTANTS, *self.values):
            raise ValueError(f"`{line}` is no draw such as `heads = 8 | 12`, with a new name of two letters or more")
        self.values[found[1]] = values_of(found[2], self.values)[0]
        self.draws.append((found[1], found[2]))

    def take_answer(self, line: str) -> None:
        if self.answer:
            raise ValueError("a question has one answer")
        if self.kind == "number":
            formula, tolerance, relative = ANSWER.fullmatch(line).groups()
            evaluate(formula, self.values)
            self.answer, self.tolerance = formula, (float(tolerance or 0), bool(relative))
        else:
            self.answer = line

    def finished(self, **facts: object) -> Question:
        text = self.tried("\n".join(self.text).strip())
        gaps = tuple(tuple(one.strip() for one in gap.split(" | ")) for gap in GAP.findall(text))
        has = {**self.found, "options": self.options, "answer": self.answer, "gaps": gaps}
        held = [part for part in ("answer", "options", "steps", "gaps", "aspects") if has[part]]
        if len(held) != 1 or held[0] not in KINDS[self.kind]:
            parts = " or ".join(KINDS[self.kind])
            raise ValueError(f"a question of the kind {self.kind} has {parts}, and no other answer")
        if not text or not self.solution:
            raise ValueError("it needs a text, and a solution in lines that begin with `>`")
        if self.options and (not any(one.right for one in self.options) or not all(one.why for one in self.options)):
            raise ValueError("of its options at least one is `[x]`, and each has its reason below it, indented by two")
        if self.options and (len(self.options) < 3 or all(one.right for one in self.options)):
            raise ValueError("it has three options or more, and a wrong one among them")
        if self.kind == "order" and not 4 <= len(self.found["steps"]) <= 8:
            raise ValueError("it has four to eight steps")
        if min(map(len, gaps), default=3) < 3:
            raise ValueError("each gap has the right text first and two wrong ones or more, separated by ` | `")
        if self.found["aspects"] and sum(one.points for one in self.found["aspects"]) != facts["points"]:
            raise ValueError("the points of its aspects add up to those of the question")
        if self.kind == "bug" and "```" not in text:
            raise ValueError("it shows code")
        found = {name: tuple(value) for name, value in self.found.items()}
        found |= {"options": tuple(self.options), "draws": tuple(self.draws), "gaps": gaps}
        return Question(
            **facts,
            **found,
            place=f"{self.file}:{self.line}",
            kind=self.kind,
            text=text,
            answer=self.answer,
            tolerance=self.tolerance,
            solution=self.tried("\n".join(self.solution)),
        )
