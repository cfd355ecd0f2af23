"""The card at a lesson's head and end: its beats with their minutes, what is done, and where to go on."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from course_lib.classroom.markup import inline_html, plain_list, to_html
from course_lib.classroom.output import BLUE, THEMES, panel
from course_lib.classroom.session import LESSONS
from course_lib.data.place import CannotStart, course_folder


@dataclass(frozen=True)
class Beat:
    """One part of a lesson; `holds` names the items in it, so that the card knows what is done."""

    title: str
    minutes: float
    holds: tuple[str, ...] = ()
    optional: bool = False


@dataclass
class Item:
    """Something to do in a beat, as the card tells of it; `bet` says what was bet and what came."""

    words: str
    done: bool
    bet: str = ""


@dataclass
class Part:
    """A beat with its number on the card (none if it is optional) and the learner's items in it."""

    beat: Beat
    number: int | None
    items: list[Item] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The beat as one would call it: 'beat 4, Write', or 'optional, Order'."""
        return f"{f'beat {self.number}' if self.number else 'optional'}, {self.beat.title}"

    @property
    def state(self) -> str:
        """How far the learner is."""
        done, total = sum(item.done for item in self.items), len(self.items)
        if not total:
            return ""
        return "✓ done" if done == total else f"{done} of {total} done" if done else "open"

    def open_items(self) -> list[Item]:
        """Return what is still to be done."""
        return [item for item in self.items if not item.done]


def number_beats(beats: Sequence[Beat]) -> Iterator[tuple[int | None, Beat]]:
    """Yield each beat with its number; optional ones have none."""
    number = 0
    for beat in beats:
        number += not beat.optional
        yield None if beat.optional else number, beat


def minutes(beats: Sequence[Beat]) -> str:
    """Return the lesson's length in words."""
    needed, optional = (sum(beat.minutes for beat in beats if beat.optional is kind) for kind in (False, True))
    return f"{needed:g} minutes" + (f", and {optional:g} that are optional" if optional else "")


def plain_card(lesson: str, beats: Sequence[Beat]) -> str:
    """Return the head card as plain text, the same for every reader."""
    rows = [f"  {number or '+'} {beat.title} ({beat.minutes:g} min)" for number, beat in number_beats(beats)]
    return "\n".join([f"Lesson {lesson}, {LESSONS[lesson]}: {minutes(beats)}", *rows])


def html_card(lesson: str, beats: Sequence[Beat], parts: Sequence[Part] = ()) -> str:
    """Return the head card as HTML; with a learner's `parts`, what is done and where to go on."""
    states = [part.state for part in parts] or [""] * len(beats)
    left = 'style="text-align:left;padding:0.15em 1.2em 0.15em 0"'
    rows = "".join(
        f'<tr><td {left}>{number or "optional"}</td><th scope="row" {left}>{inline_html(beat.title)}</th>'
        f"<td {left}>{beat.minutes:g} min</td>{f'<td {left}>{state}</td>' if parts else ''}</tr>"
        for (number, beat), state in zip(number_beats(beats), states, strict=True)
    )
    columns = ("Beat", "Title", "Time", *(["Done"] if parts else []))
    head = "".join(f'<th scope="col" {left}>{column}</th>' for column in columns)
    title = f"<strong>Lesson {lesson}, {html.escape(LESSONS[lesson])}</strong>: {minutes(beats)}"
    table = (
        f'<table style="margin:0.4em 0;font-size:inherit"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        if beats
        else ""
    )
    return panel(f"{THEMES}<p>{title}</p>{table}" + (to_html(where_next(parts)) if parts else ""), colour=BLUE)


def where_next(parts: Sequence[Part]) -> str:
    """Return where the learner goes on: the first beat, not an optional one, with something open in it."""
    needed = [part for part in parts if part.number]
    going = next((part for part in needed if part.open_items()), None)
    if going is None:
        return "✓ **All done.**" if any(part.items for part in needed) else ""
    if not any(item.done for part in parts for item in part.items):
        return f"**Begin at beat 1: {needed[0].beat.title}**"
    return f"**Go on at beat {going.number}: {going.beat.title}**"


def html_end(lesson: str, beats: Sequence[Beat], parts: Sequence[Part]) -> str:
    """Return the closing card as HTML: what was bet and what came, what is open, what comes next."""
    bets = [f"{item.words}: {item.bet}" for part in parts for item in part.items if item.bet]
    still = [(part, item) for part in parts for item in part.open_items()]
    text = html_card(lesson, beats, parts)
    if bets:
        text += panel(to_html("**You bet, and it came**") + plain_list(map(inline_html, bets)))
    if still:
        rows = (inline_html(f"{part.name}: {item.words}") for part, item in still)
        text += panel(to_html("**Still open**") + plain_list(rows))
    where = f"<p>{_where(lesson)}</p>" if following(lesson) else ""
    return text + panel(to_html(next_lesson(lesson)) + where)


def following(lesson: str) -> str | None:
    """Return the number of the next lesson."""
    number = f"{int(lesson) + 1:02d}"
    return number if number in LESSONS else None


def next_lesson(lesson: str) -> str:
    """Return what comes next, in words that are the same for every reader."""
    number = following(lesson)
    return f"**Next: lesson {number}, {LESSONS[number]}.**" if number else "**This was the last lesson.**"


def _where(lesson: str) -> str:
    """Where the next lesson is, as HTML; a link beside this notebook opens in JupyterLab and on the site."""
    try:
        later = sorted(path.name for path in (course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    except CannotStart:
        later = []
    later = [name for name in later if name[:2] > lesson]
    if later and later[0].startswith(following(lesson)):
        return f"It is in {_link(later[0])}."
    return "It is not written yet" + (f": go on with {_link(later[0])}." if later else ".")


def _link(notebook: str) -> str:
    return f'<a href="{html.escape(notebook)}">{html.escape(notebook)}</a>'
