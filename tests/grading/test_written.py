"""What a written answer is marked for: aspects with their points, and partial answers that fit them."""

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.spec import read_assignment
from course_lib.grading.written import written_questions
from tests.grading import courses

MODEL = "*A good answer.*\n\n**Sizes (1.5).** They are 3 and 4.\n\nIn rows. (1)\n\n**A reason (0.5).** Because.\n"
TYPICAL = "# why\n\n## Sizes\n- 1: Only one size is right.\n- 0.5: A slip.\n"


def asked(tmp_path, model=MODEL, typical=TYPICAL):
    """The written question of a course directory with this model answer and these partial answers."""
    cells = [cell for cell in courses.source_cells() if cell["metadata"].get("nbgrader", {}).get("grade_id") != "why"]
    cells += [
        {"cell_type": "markdown", "metadata": {}, "source": "## 3 · Why?\n\nSay why."},
        courses.cell("data", source="1 + 1"),
        courses.answer("why", model, 2),
    ]
    root = courses.small_course(tmp_path, source=courses.notebook(cells).decode())
    if typical is not None:
        (root / "hidden" / "01" / "written.md").write_text(typical)
    return written_questions(read_assignment(root, "01"), root / "hidden" / "01")["why"]


def test_aspects_have_their_points_texts_and_partial_answers(tmp_path):
    question = asked(tmp_path)
    sizes, reason = question.aspects
    assert (sizes.title, sizes.points, sizes.model) == ("Sizes", 1.5, "They are 3 and 4.\n\nIn rows. (1)")
    assert sizes.typical == ((1.0, "Only one size is right."), (0.5, "A slip."))
    assert (reason.title, reason.points, reason.typical) == ("A reason", 0.5, ())
    assert question.text == "## 3 · Why?\n\nSay why."


def test_an_answer_without_aspects_is_one_aspect(tmp_path):
    (aspect,) = asked(tmp_path, model="### BEGIN SOLUTION\nBecause.\n### END SOLUTION", typical=None).aspects
    assert (aspect.points, aspect.typical) == (2.0, ()) and "Because." in aspect.model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": MODEL.replace("0.5", "1")}, "have 2.5 points, and the cell has 2"),
        ({"typical": TYPICAL.replace("# why", "# because")}, "written.md:1: there is no written question 'because'"),
        ({"typical": TYPICAL.replace("## Sizes", "## Size")}, "written.md:3: there is no aspect 'Size'"),
        ({"typical": TYPICAL.replace("- 1:", "- 2:")}, "written.md:4: .* up to 1.5"),
        ({"typical": TYPICAL.replace("- 0.5: A slip.", "A slip.")}, "written.md:5: .* reads"),
    ],
)
def test_a_slip_is_told_with_its_line(tmp_path, change, says):
    with pytest.raises(CannotStart, match=says):
        asked(tmp_path, **change)
