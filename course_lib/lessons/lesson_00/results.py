"""Lesson 00, Start here: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.classroom.session import LESSONS
from course_lib.lessons.lesson_00 import landscape, letters, words
from course_lib.lessons.lesson_00.map import (
    BUILDS_ON,
    LANDSCAPE,
    PLACES,
    lesson_minutes,
    lessons_here,
    read_glossary,
    table_of_lessons,
    table_of_terms,
)
from course_lib.tasks.claims import above, below
from course_lib.training.translation import vocabularies
from course_lib.viz.sentences import word_links


def wiring(
    names: str, before: nn.Sequential, after: nn.Sequential, seen: Tensor, languages: Tensor, *, predicted=None
) -> Result:
    scores = {net: 100 * letters.accuracy(net, seen, languages) for net in (before, after)}
    stages = {
        f"Before training: {scores[before]:.0f} % correct": letters.wires(before),
        f"After it: {scores[after]:.0f} % correct": letters.wires(after),
    }
    changed = [bool((a != b).all()) for a, b in zip(before.parameters(), after.parameters(), strict=True)]
    return Result(
        landscape.wiring(stages, inputs=names, outputs=letters.LANGUAGES),
        claims={
            "same architecture": str(before) == str(after),
            "other values": all(changed),
            "accuracy": above(scores[after], 90),
        },
        came=scores[after],
    )


def size(curves: Mapping[str, Sequence[words.Measured]], *, predicted=None) -> Result:
    alone, near = curves.values()
    return Result(
        landscape.price_of_accuracy(curves, predicted),
        claims={
            "word alone": below(abs(alone[2].accuracy - alone[1].accuracy), 0.02),
            "neighbours": (
                above(near[1].accuracy - alone[2].accuracy, 0.1),
                near[1].parameters < alone[2].parameters / 3,
            ),
            "unseen pairs": (below(alone[2].new_pairs, 0.5), above(near[2].new_pairs, 0.85)),
        },
        came=100 * alone[2].accuracy,
    )


def sentence(largest: words.Measured, text: str, *, predicted=None) -> Result:
    english, written = text.split(), words.translate(largest, text)
    fig = word_links(english, written, [(i, i) for i in range(len(english))])
    known, _ = vocabularies()
    return Result(
        fig,
        claims={"known words": all(word in known for word in english), "one to one": len(written) == len(english)},
        values={"text": text},
    )


def takeovers(*, predicted=None) -> Result:
    return Result(landscape.takeovers(LANDSCAPE, first=2004, last=2026))


def course_map(*, predicted=None) -> Result:
    return Result(landscape.course_map(LESSONS, PLACES, BUILDS_ON))


def lessons(*, predicted=None) -> Result:
    minutes = lesson_minutes()
    main, optional = (sum(column) for column in zip(*minutes.values(), strict=True))
    return Result(table_of_lessons(lessons_here(), minutes), values={"hours": main / 60, "more": optional / 60})


def glossary(*, predicted=None) -> Result:
    terms = read_glossary()
    return Result(table_of_terms(lessons_here(), terms), values={"count": len(terms)})


RESULTS = {
    "letters": wiring,
    "wires": size,
    "sentence": sentence,
    "takeovers": takeovers,
    "overview": course_map,
    "lessons": lessons,
    "glossary": glossary,
}
