"""A box for a sentence, for models that know some words and not others."""

import difflib
import html
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ipywidgets as widgets

from course_lib.classroom.widgets.controls import ROW, WIDE, TextBox, button

KEPT = 3  # sentences to compare


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text in small letters, without its punctuation."""
    return tuple(re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text.lower()))


@dataclass(frozen=True, kw_only=True)
class Sentence(TextBox):
    """A line of text that says which of its words are not in `vocabulary`, and lists the ones that are behind a fold.

    `answer`, if given, is the model's answer in a line: the last few sentences can be kept with theirs, to compare.
    """

    vocabulary: Sequence[str]
    split: Callable[[str], Sequence[str]] = split_words
    answer: Callable[[str], str] | None = None

    def remark(self, value: str) -> str:
        known = sorted(set(self.vocabulary))
        unknown = dict.fromkeys(word for word in self.split(value) if word not in set(known))
        return " ".join(_about(word, known) for word in unknown)

    def build(self, changed):
        box = widgets.Text(value=self.value, description=self.label, **WIDE)
        box.observe(lambda change: changed(change["new"]), "value")
        row = [button(text, lambda _, text=text: setattr(box, "value", text)) for text in self.examples]
        kept = widgets.HTML(value=_kept_html([]), layout={"flex": "1 1 0", "min_width": "0"})
        lines: deque[tuple[str, str]] = deque(maxlen=KEPT)

        def keep(*_) -> None:
            line = (box.value, self._answer_to(box.value))
            if line not in lines:
                lines.appendleft(line)
            kept.value = _kept_html(lines)

        if self.answer:
            box.on_msg(lambda _, content, __: content.get("event") == "submit" and keep())
        keeper = button("Keep to compare", keep)
        keeper.layout.flex = "0 0 auto"
        compare = [widgets.HBox([keeper, kept])] if self.answer else []
        aside = widgets.VBox([*compare, widgets.HTML(value=_fold(self.vocabulary))])
        aside.add_class("course-aside")
        parts = [box, widgets.HBox(row, layout=ROW), aside]
        return widgets.VBox(parts, layout=widgets.Layout(width="100%")), lambda value: setattr(box, "value", value)

    def _answer_to(self, text: str) -> str:
        try:
            return self.answer(text)
        except ValueError as error:
            return str(error)


_ONE_LINE = "line-height:1.4;white-space:nowrap;overflow:hidden;text-overflow:ellipsis"


def _about(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    did = f" Did you mean {' or '.join(f'“{other}”' for other in near)}?" if near else ""
    return f"I do not know the word “{word}” yet, so I can only guess.{did}"


def _kept_html(lines) -> str:
    """As many lines as there may be, so that the page does not move when one comes."""
    shown = [f"<strong>{html.escape(answer)}</strong> ← {html.escape(text)}" for text, answer in lines]
    empty = "Enter, or “Keep to compare”, keeps a sentence here."
    rows = (shown or [empty]) + ["&nbsp;"] * (KEPT - max(1, len(shown)))
    return "".join(f'<div style="{_ONE_LINE}">{row}</div>' for row in rows)


def _fold(vocabulary: Sequence[str]) -> str:
    words = ", ".join(map(html.escape, sorted(set(vocabulary))))
    return (
        "<style>.reveal .course-aside{display:none}</style>"  # a slide has no room for it
        f"<details><summary>The {len(set(vocabulary))} words it knows</summary>"
        f'<div style="max-height:9em;overflow:auto;line-height:1.4" tabindex="0">{words}</div></details>'
    )
