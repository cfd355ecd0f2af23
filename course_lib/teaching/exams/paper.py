"""A paper: which questions a seed chooses, and which numbers and orders it draws for them."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from course_lib.teaching.exams.arithmetic import evaluate, values_of
from course_lib.teaching.exams.bank import GAP, Aspect, Option, Question
from course_lib.teaching.exams.markup import fill, shown

LETTERS = "ABCDEFGH"


class Item(NamedTuple):
    """A question with its numbers; options, steps and the texts of gaps stand in the order of the print."""

    question: Question
    text: str  # with [[1]], [[2]] for gaps
    solution: str
    value: float | None = None
    tolerance: float = 0.0
    mistakes: tuple[tuple[str, float], ...] = ()
    accepted: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    steps: tuple[str, ...] = ()
    order: str = ""  # the letters of the steps as they belong
    gaps: tuple[tuple[Option, ...], ...] = ()
    aspects: tuple[Aspect, ...] = ()

    @property
    def several(self) -> bool:
        """Whether more than one option is right."""
        return sum(option.right for option in self.options) > 1


class Paper(NamedTuple):
    """The questions of one seed, in the order of the lessons."""

    lessons: tuple[str, ...]
    seed: int
    items: tuple[Item, ...]

    @property
    def points(self) -> int:
        return sum(item.question.points for item in self.items)

    @property
    def minutes(self) -> int:
        return sum(item.question.minutes for item in self.items)


def draw_item(question: Question, seed: int) -> Item:
    """The question with the numbers and orders of a seed.

    Raises ValueError, with the question's place, if a formula has no finite result, if a known mistake lies within the
    tolerance of the answer, or if two options come out the same.
    """
    rng = random.Random(f"{seed}/{question.lesson}/{question.name}")
    try:
        return _drawn(question, rng)
    except ValueError as problem:
        raise ValueError(f"{question.place}: {question.name!r}, drawn with seed {seed}: {problem}.") from problem


def _drawn(question: Question, rng: random.Random) -> Item:
    values: dict[str, float] = {}
    for name, spec in question.draws:
        values[name] = rng.choice(values_of(spec, values))

    numbered = iter(range(1, len(question.gaps) + 1))
    parts: dict = {"text": fill(GAP.sub(lambda _: f"[[{next(numbered)}]]", question.text), values)}
    if question.kind == "number":
        parts |= _number(question, values)
    elif question.kind == "short":
        parts["accepted"] = tuple(one.strip() for one in question.answer.split(" | "))
    if question.steps:
        printed = rng.sample(range(len(question.steps)), len(question.steps))
        parts["steps"] = tuple(fill(question.steps[index], values) for index in printed)
        parts["order"] = "".join(LETTERS[printed.index(index)] for index in range(len(printed)))
    return Item(
        question=question,
        solution=fill(question.solution, values),
        options=_shuffled(question.options, values, rng),
        gaps=tuple(_shuffled([Option(text, text == gap[0], "") for text in gap], values, rng) for gap in question.gaps),
        aspects=tuple(aspect._replace(text=fill(aspect.text, values)) for aspect in question.aspects),
        **parts,
    )


def _shuffled(options: Sequence[Option], values: dict[str, float], rng: random.Random) -> tuple[Option, ...]:
    options = [option._replace(text=fill(option.text, values), why=fill(option.why, values)) for option in options]
    if len({option.text for option in options}) < len(options):
        raise ValueError(f"two options are the same, among {', '.join(option.text for option in options)}")
    return tuple(rng.sample(options, len(options)))


def _number(question: Question, values: dict[str, float]) -> dict:
    value = evaluate(question.answer, values)
    size, relative = question.tolerance
    tolerance = abs(value) * size / 100 if relative else size
    mistakes = tuple((fill(why, values), evaluate(formula, values)) for why, formula in question.mistakes)
    for why, wrong in mistakes:
        if abs(wrong - value) <= tolerance:
            raise ValueError(f"the mistake {why!r} gives {shown(wrong)}, within the tolerance of {shown(value)}")
    return {"value": value, "tolerance": tolerance, "mistakes": mistakes}


def draw_paper(questions: Sequence[Question], points: int, seed: int) -> Paper:
    """The paper of a seed: as many points as asked for, lessons in equal parts as far as possible, kinds mixed.

    Raises ValueError, with the nearest possible numbers of points, if no choice of questions has as many.
    """
    left = random.Random(f"{seed}/{points}").sample(questions, len(questions))
    possible = _sums(left)
    if not possible >> points & 1:
        near = sorted(range(1, possible.bit_length()), key=lambda other: abs(other - points))
        near = sorted([other for other in near if possible >> other & 1][:2])
        told = " and ".join(map(str, near))
        raise ValueError(f"no choice of these {len(questions)} questions has {points} points; possible are {told}")
    chosen: list[Question] = []
    of_lesson, of_kind = Counter(), Counter()
    while points:  # the lesson with the fewest points, the rarest kind, and the others can fill what is left then
        wanted = sorted(left, key=lambda one: (of_lesson[one.lesson], of_kind[one.kind]))
        fits = ((one, points - one.points, [other for other in left if other is not one]) for one in wanted)
        best, points, left = next(fit for fit in fits if fit[1] >= 0 and _sums(fit[2]) >> fit[1] & 1)
        chosen.append(best)
        of_lesson[best.lesson] += best.points
        of_kind[best.kind] += 1
    chosen.sort(key=lambda question: question.lesson)
    lessons = tuple(sorted({question.lesson for question in questions}))
    return Paper(lessons, seed, tuple(draw_item(question, seed) for question in chosen))


def _sums(questions: Sequence[Question]) -> int:
    """Which numbers of points some of these questions have together: bit p is set if p is one of them."""
    sums = 1
    for question in questions:
        sums |= sums << question.points
    return sums
