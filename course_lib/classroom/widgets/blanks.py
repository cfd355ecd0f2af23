"""A sentence whose words can be hidden, by a click or by brackets around them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import ipywidgets as widgets

from course_lib.classroom.widgets.controls import ROW
from course_lib.classroom.widgets.sentence import Sentence


class Word(NamedTuple):
    """A word of the sentence, None where nobody says which; and whether the model may not see it."""

    text: str | None
    hidden: bool


@dataclass(frozen=True, kw_only=True)
class Blanks(Sentence):
    """A line of text with a button for each word, which hides it or shows it again.

    `cut` makes words of a text, and may raise ValueError where it cannot; `join` writes them down again. Only the first
    `most` words have a button.
    """

    cut: Callable[[str], Sequence[Word]]
    join: Callable[[Sequence[Word]], str]
    most: int = 30

    def build(self, changed):
        box, put = super().build(changed)
        text, row, label = box.children[0], widgets.HBox(layout=ROW), widgets.Label(value="Hide or show:")
        chips: list[widgets.ToggleButton] = []  # kept when the words change, so that the keyboard's focus stays
        words: list[Word] = []
        quiet = [False]

        def clicked(place: int) -> None:
            if not quiet[0]:
                turned = words[place]._replace(hidden=not words[place].hidden)
                text.value = self.join([*words[:place], turned, *words[place + 1 :]])

        def dress(_: object = None) -> None:
            words[:] = self._words(text.value)
            while len(chips) < min(len(words), self.most):
                chip, place = widgets.ToggleButton(layout={"width": "auto"}), len(chips)
                chip.observe(lambda _, place=place: clicked(place), "value")
                chips.append(chip)
            quiet[0] = True
            for chip, word in zip(chips, words, strict=False):
                chip.description, chip.value, chip.disabled = word.text or "?", word.hidden, word.text is None
                chip.tooltip = f"{'Show' if word.hidden else 'Hide'} “{word.text or 'the blank'}”"
                chip.button_style = "info" if word.hidden else ""
            quiet[0] = False
            if row.children != (wanted := (label, *chips[: len(words)])):  # drawn anew, all would lose the focus
                row.children = wanted

        text.observe(dress, "value")
        dress()
        box.children = (text, row, *box.children[1:])
        return box, put

    def _words(self, text: str) -> list[Word]:
        try:
            return list(self.cut(text))
        except ValueError:
            return []
