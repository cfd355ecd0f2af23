"""One definition of a thing to play with: controls, and a drawing that depends on nothing but their values.

`Explorer.live` shows it with a kernel, `Explorer.frame` draws any one state for a page, a slide or a test without one.
"""

import asyncio
import html
import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ipywidgets as widgets
import matplotlib as mpl
from matplotlib.figure import Figure

from course_lib.classroom.markup import inline_html, to_html, to_plain
from course_lib.classroom.output import GREY, RED, in_notebook, panel, picture_html, present, varies
from course_lib.classroom.widgets.controls import AT_START, ROW, Control, button, in_column
from course_lib.classroom.widgets.goals import Goal, GoalList
from course_lib.classroom.widgets.script import Answer, ScriptWidget
from course_lib.viz.style import STYLE

MIN_WIDTH = 480  # pixels of a drawing: beside the controls, on a page of 1,280, there are 490
PAUSE = 0.4  # seconds in which the last value of a slider arrives: the page sends it when the one before it is drawn

State = dict[str, Any]


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
    drawing, too, above it with `words_first`, or not at all with `speaks`: for HTML that can be read aloud as it is.
    A ValueError of theirs is shown as the sentence it carries. `height` is how much room the drawing gets, as CSS has
    it, so that the page does not move. `goals` are ticked on the page as they are reached; `heard` is told of each
    state that a learner sets, before it is drawn.

    `steps` names, for some controls, the values that a page without a kernel steps through: all their combinations are
    drawn in advance.

    With `script`, the name of a playground in the folder `browser`, the live form is computed on the page (see
    `script.py`), wherever scripts run: in JupyterLab, on the site and in a deck. `config` is what it gets from Python,
    beside the title and the texts of the goals; `answers` are what it can ask a kernel. Everything else here makes the
    static form, for print and for pages where no script runs, and `heard` hears nothing.

    Raises ValueError for two controls of one name, or for steps that a control cannot take or that leave out the value
    it starts with.
    """

    name: str
    title: str
    controls: Sequence[Control]
    draw: Callable[[State], Figure | str]
    alt: Callable[[State], str]
    beside: bool = False  # the controls stand left of the drawing, not above it
    words_first: bool = False
    speaks: bool = False
    varies: bool = False  # what it shows was trained on the page, see `output.varies`
    height: str | None = None
    goals: tuple[Goal, ...] = ()
    heard: Callable[[State], None] | None = None
    steps: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    script: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [control.name for control in self.controls]
        if len(set(names)) < len(names):
            raise ValueError(f"The controls of {self.name!r} need different names, but are called {names}.")
        start = self.state()
        for name, values in self.steps.items():
            if not any([self._same(self.state(**{name: value}), start) for value in values]):  # each is checked
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

    def _same(self, one: State, other: State) -> bool:
        return all(control.same(one[control.name], other[control.name]) for control in self.controls)

    def frame(self, state: State | None = None) -> Frame:
        """Draw one state; a drawing that fails becomes a sentence."""
        state = self.state() if state is None else self.state(**state)
        try:
            remarks = [remark for control in self.controls if (remark := control.remark(state[control.name]))]
            alt = " ".join(" ".join([*remarks, self.alt(state)]).split())
            with mpl.rc_context(dict(STYLE)):
                drawn = self.draw(state)
                body = drawn if isinstance(drawn, str) else picture_html(drawn, alt=alt, scale=1, min_width=MIN_WIDTH)
        except Exception as error:  # whatever the learner sets, the page answers with a sentence
            reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            alt = f"This setting cannot be drawn. {reason}"
            return Frame(state=state, html=panel(to_html(f"✗ {html.unescape(alt)}"), colour=RED), alt=alt)
        if self.speaks:
            said = "".join(panel(to_html(remark), colour=RED) for remark in remarks)
            return Frame(state=state, html=said + body, alt=alt)
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
            is_open = " open" if self._same(start | chosen, start) else ""
            at = " ".join(map(str, places))
            summary = f"<summary>{html.escape(words)}</summary>"
            frames.append(f'<details data-at="{at}"{is_open}>{summary}{self.frame(start | chosen).html}</details>')
        controls = html.escape(json.dumps(labels, ensure_ascii=False))
        return f'<div class="course-stepper" data-controls="{controls}">{"".join(frames)}</div>'

    def widget(self, touched: Callable[[], None] | None = None) -> widgets.Widget:
        """Return the live form; a change of a control redraws in place, and `touched` is called at the first one."""
        if self.script:
            return ScriptWidget(self.script, self._page_config(), answers=self.answers, touched=touched)
        return _Live(self, touched).box

    def _page_config(self) -> State:
        """What a script gets: JSON, the same each time."""
        return {"title": to_plain(self.title), "goals": [to_plain(goal.text) for goal in self.goals], **self.config}

    def live(self, touched: Callable[[], None] | None = None) -> None:
        """Show the live form; where there is no kernel the page shows the first frame, or the steps."""
        first = self.frame()
        settings = [f"{to_plain(c.label)}: {c.words(c.start)}" for c in self.controls]
        plain = [to_plain(self.title), *(f"  {setting}" for setting in settings)]
        plain.append(varies(to_plain(first.alt)) if self.varies else to_plain(first.alt))
        static = f"<p><strong>{inline_html(self.title)}</strong></p><p>{inline_html('; '.join(settings))}</p>"
        shown = self.stepper() if self.steps else first.html
        static += varies(shown) if self.varies and not self.script else shown
        if self.goals:
            goals = "Can you get there? " + " ".join(f"○ {goal.text}" for goal in self.goals)
            plain, static = [*plain, goals], f"{static}<p>{inline_html(goals)}</p>"
        if self.script:
            config = html.escape(json.dumps(self._page_config(), ensure_ascii=False))
            data = f'data-playground="{self.script}" data-config="{config}"'
            static = f'<div class="course-playground" {data}>{static}</div>'
            static = varies(static) if self.varies else static  # with its config
        present("\n".join(plain), static, widget=self.widget(touched) if in_notebook() else None)


class _Live:
    """The state behind one live explorer on the page."""

    one_at_a_time = threading.RLock()  # JupyterLab hands messages of different controls to different threads

    def __init__(self, explorer: Explorer, touched: Callable[[], None] | None = None) -> None:
        self.explorer, self.touched = explorer, touched
        self.state = explorer.state()
        room = {"height": explorer.height, "overflow": "auto"} if explorer.height else {}
        self.drawing = widgets.HTMLMath(value=explorer.frame(self.state).html, layout=room)
        self.setters: dict[str, Callable[[Any], None]] = {}
        self.silent = False
        self.passing = False  # the state has not been asked for goals, because a hand still moves it
        controls = []
        for control in explorer.controls:
            built, self.setters[control.name] = control.build(partial(self.changed, control.name))
            controls.append(built)
        reset = button("Back to the start", lambda _: self.reset())
        self.goals = GoalList(explorer.goals)  # what the start happens to reach does not count
        self.goals.observe(lambda change: None if change["new"] else self.let_go(), "held")
        heading = widgets.HTML(value=f"<strong>{inline_html(explorer.title)}</strong>")
        if explorer.beside:
            for control in controls:
                in_column(control)
            left = widgets.VBox([*controls, self.goals, reset], layout=AT_START)
            self.drawing.layout.flex, self.drawing.layout.min_width = "1 1 24em", "22em"
            body = widgets.HBox([left, self.drawing], layout=ROW)
        else:
            body = widgets.VBox([widgets.HBox([*controls, reset], layout=ROW), self.drawing, self.goals])
        self.box = widgets.VBox([heading, body])
        self.box.add_class("course-explorer")
        self.box.explorer = self

    def changed(self, name: str, value: Any, *, settled: bool = True) -> None:
        """Take a control's new value and redraw; no goal is reached by one that is not settled, nor in mid-drag."""
        with self.one_at_a_time:
            self.state = self.state | {name: value}
            if not self.silent:
                self.redraw(settled=settled and not self.goals.held)

    def let_go(self) -> None:
        """A slider was released; where it is then may still be on its way, so the goals wait for a moment."""
        try:
            asyncio.get_running_loop().call_later(PAUSE, self.rest)
        except RuntimeError:  # no messages arrive here
            self.rest()

    def rest(self) -> None:
        """Nothing has come since a slider was released: it stays where it is, which may reach a goal."""
        with self.one_at_a_time:
            if self.passing and not self.goals.held:
                self.see()

    def see(self) -> None:
        """Tick the goals that this state reaches."""
        self.passing = False
        self.goals.see(self.state)

    def redraw(self, *, settled: bool = True) -> None:
        """Replace the drawing."""
        touched, self.touched = self.touched, None
        if touched:
            touched()
        if self.explorer.heard:
            self.explorer.heard(self.state)
        self.drawing.value = self.explorer.frame(self.state).html
        self.passing = not settled
        if settled:
            self.see()

    @contextmanager
    def together(self):
        """Many controls change; the drawing follows once."""
        with self.one_at_a_time:
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
