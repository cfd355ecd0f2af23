"""Alternative tasks for the same points: a release holds one of each slot, chosen by a key that only the class knows.

Each cell of such a task says so in the metadata of the source notebook, `"course": {"slot": "where", "alternative":
"b"}`; a cell that says nothing belongs to every release. The names of the tasks in a release tell what was chosen.
"""

import hmac
import re
from collections.abc import Callable, Mapping

import nbformat

from course_lib.grading.stripped import read_notebook, tags_of

Slot = Mapping[str, set[str]]  # the grade_ids of each alternative
Choice = Callable[[str, Slot], str]  # of a slot, by its name, one alternative

_HEADING = re.compile(r"^## \d+ · (.+) \([\d.]+ points?\)$", re.MULTILINE)


def first(slot: str, alternatives: Slot) -> str:
    """The first alternative by name: what is released without a key."""
    return min(alternatives)


def drawn_by(key: str, assignment: str) -> Choice:
    """The alternative that HMAC-SHA256 of assignment and slot draws with this key, each with the same probability."""

    def choose(slot: str, alternatives: Slot) -> str:
        digest = hmac.digest(key.encode(), f"{assignment}/{slot}".encode(), "sha256")
        return sorted(alternatives)[int.from_bytes(digest, "big") % len(alternatives)]

    return choose


def as_in(notebook: bytes) -> Choice:
    """The alternative whose cells are in this notebook, which may be damaged; without any, the first one."""
    there = {name.decode() for name in re.findall(rb'"grade_id"\s*:\s*"([\w-]+)"', notebook)}
    return lambda slot, alternatives: max(sorted(alternatives), key=lambda one: len(alternatives[one] & there))


def every_choice(source: bytes, place: str) -> list[Choice]:
    """As few choices as hold every alternative of every slot at least once."""
    most = max(map(len, slots(source, place).values()), default=1)
    return [
        lambda slot, alternatives, turn=turn: sorted(alternatives)[min(turn, len(alternatives) - 1)]
        for turn in range(most)
    ]


def slots(source: bytes, place: str) -> dict[str, dict[str, set[str]]]:
    """The slots of a notebook. Raises ValueError, naming `place`, if the alternatives of one have unequal points."""
    found: dict[str, dict[str, set[str]]] = {}
    points: dict[str, dict[str, float]] = {}
    for cell in read_notebook(source, place).cells:
        if facts := cell.metadata.get("course"):
            slot, alternative, tags = facts["slot"], facts["alternative"], tags_of(cell)
            found.setdefault(slot, {}).setdefault(alternative, set()).add(tags.get("grade_id", ""))
            worth = points.setdefault(slot, {})
            worth[alternative] = worth.get(alternative, 0) + (tags.get("points", 0) if tags.get("grade") else 0)
    for slot, worth in points.items():
        if len(set(worth.values())) > 1:
            listed = ", ".join(f"{alternative} {number:g}" for alternative, number in worth.items())
            raise ValueError(f"{place}: the alternatives of the slot {slot!r} are worth unequal points: {listed}.")
    return found


def chosen(source: bytes, place: str, choose: Choice) -> bytes:
    """The source notebook with one alternative of each slot; its metadata name the cells that were left out.

    A table of the tasks, `| title |`, gets the titles of those that are kept. Raises ValueError as `slots` does.
    """
    kept = {slot: choose(slot, alternatives) for slot, alternatives in slots(source, place).items()}
    if not kept:
        return source
    notebook = read_notebook(source, place)
    titles: dict[tuple[str, str], str] = {}
    cells, left_out = [], []
    for cell in notebook.cells:
        facts = cell.metadata.get("course")
        if facts and (heading := _HEADING.search(cell.source)):
            titles[facts["slot"], facts["alternative"]] = heading[1]
        (cells if not facts or kept[facts["slot"]] == facts["alternative"] else left_out).append(cell)
    for (slot, _), title in titles.items():
        for cell in cells:
            cell.source = cell.source.replace(f"| {title} |", f"| {titles[slot, kept[slot]]} |")
    notebook.cells = cells
    notebook.metadata["course"] = {"left_out": [tags_of(cell).get("grade_id", "") for cell in left_out]}
    return nbformat.writes(notebook).encode()
