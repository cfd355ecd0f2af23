"""ARCHITECTURE.md and the folders' READMEs: what they draw and name is in the code."""

import re
from pathlib import Path

import pytest

from course_lib.authoring.architecture import CALLED_BY_A_VALUE, FILES, FLOWS, PAGE, drawing, drawn, steps, untrue_steps
from tests.test_floors import FLOORS

ROOT = Path(__file__).parents[2]
FOLDERS = "lessons classroom grading lectures site authoring bench commands teaching".split()


@pytest.mark.parametrize("name", FLOWS)
def test_each_step_of_a_drawing_is_one_of_the_code(name):
    assert untrue_steps(FLOWS[name]) == []


def test_a_step_that_the_code_does_not_make_is_found():
    assert untrue_steps([("tasks.core:run_checks", "tasks.findings:unexplained")]) != []
    with pytest.raises(ValueError, match=r"tasks\.core:walk_checks is in a drawing of ARCHITECTURE\.md and not in"):
        untrue_steps([("tasks.core:run_checks", "tasks.core:walk_checks")])


def test_each_dotted_arrow_is_drawn():
    assert {step for flow in FLOWS.values() for step in steps(flow)} >= CALLED_BY_A_VALUE


def test_each_box_is_reached_by_an_arrow_or_begins_the_flow():
    for flow in FLOWS.values():
        ends = {second for _, second in steps(flow)}
        begins = {path[0] for path in flow} - ends
        assert all(place.split(":")[1].split(".")[-1] in "check collect grade export train" for place in begins)


def test_the_page_has_the_drawings_as_they_are_made():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert drawn(text) == text
    with pytest.raises(ValueError, match="lacks the lines <!-- flow: a check -->"):
        drawn("no marks")


def test_a_drawing_has_each_function_once_with_its_file():
    text = drawing(FLOWS["a check"])
    assert text.count("Task._ask_case<br/>tasks/table.py") == 1 and text.startswith("```mermaid\nflowchart TD\n")
    assert all((ROOT / "course_lib" / path).is_file() for path in re.findall(r"<br/>(\S+?)\"", text))
    assert FILES not in drawing(FLOWS["a submission"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_in_ten_lines_what_it_is_who_imports_it_and_where_to_begin(folder):
    text = (ROOT / "course_lib" / folder / "README.md").read_text(encoding="utf-8")
    assert 5 <= len([line for line in text.splitlines() if line.strip()]) <= 12
    after = FLOORS[FLOORS.index(folder) + 1]
    assert f"**May be imported by:** `{after}`" in text and "**Start reading at:**" in text
    named = re.findall(r"`([\w./]+\.(?:py|md))`", text)
    assert named and [name for name in named if not (ROOT / "course_lib" / folder / name).exists()] == []
