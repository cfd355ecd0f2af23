import codecs
import json
import os
import time

import pytest

from course_lib.grading.intake import ANSWER_BYTES, FILE_BYTES, take_from, take_in
from course_lib.grading.spec import read_assignment
from tests.grading.courses import answer, answer_cells, cell, hand_in, notebook, small_course

NO_NOTEBOOK, UNREAD = "The file is no notebook", "small.ipynb cannot be read"
GOOD = {"double": "def double(x):\n    return 2 * x", "halve": "def halve(x):\n    return x / factor"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return read_assignment(small_course(tmp_path_factory.mktemp("course")), "01")


@pytest.fixture
def taken(tmp_path, files):
    """Takes in what a student handed in: bytes, or cells."""
    return lambda content, **changes: take_in(hand_in(tmp_path, content, **changes), files)


def test_the_text_of_the_known_cells_is_taken(taken):
    submission = taken(answer_cells())
    assert (submission.student, submission.assignment, submission.readable) == ("ada", "01", True)
    assert (submission.answers, submission.written, submission.notes) == (GOOD, {"why": "So."}, ())


def test_a_text_in_lines_is_joined(taken):
    cells = answer_cells(double=["def double(x):\n", "    return 2 * x"])
    assert taken(cells).answers == GOOD


def test_metadata_outputs_order_and_other_cells_do_not_matter(taken):
    cells = answer_cells()
    for made in cells:
        made["outputs"], made["execution_count"] = [{"output_type": "nonsense"}], -7
        made["metadata"]["nbgrader"] |= {"points": 1000, "grade": True, "locked": "yes", "schema_version": 99}
        made["metadata"]["tags"] = {"deep": [[]]}
    strange = [cell("check-double", grade=True, points=9), cell("unknown"), {"cell_type": "code"}, 7, None, [], "x"]
    strange += [{"metadata": metadata, "source": "1"} for metadata in (3, [], {"nbgrader": 3}, {"nbgrader": []})]
    strange += [{"metadata": {"nbgrader": {"grade_id": name}}, "source": "1"} for name in ([], {}, 1, None)]
    submission = taken([*strange, *reversed(cells), *strange])
    assert (submission.answers, submission.notes) == (GOOD, ())


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (answer_cells(double=None), "'double' is missing"),
        ([*answer_cells(double=None), cell("doubel", source="1", solution=True)], "'double' is missing"),
        ([*answer_cells(double=None), {"cell_type": "code", "metadata": {}, "source": "1"}], "'double' is missing"),
        ([*answer_cells(double=None), cell("double", source="1", kind="markdown")], "no code cell any more"),
        ([*answer_cells(double=None), cell("double", source="1", kind="raw")], "no code cell any more"),
        (answer_cells(double=7), "holds no text"),
        (answer_cells(double={"a": 1}), "holds no text"),
        (answer_cells(double=["a", 1]), "holds no text"),
        (answer_cells(double="é" * (ANSWER_BYTES // 2 + 1)), "longer than 100 kB"),
    ],
)
def test_a_cell_that_cannot_be_taken_costs_itself_only(taken, cells, note):
    submission = taken(cells)
    assert submission.readable and submission.answers == {"halve": GOOD["halve"]}
    assert any(note in one for one in submission.notes)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_of_cells_with_one_name_all_code_cells_count_in_their_order(taken, kind):
    """JupyterLab's Split Cell makes two of one; the student's own kernel runs both."""
    two = [cell("double", source=text, solution=True) for text in ("x = 1", "def double(y):\n    return y")]
    submission = taken([cell("double", source="words", kind=kind), *answer_cells(double=None), *two])
    assert submission.answers["double"] == "x = 1\ndef double(y):\n    return y" and submission.notes == ()


@pytest.mark.parametrize("turn", [1, -1])
def test_of_cells_with_one_name_the_first_text_cell_holds_the_written_answer(taken, turn):
    pair = [cell("why", source="1 + 1"), cell("why", source="Since.", kind="markdown")]
    submission = taken([*answer_cells()[:-1], *pair[::turn]])
    assert submission.written == {"why": "Since."} and submission.notes == ()


PLOT = "iVBORw0KGgo="


@pytest.mark.parametrize(
    ("attachments", "text"),
    [
        ({"plot.png": {"image/png": PLOT}}, f"See ![plot](data:image/png;base64,{PLOT})"),
        ({"other.png": {"image/png": PLOT}}, "See ![plot](attachment:plot.png)"),
        ({"plot.png": {"text/html": PLOT}}, "See ![plot](attachment:plot.png)"),
        ({"plot.png": {"image/png": "<script>"}}, "See ![plot](attachment:plot.png)"),
        ({"plot.png": {"image/png": [PLOT]}}, "See ![plot](attachment:plot.png)"),
        ({"plot.png": PLOT}, "See ![plot](attachment:plot.png)"),
        ([PLOT], "See ![plot](attachment:plot.png)"),
        (None, "See ![plot](attachment:plot.png)"),
    ],
)
def test_a_picture_pasted_into_a_written_answer_is_taken_with_it(taken, attachments, text):
    pasted = cell("why", source="See ![plot](attachment:plot.png)", kind="markdown") | {"attachments": attachments}
    submission = taken([*answer_cells()[:-1], pasted])
    assert (submission.written, submission.notes) == ({"why": text}, ())


def test_a_written_answer_with_too_large_a_picture_is_told_so(taken):
    huge = {"plot.png": {"image/png": "A" * 1_000_000}}
    pasted = cell("why", source="![](attachment:plot.png)", kind="markdown") | {"attachments": huge}
    (note,) = taken([*answer_cells()[:-1], pasted]).notes
    assert "make its pictures smaller" in note


def test_a_written_answer_in_a_code_cell_alone_is_taken(taken):
    submission = taken([*answer_cells()[:-1], cell("why", source="# Since.")])
    assert (submission.written, submission.notes) == ({"why": "# Since."}, ())


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [{"cell_type": "code", "metadata": {}, "source": GOOD["double"]}],
        [cell("setup", locked=True), cell("check-double", grade=True, points=3)],
        [cell("rms_norm", solution=True), cell("setup", locked=True)],
        [cell("<b>\u202e", solution=True)],
        [cell("rms_norm", solution=True), answer("why", "Another assignment has such a cell, too.", 2)],
    ],
)
def test_a_notebook_without_any_cell_for_an_answer_is_not_taken_for_one_without_answers(taken, cells):
    submission = taken(cells)
    assert not submission.readable and submission.answers == {} and len(submission.notes) == 1
    (note,) = submission.notes
    assert "none of the cells for code of assignment 01" in note and "<b>" not in note
    assert "Submit the notebook small.ipynb that you fetched for assignment 01" in note and len(note) < 400


def test_halves_of_surrogate_pairs_can_be_stored(taken):
    submission = taken(notebook(answer_cells(double="x = '\ud800'")))
    assert submission.answers["double"] == "x = '?'"


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-32"),
    ],
)
def test_every_encoding_of_json_is_understood(taken, encoded):
    answer = GOOD["double"] + "  # é"
    text = json.dumps(json.loads(notebook(answer_cells(double=answer))), ensure_ascii=False)
    assert taken(encoded(text)).answers == GOOD | {"double": answer}


def test_bytes_of_another_encoding_cost_their_letters_only(taken):
    text = json.dumps(json.loads(notebook(answer_cells(double="x = 1  # é"))), ensure_ascii=False)
    assert taken(text.encode("latin-1")).answers == GOOD | {"double": "x = 1  # \ufffd"}


def test_odd_numbers_do_not_matter(taken):
    text = notebook(answer_cells()).decode()
    for number in ("9" * 4000, "1e999999", "NaN", "-Infinity"):
        assert taken(text.replace('"nbformat": 4', f'"nbformat": {number}').encode()).answers == GOOD


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"", NO_NOTEBOOK),
        (b"\0" * 1000, NO_NOTEBOOK),
        (os.urandom(1000), NO_NOTEBOOK),
        (notebook(answer_cells())[:-20], NO_NOTEBOOK),
        (b"[" * 100_000, NO_NOTEBOOK),
        (b'{"cells":' * 50_000 + b"1" + b"}" * 50_000, NO_NOTEBOOK),
        (b"[" + b"[]," * 1_000_001 + b"[]]", "millions of nested values"),
        (b"7", NO_NOTEBOOK),
        (b"[]", NO_NOTEBOOK),
        (b"{}", NO_NOTEBOOK),
        (b'{"cells": {"a": 1}}', NO_NOTEBOOK),
        (b'{"cells": "abc"}', NO_NOTEBOOK),
        (b'{"nbformat": 3, "worksheets": [{"cells": []}]}', NO_NOTEBOOK),
        (b"x" * (FILE_BYTES + 1), "larger than 20 MB. Clear its outputs"),
    ],
)
def test_what_is_no_notebook_is_said_in_words(taken, content, note):
    submission = taken(content)
    assert not submission.readable and submission.answers == {}
    assert len(submission.notes) == 1 and note in submission.notes[0]


def test_two_different_files_have_different_hashes(taken):
    assert taken(b"").sha256 != taken(b"1").sha256
    assert taken(answer_cells()).sha256 == taken(answer_cells()).sha256 != taken(answer_cells(why="No.")).sha256


def replaced(path, make):
    path.unlink()
    make(path)
    return path


def sparse(path):
    with path.open("wb") as file:
        file.truncate(500_000_000)


@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path),
        os.mkfifo,
        lambda path: path.mkdir(),
        lambda path: path.parent.rmdir(),
        sparse,
    ],
)
def test_what_stands_in_the_place_of_a_file_is_not_followed(tmp_path, files, make):
    start = time.monotonic()
    submission = take_in(replaced(hand_in(tmp_path, b"{}"), make), files)
    assert time.monotonic() - start < 1
    assert not submission.readable and UNREAD in submission.notes[0]


@pytest.mark.needs("linux")
@pytest.mark.parametrize("level", [1, 2])
def test_a_linked_folder_is_not_entered(tmp_path, files, level):
    hand_in(tmp_path, answer_cells(), student="ada")
    copy = tmp_path / "submitted" / "eve" / "01" / "small.ipynb"
    link = copy.parents[level - 1]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "submitted" / "ada" / ("01" if level == 1 else ""), target_is_directory=True)
    assert copy.is_file()
    submission = take_in(copy, files)
    assert (submission.student, submission.readable, submission.answers) == ("eve", False, {})


@pytest.mark.parametrize("student", ["", "a\nb", "a\0b", "x" * 200, "\u202eada"])
def test_a_students_name_that_the_gradebook_cannot_hold_is_refused(files, student):
    submission = take_from(notebook(answer_cells()), files, student=student)
    assert not submission.readable and "name of the student's folder" in submission.notes[0]
