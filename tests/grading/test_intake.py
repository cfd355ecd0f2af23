"""What is taken from a file that a student handed in, whatever it is."""

import codecs
import itertools
import json
import os
import time

import pytest

from course_lib.grading.intake import ANSWER_BYTES, FILE_BYTES, take_from, take_in
from course_lib.grading.spec import read_assignment
from tests.grading.courses import GOOD as ALL
from tests.grading.courses import NAME, NOTEBOOK, answer, cell, notebook, setup, small_course, solution, write_files

FILE = f"{NOTEBOOK}.ipynb"
GOOD = {name: ALL[name] for name in ("add", "double")}


def answer_cells(why="So.", **changes):
    """What a student hands in; an answer that is None is left out."""
    answers = {name: text for name, text in (GOOD | changes).items() if text is not None}
    return [setup("setup", "import torch"), *(solution(*one) for one in answers.items()), answer("why", why, 4)]


def hand_in(folder, content, student="ada"):
    """Puts a notebook, or what stands in its place, into the student's folder."""
    place = f"submitted/{student}/{NAME}/{FILE}"
    return write_files(folder, {place: content if isinstance(content, bytes) else notebook(content)}).root / place


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return read_assignment(small_course(tmp_path_factory.mktemp("course")).root, NAME)


@pytest.fixture
def taken(tmp_path, files):
    """Takes in what a student handed in: bytes, or cells."""
    return lambda content: take_in(hand_in(tmp_path, content), files)


def test_the_text_of_the_known_cells_is_taken_and_joined_if_it_comes_in_lines(taken):
    submission = taken(answer_cells(double=["def double(x):\n", "    return 2 * x"]))
    assert (submission.student, submission.assignment, submission.readable) == ("ada", NAME, True)
    assert (submission.answers, submission.written, submission.notes) == (GOOD, {"why": "So."}, ())


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
    assert submission.readable and submission.answers == {"add": GOOD["add"]}
    assert any(note in one for one in submission.notes)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_of_cells_with_one_name_all_code_cells_count_in_their_order(taken, kind):
    """JupyterLab's Split Cell makes two of one; the student's own kernel runs both."""
    two = [cell("double", source=text, solution=True) for text in ("x = 1", "def double(y):\n    return y")]
    submission = taken([cell("double", source="words", kind=kind), *answer_cells(double=None), *two])
    assert submission.answers["double"] == "x = 1\ndef double(y):\n    return y" and submission.notes == ()


CODE, TEXT = cell("why", source="# Since."), cell("why", source="Since.", kind="markdown")


@pytest.mark.parametrize(("cells", "text"), [((CODE, TEXT), "Since."), ((TEXT, CODE), "Since."), ((CODE,), "# Since.")])
def test_the_first_text_cell_holds_the_written_answer_and_a_code_cell_where_there_is_none(taken, cells, text):
    submission = taken([*answer_cells()[:-1], *cells])
    assert (submission.written, submission.notes) == ({"why": text}, ())


PASTED, PLOT = "See ![plot](attachment:plot.png)", "iVBORw0KGgo="
TAKEN = f"See ![plot](data:image/png;base64,{PLOT})"


@pytest.mark.parametrize(
    ("attachments", "text"),
    [
        ({"plot.png": {"image/png": PLOT}}, TAKEN),
        ({"other.png": {"image/png": PLOT}}, PASTED),
        *(
            ({"plot.png": odd}, PASTED)
            for odd in ({"text/html": PLOT}, {"image/png": "<script>"}, {"image/png": [PLOT]})
        ),
        *(({"plot.png": PLOT}, PASTED), ([PLOT], PASTED), (None, PASTED)),
    ],
)
def test_a_picture_pasted_into_a_written_answer_is_taken_with_it(taken, attachments, text):
    pasted = cell("why", source=PASTED, kind="markdown") | {"attachments": attachments}
    submission = taken([*answer_cells()[:-1], pasted])
    assert (submission.written, submission.notes) == ({"why": text}, ())


def test_a_written_answer_with_too_large_a_picture_is_told_so(taken):
    huge = {"plot.png": {"image/png": "A" * 1_000_000}}
    (note,) = taken([*answer_cells()[:-1], cell("why", source=PASTED, kind="markdown") | {"attachments": huge}]).notes
    assert "make its pictures smaller" in note


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
    assert "none of the cells for code of assignment 07" in note and "<b>" not in note
    assert "Submit the notebook sums.ipynb that you fetched for assignment 07" in note and len(note) < 400


ENCODINGS = {
    "utf-8-sig": lambda text: codecs.BOM_UTF8 + text.encode(),
    **{name: lambda text, name=name: text.encode(name) for name in ("utf-16", "utf-16-le", "utf-32")},
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_of_json_is_understood(taken, name):
    answer = GOOD["double"] + "  # é"
    text = json.dumps(json.loads(notebook(answer_cells(double=answer))), ensure_ascii=False)
    assert taken(ENCODINGS[name](text)).answers == GOOD | {"double": answer}


def test_bytes_of_another_encoding_and_halves_of_surrogate_pairs_cost_their_letters_only(taken):
    text = json.dumps(json.loads(notebook(answer_cells(double="x = 1  # é"))), ensure_ascii=False)
    assert taken(text.encode("latin-1")).answers == GOOD | {"double": "x = 1  # \ufffd"}
    assert taken(notebook(answer_cells(double="x = '\ud800'"))).answers["double"] == "x = '?'"


def test_odd_numbers_do_not_matter(taken):
    text = notebook(answer_cells()).decode()
    for number in ("9" * 4000, "1e999999", "NaN", "-Infinity"):
        assert taken(text.replace('"nbformat": 4', f'"nbformat": {number}').encode()).answers == GOOD


NO_NOTEBOOK = [
    *(b"", b"\0" * 1000, os.urandom(1000), notebook(answer_cells())[:-20], b"[" * 100_000, b"7", b"[]", b"{}"),
    *(b'{"cells":' * 50_000 + b"1" + b"}" * 50_000, b'{"cells": {"a": 1}}', b'{"cells": "abc"}'),
    b'{"nbformat": 3, "worksheets": [{"cells": []}]}',
]


@pytest.mark.parametrize(
    ("content", "note"),
    [
        *((content, "The file is no notebook") for content in NO_NOTEBOOK),
        (b"[" + b"[]," * 1_000_001 + b"[]]", "millions of nested values"),
        (b"x" * (FILE_BYTES + 1), "larger than 20 MB. Clear its outputs"),
    ],
    ids=itertools.count(),
)
def test_what_is_no_notebook_is_said_in_words(taken, content, note):
    submission = taken(content)
    assert not submission.readable and submission.answers == {}
    assert len(submission.notes) == 1 and note in submission.notes[0]


def test_two_different_files_have_different_hashes(taken):
    assert taken(b"").sha256 != taken(b"1").sha256
    assert taken(answer_cells()).sha256 == taken(answer_cells()).sha256 != taken(answer_cells(why="No.")).sha256


IN_ITS_PLACE = {
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a link to what never ends": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda path: path.parent.rmdir(),
    "500 megabytes": lambda path: (path.touch(), os.truncate(path, 500_000_000)),
}


@pytest.mark.needs("linux")
@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_what_stands_in_the_place_of_a_file_is_not_followed(tmp_path, files, what):
    path = hand_in(tmp_path, b"{}")
    path.unlink()
    IN_ITS_PLACE[what](path)
    start = time.monotonic()
    submission = take_in(path, files)
    assert time.monotonic() - start < 1
    assert not submission.readable and "sums.ipynb cannot be read" in submission.notes[0]


@pytest.mark.needs("linux")
@pytest.mark.parametrize("level", [1, 2])
def test_a_linked_folder_is_not_entered(tmp_path, files, level):
    hand_in(tmp_path, answer_cells(), student="ada")
    copy = tmp_path / "submitted" / "eve" / NAME / FILE
    link = copy.parents[level - 1]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "submitted" / "ada" / (NAME if level == 1 else ""), target_is_directory=True)
    assert copy.is_file()
    submission = take_in(copy, files)
    assert (submission.student, submission.readable, submission.answers) == ("eve", False, {})


@pytest.mark.parametrize("student", ["", "a\nb", "a\0b", "x" * 200, "\u202eada"])
def test_a_students_name_that_the_gradebook_cannot_hold_is_refused(files, student):
    submission = take_from(notebook(answer_cells()), files, student=student)
    assert not submission.readable and "name of the student's folder" in submission.notes[0]
