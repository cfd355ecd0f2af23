"""What one plays with in lesson 00: a box that tells English from French, and the choice of the letters it looks at."""

import html
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache

from torch import Tensor, nn, tensor

from course_lib.classroom.output import picture_html
from course_lib.classroom.widgets import Explorer, Goal, TextBox
from course_lib.lessons.lesson_00 import landscape
from course_lib.lessons.lesson_00.letters import LANGUAGES, Frequencies, Trained, train, wires
from course_lib.training.translation import splits

# ----------------------------------------------------------------------------------------------- English or French?

EXAMPLES = ("il fait beau aujourd'hui", "to be or not to be", "guten Tag zusammen")


def language(
    network: nn.Module,
    frequencies: Frequencies,
    letters: str,
    softmax: Callable[[Tensor], Tensor] = lambda x: x.softmax(dim=-1),
) -> Explorer:
    """A text of one's own, and how sure the network is of either language, by the learner's softmax."""

    def beliefs(text: str) -> list[float]:
        words = text.lower().split()
        if not words:
            raise ValueError("Type at least one word.")
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

    tried: dict[str, float] = {}

    def note(state) -> None:
        with suppress(ValueError):
            tried[tidy(state["letters"])] = percent(state["letters"])

    def draw(state) -> str:
        found = result(state["letters"])
        title = f"{100 * found.accuracy:.1f} % of unseen sentences right"
        fig = landscape.letters_at_work(
            wires(found.network), found.means, inputs=found.letters, outputs=LANGUAGES, title=title
        )
        picture = f'<div style="flex:0 1 auto;min-width:0">{picture_html(fig, alt=in_words(state))}</div>'
        return f'<div style="display:flex;gap:1.2em;align-items:flex-start">{picture}{board_html(tried)}</div>'

    def in_words(state) -> str:
        seen = ", ".join(tidy(state["letters"]))
        return f"By {seen}: over {math.floor(percent(state['letters']))} % right."

    return Explorer(
        name="choose",
        title="Which letters tell English from French?",
        controls=[TextBox(name="letters", label="Your letters", value=letters)],
        draw=draw,
        alt=in_words,
        height="35em",
        heard=note,
        goals=(
            goal("96 % with only four letters", lambda tidied, score: len(tidied) <= 4 and score >= 96),
            goal("97.5 % with at most eight", lambda tidied, score: score >= 97.5),
            goal("letters that say nothing: below 58 % with three or more", lambda t, score: len(t) > 2 and score < 58),
        ),
        steps={"letters": (letters, *OURS)},
    )


def tidy(text: str) -> str:
    """The letters in a text, each once, in their order. Raises ValueError without a letter, or for too many."""
    found = "".join(dict.fromkeys(character for character in text.lower() if character.isalpha()))
    if not 1 <= len(found) <= MOST:
        raise ValueError(f"Choose 1 to {MOST} letters; these are {len(found)}.")
    return found


def board_html(tried: Mapping[str, float]) -> str:
    """The best that the learner tried with each number of letters."""
    rows = "<strong>Your best so far</strong>"
    for number in range(1, MOST + 1):
        best = max((letters for letters in tried if len(letters) == number), key=tried.get, default="")
        rows += f"<div>{number}: {f'{tried[best]:.1f} %, {html.escape(best)}' if best else '–'}</div>"
    return f'<div style="flex:none;width:11em;font-size:min(1em,16px);line-height:1.6">{rows}</div>'
