"""Answers made of a task's table: its mistakes, changes of the reference's text, right ones in other styles."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from course_lib.tasks import Case, Draw, Task, gradients, keeps_type, run_checks
from course_lib.tasks.findings import CHANGES_INPUT, CUT_OFF, NUMBER_TYPE, RANDOM
from course_lib.tasks.solution import Changes, Solution
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
SQUEEZED = {"drops axes of size 1": "right.squeeze()"}  # loses where a batch of one is drawn
NUMBERS_FIT = {  # likewise, for an answer that is a number
    "always zero": ("0.0", ""),
    "right the first time, then a half": ("right if len(_asked) == 1 else 0.5", ""),
    "another result each time": ("right + torch.rand(()).item()", RANDOM),
}
OTHERS_FIT = {  # likewise, for an answer that is a list, a pair or a text
    "always nothing": ("right[:0]", ""),
    "right the first time, then nothing": ("right if len(_asked) == 1 else right[:0]", ""),
}
TENSOR_STYLES = {  # a right answer in another style, by what it returns
    "a list": "right.tolist()",
    "a NumPy array": "right.detach().numpy()",
    "numbers of 64 bits": "right.double()",
    "numbers of 16 bits": "right.half()",
    "whole numbers, where it is none of fractions": "right if right.is_floating_point() else right.long()",
    "fractions, where it is none": "right if right.is_floating_point() else right.float()",
    "a list of tensors": "list(right) if right.dim() else [right]",
    "a pair": "(right, right)",
    "a parameter": "nn.Parameter(right.detach()) if right.is_floating_point() else right",
    "a view that is not contiguous": "torch.stack([right, right], dim=-1)[..., 0]",
}
NUMBER_STYLES = {
    "a number of NumPy's": "np.float64(right)",
    "a short number of NumPy's": "np.float32(right)",
    "a NumPy array": "np.array(right)",
    "a tensor": "torch.tensor(right)",
    "a tensor with an axis": "torch.tensor([right])",
    "a list": "[right]",
}
OTHER_STYLES = {
    "a list": "list(right)",
    "a tuple": "tuple(right)",
    "a tensor": "torch.tensor(right)",
    "NumPy arrays": "np.array(right)",
    "parts that are NumPy's": "type(right)(np.array(part) for part in right)",
    "parts that are tensors": "type(right)(torch.as_tensor(part) for part in right)",
    "parts that are tuples": "type(right)(tuple(part) if isinstance(part, list) else part for part in right)",
}
ALSO_LOST = {  # each loses the points of one general property
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
    """Wrong answers, made from the solution's text: mistakes that no formula names, and what is never right."""
    for mistake in table.mistakes:
        for way in mistake.ways if not (mistake.says and table.cases) else ():
            name = ", ".join(f"{old.strip()} → {new.strip()}" for old, new in way)
            yield WrongAnswer(name=name, text=Solution(source).text(way), says=mistake.name)
    if not table.cases:
        return
    wrap = (FUNCTION if table.module is None else CLASS).format
    right = table.right(table.draw(None, Draw(0)))
    fits = NUMBERS_FIT if isinstance(right, float) else OTHERS_FIT if isinstance(right, KINDS) else NOTHING_FITS
    for name, (result, says) in fits.items():
        yield WrongAnswer(name=name, text=source + wrap(name=table.name, result=result), fails="all", says=says)
    if fits is NOTHING_FITS and right.dim() and any(_has_one(table, case) for case in table.cases):
        for name, result in SQUEEZED.items():
            yield WrongAnswer(name=name, text=source + wrap(name=table.name, result=result))
    for name, (result, check, says) in ALSO_LOST.items():
        if check in {part.name for part in table.also}:
            text = source + wrap(name=table.name, result=result)
            own = (one.name for one in table.checks if says in one.detects)  # checks that look for it, too
            yield WrongAnswer(name=name, text=text, fails=(check, *own), says=says)


def _has_one(table: Task, case: Case) -> bool:
    """Whether a batch of one is drawn for a case, and a result with an axis of size 1 comes of it."""
    given = table.draw_single(case, Draw(0))
    return given is not None and 1 in table.right(given).shape


def in_other_styles(table: Task, source: str) -> Iterator[tuple[str, str]]:
    """Right answers that return their result in another style: its name, and the text of the cell."""
    if not table.cases:
        return
    wrap = (FUNCTION if table.module is None else CLASS).format
    right = table.right(table.draw(None, Draw(0)))
    others = OTHER_STYLES if isinstance(right, KINDS) else TENSOR_STYLES
    for name, result in (NUMBER_STYLES if isinstance(right, int | float) else others).items():
        imports = "import numpy as np\nimport torch\nfrom torch import nn\n"
        yield name, imports + source + wrap(name=table.name, result=result)


def ignored(table: Task) -> Iterator[str]:
    """The arguments that an answer can ignore, taking for ever the value that it was given first, at no cost."""
    if not table.cases:
        return
    made_with = len(table.draw(None, Draw(0)).build)
    build = [*inspect.signature(table.module).parameters][:made_with] if made_with else []
    for name in [*build, *_names(table.asks)]:
        if run_checks(_frozen(table, build, name), (*table.by_hand, *table.scored), asks=table.asks).passed:
            yield f"{table.name}: an answer that ignores `{name}` earns all points; draw it with different values"


def _names(asks: str) -> list[str]:
    return [part.split("=")[0] for part in asks.split(", ")]


def _frozen(table: Task, build: list[str], argument: str) -> Callable[..., Any]:
    """The reference as an answer that takes for one argument, of `__init__` or of the call, what came first."""
    first: list[Any] = []

    def as_first(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        args, place = list(args), names.index(argument) if argument in names else len(args)
        if place < len(args):
            first.append(args[place])
            args[place] = first[0]
        elif argument in names:
            first.append(kwargs.pop(argument, first))  # itself: it was not given
            kwargs |= {} if first[0] is first else {argument: first[0]}
        return args, kwargs

    made = made_by(table)
    if table.module is None:

        def answer(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = as_first(_names(table.asks), args, kwargs)
            return made(*args, **kwargs)

        return answer

    class Frozen(made):  # type: ignore[valid-type]
        def __init__(self, *args: Any):
            super().__init__(*as_first(build, args, {})[0])

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            args, kwargs = as_first(_names(table.asks), args, kwargs)
            return super().forward(*args, **kwargs)

    return Frozen


def made_by(table: Task, way: Changes = ()) -> Callable[..., Any]:
    """The reference with a mistake made in this way, as an answer to the task: a function, or a class of modules."""
    if isinstance(table.reference, Solution):
        return table.reference.changed(way)
    if table.module is None:
        return table.reference

    class Made(table.module):  # type: ignore[name-defined]
        def __init__(self, *build: Any):
            super().__init__(*build)
            self.build = build

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return table.reference(self.build, dict(self.named_parameters()), *args, **kwargs)

    return Made


def undetected(table: Task) -> Iterator[str]:
    """What a table's own mistakes leave undetected: one that loses nothing, or is not told its name."""
    if table.reference and (told := run_checks(made_by(table), table.all_checks, asks=table.asks).misconceptions):
        yield f"{table.name}: the table's own reference is told {told}"
    for mistake in table.mistakes if table.cases else ():
        for way in mistake.ways if mistake.says else ():
            told = run_checks(made_by(table, way), table.all_checks, asks=table.asks).misconceptions
            if mistake.name not in told:
                place = f"{mistake.place}: " if mistake.place else ""
                yield f"{place}{table.name}: the mistake {mistake.name!r} ({dict(way)}) is told {told or 'nothing'}"
