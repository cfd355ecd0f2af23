"""Which sources of course_lib stand behind a piece of code: those that it imports, directly or through one another."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import course_lib

ROOT = Path(course_lib.__file__).parents[1]


def course_sources(names: Iterable[str]) -> dict[str, str]:
    """Return the source of each of these modules, and of all course_lib modules that they import, by name."""
    sources: dict[str, str] = {}
    waiting = [package for name in names for package in _with_packages(name)]
    while waiting:
        name = waiting.pop()
        path = module_file(name)
        if path is not None and name not in sources:
            sources[name] = path.read_text(encoding="utf-8")
            waiting += imported_names(sources[name])
    return sources


@cache
def imported_names(source: str) -> tuple[str, ...]:
    """Return the names under course_lib that a source imports, with their packages; a name may be no module."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return ()  # whoever runs it will hear of it
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [package for name in names for package in _with_packages(name)]
    return tuple(found)


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    if parts[0] == "course_lib":
        yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def module_file(name: str) -> Path | None:
    path = ROOT.joinpath(*name.split("."))
    return next((p for p in (path / "__init__.py", path.with_suffix(".py")) if p.is_file()), None)
