"""Tasks from a Markdown file: what a learner reads of them, their solution, and its mistakes; see lesson 08's tasks.md.

A line of changes (`read_changes`) makes them all; several lines are several ways to make the same mistake.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_lib.tasks.headings import Lines, entries_of, lines_of, split_at, text_of
from course_lib.tasks.solution import Solution, read_changes
from course_lib.tasks.table import Case, Mistake, Task, gradients, keeps_type

PARTS = ("Hints", "Solution", "Mistakes")
PROPERTIES = {"gradients": gradients, "keeps_type": keeps_type}
PROPERTY = f"(?:{'|'.join(PROPERTIES)})"
FACTS: dict[str, tuple[str, Callable[[str], Any]]] = {  # how the value of each is written, and what it is
    "asks": (r".+", str),
    "minutes": (r"[1-9]\d*", int),
    "seconds": (r"\d*\.?\d+", float),
    "stretch": (r"yes", bool),
    "forbids": (r".+", lambda text: text.split(", ")),
    "also": (f"{PROPERTY}(, {PROPERTY})*", lambda text: [PROPERTIES[one] for one in text.split(", ")]),
}


def read_tasks(
    path: Path, cases: Mapping[str, Sequence[Case]], names: Mapping[str, Any] | None = None, **more: dict[str, Any]
) -> dict[str, Task]:
    """The tasks of a file by name, each with its cases; solutions may use `names`, `more` is what else a `Task` gets.

    Raises ValueError with file and line for a text that is not as it should be, or a mistake that changes nothing.
    """
    found: dict[str, Task] = {}
    for heading, first, body in entries_of(lines_of(path.read_bytes(), path.name), "# ", path.name):
        name, _, title = heading.partition(": ")
        try:
            if not title or name in found or name not in cases:
                raise ValueError(f"{heading!r} is not `name: Title`, or its name comes twice or has no cases in Python")
            found[name] = Task(name, title, **_facts(name, body, cases[name], names, path.name) | more.get(name, {}))
        except ValueError as problem:
            place = "" if str(problem).startswith(path.name) else f"{path.name}:{first}: "
            raise ValueError(f"{place}{problem}") from problem
    if missing := ", ".join(cases.keys() - found.keys()):
        raise ValueError(f"{path.name} has no task for these cases: {missing}")
    return found


def with_mistakes(
    tasks: Sequence[Task], source: bytes, solutions: Mapping[str, Solution], file: str, left_out: Sequence[str] = ()
) -> tuple[Task, ...]:
    """These tasks with the mistakes that a file lists for some of them, and for those that are left out.

    Under a heading `# one, other` are mistakes that can be made in both. Raises ValueError as `read_tasks` does.
    """
    found = {task.name: task for task in tasks}
    for heading, first, body in entries_of(lines_of(source, file), "# ", file):
        sections = split_at(body, "## ")
        names = [name for name in heading.split(", ") if name not in left_out]
        if not found.keys() >= {*names} or [part for part, *_ in sections] != ["", "Mistakes"]:
            raise ValueError(f"{file}:{first}: {heading!r} is no task, or holds something other than ## Mistakes")
        for task in map(found.get, names):
            more = _mistakes(sections[1][2], solutions[task.name], task.cases, file)
            found[task.name] = replace(task, cases=more["cases"], mistakes=(*task.mistakes, *more["mistakes"]))
    return tuple(found.values())


def _facts(name: str, lines: Lines, cases: Sequence[Case], names: Mapping | None, file: str) -> dict[str, Any]:
    (_, _, head), *sections = split_at(lines, "## ")
    parts, headings = {heading: body for heading, _, body in sections}, [heading for heading, *_ in sections]
    if headings != [part for part in PARTS if part in parts] or "Solution" not in parts:
        raise ValueError(f"the task {name!r} has the sections {headings}, not {', '.join(PARTS)}")
    facts: dict[str, Any] = {}
    for fact in head[0][1].split(" · ") if head else ():
        key, _, value = fact.partition(": ")
        if key in facts or key not in FACTS or not re.fullmatch(FACTS[key][0], value):
            raise ValueError(f"the task {name!r} says {fact!r}: it begins with facts, `asks: x · minutes: 5`")
        facts[key] = FACTS[key][1](value)
    if "asks" not in facts:
        raise ValueError(f"the task {name!r} does not say what it asks: it begins with facts, `asks: x · minutes: 5`")
    hints = re.split(r"(?:^|\n)- ", text_of(parts.get("Hints", [])))[1:]
    solution = Solution(text_of(parts["Solution"]).removeprefix("```python").removesuffix("```").strip() + "\n", names)
    try:
        module = solution.module
    except ValueError as problem:
        raise ValueError(f"{file}:{sections[headings.index('Solution')][1]}: {problem}") from problem
    return {
        **facts,
        **_mistakes(parts.get("Mistakes", []), solution, cases, file),
        "reference": solution,
        "module": module,
        "text": text_of(head[1:]),
        "hints": tuple(map(str.strip, hints)),
        "solution": f"\n{solution.source}",
    }


def _mistakes(lines: Lines, solution: Solution, cases: Sequence[Case], file: str) -> dict[str, Any]:
    """The mistakes, and the cases with what is said of any other result."""
    found, others, known = [], {}, [case.name for case in cases]
    for name, first, body in entries_of(lines, "### ", file, once=False):
        ways, named, said = [], {"costs": (), "any other result of": ()}, []
        for number, line in body:
            key, _, value = line.removeprefix("- ").partition(": ")
            try:
                if line == "- any other result":
                    named["any other result of"] = tuple(known)
                elif line.startswith("- ") and key in named:
                    named[key] = tuple(value.split("; "))
                    if unknown := set(named[key]) - set(known):
                        raise ValueError(f"no case is called {unknown.pop()!r}")
                elif line.startswith("- "):
                    ways.append(read_changes(line))
                    solution.changed(ways[-1])
                else:
                    said.append((number, line))
            except ValueError as problem:
                raise ValueError(f"{file}:{number}: {problem}") from problem
        says, _, hint = " ".join(text_of(said).split()).partition("> ")
        found.append(Mistake(name, says.strip(), hint, ways=tuple(ways), costs=named["costs"], place=f"{file}:{first}"))
        others |= dict.fromkeys(named["any other result of"], found[-1].finding)
    cases = tuple(replace(case, default_finding=others.get(case.name, case.default_finding)) for case in cases)
    return {"cases": cases, "mistakes": tuple(found)}
