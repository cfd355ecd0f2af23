"""Slips that have nothing to do with the task: which line stopped, what was given, and what the error really says."""

import ast
import dis
import inspect
import linecache
import textwrap
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

NO_SUCH_NAME = "a name that is not there"
_NOTHING = {"RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOP"}  # what a function of `...` is compiled to


class Slip(NamedTuple):
    """A slip by its name, the words of an error or a warning that give it away, and what to do about it."""

    name: str
    signs: tuple[str, ...]
    hint: str


TURNS_ALL_AXES = Slip(
    ".T turns all axes round",
    ("The use of `x.T`",),
    "On more than two axes `.T` turns them all round. `k.transpose(-2, -1)` exchanges the last two alone.",
)
MISSING_PARAMETER = Slip(
    "missing parameter",
    ("unexpected keyword argument", "positional argument"),
    "The first line of your function has other parameters than the task: it should take `({asks})`.",
)
SLIPS = (
    Slip(
        "truth value of a tensor",
        ("Boolean value of Tensor with more than one value",),
        "`if` wants one yes or no, and a tensor has many. To ask whether one was given at all: `if mask is not None:`.",
    ),
    Slip(
        ".max gives two things",
        ("torch.return_types",),
        "With an axis, `.max` and `.min` give the numbers and their indices: take `.values`, or use `amax` and `amin`.",
    ),
    Slip(
        NO_SUCH_NAME,
        ("is not defined", "has no attribute"),
        "Is it spelt as it should be? If another cell defines it, run that cell first.",
    ),
    Slip(
        "numbers of different types meet",
        ("same dtype", "scalar type"),
        "Make what you add yourself of the same type as the input: `dtype=x.dtype`.",
    ),
)


def slip_of(error: BaseException, asks: str, warned: Sequence[str]) -> Slip | None:
    """The slip that an error shows, if it is one of the well-known ones."""
    found = slip_in(str(error), asks, entered=bool(_own_frames(error)))
    return found or (TURNS_ALL_AXES if turns_all_axes(warned) else None)


def slip_in(words: str, asks: str, *, entered: bool) -> Slip | None:
    """The slip that an error's words show; `entered`: the call got into the learner's function."""
    if asks and not entered and any(sign in words for sign in MISSING_PARAMETER.signs):
        return MISSING_PARAMETER._replace(hint=MISSING_PARAMETER.hint.format(asks=asks))
    return next((slip for slip in SLIPS if any(sign in words for sign in slip.signs)), None)


def turns_all_axes(warned: Sequence[str]) -> bool:
    """Whether torch has warned of `.T` on more than two axes."""
    return any(sign in text for text in warned for sign in TURNS_ALL_AXES.signs)


def stops_at_stub(error: BaseException) -> bool:
    """Whether the error is the one that stands where an answer is still to be written."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return isinstance(error, NotImplementedError) and frames[-1:] == _own_frames(error)[-1:]


def is_stub(function: Any) -> bool:
    """Whether there is nothing, or nothing but `...`, `pass` or a docstring where a function should be."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function is None or function is Ellipsis
    return all(step.opname in _NOTHING and step.argval in (None, 0) for step in dis.get_instructions(code))


def where(error: BaseException) -> str:
    """The learner's own line that stopped, counted from the first of its function: " in line 2, `...`", or nothing."""
    frames = _own_frames(error)
    if not frames:
        return ""
    frame, number = frames[-1]
    text = linecache.getline(frame.f_code.co_filename, number).strip()
    return f" in line {number - frame.f_code.co_firstlineno + 1}" + (f", `{text}`" if text else "")


def _own_frames(error: BaseException) -> list[tuple[Any, int]]:
    """The frames of a learner's code: in no package, and not in the course's own."""
    others = (str(Path(__file__).parents[1]), "<frozen")
    frames = [(frame, number, frame.f_code.co_filename) for frame, number in traceback.walk_tb(error.__traceback__)]
    return [
        (frame, number) for frame, number, file in frames if not (file.startswith(others) or "site-packages" in file)
    ]


def describe(asks: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What a function was given, by name: "q (2, 4, 6), num_heads = 3"."""
    names = [part.split("=")[0] for part in asks.split(", ")] if asks else [""] * len(args)
    given = [*zip(names, args, strict=False), *kwargs.items()]
    return ", ".join(_one(name, value) for name, value in given) or "no inputs"


def _one(name: str, value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{name} {tuple(value.shape)}".strip()
    text = repr(value)
    text = text if len(text) <= 40 else f"a {type(value).__name__}"
    return f"{name} = {text}" if name else text


def forbidden_names(function: Any, forbids: Sequence[str], *, cell: bool = False) -> list[tuple[str, int, str]]:
    """Where a learner's function uses what the task forbids: the name, the line and its text; [] without a source.

    With `cell` all that stands in the function's cell counts. A name counts as an attribute (`x.softmax`,
    `F.softmax`), or where it is torch's own.
    """
    try:
        source = "".join(inspect.findsource(function)[0]) if cell else textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):
        return []
    known, found = getattr(function, "__globals__", {}), []
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        own = isinstance(node, ast.Name) and not str(getattr(known.get(name), "__module__", "")).startswith("torch")
        if name in forbids and not own and isinstance(node, ast.expr):
            found.append((name, node.lineno, source.splitlines()[node.lineno - 1].strip()))
    return found
