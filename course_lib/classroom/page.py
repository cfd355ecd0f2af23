"""The page of a lesson: all that its notebook shows hangs on one `Page`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure
from torch import nn

from course_lib.classroom import cards, carried, kept, live, opening
from course_lib.classroom.cards import Item, Part, Section
from course_lib.classroom.exercises import Exercise
from course_lib.classroom.markup import to_html, to_plain
from course_lib.classroom.opening import Shipped
from course_lib.classroom.output import GREEN, GREY, in_notebook, panel, present, say, show
from course_lib.classroom.predictions import Placed, Prediction, PredictionForm
from course_lib.classroom.quizzes import Number, Quiz, question
from course_lib.classroom.results import Result, ResultView
from course_lib.classroom.session import LESSONS, Session
from course_lib.classroom.stopping import shorten_interrupts
from course_lib.classroom.texts import read_questions, read_results
from course_lib.classroom.using import use
from course_lib.classroom.waiting import notebook_line
from course_lib.training import progress
from course_lib.viz.style import use_style

__all__ = ["Section", "Prediction", "Number", "Page", "Quiz", "Result"]


class Page:
    """A lesson's page: its sections, and by name its quizzes, predictions, results, tasks and playgrounds.

    A lesson's `folder` holds questions.md, from which sections, quizzes and predictions are read, and results.md with
    the words of its results.

    Every method that takes a name raises ValueError for one that the lesson does not have.
    """

    def __init__(
        self,
        lesson: str,
        *,
        folder: Path | None = None,
        sections: Sequence[Section] = (),
        quizzes: Mapping[str, Quiz | Number] | None = None,
        predictions: Mapping[str, Prediction] | None = None,
        results: Mapping[str, Callable[..., Result]] | None = None,
        tasks: Mapping[str, Any] | None = None,
        playgrounds: Mapping[str, Callable[..., Any]] | None = None,
        models: Mapping[str, Shipped] | None = None,
        diagrams: Mapping[str, Callable[[], tuple[Figure, str]]] | None = None,
    ) -> None:
        if lesson not in LESSONS:
            raise ValueError(f"There is no lesson {lesson!r}; the lessons are {', '.join(LESSONS)}.")
        self.texts = read_results(folder / "results.md") if folder else None
        if folder:
            sections, quizzes, predictions = read_questions(folder / "questions.md")
        self.lesson, self.sections = lesson, tuple(sections)
        self.quizzes, self.predictions, self.results = dict(quizzes or {}), dict(predictions or {}), dict(results or {})
        self.tasks, self.playgrounds, self.models = dict(tasks or {}), dict(playgrounds or {}), dict(models or {})
        self.diagrams = dict(diagrams or {})
        self.shown: dict[tuple[str, str], Any] = {}  # what follows the record: cards, predictions, results
        known = {*self.quizzes, *self.predictions, *self.results, *self.tasks, *self.playgrounds, *self.models}
        if strangers := {name for section in self.sections for name in section.holds} - known:
            raise ValueError(f"The sections of lesson {lesson} hold {_listed(strangers)}; it has {_listed(known)}.")
        if folder and (strangers := {name.split(", ")[0] for name in self.texts} ^ self.results.keys()):
            raise ValueError(f"Only one of results.md and results.py of lesson {lesson} has {_listed(strangers)}.")

    @cached_property
    def session(self) -> Session:
        """What is recorded of the learner."""
        return Session(self.lesson, changed=self._redraw)

    def open(self) -> None:
        """Begin the lesson: figure style, progress display, and the card that says what is where and what is done."""
        self.__dict__.pop("session", None)
        self.shown.clear()
        use_style()
        if in_notebook():
            progress.use(notebook_line)
            shorten_interrupts()
        self.session.store.open(self.lesson)
        plain, static = cards.plain_card(self.lesson, self.sections), cards.html_card(self.lesson, self.sections)
        self._show_card("head", plain, static, cards.html_card)
        self.session.say_notices()

    def close(self) -> None:
        """End the lesson: the card filled with what was predicted and what came, what is open, and what comes next."""
        text = cards.next_lesson(self.lesson)
        self._show_card("end", to_plain(text), panel(to_html(text)), cards.html_end)
        self.session.say_notices()

    def quiz(self, name: str) -> None:
        """Ask a self-test question."""
        question(self.session, name, self._find("quizzes", name)).show()

    def predict(self, name: str) -> None:
        """Ask for a guess before the result of the same name."""
        form = self.shown["prediction", name] = PredictionForm(self.session, name, self._find("predictions", name))
        form.show()

    def result(self, name: str, *data: Any) -> None:
        """Show what `data` came to: closed until the prediction of the same name is made, where there is one.

        A claim that does not hold is marked beside what the shipped lesson measured. Where the course is built and
        tested it raises ClaimError, one line without a traceback, after the result is shown.
        """
        measure = self._find("results", name)
        placed = Placed(self.session, name, self.predictions[name]) if name in self.predictions else None

        def told(predicted: Any) -> Result:
            result = measure(*data, predicted=predicted)
            return result if self.texts is None else result.told(name, self.texts)

        view = ResultView(self.session, name, told, placed)
        if placed:
            self.shown["result", name] = view
        view.show()

    def exercise(self, name: str) -> None:
        """Set an exercise, with its help."""
        Exercise(self.session, name, self._find("tasks", name)).show()

    def check(self, name: str, function: Any) -> None:
        """Check a learner's solution of an exercise: says what failed and how to go on, never a traceback."""
        Exercise(self.session, name, self._find("tasks", name)).check(function)
        self.session.say_notices()

    def use(self, name: str, function: Any) -> Callable[..., Any]:
        """Return the learner's function for the lesson to run on if it passes its check, else ours, and say which."""
        return use(self.lesson, name, self._find("tasks", name), function)

    def from_lesson(self, lesson: str, name: str) -> Any:
        """Return what the learner wrote for an exercise of this or another lesson if it still passes, else ours.

        Says which. Raises ValueError for an exercise that the lesson does not have.
        """
        there = self if lesson == self.lesson else import_module(f"course_lib.lessons.lesson_{lesson}").page
        task, entry = there._find("tasks", name), self.session.store.entry(lesson, "exercises", name).get("written")
        made = carried.brought(entry, task, where=f"<your {name} of lesson {lesson}>") if entry else None
        where = "" if there is self else f", of lesson {lesson}"
        if made is not None:
            say(f"✓ **Your** `{made.__name__}` goes on here{where}.", GREEN)
            return made
        why = "no longer passes its check" if entry else "is not kept"
        say(f"○ The exercise `{name}`{where}: yours {why}, so the page takes ours.", GREY)
        return task.module or task.reference

    def resume(self, *names: str) -> Any:
        """Begin a later sitting, also in a new kernel: return what the learner wrote for these exercises, else ours."""
        if "session" not in self.__dict__:
            self.open()
        made = [self.from_lesson(self.lesson, name) for name in names]
        return made[0] if len(made) == 1 else made

    def load(self, name: str, make: Any, model: nn.Module | None = None) -> nn.Module:
        """Return the learner's model: built by `make` in the sizes of a trained one, with its weights copied by name.

        The trained one is the lesson's, or `model`, such as a released one from `from_pretrained`. If the learner's
        cannot take the weights over or computes something else, say where, and return the trained one.
        """
        shipped = self._find("models", name)
        model = shipped.model() if model is None else model
        is_ours = any(make is task.module for task in self.tasks.values())
        mine = opening.load(shipped, make, model, is_ours=is_ours)
        if mine is not None and not is_ours:
            self.session.record("parts", f"model {name}", opened=True)
        return model if mine is None else mine

    def play(self, name: str, *data: Any) -> None:
        """Show a playground."""
        playground = self._find("playgrounds", name)(*data)
        playground.live(lambda: self.session.record("parts", f"playground {name}", played=True))

    def diagram(self, name: str) -> None:
        """Show a diagram: of an architecture, or of what a model computes."""
        fig, alt = self._find("diagrams", name)()
        show(fig, alt=alt)

    def watch(
        self,
        model: nn.Module,
        *,
        example: Callable[[nn.Module], Any] | None = None,
        title: str = "training",
        height: int = 320,
    ) -> progress.Progress:
        """Return a display for `fit(..., progress=...)`: the loss so far, and what the model makes of one example.

        `example(model)` is HTML or a Figure; `height` is how many pixels the display takes at least.
        """
        return live.watch(model, example=example, title=title, height=height)

    def keep(self, name: str, function: Callable[..., Any], **settings: Any) -> Any:
        """Return `function(**settings)`, from an earlier sitting where code, data and settings are the same."""
        return kept.keep(self.lesson, name, function, settings)

    def parts(self) -> list[Part]:
        """Return the sections with what the learner has done in each."""
        return [
            Part(section, number, [item for name in section.holds for item in self._items(name)])
            for number, section in cards.number_sections(self.sections)
        ]

    def _items(self, name: str) -> Iterable[Item]:
        """The things to do that have this name; a prediction is done once its result is seen."""
        if name in self.predictions:
            placed = Placed(self.session, name, self.predictions[name])
            done = placed.closed() if name in self.results else placed.choice() is not None
            yield Item(f"the prediction `{name}`", done, placed.story())
        if name in self.quizzes:
            yield Item(f"the question `{name}`", bool(self.session.entry("quizzes", name).get("right")))
        if name in self.tasks:
            yield Item(f"the exercise `{name}`", bool(self.session.entry("exercises", name).get("passed")))
        if name in self.models:
            yield Item(f"your model `{name}`", bool(self.session.entry("parts", f"model {name}").get("opened")))
        if name in self.playgrounds:
            yield Item(
                f"the playground `{name}`", bool(self.session.entry("parts", f"playground {name}").get("played"))
            )

    def _show_card(self, which: str, plain: str, static: str, draw: Callable[..., str]) -> None:
        live_card = _Card(lambda: draw(self.lesson, self.sections, self.parts())) if in_notebook() else None
        if live_card:
            self.shown["card", which] = live_card
        present(plain, static, widget=live_card and live_card.box)

    def _redraw(self) -> None:
        for thing in list(self.shown.values()):
            thing.update()

    def _find(self, kind: str, name: str) -> Any:
        known = getattr(self, kind)
        if name not in known:
            raise ValueError(f"Lesson {self.lesson} has no {name!r} among its {kind}; it has {_listed(known)}.")
        return known[name]


class _Card:
    """A card on the page, drawn anew with each new record; an output, since JupyterLab opens the links of outputs."""

    def __init__(self, draw: Callable[[], str]) -> None:
        self.draw, self.box = draw, widgets.Output()
        self.update()

    def update(self) -> None:
        self.box.outputs = ({"output_type": "display_data", "metadata": {}, "data": {"text/html": self.draw()}},)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(names))) or "none"
