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
    rng = random.Random(f"{seed}/{points}")
    ranked = _ranked(rng.sample(questions, len(questions)))
    reachable = [1]  # bit p of reachable[-1 - i] is set if some questions from rank i on have p points together
    for question in reversed(ranked):
        reachable.append(reachable[-1] | reachable[-1] << question.points)
    if points < 1 or not reachable[-1] >> points & 1:
        near = sorted(range(1, reachable[-1].bit_length()), key=lambda other: abs(other - points))
        near = sorted([other for other in near if reachable[-1] >> other & 1][:2])
        possible = " and ".join(map(str, near))
        raise ValueError(f"no choice of these {len(questions)} questions has {points} points; possible are {possible}")
    chosen, left = [], points
    for rank, question in enumerate(ranked):
        rest = left - question.points
        if rest >= 0 and reachable[len(ranked) - rank - 1] >> rest & 1:
            chosen.append(question)
            left = rest
    chosen.sort(key=lambda question: question.lesson)
    lessons = tuple(sorted({question.lesson for question in questions}))
    return Paper(lessons, seed, tuple(draw_item(question, seed) for question in chosen))


def _ranked(questions: Sequence[Question]) -> list[Question]:
    """The questions so that any beginning of the list has lessons in equal parts, by points, and kinds mixed."""
    left, ranked = list(questions), []
    of_lesson, of_kind = Counter(), Counter()
    while left:
        least = min(left, key=lambda one: (of_lesson[one.lesson], of_kind[one.kind]))
        left.remove(least)
        ranked.append(least)
        of_lesson[least.lesson] += least.points
        of_kind[least.kind] += 1
    return ranked
