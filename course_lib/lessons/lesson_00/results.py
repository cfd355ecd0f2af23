"""Lesson 00, Start here: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from course_lib.classroom.results import Result
from course_lib.classroom.session import LESSONS
from course_lib.lessons.lesson_00 import landscape, letters, words
from course_lib.lessons.lesson_00.map import BUILDS_ON, LANDSCAPE, PLACES, lessons_here, table_of_lessons
from course_lib.tasks.claims import above, below
from course_lib.training.translation import vocabularies
from course_lib.viz.sentences import word_links


def wiring(
    names: str, before: nn.Sequential, after: nn.Sequential, seen: Tensor, languages: Tensor, *, bet=None
) -> Result:
    scores = {net: 100 * letters.share_right(net, seen, languages) for net in (before, after)}
    stages = {
        f"Before training: {scores[before]:.0f} % right": letters.wires(before),
        f"After it: {scores[after]:.0f} % right": letters.wires(after),
    }
    changed = [bool((a != b).all()) for a, b in zip(before.parameters(), after.parameters(), strict=True)]
    return Result(
        landscape.wiring(stages, inputs=names, outputs=letters.LANGUAGES),
        alt="The network wire by wire: eight letters, three hidden units, two languages. Before training all wires are "
        "thin. After it there are the same wires, many of them thick, and it is nearly always right.",
        claims=(
            ("the architecture is the one that we built", str(before) == str(after)),
            ("every one of the parameters has another value", all(changed)),
            ("over 90 % of unseen sentences are told right", above(scores[after], 90)),
        ),
        came=scores[after],
        outcome="Nobody told the network which letters belong to which language: that now stands in the strengths of "
        "its wires. Two solid wires in a row, or two dashed ones, speak *for* a language, one of each *against* it.",
    )


def size(curves: Mapping[str, Sequence[words.Measured]], *, bet=None) -> Result:
    alone, near = curves.values()
    return Result(
        landscape.price_of_accuracy(curves, bet),
        alt="Words translated right against multiplications for one word. Seeing the word alone, the curve is flat at "
        "about 70 percent from the middle size on. With neighbours it climbs to over 95 percent, steeply first, then "
        "slowly.",
        claims=(
            ("the word alone: the largest size buys next to nothing",
             below(abs(alone[2].accuracy - alone[1].accuracy), 0.02)),
            ("with neighbours a third of the parameters is over 10 points better",
             above(near[1].accuracy - alone[2].accuracy, 0.1), near[1].parameters < alone[2].parameters / 3),
            ("adjectives beside a noun that they never met: under half right alone, over 85 % with neighbours",
             below(alone[2].new_pairs, 0.5), above(near[2].new_pairs, 0.85)),
        ),
        came=100 * alone[2].accuracy,
        outcome="Whether *the* is *le* or *la* depends on the noun, and no wire leads there. What no wire brings in, "
        "no parameter can use.",
    )  # fmt: skip


def sentence(largest: words.Measured, text: str, *, bet=None) -> Result:
    english, written = text.split(), words.translate(largest, text)
    fig = word_links(english, written, [(i, i) for i in range(len(english))])
    known, _ = vocabularies()
    return Result(
        fig,
        alt=f"“{text}” and below each word the French word that the network names for it. The French adjectives stand "
        "before their noun, as in English.",
        claims=(
            ("the network has met each of these words", all(word in known for word in english)),
            ("one French word for each English one, in its order", len(written) == len(english)),
        ),
        outcome="In French one says *la zone économique européenne*, in the opposite order. A network that writes word "
        "$i$ at place $i$ has no way to say so, however large it is. What it lacks is a way to **look where it needs "
        "to look**. That is attention, and lesson 05.",
    )


def takeovers(*, bet=None) -> Result:
    return Result(
        landscape.takeovers(LANDSCAPE, first=2008, last=2025),
        alt="A timeline with one row for each community. Transformers, in dark blue, replace seq2seq in translation in "
        "2017, LSTMs in language in 2018, CNNs in vision and LSTMs in speech in 2020, GAIL in reinforcement learning "
        "and CNNs in science in 2021.",
    )


def course_map(*, bet=None) -> Result:
    return Result(
        landscape.course_map(LESSONS, PLACES, BUILDS_ON),
        alt="The map. From 00 two roads start: 01, 02 and 14 for vision; 03, 04, 05, 06 for language. 06 leads to 07 "
        "BERT, to 08 GPT with 09 and 10, and, together with 02, to 11 Vision Transformer with 12 and 13. Lesson 15 "
        "builds on 08 and 12.",
    )


def lessons(*, bet=None) -> Result:
    return Result(
        table_of_lessons(lessons_here()),
        alt="All sixteen lessons, as links, and what each is about.",
    )


RESULTS = {
    "letters": wiring,
    "wires": size,
    "sentence": sentence,
    "takeovers": takeovers,
    "map": course_map,
    "lessons": lessons,
}
