"""What one plays with in lesson 00: a box that tells English from French, and the choice of the letters it reads."""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor, nn, tensor

from course_lib.classroom.widgets import Explorer, Goal, TextBox
from course_lib.classroom.widgets.pixels import in_base64
from course_lib.data.translation import SentencePair
from course_lib.lessons.lesson_00 import landscape
from course_lib.lessons.lesson_00.letters import (
    HIDDEN,
    LANGUAGES,
    STEPS,
    Frequencies,
    Trained,
    fresh_network,
    train,
    wires,
)
from course_lib.training.translation import splits

# ----------------------------------------------------------------------------------------------- English or French?

EMPTY = "Type at least one word."
EXAMPLES = ("il fait beau aujourd'hui", "to be or not to be", "guten Tag zusammen")


def language(
    network: nn.Module,
    frequencies: Frequencies,
    letters: str,
    softmax: Callable[[Tensor], Tensor] = lambda x: x.softmax(dim=-1),
) -> Explorer:
    """A text of one's own, and the probability of either language, by the learner's softmax."""

    def beliefs(text: str) -> list[float]:
        words = text.lower().split()
        if not words:
            raise ValueError(EMPTY)
        return softmax(network(tensor([frequencies(words, letters)])))[0].tolist()

    def verdict(text: str) -> str:
        found = beliefs(text)
        return LANGUAGES[found.index(max(found))]

    start = "the weather is fine today"
    return Explorer(
        name="language",
        title="English or French?",
        controls=[TextBox(name="text", label="Your text", value=start, examples=EXAMPLES)],
        draw=lambda state: landscape.belief_bars(LANGUAGES, beliefs(state["text"])),
        alt=lambda state: f"“{state['text']}”: the network says {verdict(state['text'])}.",
        steps={"text": (start, *EXAMPLES)},
        script="belief",
        config={
            "letters": letters,
            "layers": [
                [one.weight.tolist(), one.bias.tolist()] for one in network.modules() if isinstance(one, nn.Linear)
            ],
            "languages": LANGUAGES,
            "examples": EXAMPLES,
            "empty": EMPTY,
            "start": start,
        },
        answers={"beliefs": lambda asked: np.array(beliefs(asked["text"]))},
    )


# ------------------------------------------------------------------------------------------------- which letters?

MOST = 8  # letters
OURS = ("aeiou", "th", "q")  # on slides


def choose(frequencies: Frequencies, letters: str) -> Explorer:
    """The same network, trained anew on letters of one's own: how often is it right on unseen sentences?"""
    data = splits(4_000)

    @cache
    def trained(tidied: str) -> Trained:
        return train(frequencies, tidied, data.train[:2000], data.test)

    def result(text: str) -> Trained:
        return trained(tidy(text))

    def percent(text: str) -> float:
        return 100 * result(text).accuracy

    def goal(words: str, fits: Callable[[str, float], bool]) -> Goal:
        return Goal(words, lambda state: fits(tidy(state["letters"]), percent(state["letters"])))

    def draw(state) -> Figure:
        found = result(state["letters"])
        title = f"{100 * found.accuracy:.1f} % of unseen sentences correct"
        return landscape.letters_at_work(
            wires(found.network), found.means, inputs=found.letters, outputs=LANGUAGES, title=title
        )

    def in_words(state) -> str:
        seen = ", ".join(tidy(state["letters"]))
        return f"By {seen}: over {math.floor(percent(state['letters']))} % right."

    return Explorer(
        name="choose",
        title="Which letters tell English from French?",
        controls=[TextBox(name="letters", label="Your letters", value=letters)],
        draw=draw,
        alt=in_words,
        goals=(
            goal("96 % with only four letters", lambda tidied, score: len(tidied) <= 4 and score >= 96),
            goal("97.5 % with at most eight", lambda tidied, score: score >= 97.5),
            goal(
                "letters without information: below 58 % with three or more", lambda t, score: len(t) > 2 and score < 58
            ),
        ),
        steps={"letters": (letters, *OURS)},
        script="letters",
        config={
            **_counted(frequencies, data.train[:2000], data.test),
            "starts": [_flat(fresh_network(count)) for count in range(1, MOST + 1)],
            "hidden": HIDDEN,
            "most": MOST,
            "steps": STEPS,
            "languages": LANGUAGES,
            "start": letters,
        },
    )


def _counted(frequencies: Frequencies, known: Sequence[SentencePair], unseen: Sequence[SentencePair]) -> dict:
    """How often each letter of these sentences stands in each of them, English and French in turn, as bytes."""
    sentences = [words for pair in (*known, *unseen) for words in (pair.english, pair.french)]
    sizes = np.array([len("".join(words)) for words in sentences])
    alphabet = "".join(sorted({letter for words in sentences for letter in "".join(words) if letter.isalpha()}))
    counts = np.array([frequencies(words, alphabet) for words in sentences]) * sizes[:, None] / 10
    return {
        "alphabet": alphabet,
        "counts": in_base64(counts.round().astype(np.uint8)),
        "sizes": in_base64(sizes[:, None].astype(np.uint8)),
        "train": 2 * len(known),
    }


def _flat(network: nn.Sequential) -> list[float]:
    """The parameters, one after the other."""
    return [value for parameter in network.parameters() for value in parameter.flatten().tolist()]


def tidy(text: str) -> str:
    """The letters in a text, each once, in their order. Raises ValueError without a letter, or for too many."""
    found = "".join(dict.fromkeys(character for character in text.lower() if character.isalpha()))
    if not 1 <= len(found) <= MOST:
        raise ValueError(f"Choose 1 to {MOST} letters; these are {len(found)}.")
    return found
