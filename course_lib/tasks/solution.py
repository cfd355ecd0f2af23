"""The solution of a task as its text, and what its changes make of it."""

import math
import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

NAMES = {"math": math, "torch": torch, "nn": nn, "F": nn.functional}
MADE: "WeakKeyDictionary[Solution, dict]" = WeakKeyDictionary()  # not part of a solution: its text says all
Changes = tuple[tuple[str, str], ...]  # old and new texts; … in an old one stands for anything
FILE = "<solution>"  # as tracebacks call the text
CHANGE = re.compile(r"`([^`]+)` → (?:`([^`]+)`|nothing)")


def read_changes(line: str) -> Changes:
    """Changes as they are written, `old` → `new`, with ⏎ for the end of a line. Raises ValueError for anything else."""
    if not CHANGE.search(line) or CHANGE.sub("", line).strip("- ,"):
        raise ValueError("a change is `old` → `new`, or `old` → nothing")
    return tuple(CHANGE.findall(line.replace("⏎", "\n")))


class Solution:
    """A function or a class of modules, as text that can be changed; called like the function that it defines.

    That of a module is called with the arguments of `__init__`, the parameters by name, and the arguments of `forward`.
    The text may use `names` beside math, torch, nn and F. Its last definition is what it defines.
    """

    def __init__(self, source: str, names: Mapping[str, Any] | None = None):
        self.source, self.names = source, dict(names or {})

    def __reduce__(self) -> tuple:
        return Solution, (self.source, self.names)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run(self.changed(), *args, **kwargs)

    @property
    def module(self) -> type[nn.Module] | None:
        """The class that it defines, if it is one of modules."""
        made = self.changed()
        return made if isinstance(made, type) else None

    def text(self, changes: Changes = ()) -> str:
        """Its text with these changes. Raises ValueError for a change of a text that is not there, or of nothing."""
        source = self.source
        for old, new in changes:
            pattern = ".*".join(map(re.escape, old.split("…")))
            changed, count = re.subn(pattern, lambda _, new=new: new, source, flags=re.DOTALL)
            if not count or changed == source:
                raise ValueError(f"{old!r} stays as it is" if count else f"the solution has no {old!r} to be changed")
            source = changed
        return source

    def changed(self, changes: Changes = ()) -> Callable[..., Any]:
        """What it defines, after these changes of its text. Raises ValueError as `text`, and if that cannot be run."""
        made = MADE.setdefault(self, {})
        if changes not in made:
            names, defined = NAMES | self.names, re.findall(r"^(?:def|class) (\w+)", self.source, re.MULTILINE)
            text = self.text(changes)
            try:
                exec(compile(text, FILE, "exec"), names)
            except SyntaxError as problem:
                raise ValueError(f"the solution would not be Python: {problem}") from problem
            except Exception as problem:  # whatever its own code raises
                lines = [
                    frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == FILE
                ]
                where = f" in its line {lines[-1]}" if lines else ""
                raise ValueError(f"the solution stops{where} with {type(problem).__name__}: {problem}") from problem
            wanted = defined[-1] if defined else "a function or a class"
            if wanted not in names:
                raise ValueError(f"the solution does not define {wanted}")
            made[changes] = names[wanted]
        return made[changes]


def run(made: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function returns; a class of modules is made with args[0], and gets its parameters from args[1]."""
    if not isinstance(made, type):
        return made(*args, **kwargs)
    build, parameters, *inputs = args
    return torch.func.functional_call(made(*build), dict(parameters), tuple(inputs), kwargs)
