"""What took long is kept in the learner's folder, so that a second sitting goes on at once.

A file belongs to one state of code, data and settings, of which its name holds a digest: the sources of the function
and of all course_lib modules that it imports, the settings (a learner's function among them by its source), PyTorch's
version.
"""

import contextlib
import hashlib
import inspect
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch
from torch import Tensor, nn

from course_lib.classroom.choices import button
from course_lib.classroom.imported import course_sources
from course_lib.classroom.live import LiveTraining
from course_lib.classroom.markup import to_html, to_plain
from course_lib.classroom.output import GREY, in_notebook, panel, present, say
from course_lib.data.place import course_home
from course_lib.training import checkpoints


def keep(lesson: str, name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Return `function(**settings)`, from the learner's folder if it was computed before, and say so.

    The files are pickles: only those of the learner's own folder are read. One that is damaged, or was made by other
    code, data or settings, is computed anew. A training that the learner stops is not kept. Raises ValueError for a
    setting that cannot be told by its value.
    """
    path = course_home() / "kept" / lesson / f"{name}-{digest(function, settings)}.pt"
    with contextlib.suppress(Exception):  # what a damaged file, or a pickle of a class that is gone, may raise
        value = _read(path)
        date = time.strftime("%d %B %Y, %H:%M", time.localtime(path.stat().st_mtime))
        _say(name, f"`{name}`: kept from an earlier sitting ({date}).", forget=path)
        return value
    stops = LiveTraining.stops
    value = function(**settings)  # outside of any handler: its errors must not bring along that of the file
    if LiveTraining.stops > stops:
        say(f"`{name}` was stopped early, so it is not kept. Run this cell again to train to the end.", GREY)
        return value
    _say(name, _write(path, value, instead_of=f"{name}-{'[0-9a-f]' * 16}.pt*"))
    return value


def _read(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:  # torch.load itself compares no checksums
            raise zipfile.BadZipFile(f"a checksum in {path} is wrong")
    return torch.load(path, weights_only=False)


def _write(path: Path, value: Any, *, instead_of: str) -> str:
    """Keep one file of each name; returns why the value cannot be kept, if it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _forget(path.parent.glob(instead_of))
        checkpoints.write(path, value)
    except Exception as error:  # a full disk, or something that cannot be pickled
        _forget(path.parent.glob(f"{path.name}*"))
        return f"`{path.name}` could not be kept, so the next sitting computes it anew: {error}"
    return ""


def _forget(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _say(name: str, text: str, *, forget: Path | None = None) -> None:
    """Say that results are kept, in words that are the same in every sitting; `text` and the way out are live."""
    always = f"`{name}` is kept in your folder, so that a second sitting goes on at once."
    live = None
    if text and in_notebook():
        said = widgets.HTML(panel(to_html(text), colour=GREY))

        def train_anew() -> None:
            forget.unlink(missing_ok=True)
            said.value = panel(to_html(f"`{name}` is forgotten: run this cell again."), attributes='role="status"')

        live = widgets.VBox([said, button("Train anew", train_anew)] if forget else [said])
    present(to_plain(always), panel(to_html(always), colour=GREY), widget=live)


def digest(function: Callable[..., Any], settings: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that change with the code behind a function, with its settings and with PyTorch."""
    told = _Told()
    told.add(function)
    told.add(dict(settings))
    told.add(sorted(course_sources(told.modules).items()))
    told.add(torch.__version__)
    return told.hash.hexdigest()[:16]


class _Told:
    """A digest of values, told by what they hold; `modules` are those of course_lib that they come from."""

    def __init__(self) -> None:
        self.hash, self.modules, self.seen = hashlib.sha256(), set(), {}

    def add(self, value: Any) -> None:
        """Take in one value and what it is made of; raises ValueError for one that only its address tells."""
        self._word(type(value).__qualname__)
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | Path | range | slice | Enum):
            self._word(repr(value))
        elif id(value) in self.seen:
            self._word(f"as number {self.seen[id(value)][0]}")
        else:
            self.seen[id(value)] = (len(self.seen), value)  # held, so that no other object gets its id
            self._add_whole(value)

    def _add_whole(self, value: Any) -> None:
        if isinstance(value, Tensor | np.ndarray):
            array = value.detach().cpu().contiguous().numpy() if isinstance(value, Tensor) else value
            self._word(f"{array.dtype} {array.shape}")
            self.hash.update(array.tobytes())
        elif isinstance(value, nn.Module):
            self._word(repr(value))
            self.add(dict(value.state_dict()))
            for part in value.modules():
                self.add(type(part))
                own = {name: one for name, one in vars(part).items() if not name.startswith("_") and name != "training"}
                self.add(own)
        elif isinstance(value, ModuleType):
            self._word(value.__name__)
            self.modules.add(value.__name__)
        elif isinstance(value, torch.dtype | torch.device):
            self._word(repr(value))
        elif callable(value) and hasattr(value, "__qualname__"):
            self._add_code(inspect.unwrap(value))
        elif isinstance(value, Mapping):
            self._add_all([part for item in value.items() for part in item])
        elif isinstance(value, set | frozenset):
            self._add_all(sorted(value, key=repr))
        elif isinstance(value, list | tuple):
            self._add_all(value)
        elif is_dataclass(value):
            self.add(type(value))
            self._add_all([getattr(value, field.name) for field in fields(value)])
        elif hasattr(value, "__dict__"):
            self.add(type(value))
            self.add(vars(value))
        else:
            raise ValueError(f"A result cannot be kept by a setting that only its address tells: {value!r}.")

    def _add_all(self, values: Any) -> None:
        self._word(str(len(values)))
        for value in values:
            self.add(value)

    def _add_code(self, code: Any) -> None:
        """Code of the course by its modules, a library's by its name, a learner's by its source and what it uses."""
        self._word(f"{code.__module__}.{code.__qualname__}")
        if str(code.__module__).split(".")[0] == "course_lib":
            self.modules.add(code.__module__)
        used = inspect.getclosurevars(code) if isinstance(code, FunctionType) else None
        if used:
            self.add(dict(used.nonlocals))
        if isinstance(code, MethodType):
            self.add(code.__self__)
        if code.__module__ != "__main__":
            return
        if isinstance(code, type):  # Python finds no source of a class in a notebook, but of its methods
            self._add_all([method for method in vars(code).values() if isinstance(method, FunctionType)])
        if used:
            self._word(inspect.getsource(code))
            for name, value in sorted(used.globals.items()):
                self._word(name)
                with contextlib.suppress(ValueError):
                    self.add(value)

    def _word(self, word: str) -> None:
        self.hash.update(f"{len(word)}:{word}".encode())
