"""What one plays with in lesson 00: a box that tells English from French, and the choice of the letters it looks at."""

import html
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial

import ipywidgets as widgets
from torch import Tensor, nn, tensor

from course_lib.classroom.widgets import Explorer, Goal, TextBox
from course_lib.classroom.widgets.controls import AT_START, button
from course_lib.lessons.lesson_00 import landscape
from course_lib.lessons.lesson_00.letters import LANGUAGES, Shares, Trained, train, wires
from course_lib.training.translation import splits

# ----------------------------------------------------------------------------------------------- English or French?

EXAMPLES = ("il fait beau aujourd'hui", "to be or not to be", "guten Tag zusammen")
MORE = ("the restaurant menu is unusual", "I love you", "uuu")


def language(
    network: nn.Module, shares: Shares, letters: str, softmax: Callable[[Tensor], Tensor] = lambda x: x.softmax(dim=-1)
) -> Explorer:
    """A text of one's own, and how sure the network is of either language, by the learner's softmax."""

    def beliefs(text: str) -> list[float]:
        words = text.lower().split()
        if not words:
            raise ValueError("Type at least one word.")
        return softmax(network(tensor([shares(words, letters)])))[0].tolist()

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
        steps={"text": (start, *EXAMPLES, *MORE)},
    )


# ------------------------------------------------------------------------------------------------- which letters?

MOST = 8  # letters


@dataclass(frozen=True, kw_only=True)
class Letters(TextBox):
    """A few letters to look at; Enter trains a network on them, and a board keeps the best of what was tried."""

    score: Callable[[str], float]  # percent

    def build(self, changed):
        box = widgets.Text(value=self.value, description=self.label, continuous_update=False)
        board = widgets.HTML()
        tried: dict[str, float] = {}

        def note(text: str) -> None:
            with suppress(ValueError):  # the drawing says why
                tried[tidy(text)] = self.score(text)
            board.value = board_html(tried)

        box.observe(lambda change: (note(change["new"]), changed(change["new"])), "value")
        note(self.value)
        train_it = button("Train", lambda _: None)  # leaving the box is enough, as is Enter
        return widgets.VBox([box, train_it, board], layout=AT_START), partial(setattr, box, "value")


def choose(shares: Shares, letters: str) -> Explorer:
    """The same network, trained anew on letters of one's own: how often is it right on unseen sentences?"""
    data = splits(4_000)

    @cache
    def trained(tidied: str) -> Trained:
        return train(shares, tidied, data.train[:2000], data.test)

    def result(text: str) -> Trained:
        return trained(tidy(text))

    def percent(text: str) -> float:
        return 100 * result(text).accuracy

    def goal(words: str, fits: Callable[[str, float], bool]) -> Goal:
        return Goal(words, lambda state: fits(tidy(state["letters"]), percent(state["letters"])))

    def draw(state):
        found = result(state["letters"])
        title = f"{100 * found.accuracy:.1f} % of unseen sentences right"
        return landscape.letters_at_work(
            wires(found.network), found.means, inputs=found.letters, outputs=LANGUAGES, title=title
        )

    return Explorer(
        name="choose",
        title="Which letters tell English from French?",
        controls=[Letters(name="letters", label="Your letters", value=letters, score=percent)],
        draw=draw,
        alt=lambda state: f"By {', '.join(tidy(state['letters']))}: about {percent(state['letters']):.0f} % right.",
        beside=True,
        goals=(
            goal("96 % with only four letters", lambda tidied, score: len(tidied) <= 4 and score >= 96),
            goal("97.5 % with at most eight", lambda tidied, score: score >= 97.5),
            goal("letters that say nothing: below 58 % with three or more", lambda t, score: len(t) > 2 and score < 58),
        ),
        steps={"letters": (letters, "aeiou", "th", "q")},
    )


def tidy(text: str) -> str:
    """The letters in a text, each once, in their order. Raises ValueError without a letter, or for too many."""
    found = "".join(dict.fromkeys(character for character in text.lower() if character.isalpha()))
    if not 1 <= len(found) <= MOST:
        raise ValueError(f"Choose 1 to {MOST} letters; these are {len(found)}.")
    return found


def board_html(tried: dict[str, float]) -> str:
    """The best that was tried with each number of letters."""
    rows = ""
    for number in range(1, MOST + 1):
        best = max((letters for letters in tried if len(letters) == number), key=tried.get, default="")
        score = f"{tried[best]:.1f} %" if best else "–"
        texts = (str(number), score, f"<code>{html.escape(best)}</code>")
        rows += f'<tr style="background:none">{"".join(f"<td>{text}</td>" for text in texts)}</tr>'
    head = '<tr><th scope="col">letters</th><th scope="col">right</th><th></th></tr>'
    caption = '<caption style="text-align:left;color:inherit">Your best so far</caption>'
    return f'<table style="line-height:1.3">{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>'
