"""What a learner moves: a slider, a choice, a line of text, a grid to paint."""

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ipywidgets as widgets


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
        """Return the live control and a function that sets it; `changed` hears each new value.

        A value that passes by, as in the middle of a stroke, comes with `settled=False`; that a hand still holds a
        slider the explorer knows by itself.
        """

    @abstractmethod
    def words(self, value: Any) -> str:
        """Return the value as a reader would say it."""

    def remark(self, value: Any) -> str:
        """Return what a reader should know of this value before the drawing; mostly nothing."""
        return ""

    def same(self, one: Any, other: Any) -> bool:
        """Whether two values are one."""
        return one == other

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
            readout_format=self._format,
            **LABELLED,
        )
        slider.observe(lambda change: changed(change["new"]), "value")
        return slider, partial(setattr, slider, "value")

    def words(self, value: Any) -> str:
        return format(value, self._format)

    @property
    def _format(self) -> str:
        """Two decimals; none of whole numbers, as how many of something; powers of ten of the huge and the tiny."""
        if self.log and (self.high > 4 or self.low < -2):
            return ".1e"
        return ".0f" if not self.log and float(self.step).is_integer() and float(self.low).is_integer() else ".2f"


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
            options=list(self.options.items()), value=self.start, description=self.label, **LABELLED
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
        box = widgets.Text(value=self.value, description=self.label, **WIDE)
        box.observe(lambda change: changed(change["new"]), "value")
        buttons = [button(text, lambda _, text=text: setattr(box, "value", text)) for text in self.examples]
        tries = [widgets.Label(value="Try one of these:"), *buttons] if buttons else []
        return widgets.VBox([box, widgets.HBox(tries, layout=ROW)], layout=widgets.Layout(width="100%")), partial(
            setattr, box, "value"
        )

    def words(self, value: Any) -> str:
        return value


@dataclass(frozen=True, kw_only=True)
class PaintGrid(Control):
    """A grid of squares to switch on and off; its value is a tuple of rows of True and False.

    `rows` and `columns` name its lines, `square(row, column, on)` says in words what a square means, and `presets` are
    named grids, of which those in `buttons` get one: all, unless told.
    """

    value: tuple[tuple[bool, ...], ...]
    rows: Sequence[str]
    columns: Sequence[str]
    square: Callable[[int, int, bool], str]
    presets: Mapping[str, tuple[tuple[bool, ...], ...]] = field(default_factory=dict)
    buttons: Sequence[str] | None = None

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
        shown = self.presets if self.buttons is None else self.buttons
        presets = [button(name, lambda _, name=name: paint(self.presets[name])) for name in shown]
        names = [widgets.HTML(value=_CENTRED.format(html.escape(text))) for text in ("", *self.columns)]
        lines = [[widgets.Label(value=name), *row] for name, row in zip(self.rows, squares, strict=True)]
        board = widgets.GridBox(
            [*names, *(item for line in lines for item in line)],
            layout=widgets.Layout(
                grid_template_columns=f"max-content repeat({len(self.columns)}, 3.3em)", grid_gap="3px"
            ),
        )
        row = widgets.HBox(presets, layout=ROW)
        return widgets.VBox([widgets.Label(value=self.label), row, board], layout=AT_START), paint

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


AT_START = {"align_items": "flex-start", "max_width": "26em"}
ROW = {"flex_flow": "row wrap", "align_items": "flex-start"}
WIDE = {"style": {"description_width": "11em"}, "layout": {"width": "min(64em, 98%)"}}
_CENTRED = '<small style="display:block;text-align:center">{}</small>'
LABELLED = {"style": {"description_width": "11em"}, "layout": {"width": "29em"}}


def button(text: str, clicked: Callable[[Any], None]) -> widgets.Button:
    """A button as wide as its words."""
    made = widgets.Button(description=text, layout=widgets.Layout(width="auto"))
    made.on_click(clicked)
    return made


def in_column(built: widgets.Widget) -> None:
    """Make a labelled control as wide as the column in which it stands, beside a drawing."""
    for part in (built, *getattr(built, "children", ())):
        if part.layout.width == LABELLED["layout"]["width"]:
            part.layout.width, part.style.description_width = "98%", "9em"
