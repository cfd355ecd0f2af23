"""The delivered assignments as tests look at them: files, tables, cells of the notebooks, and answers to try."""

import contextlib
import functools
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import is_real
from course_lib.tasks.findings import CheckFailed
from course_lib.tasks.wrong import made_by

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
NUMBERS = sorted(path.name for path in (FOLDERS.root / "hidden").iterdir() if (path / "tasks.py").is_file())
every_assignment = pytest.mark.parametrize("number", NUMBERS)


@functools.cache
def read(number):
    """An assignment: its files, what they say, its tables by name, its notebook and the sources of the cells."""
    files = read_assignment(FOLDERS.root, number)
    loaded, notebook = load(files), nbformat.reads(files.source_notebook.decode(), as_version=4)
    return SimpleNamespace(
        files=files,
        loaded=loaded,
        tables={table.name: table for table in loaded.assignment.tasks},
        notebook=notebook,
        sources={cell.id: cell.source for cell in notebook.cells},
    )


def table(number, name):
    return read(number).tables[name]


def reference(number, name):
    return table(number, name).reference


def inputs(number, name, case=0, seed=0):
    """What is drawn for a case of a task."""
    return table(number, name).cases[case].inputs(Draw(seed))


def doubled(given):
    return tuple(value.double() if is_real(value) else value for value in given)


# cells of the notebooks --------------------------------------------------------------------------------------


@functools.cache
def cells(number, *names):
    """What these cells of a notebook define, with the references of its tasks where they are solutions."""
    defined = {}
    for name in names:
        exec(read(number).sources[name], defined)
    return defined


def printed(number, name, defined):
    """What a cell prints where these names are defined."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(read(number).sources[name], dict(defined))
    return said.getvalue()


# answers -----------------------------------------------------------------------------------------------------


def mistaken(table, *names):
    """The reference with the mistakes of these names, each made in its first way."""
    found = {known.name: known.ways[0] for known in reversed(table.mistakes) if known.ways}
    return made_by(table, tuple(change for name in names for change in found[name]))


def passed(table, *names):
    """The checks that the reference passes in spite of these mistakes."""
    answer = mistaken(table, *names)
    return [check for check in table.scored if run_checks(answer, [check], asks=table.asks).passed]


def told(answer, checks, table):
    """What these checks of a task call that which is wrong with an answer."""
    return run_checks(answer, checks, asks=table.asks).misconceptions


def fault(ask):
    """What is said where nothing more can be asked of an answer."""
    with pytest.raises(CheckFailed) as failed:
        ask()
    return failed.value.finding.misconception


class Says(nn.Module):
    """A network that says what a function makes of its inputs, times trained numbers: so many, or none."""

    def __init__(self, says, numbers=0):
        super().__init__()
        self.says, self.scale = says, nn.Parameter(torch.ones(numbers) / numbers) if numbers else torch.ones(1)

    def forward(self, *given, **named):
        return self.says(*given, **named) * self.scale.sum()


# references --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """Another way to compute what the reference of a task does, for inputs that are given, or those of its cases."""

    number: str
    name: str
    compute: Callable
    given: tuple
    cases: slice
    seeds: tuple
    double: bool
    close: dict = field(default_factory=dict)

    def __str__(self):
        return f"{self.number}-{self.name}-{self.compute.__name__}"

    def compare(self):
        cases = table(self.number, self.name).cases[self.cases]
        for one in self.given or [case.inputs(Draw(seed)) for case in cases for seed in self.seeds]:
            one = doubled(one) if self.double else one
            torch.testing.assert_close(reference(self.number, self.name)(*one), self.compute(*one), **self.close)


class Ways(list):
    """The other ways of a module, as rows of a table."""

    def to_compute(self, number, name, *given, cases=slice(None), seeds=(0,), double=False, **close):
        """Decorates a function that takes what the task asks for; `close` are tolerances."""

        def keep(function):
            self.append(Way(number, name, function, given, cases, seeds, double, close))
            return function

        return keep
