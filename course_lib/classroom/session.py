"""The lesson that is open in this kernel: its number and the record of what the learner did in it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from course_lib.classroom.markup import to_html
from course_lib.classroom.output import RED, panel, present
from course_lib.classroom.store import ProgressStore

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
    "15": "One model for text and sound",
    "16": "Acting, and seeing with words",
    "17": "Long sequences, old roots",
}


@dataclass
class Session:
    """One open lesson and its progress file; `changed` hears of each new record."""

    lesson: str
    store: ProgressStore = field(default_factory=ProgressStore)
    changed: Callable[[], None] = lambda: None

    def entry(self, kind: str, name: str) -> dict[str, Any]:
        """Return what is recorded of one item."""
        return self.store.entry(self.lesson, kind, name)

    def record(self, kind: str, name: str, **values: Any) -> None:
        """Set fields of one item's record."""
        self.change(kind, name, lambda entry: entry.update(values))

    def change(self, kind: str, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Apply `change` to one item's record as it is in the file now."""
        self.store.change(self.lesson, kind, name, change)
        self.changed()

    def say_notices(self) -> None:
        """Tell the learner what there is to know about the progress file, each thing once."""
        for notice in self.store.take_notices():
            present(f"Note: {notice}", panel(to_html(f"**Note.** {notice}"), colour=RED))
