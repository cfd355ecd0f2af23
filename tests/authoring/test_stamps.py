from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output

from course_lib.authoring import stamps
from course_lib.authoring.stamps import STAMP, is_current, library_digest, make_stamp, stamp_problems
from course_lib.classroom import imported as imports
from course_lib.commands.files import code_cells
from tests.authoring.conftest import figure


def code(lesson):
    return code_cells(lesson.notebook)


def printing(lesson):
    """The code cell that prints, which is number 17."""
    return code(lesson)[16]


def drawing(lesson):
    """The code cell that shows a figure."""
    cell = code(lesson)[1]
    cell.outputs = [figure("Words joined by lines")]
    return cell


def test_a_fresh_stamp_fits(lesson):
    assert stamp_problems(lesson.notebook) == [] and is_current(lesson.notebook)


def test_a_notebook_without_a_stamp_is_found(lesson):
    del lesson.notebook.metadata[STAMP]
    assert "no stamp" in stamp_problems(lesson.notebook)[0]


def test_a_changed_cell_is_found_and_all_outputs_below_it_doubted(lesson):
    code(lesson)[2].source += "\n# changed"
    assert stamp_problems(lesson.notebook) == [
        "the outputs from code cell 3 on were made by other code than stands there now"
    ]


def test_exchanged_cells_are_found_though_each_is_unchanged(lesson):
    cells = lesson.notebook.cells
    first, second = [i for i, cell in enumerate(cells) if cell.cell_type == "code"][:2]
    cells[first], cells[second] = cells[second], cells[first]
    assert "from code cell 1 on" in stamp_problems(lesson.notebook)[0]


@pytest.mark.parametrize("change", ["added", "removed"])
def test_an_added_or_removed_cell_is_found(lesson, change):
    if change == "added":
        lesson.notebook.cells.append(new_code_cell("1"))
    else:
        lesson.notebook.cells.remove(code(lesson)[-1])
    assert "code cells were executed" in stamp_problems(lesson.notebook)[0]


def test_an_output_edited_by_hand_is_found(lesson):
    printing(lesson).outputs[0]["text"] = "99.99\n"
    assert stamp_problems(lesson.notebook) == ["the outputs of code cell 17 were changed after they were made"]


def test_a_picture_pasted_in_is_found(lesson):
    drawing(lesson)
    lesson.notebook.metadata[STAMP] = make_stamp(lesson.notebook)
    drawing(lesson).outputs[0].data["image/png"] = "b3RoZXI="
    assert "code cell 2 were changed" in stamp_problems(lesson.notebook)[0]


def test_prose_and_tags_may_change_without_a_new_run(lesson):
    lesson.notebook.cells[1].source += "\nA better sentence."
    code(lesson)[0].metadata["slideshow"] = {"slide_type": "slide"}
    assert stamp_problems(lesson.notebook) == []


def test_saving_with_new_cell_ids_and_cut_streams_keeps_the_stamp(lesson):
    for number, cell in enumerate(lesson.notebook.cells):
        cell["id"] = f"new{number}"
    cell = printing(lesson)
    text = cell.outputs[0].text
    cell.outputs = [new_output("stream", name="stdout", text=part) for part in (text[:2], text[2:])]
    saved = nbformat.reads(nbformat.writes(lesson.notebook), as_version=4)
    assert stamp_problems(saved) == []


def test_a_stamp_of_another_format_asks_for_a_build(lesson):
    lesson.notebook.metadata[STAMP]["format"] = 0
    assert "build" in stamp_problems(lesson.notebook)[0]


def test_a_change_in_an_imported_module_makes_the_stamp_old_but_not_wrong(lesson, monkeypatch):
    code(lesson)[0].source = "from course_lib.authoring import stamps"
    lesson.notebook.metadata[STAMP] = make_stamp(lesson.notebook)
    assert is_current(lesson.notebook)
    module_file = imports.module_file

    def moved(name):
        return None if name.endswith("stamps") else module_file(name)

    monkeypatch.setattr(imports, "module_file", moved)
    assert not is_current(lesson.notebook) and stamp_problems(lesson.notebook) == []


def test_the_library_digest_follows_imports_through_modules(lesson, monkeypatch):
    code(lesson)[0].source = "import course_lib.authoring.lesson_rules"
    module_file, seen = imports.module_file, []

    def watched(name):
        seen.append(name)
        return module_file(name)

    monkeypatch.setattr(imports, "module_file", watched)
    library_digest(lesson.notebook)
    assert "course_lib.authoring.stamps" in seen and "course_lib.authoring" in seen


def test_pixels_inside_html_are_stamped_but_not_compared(lesson):
    cell = code(lesson)[1]
    image = '<img alt="Lines" src="data:image/png;base64,{}">'
    cell.outputs = [new_output("display_data", data={"text/html": image.format("QUJD")})]
    before, stamp = stamps.compared_outputs(cell), stamps.outputs_digest(cell)
    cell.outputs[0].data["text/html"] = image.format("REVG")
    assert stamps.compared_outputs(cell) == before and stamps.outputs_digest(cell) != stamp
    cell.outputs[0].data["text/html"] = image.replace("Lines", "Dots").format("QUJD")
    assert stamps.compared_outputs(cell) != before


def test_nbval_is_told_to_overlook_the_same_pixels():
    rules = (Path(stamps.__file__).parents[1] / "classroom" / "nbval_sanitize.cfg").read_text(encoding="utf-8")
    assert f"regex: {stamps.PIXELS.pattern}\n" in rules and f"regex: {stamps.VARYING.pattern}\n" in rules


def test_the_library_digest_holds_all_that_stands_in_the_lessons_folder(lesson, monkeypatch):
    code(lesson)[0].source = "from course_lib.lessons.lesson_05 import learner, page"
    module_file, seen = imports.module_file, []
    monkeypatch.setattr(imports, "module_file", lambda name: seen.append(name) or module_file(name))
    library_digest(lesson.notebook)
    folder = Path(stamps.__file__).parents[1] / "lessons" / "lesson_05"
    of_the_page = {f"course_lib.lessons.lesson_05.{path.stem}" for path in folder.glob("*.py")}
    others = ("__init__", "recipes", "assignment")  # a page imports none of these
    of_the_page -= {f"course_lib.lessons.lesson_05.{name}" for name in others}
    assert of_the_page <= set(seen)
