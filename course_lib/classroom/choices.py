"""Options that are clicked themselves: their whole text, formulas included, lies on a button named A, B, C, ..."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import ipywidgets as widgets

from course_lib.classroom.markup import inline_html, letter, plain_list, to_plain

# A button of ipywidgets takes plain text only. So its letter is on the button, which fills the row, and the text lies
# above it and lets clicks through.
STYLE = """<style>
.course-options { margin: 0.2em 0; max-width: 52em; overflow: visible; }
.course-option { position: relative; margin: 3px 2px; overflow: visible; }
.course-option > .jupyter-button { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; padding: 0.45em;
  display: flex; align-items: flex-start; justify-content: flex-start; font-weight: bold; line-height: 1.45;
  border: 1px solid #767676; border-radius: 6px; }
.course-option > .course-text { position: relative; pointer-events: none; height: auto; margin: 0;
  padding: 0.45em 0.7em 0.45em 3.6em; }
.course-option > .course-text > div { line-height: 1.45; }
.course-option > .jupyter-button:focus-visible { outline: 2px solid var(--jp-brand-color1, #0072B2); }
</style>"""


def button(words: str, pressed: Callable[[], None]) -> widgets.Button:
    """Return a button as wide as its words."""
    made = widgets.Button(description=words, layout={"width": "auto", "align_self": "flex-start"})
    made.on_click(lambda _: pressed())
    return made


class Choices:
    """One clickable row for each option; `choose` hears the number of the one that was clicked."""

    def __init__(self, options: Sequence[str], choose: Callable[[int], None], *, several: bool = False) -> None:
        if not 2 <= len(options) <= 26:
            raise ValueError(f"There must be 2 to 26 options to choose from, but got {len(options)}.")
        self.options, self.choose = [inline_html(option) for option in options], choose
        kind = widgets.ToggleButton if several else widgets.Button
        self.buttons = [kind(tooltip=f"{letter(i)}: {to_plain(option)}") for i, option in enumerate(options)]
        self.texts = [widgets.HTMLMath().add_class("course-text") for _ in options]
        for index, own in enumerate(self.buttons):
            heard = partial(self._heard, index)
            own.observe(heard, "value") if several else own.on_click(heard)
            self.mark(index)
        rows = [widgets.Box(pair).add_class("course-option") for pair in zip(self.buttons, self.texts, strict=True)]
        style = widgets.HTML(STYLE, layout={"display": "none"})
        self.box = widgets.VBox([style, *rows]).add_class("course-options")

    def mark(self, index: int, sign: str = "", remark: str = "") -> None:
        """Put a sign beside an option's letter, and words behind its text."""
        self.buttons[index].description = f"{letter(index)} {sign}".strip()
        self.texts[index].value = self.options[index] + (f" <strong>{remark}</strong>" if remark else "")

    def _heard(self, index: int, _event: Any) -> None:
        self.choose(index)


def plain_options(options: Sequence[str]) -> str:
    """Return the options, each behind its letter, as plain text."""
    return "\n".join(f"  {letter(i)}. {to_plain(option)}" for i, option in enumerate(options))


def html_options(options: Sequence[str]) -> str:
    """Return the options, each behind its letter, as HTML."""
    return plain_list(f"<strong>{letter(i)}.</strong> {inline_html(option)}" for i, option in enumerate(options))
