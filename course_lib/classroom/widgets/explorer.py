"""One definition of a thing to play with: controls, and a drawing that depends on nothing but their values.

`Explorer.live` shows it with a kernel, `Explorer.frame` draws any one state for a page, a slide or a test without one.
"""

import html
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ipywidgets as widgets
import matplotlib as mpl
from matplotlib.figure import Figure

from course_lib.classroom.markup import inline_html, to_html, to_plain
from course_lib.classroom.output import GREY, RED, in_notebook, panel, picture_html, present
from course_lib.viz.style import STYLE

State = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Control(ABC):
    """One thing to move: `name` is its key in the state, `label` what the learner reads."""

    name: str
    label: str

    @abstractmethod
    def check(self, value: Any) -> Any:
        """Return the value in its normal form; raises ValueError if the control cannot take it."""

    @abstractmethod
    def build(self, changed: Callable[[Any], None]) -> tuple[widgets.Widget, Callable[[Any], None]]:
        """Return the live control and a function that sets it; `changed` hears each new value."""

    @abstractmethod
    def words(self, value: Any) -> str:
        """Return the value as a reader would say it."""

    @property
    @abstractmethod
    def start(self) -> Any:
        """The value that the control starts with."""


@dataclass(frozen=True, kw_only=True)
class Slider(Control):
    """A number between `low` and `high`, in steps of `step`; with `log` the bounds and steps are powers of ten."""

    low: float
    high: float
    step: float
    value: float
    log: bool = False

    @property
    def start(self) -> float:
        return self.value

    def check(self, value: Any) -> float:
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        if not low - 1e-9 <= value <= high + 1e-9:
            raise ValueError(f"{self.label} must lie between {low:g} and {high:g}, but got {value}.")
        return value

    def build(self, changed):
        kind = widgets.FloatLogSlider if self.log else widgets.FloatSlider
        slider = kind(
            value=self.value,
            min=self.low,
            max=self.high,
            step=self.step,
            description=self.label,
            readout_format=".2f",
            **_LABELLED,
        )
        slider.observe(lambda change: changed(change["new"]), "value")
        return slider, partial(setattr, slider, "value")

    def words(self, value: Any) -> str:
        return f"{value:.2f}"


@dataclass(frozen=True, kw_only=True)
class Choice(Control):
    """One of a few values, each with the words that the learner reads; starts with the first, or with `value`."""

    options: Mapping[str, Any]
    value: Any = None

    @property
    def start(self) -> Any:
        return next(iter(self.options.values())) if self.value is None else self.value

    def check(self, value: Any) -> Any:
        if value not in self.options.values():
            allowed = ", ".join(map(repr, self.options.values()))
            raise ValueError(f"{self.label} must be one of {allowed}, but got {value!r}.")
        return value

    def build(self, changed):
        choice = widgets.Dropdown(
            options=list(self.options.items()), value=self.start, description=self.label, **_LABELLED
        )
        choice.observe(lambda change: changed(change["new"]), "value")
        return choice, partial(setattr, choice, "value")

    def words(self, value: Any) -> str:
        return next(words for words, option in self.options.items() if option == value)


@dataclass(frozen=True, kw_only=True)
class TextBox(Control):
    """A line of text; each of `examples` gets a button that puts it there."""

    value: str
    examples: Sequence[str] = ()

    @property
    def start(self) -> str:
        return self.value

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{self.label} must be text, but got {value!r}.")
        return value

    def build(self, changed):
        box = widgets.Text(
            value=self.value, description=self.label, **_LABELLED | {"layout": {"width": "min(64em, 98%)"}}
        )
        box.observe(lambda change: changed(change["new"]), "value")
        buttons = [_button(text, lambda _, text=text: setattr(box, "value", text)) for text in self.examples]
        tries = [widgets.Label(value="Try one of these:"), *buttons] if buttons else []
        return widgets.VBox([box, widgets.HBox(tries, layout=_ROW)], layout=widgets.Layout(width="100%")), partial(
            setattr, box, "value"
        )

    def words(self, value: Any) -> str:
        return value


@dataclass(frozen=True, kw_only=True)
class PaintGrid(Control):
    """A grid of squares to switch on and off; its value is a tuple of rows of True and False.

    `rows` and `columns` name its lines, `square(row, column, on)` says in words what a square means, and `presets` are
    named grids.
    """

    value: tuple[tuple[bool, ...], ...]
    rows: Sequence[str]
    columns: Sequence[str]
    square: Callable[[int, int, bool], str]
    presets: Mapping[str, tuple[tuple[bool, ...], ...]] = field(default_factory=dict)

    @property
    def start(self) -> tuple[tuple[bool, ...], ...]:
        return self.value

    def check(self, value: Any) -> tuple[tuple[bool, ...], ...]:
        grid = tuple(tuple(bool(cell) for cell in row) for row in value)
        shape, wanted = [len(row) for row in grid], [len(row) for row in self.value]
        if shape != wanted:
            raise ValueError(f"{self.label} must have rows of {wanted} squares, but got {shape}.")
        return grid

    def build(self, changed):
        squares = [[self._square(r, c, on) for c, on in enumerate(row)] for r, row in enumerate(self.value)]
        quiet = [False]  # many squares change at once: the learner sees one new drawing, not one a square

        def grid() -> tuple[tuple[bool, ...], ...]:
            return tuple(tuple(square.value for square in row) for row in squares)

        def flipped(row: int, column: int, change: Any) -> None:
            self._dress(squares[row][column], row, column)
            if not quiet[0]:
                changed(grid())

        def paint(value: tuple[tuple[bool, ...], ...]) -> None:
            quiet[0] = True
            try:
                for row, values in zip(squares, value, strict=True):
                    for square, on in zip(row, values, strict=True):
                        square.value = on
            finally:
                quiet[0] = False
            changed(grid())

        for r, row in enumerate(squares):
            for c, square in enumerate(row):
                square.observe(partial(flipped, r, c), "value")
        presets = [_button(name, lambda _, value=value: paint(value)) for name, value in self.presets.items()]
        names = [widgets.HTML(value=_CENTRED.format(html.escape(text))) for text in ("", *self.columns)]
        lines = [[widgets.Label(value=name), *row] for name, row in zip(self.rows, squares, strict=True)]
        board = widgets.GridBox(
            [*names, *(item for line in lines for item in line)],
            layout=widgets.Layout(
                grid_template_columns=f"max-content repeat({len(self.columns)}, 3.3em)", grid_gap="3px"
            ),
        )
        row = widgets.HBox(presets, layout=_ROW)
        return widgets.VBox([widgets.Label(value=self.label), row, board], layout=_AT_START), paint

    def words(self, value: Any) -> str:
        name = next((name for name, preset in self.presets.items() if preset == value), None)
        return name or f"{sum(map(sum, value))} of {sum(map(len, value))} squares on"

    def _square(self, row: int, column: int, on: bool) -> widgets.ToggleButton:
        square = widgets.ToggleButton(value=on, layout=widgets.Layout(width="3.3em", height="2.3em", margin="0"))
        self._dress(square, row, column)
        return square

    def _dress(self, square: widgets.ToggleButton, row: int, column: int) -> None:
        square.description = "✓" if square.value else "·"
        square.button_style = "info" if square.value else ""
        square.tooltip = self.square(row, column, square.value)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One state of an explorer as it stands on a page: `html` holds the drawing, `alt` says it in words."""

    state: State
    html: str
    alt: str


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """A thing to play with.

    `draw` turns a state into a Figure, or into HTML; `alt` says in words what is to be seen, and stands below the
    drawing, too, or above it with `words_first`. A ValueError of theirs is shown as the sentence it carries.

    `steps` names, for some controls, the values that a page without a kernel steps through: all their combinations are
    drawn in advance. Raises ValueError for two controls of one name, or for steps that a control cannot take or that
    leave out the value it starts with.
    """

    name: str
    title: str
    controls: Sequence[Control]
    draw: Callable[[State], Figure | str]
    alt: Callable[[State], str]
    beside: bool = False  # the controls stand left of the drawing, not above it
    words_first: bool = False
    steps: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [control.name for control in self.controls]
        if len(set(names)) < len(names):
            raise ValueError(f"The controls of {self.name!r} need different names, but are called {names}.")
        start = self.state()
        for name, values in self.steps.items():
            if start[name] not in [self.state(**{name: value})[name] for value in values]:
                raise ValueError(f"The steps of {name!r} must hold the value it starts with, {start[name]!r}.")

    def state(self, **changes: Any) -> State:
        """Return the state at the start, with some values changed.

        Raises ValueError for an unknown control or a value that it cannot take.
        """
        unknown = [name for name in changes if name not in {control.name for control in self.controls}]
        if unknown:
            known = ", ".join(control.name for control in self.controls)
            raise ValueError(f"{self.name!r} has no control {unknown[0]!r}; it has {known}.")
        return {c.name: c.check(changes[c.name]) if c.name in changes else c.start for c in self.controls}

    def frame(self, state: State | None = None) -> Frame:
        """Draw one state; a drawing that fails becomes a sentence."""
        state = self.state() if state is None else self.state(**state)
        try:
            alt = " ".join(self.alt(state).split())
            with mpl.rc_context(dict(STYLE)):
                drawn = self.draw(state)
                body = drawn if isinstance(drawn, str) else picture_html(drawn, alt=alt)
        except Exception as error:  # whatever the learner sets, the page answers with a sentence
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            alt = f"This setting cannot be drawn. {reason}"
            return Frame(state=state, html=panel(to_html(f"✗ {html.unescape(alt)}"), colour=RED), alt=alt)
        words = panel(to_html(alt), colour=GREY)
        return Frame(state=state, html=words + body if self.words_first else body + words, alt=alt)

    def stepper(self) -> str:
        """Return HTML with a frame for each combination of the steps, of which one is open: for pages without a kernel.

        Each frame is a <details> that any browser can open. A deck turns them into controls: `data-controls` holds
        their labels and the words of their values, `data-at` the place of a frame among them.
        """
        moved = [control for control in self.controls if control.name in self.steps]
        values = [[control.check(value) for value in self.steps[control.name]] for control in moved]
        labels = [
            [to_plain(c.label), [c.words(value) for value in options]] for c, options in zip(moved, values, strict=True)
        ]
        start, frames = self.state(), []
        for places in itertools.product(*(range(len(options)) for options in values)):
            chosen = {c.name: options[i] for c, options, i in zip(moved, values, places, strict=True)}
            words = "; ".join(f"{label}: {texts[i]}" for (label, texts), i in zip(labels, places, strict=True))
            is_open = " open" if start | chosen == start else ""
            at = " ".join(map(str, places))
            summary = f"<summary>{html.escape(words)}</summary>"
            frames.append(f'<details data-at="{at}"{is_open}>{summary}{self.frame(start | chosen).html}</details>')
        controls = html.escape(json.dumps(labels, ensure_ascii=False))
        return f'<div class="course-stepper" data-controls="{controls}">{"".join(frames)}</div>'

    def widget(self) -> widgets.Box:
        """Return the live form; a change of a control redraws in place."""
        return _Live(self).box

    def live(self) -> None:
        """Show the live form; where there is no kernel the page shows the first frame, or the steps."""
        first = self.frame()
        settings = [f"{to_plain(c.label)}: {c.words(c.start)}" for c in self.controls]
        plain = "\n".join([to_plain(self.title), *(f"  {setting}" for setting in settings), to_plain(first.alt)])
        heading = f"<p><strong>{inline_html(self.title)}</strong></p>"
        static = f"{heading}<p>{inline_html('; '.join(settings))}</p>{self.stepper() if self.steps else first.html}"
        present(plain, static, widget=self.widget() if in_notebook() else None)


class _Live:
    """The state behind one live explorer on the page."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.state = explorer.state()
        self.drawing = widgets.HTMLMath(value=explorer.frame(self.state).html)
        self.setters: dict[str, Callable[[Any], None]] = {}
        self.silent = False
        controls = []
        for control in explorer.controls:
            built, self.setters[control.name] = control.build(partial(self.changed, control.name))
            controls.append(built)
        reset = _button("Back to the start", lambda _: self.reset())
        heading = widgets.HTML(value=f"<strong>{inline_html(explorer.title)}</strong>")
        if explorer.beside:
            left = widgets.VBox([*controls, reset], layout=_AT_START)
            self.drawing.layout = {"flex": "1 1 24em", "min_width": "22em"}
            body = widgets.HBox([left, self.drawing], layout=_ROW)
        else:
            body = widgets.VBox([widgets.HBox([*controls, reset], layout=_ROW), self.drawing])
        self.box = widgets.VBox([heading, body])
        self.box.explorer = self

    def changed(self, name: str, value: Any) -> None:
        """Take a control's new value and redraw."""
        self.state = self.state | {name: value}
        if not self.silent:
            self.redraw()

    def redraw(self) -> None:
        """Replace the drawing."""
        self.drawing.value = self.explorer.frame(self.state).html

    @contextmanager
    def together(self):
        """Many controls change; the drawing follows once."""
        self.silent = True
        try:
            yield
        finally:
            self.silent = False
            self.redraw()

    def reset(self) -> None:
        """Set every control back to its start."""
        with self.together():
            for control in self.explorer.controls:
                self.setters[control.name](control.start)


_AT_START = {"align_items": "flex-start", "max_width": "26em"}
_ROW = {"flex_flow": "row wrap", "align_items": "flex-start"}
_CENTRED = '<small style="display:block;text-align:center">{}</small>'
_LABELLED = {"style": {"description_width": "11em"}, "layout": {"width": "29em"}}


def _button(text: str, clicked: Callable[[Any], None]) -> widgets.Button:
    button = widgets.Button(description=text, layout=widgets.Layout(width="auto"))
    button.on_click(clicked)
    return button
