"""What a learner has written in one sitting is there in the next: the source of each exercise that passed its check.

The source is kept in the progress file with all that it needs: the imports, and other functions and classes of its
notebook that it uses. It runs in the kernel of the page that asks for it, and nowhere else.
"""

import ast
import contextlib
import linecache
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from symtable import SymbolTable, symtable
from types import FunctionType
from typing import Any

from course_lib.tasks.solution import Solution
from course_lib.tasks.table import Task

PLAIN = (bool, int, float, complex, str, bytes, type(None))


def written(made: Any) -> dict[str, str] | None:
    """What is kept of a function or a class of the learner's notebook: its name, its source, and a checksum of it.

    None if it comes from elsewhere, or uses a value of the notebook that a source cannot hold.
    """
    if not isinstance(made, FunctionType | type) or made.__module__ != "__main__":
        return None
    try:
        source = "\n\n".join(dict.fromkeys(_pieces(made, set()))) + "\n"
    except _CannotBeKept:
        return None
    return {"name": made.__name__, "source": source, "sha256": sha256(source.encode()).hexdigest()}


def brought(entry: dict[str, Any], task: Task, *, where: str) -> Any:
    """The learner's function or class, made of what was kept, if it still passes its check; else None.

    Its errors show her own lines, in a file that is called `where`.
    """
    source, name = entry.get("source"), entry.get("name")
    if not isinstance(source, str) or sha256(source.encode()).hexdigest() != entry.get("sha256"):
        return None
    linecache.cache[where] = (len(source), None, source.splitlines(keepends=True), where)
    names = {"__name__": "__main__"}
    try:
        exec(compile(source, where, "exec"), names)
    except Exception:  # an import that is no longer there: the check below could not pass, either
        return None
    return names[name] if name in names and task.run(names[name]).passed else None


class _CannotBeKept(Exception):
    """The learner's code uses something that no source can hold."""


def _pieces(made: Any, seen: set[int]) -> Iterator[str]:
    """The sources that a function or class needs, in the order in which they have to run, and its own at the end."""
    if id(made) in seen:
        return
    seen.add(id(made))
    functions = [made] if isinstance(made, FunctionType) else [*filter(_is_function, vars(made).values())]
    files = {function.__code__.co_filename: function.__globals__ for function in functions}
    source, names = _source(made.__name__, files)
    for name in _global_names(symtable(source, "", "exec")):
        if name in names and name != made.__name__:
            yield from _piece(name, names[name], seen)
    yield source


def _piece(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """What gives a name its value: another definition of the notebook, a plain value, or an import."""
    value = getattr(value, "__wrapped__", value)  # what `page.use` has returned: hers, or the text of the solution
    if isinstance(value, Solution):
        yield value.source.rstrip()
        if value.changed().__name__ != name:
            yield f"{name} = {value.changed().__name__}"
    elif getattr(value, "__module__", None) == "__main__" and isinstance(value, FunctionType | type):
        yield from _pieces(value, seen)
        if value.__name__ != name:
            yield f"{name} = {value.__name__}"
    elif isinstance(value, PLAIN):
        yield f"{name} = {value!r}"
    else:
        yield _ours(name) or _import(name)


def _ours(name: str) -> str | None:
    """What gives this name the course's solution again, if `page.from_lesson` gave it to the notebook."""
    for _, _, node in _statements():
        match node:
            case ast.Assign(
                targets=[ast.Name(id=given)],
                value=ast.Call(func=ast.Attribute(attr="from_lesson"), args=[ast.Constant(lesson), ast.Constant(task)]),
            ) if given == name:
                ours = f"_given.TASKS[{task!r}]"
                line = f"{name} = {ours}.module or {ours}.reference"
                return f"from course_lib.lessons.lesson_{lesson!s} import tasks as _given\n{line}"
    return None


def _import(name: str) -> str:
    """The import that gives this name its meaning, from the newest cell that has one."""
    for _, _, node in _statements():
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            if (alias.asname or alias.name.split(".")[0]) == name:
                node.names = [alias]
                return ast.unparse(node)
    raise _CannotBeKept(name)


def _global_names(table: SymbolTable) -> Iterator[str]:
    """The names that a definition takes from outside, in its body or in its first line."""
    outside = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or outside):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_names(child)


def _is_function(value: Any) -> bool:
    return isinstance(value, FunctionType)


def _source(name: str, files: Mapping[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """The text of a definition, from the newest cell that has one of this name, and the names that are known there.

    Python's own `inspect` finds the source of no class in a notebook.
    """
    for file, lines, node in _statements(*files):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            known = files.get(file, vars(sys.modules["__main__"]))
            return "".join(lines[first - 1 : node.end_lineno]).rstrip(), known
    raise _CannotBeKept(name)


def _statements(*first: str) -> Iterator[tuple[str, list[str], ast.stmt]]:
    """The statements of these files, then those of all cells, the newest cell first: file, its lines, statement."""
    cells = [file for file in reversed(linecache.cache) if not Path(file).exists()]
    for file in [*first, *cells]:
        lines = linecache.getlines(file)
        with contextlib.suppress(SyntaxError):
            yield from ((file, lines, node) for node in ast.parse("".join(lines)).body)
