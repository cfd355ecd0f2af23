"""An exam as Markdown: the paper for students, and solutions with a marking scheme for those who mark it."""

from collections.abc import Iterator

from course_lib.teaching.exams.bank import GAP
from course_lib.teaching.exams.markup import shown
from course_lib.teaching.exams.paper import LETTERS, Item, Paper

ASKS = {
    "number": "Give a number, and the way to it.",
    "short": "A few words are enough.",
    "order": "Write the letters of the steps in the right order.",
    "gaps": "For each gap write the letter of the text that belongs there.",
    "written": "Answer in two to six sentences.",
}
RULES = (
    "No books, notes or computers; a pocket calculator is allowed. Give numbers with three significant digits, unless "
    "the question says otherwise."
)
MARKING = {
    "number": "Full points within the tolerance. For a known mistake, or a slip of arithmetic on a correct way, "
    "half the points, rounded down.",
    "choice": "All points for the right option.",
    "several": "Each right option that is marked earns an equal part of the points, each wrong one costs as much; "
    "never less than 0.",
    "short": "All points for one of the accepted answers, in any spelling that shows that it is meant.",
    "order": "Each step at its right position earns an equal part of the points.",
    "gaps": "Each gap earns an equal part of the points.",
    "written": "Points for each aspect that the answer states correctly, in any words.",
}


def asks(item: Item) -> str:
    """The sentence that says how to answer."""
    if item.options:
        return "Mark all options that are right." if item.several else "Mark the one right option."
    return ASKS["written" if item.aspects else item.question.kind]


def marking(item: Item) -> str:
    """The sentence that says how the answer is marked."""
    if item.options:
        return MARKING["several" if item.several else "choice"]
    return MARKING["written" if item.aspects else item.question.kind]


def title(paper: Paper) -> str:
    """Which lessons the exam is about."""
    first, last = paper.lessons[0], paper.lessons[-1]
    whole = len(paper.lessons) > 1 and len(paper.lessons) == int(last) - int(first) + 1
    return f"Exam: lesson{'s' * (len(paper.lessons) > 1)} {f'{first} to {last}' if whole else ', '.join(paper.lessons)}"


def points(number: int) -> str:
    return f"{number} point{'s' * (number != 1)}"


def facts(paper: Paper) -> str:
    return f"{points(paper.points)} · about {paper.minutes} minutes · seed {paper.seed}"


def exam(paper: Paper) -> str:
    """The paper that students get."""
    lines = [f"# {title(paper)}", "", facts(paper), "", "Name: ______________________", "", RULES]
    for number, item in enumerate(paper.items, start=1):
        lines += ["", *question(number, item)]
    return "\n".join(lines) + "\n"


def solutions(paper: Paper) -> str:
    """The right answers with their reasons, known mistakes, and how points are given."""
    lines = [f"# {title(paper)}: solutions and marking scheme", "", facts(paper), ""]
    lines += ["| question | lesson | kind | points | minutes |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in overview(paper)]
    for number, item in enumerate(paper.items, start=1):
        lines += ["", *solution(number, item)]
    return "\n".join(lines) + "\n"


def overview(paper: Paper) -> Iterator[tuple[str, ...]]:
    """Of each question its number, lesson, kind, points and minutes."""
    for number, item in enumerate(paper.items, start=1):
        asked = item.question
        yield str(number), asked.lesson, asked.kind, str(asked.points), str(asked.minutes)


def question(number: int, item: Item, gap: str = r"**(\1)** \\_\\_\\_\\_") -> list[str]:
    """What students read of a question, line by line; `gap` is what stands for a gap, with its number."""
    lines = [f"## Question {number} ({points(item.question.points)})", "", GAP.sub(gap, item.text), ""]
    return [*lines, *_choices(item), f"*{asks(item)}*"]


def solution(number: int, item: Item) -> list[str]:
    """What markers read of a question, line by line."""
    lines = [f"## Question {number} ({points(item.question.points)})", ""]
    lines += [f"Source: {item.question.place}, *{item.question.name}*.", "", *_answer(item), "", item.solution, ""]
    return [*lines, f"*Marking.* {marking(item)}"]


def _choices(item: Item) -> Iterator[str]:
    for letter, option in zip(LETTERS, item.options, strict=False):
        yield f"- [ ] **{letter}** {option.text}"
    for letter, step in zip(LETTERS, item.steps, strict=False):
        yield f"- **{letter}** {step}"
    for number, gap in enumerate(item.gaps, start=1):
        texts = "; ".join(f"**{letter}** {option.text}" for letter, option in zip(LETTERS, gap, strict=False))
        yield f"- ({number}) {texts}"
    if item.options or item.steps or item.gaps:
        yield ""


def _answer(item: Item) -> Iterator[str]:
    for letter, option in zip(LETTERS, item.options, strict=False):
        yield f"- [{'x' if option.right else ' '}] **{letter}** {option.text} *{option.why}*"
    if item.value is not None:
        tolerance = f" (accepted: {shown(item.value - item.tolerance)} to {shown(item.value + item.tolerance)})"
        yield f"**{shown(item.value)}**{tolerance if item.tolerance else ''}"
        yield from ("", *(f"- {shown(wrong)}: {why}" for why, wrong in item.mistakes)) if item.mistakes else ()
    if item.accepted:
        yield f"**{item.accepted[0]}**" + "".join(f", or {other}" for other in item.accepted[1:])
    if item.order:
        yield f"**{', '.join(item.order)}**"
        yield ""
        yield from (f"1. {item.steps[LETTERS.index(letter)]}" for letter in item.order)
    for number, gap in enumerate(item.gaps, start=1):
        yield from (f"- ({number}) **{LETTERS[i]}** {option.text}" for i, option in enumerate(gap) if option.right)
    yield from (f"- {points(aspect.points)}: {aspect.text}" for aspect in item.aspects)
