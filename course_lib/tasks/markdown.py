"""Tasks from a Markdown file: all that a learner reads of them, their solution, and its mistakes.

A mistake is a change of the solution's own text. `…` in the old text stands for anything, `⏎` for the end of a line; a
line with several changes makes them all, several lines are several ways to make the same mistake. `costs:` names the
cases in which a mistake costs points, where these are not all. `any other result` is said of what no mistake explains,
in all cases or in those that are named: `- any other result of: the name of a case; of another`.

    # top_p: The nucleus
    asks: logits, p · minutes: 8 · also: gradients
    (the text)
    ## Hints
    - (a hint)
    ## Solution
    (a block of code)
    ## Mistakes
    ### sorted from the least likely
    - `descending=True` → `descending=False`
    - costs: the name of a case; of another
    What the code does.
    > A hint.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_lib.tasks import table
from course_lib.tasks.findings import Finding
from course_lib.tasks.solution import Solution
from course_lib.tasks.table import Case, Mistake, Task

CHANGE = re.compile(r"`([^`]+)` → (?:`([^`]+)`|nothing)")
FACTS = ("asks", "minutes", "also", "forbids", "seconds", "stretch")
PARTS = ("Hints", "Solution", "Mistakes")
Lines = list[tuple[int, str]]


def read_tasks(
    path: Path, cases: Mapping[str, Sequence[Case]], names: Mapping[str, Any] | None = None, **more: Mapping[str, Any]
) -> dict[str, Task]:
    """The tasks of a file by name, in its order, each with its cases; solutions may use `names`.

    `more` holds for a task's name what else its `Task` gets, such as an example. Raises ValueError with file and line
    for a text that is not as it should be, and for a mistake that changes nothing.
    """
    found: dict[str, Task] = {}
    lines = list(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    for heading, first, body in _split(lines, "# ")[1:]:
        name, _, title = heading.partition(": ")
        try:
            if not title or name in found or name not in cases:
                raise ValueError(f"{heading!r} is not `name: Title`, or its name comes twice or has no cases in Python")
            facts = _task(name, title, body, cases[name], names or {}, path.name)
            found[name] = Task(**facts | dict(more.get(name, {})))
        except ValueError as problem:
            place = "" if str(problem).startswith(path.name) else f"{path.name}:{first}: "
            raise ValueError(f"{place}{problem}") from problem
    if missing := ", ".join(cases.keys() - found.keys()):
        raise ValueError(f"{path.name} has no task for these cases: {missing}")
    return found


def _task(
    name: str, title: str, lines: Lines, cases: Sequence[Case], names: Mapping[str, Any], file: str
) -> dict[str, Any]:
    (_, _, head), *sections = _split(lines, "## ")
    parts = {heading: body for heading, _, body in sections}
    if [*parts] != [part for part in PARTS if part in parts] or "Solution" not in parts:
        raise ValueError(f"the task {name!r} has the sections {[*parts]}, not {', '.join(PARTS)}")
    facts = dict(fact.partition(": ")[::2] for fact in head[0][1].split(" · ")) if head else {}
    if wrong := [key for key in facts if key not in FACTS] or ([] if "asks" in facts else ["asks"]):
        raise ValueError(f"the task {name!r} says {wrong[0]!r}: it begins with facts, `asks: x · minutes: 5`")
    solution = Solution(_text(parts["Solution"]).removeprefix("```python").removesuffix("```").strip() + "\n", names)
    told, others = _mistakes(parts.get("Mistakes", []), solution, [case.name for case in cases], file)
    return {
        "name": name,
        "title": title,
        "asks": facts["asks"],
        "reference": solution,
        "module": solution.module,
        "cases": tuple(replace(case, otherwise=others.get(case.name, case.otherwise)) for case in cases),
        "mistakes": tuple(told),
        "also": tuple(getattr(table, also) for also in facts.get("also", "").split(", ") if also),
        "forbids": tuple(facts["forbids"].split(", ")) if "forbids" in facts else (),
        "seconds": float(facts["seconds"]) if "seconds" in facts else None,
        "minutes": int(facts.get("minutes", 0)),
        "stretch": "stretch" in facts,
        "text": _text(head[1:]),
        "hints": tuple(map(str.strip, re.split(r"(?:^|\n)- ", _text(parts.get("Hints", [])))[1:])),
        "solution": f"\n{solution.source}",
    }


def _mistakes(
    lines: Lines, solution: Solution, cases: list[str], file: str
) -> tuple[list[Mistake], dict[str, Finding]]:
    """The mistakes, and for cases what is said of any other result."""
    found, others = [], {}
    for name, first, body in _split(lines, "### ")[1:]:
        ways, costs, other, said = [], (), (), []
        for number, line in body:
            if line.startswith("- costs: "):
                costs = _known(line.removeprefix("- costs: "), cases, f"{file}:{number}")
            elif line == "- any other result":
                other = tuple(cases)
            elif line.startswith("- any other result of: "):
                other = _known(line.removeprefix("- any other result of: "), cases, f"{file}:{number}")
            elif line.startswith("- `"):
                ways.append(tuple(CHANGE.findall(line.replace("⏎", "\n"))))
                if CHANGE.sub("", line).strip("- ,;"):
                    raise ValueError(f"{file}:{number}: a change is `old` → `new`, or `old` → nothing")
                try:
                    solution.changed(ways[-1])
                except (LookupError, SyntaxError) as problem:
                    raise ValueError(f"{file}:{number}: {problem}") from problem
            else:
                said.append((number, line))
        says, _, hint = " ".join(_text(said).split()).partition("> ")
        found.append(Mistake(name, says.strip(), hint, ways=tuple(ways), costs=costs, place=f"{file}:{first}"))
        others |= dict.fromkeys(other, found[-1].finding)
    return found, others


def _known(names: str, cases: list[str], place: str) -> tuple[str, ...]:
    found = tuple(names.split("; "))
    if unknown := [name for name in found if name not in cases]:
        raise ValueError(f"{place}: no case is called {unknown[0]!r}")
    return found


def _split(lines: Lines, mark: str) -> list[tuple[str, int, Lines]]:
    """What stands before the first heading with this mark, and then each heading, its line and what it is above."""
    found: list[tuple[str, int, Lines]] = [("", 0, [])]
    fenced = False
    for number, line in lines:
        fenced ^= line.startswith("```")
        if line.startswith(mark) and not fenced:
            found.append((line.removeprefix(mark).strip(), number, []))
        elif line.strip() or found[-1][2]:
            found[-1][2].append((number, line))
    return found


def _text(lines: Lines) -> str:
    return "\n".join(line for _, line in lines).strip()
