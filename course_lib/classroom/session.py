"""The lesson that is open in this kernel: its id, its progress file and the things asked in it."""

import importlib
import importlib.util
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from course_lib.classroom.markup import to_html
from course_lib.classroom.output import RED, in_notebook, panel, present
from course_lib.classroom.store import ProgressStore
from course_lib.classroom.waiting import notebook_line
from course_lib.training import progress
from course_lib.viz.style import use_style

LESSONS = {
    "00": "Start here",
    "01": "Transfer learning",
    "02": "Representation learning",
    "03": "Recurrent networks",
    "04": "LSTM and GRU",
    "05": "Attention",
    "06": "The Transformer",
    "07": "BERT",
    "08": "GPT",
    "09": "Scaling laws",
    "10": "Aligning a language model",
    "11": "Vision Transformer",
    "12": "Swin Transformer",
    "13": "Masked autoencoders",
    "14": "Image to image",
    "15": "Transformers everywhere",
}


@dataclass(kw_only=True)
class Session:
    """One open lesson; `items` holds its quizzes, predictions and exercises by (kind, name).

    `content` is the module `questions` of the lesson with QUIZZES, PREDICTIONS, OUTCOMES and
    EXERCISES, if there is one.
    """

    lesson: str
    store: ProgressStore
    content: ModuleType | None = None
    items: dict[tuple[str, str], Any] = field(default_factory=dict)

    def entry(self, kind: str, name: str) -> dict[str, Any]:
        """Return what is recorded of one item."""
        return self.store.entry(self.lesson, kind, name)

    def record(self, kind: str, name: str, **values: Any) -> None:
        """Set fields of one item's record."""
        self.store.change(self.lesson, kind, name, lambda entry: entry.update(values))

    def register(self, kind: str, name: str, item: Any) -> None:
        """Make an item known, and note that the learner has met it."""
        self.items[kind, name] = item
        self.store.change(self.lesson, kind, name, lambda entry: entry.setdefault("met", True))

    def written(self, kind: str, name: str) -> dict[str, Any]:
        """Return the parts of an item from the lesson's content; raises ValueError if it has none of that name."""
        table = getattr(self.content, kind.upper(), {})
        if name not in table:
            known = ", ".join(map(repr, table)) or "none"
            raise ValueError(f"Lesson {self.lesson} has no {name!r} among its {kind}; it has {known}.")
        return table[name]

    def find(self, kind: str, name: str, call: str) -> Any:
        """Return a registered item; raises ValueError with the known names if there is none."""
        if (kind, name) not in self.items:
            known = ", ".join(repr(n) for k, n in self.items if k == kind) or "none so far"
            raise ValueError(
                f"{name!r} is not known yet: run the cell with {call}({name!r}, ...) first. Known here: {known}."
            )
        return self.items[kind, name]

    def say_notices(self) -> None:
        """Tell the learner what there is to know about the progress file, each thing once."""
        for notice in self.store.take_notices():
            present(f"Note: {notice}", panel(to_html(f"**Note.** {notice}"), colour=RED))


_session: Session | None = None


def lesson(name: str) -> None:
    """Open a lesson: its first cell. Sets the figure style and notes in the learner's progress that it was opened.

    Raises ValueError if there is no lesson of that number.
    """
    global _session
    if name not in LESSONS:
        raise ValueError(f"There is no lesson {name!r}; the lessons are {', '.join(LESSONS)}.")
    place = f"course_lib.lessons.lesson_{name}.questions"
    content = importlib.import_module(place) if importlib.util.find_spec(place) else None
    _session = Session(lesson=name, store=ProgressStore(), content=content)
    use_style()
    if in_notebook():
        progress.use(notebook_line)
    _session.store.open(name)
    _session.say_notices()


def current_session() -> Session:
    """Return the open lesson; raises ValueError if none was opened in this kernel."""
    if _session is None:
        raise ValueError("No lesson is open in this kernel: run the notebook's first code cell, with lesson(...).")
    return _session
