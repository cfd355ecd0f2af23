"""Wrong answers that come from a task's table: its mistakes as functions, and changes of the reference's own text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from course_lib.tasks import Draw, Task, gradients, keeps_type, run_checks
from course_lib.tasks.findings import CHANGES_INPUT, CUT_OFF, NUMBER_TYPE, RANDOM
from course_lib.tasks.values import KINDS

FUNCTION = """
_right, _asked = {name}, []
def {name}(*given, **named):
    right = _right(*given, **named)
    _asked.append(right)
    return {result}
"""
CLASS = """
_asked = []
class {name}({name}):
    def forward(self, *given, **named):
        right = super().forward(*given, **named)
        _asked.append(right)
        return {result}
"""
NOTHING_FITS = {  # what a right answer is turned into, and what that is told; each earns nothing
    "zeros of the right shape": ("0 * right", ""),
    "constants chosen by the shape": ("0 * right + torch.arange(1.0, right.numel() + 1).view(right.shape) / 9", ""),
    "right the first time, then zeros": ("right if len(_asked) == 1 else 0 * right", ""),
    "another result each time": (
        "right + (torch.rand(right.shape) if right.is_floating_point() else torch.rand(right.shape) > 0.5)",
        RANDOM,
    ),
    "overwrites what it is given": ("[right, given[0].mul_(2)][0]", CHANGES_INPUT),
}
NUMBERS_FIT = {  # likewise, for an answer that is a number
    "always zero": ("0.0", ""),
    "right the first time, then a half": ("right if len(_asked) == 1 else 0.5", ""),
    "another result each time": ("right + torch.rand(()).item()", RANDOM),
}
OTHERS_FIT = {  # likewise, for an answer that is a list, a pair or a text
    "always nothing": ("right[:0]", ""),
    "right the first time, then nothing": ("right if len(_asked) == 1 else right[:0]", ""),
}
ALSO_LOST = {  # each loses the point of one general property
    "always numbers of 64 bits": ("right.double()", keeps_type.name, NUMBER_TYPE),
    "cut off from what came before": ("right.detach()", gradients.name, CUT_OFF),
}


@dataclass(frozen=True, kw_only=True)
class WrongAnswer:
    """An answer with a known mistake: the whole text of the cell, and what its judging must show.

    `fails` are the names of the checks that it has to fail, "all" of them, or None for whichever; `says` is the
    misconception that the report has to name.
    """

    name: str
    text: str
    fails: tuple[str, ...] | str | None = None
    says: str = ""


def wrong_answers(table: Task, source: str) -> Iterator[WrongAnswer]:
    """Wrong answers, made from the reference's text. Raises ValueError for a change of a text that is not there."""
    for misconception, (old, new) in table.wrong.items():
        if old not in source:
            raise ValueError(f"the reference of task {table.name!r} has no {old!r} to be changed")
        name = f"{old.strip()} → {new.strip()}"
        yield WrongAnswer(name=name, text=source.replace(old, new), says=misconception)
    if not table.cases:
        return
    wrap = (FUNCTION if table.module is None else CLASS).format
    right = table.right(table.draw(None, Draw(0)))
    fits = NUMBERS_FIT if isinstance(right, float) else OTHERS_FIT if isinstance(right, KINDS) else NOTHING_FITS
    for name, (result, says) in fits.items():
        yield WrongAnswer(name=name, text=source + wrap(name=table.name, result=result), fails="all", says=says)
    for name, (result, check, says) in ALSO_LOST.items():
        if check in {part.name for part in table.also}:
            text = source + wrap(name=table.name, result=result)
            yield WrongAnswer(name=name, text=text, fails=(check,), says=says)


def made_by(table: Task, **knobs: Any) -> Callable[..., Any]:
    """The reference with these knobs turned, as an answer to the task: a function, or a class of modules."""
    if table.module is None:
        return partial(table.reference, **knobs)

    class Made(table.module):
        def __init__(self, *build: Any):
            super().__init__(*build)
            self.build = build

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return table.reference(self.build, dict(self.named_parameters()), *args, **kwargs, **knobs)

    return Made


def unproved(table: Task) -> Iterator[str]:
    """What a table's own mistakes leave unproved: one that loses nothing, or is not told its name."""
    if table.reference and (told := run_checks(made_by(table), table.all_checks, asks=table.asks).misconceptions):
        yield f"{table.name}: the table's own reference is told {told}"
    for mistake in table.mistakes:
        for way in mistake.ways:
            told = run_checks(made_by(table, **dict(way)), table.all_checks, asks=table.asks).misconceptions
            if mistake.name not in told:
                yield f"{table.name}: the mistake {mistake.name!r} ({dict(way)}) is told {told or 'nothing'}"
