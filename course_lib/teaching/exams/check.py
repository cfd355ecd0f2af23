"""What every bank is held to, seed by seed: for authors on the command line, and for the tests."""

from collections.abc import Sequence
from pathlib import Path

from course_lib.teaching.exams import latex
from course_lib.teaching.exams.bank import Question, read_bank
from course_lib.teaching.exams.paper import draw_item

SEEDS, AT_LEAST, KINDS_AT_LEAST = 50, 12, 4


def slips_of(path: Path, taken: Sequence[str] = ()) -> list[str]:
    """What is wrong with a bank, a sentence each: its form, numbers of 50 seeds, how much it holds, what lengths tell.

    `taken` are the texts of the lesson's own questions, which no exam may repeat.
    """
    try:
        questions = read_bank(path)
    except ValueError as problem:
        return [str(problem)]
    found = [slip for question in questions for slip in _of_question(question, taken)]
    kinds = {question.kind for question in questions}
    if len(questions) < AT_LEAST or len(kinds) < KINDS_AT_LEAST:
        found.append(
            f"{path.name}: it has {len(questions)} questions of {len(kinds)} kinds; an exam needs {AT_LEAST} questions "
            f"of {KINDS_AT_LEAST} kinds."
        )
    single = [question for question in questions if sum(option.right for option in question.options) == 1]
    given_away = [question.name for question in single if _right_is_longest(question)]
    if len(given_away) > max(1, len(single) / 2):
        found.append(
            f"{path.name}: the right option is the longest one in {', '.join(given_away)}; shorten it, or make wrong "
            "ones as exact as it is."
        )
    return found


def _right_is_longest(question: Question) -> bool:
    lengths = {right: max(len(one.text) for one in question.options if one.right is right) for right in (True, False)}
    return lengths[True] > lengths[False]


def _of_question(question: Question, taken: Sequence[str]) -> list[str]:
    if any(_plain(question.text) == _plain(text) for text in taken):
        return [f"{question.place}: {question.name!r} is a question of the lesson's own page."]
    try:
        items = [draw_item(question, seed) for seed in range(SEEDS)]
    except ValueError as problem:
        return [str(problem)]
    if question.draws and len({item.text for item in items}) == 1:
        return [f"{question.place}: {question.name!r} draws numbers, but its text is always the same."]
    if letters := latex.unprintable(items[0]):
        return [
            f"{question.place}: {question.name!r} has {letters}, which LaTeX cannot print; write it as a $formula$."
        ]
    return []


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
