"""Submission files as an attacker or an accident makes them: none is believed, none stops the judge."""

import base64
import json
import os
import threading
import time

import pytest

from course_lib.grading.intake import take_in
from tests.grading.attacks.course import HONEST, POINTS, SETUP, STUB, WRONG, code_cell, notebook, points, tiny_notebook

pytestmark = pytest.mark.needs("sandbox")

NOTHING = dict.fromkeys(POINTS, 0.0)


def notes(verdict):
    return " ".join(verdict["notes"])


# Files that are no notebook ----------------------------------------------------------------------------------

BROKEN = {
    "an empty file": b"",
    "blanks": b" \n\n ",
    "no JSON": b"import torch\n",
    "truncated JSON": json.dumps(tiny_notebook(HONEST)).encode()[:-100],
    "two notebooks in a row": json.dumps(tiny_notebook(HONEST)).encode() * 2,
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "a number of a million digits": b"1" * 1_000_000,
    "NaN": b"NaN",
    "brackets a million deep": b"[" * 1_000_000 + b"]" * 1_000_000,
    "objects a million deep": b'{"cells":' * 500_000 + b"1" + b"}" * 500_000,
    "cells that are no list": b'{"cells": 7, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "cells that are an object": b'{"cells": {"a": 1}, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "no cells": b'{"metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "a notebook of version 3": b'{"worksheets": [{"cells": []}], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}',
    "UTF-16": json.dumps(tiny_notebook(HONEST)).encode("utf-16"),
    "UTF-32": json.dumps(tiny_notebook(HONEST)).encode("utf-32"),
    "bytes that are no text behind the notebook": json.dumps(tiny_notebook(HONEST)).encode() + b"\xff\xfe\xe9",
    "zeros": bytes(100_000),
    "random bytes": bytes(range(256)) * 100,
    "a zip file": b"PK\x03\x04" + bytes(1000),
    "a pickle": (
        b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94"
        b"\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94."
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_notebook_is_nothing_and_needs_attention(course, kind):
    """Encodings that Jupyter never writes may be read or refused; then with full points or with none."""
    verdict = course.judge(course.submit_notebook("mallory", BROKEN[kind]))
    assert points(verdict) in (NOTHING, POINTS)
    if points(verdict) == NOTHING:
        assert verdict["status"] == "needs attention"
        assert verdict["notes"]
    else:
        assert kind in ("UTF-16", "UTF-32")


PLACES = ["symlink to another submission", "symlink to itself", "symlink to nothing", "a folder", "a pipe", "a socket"]


def make_place(kind, path, victim):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "symlink to another submission":
        path.symlink_to(victim)
    elif kind == "symlink to itself":
        path.symlink_to(path)
    elif kind == "symlink to nothing":
        path.symlink_to(path.parent / "nothing")
    elif kind == "symlink to a device":
        path.symlink_to("/dev/zero")
    elif kind == "symlink to the gradebook":
        path.symlink_to(path.parents[3] / "gradebook.db")
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        import socket

        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    elif kind == "a device":
        os.mknod(path, 0o20666, os.makedev(1, 5))
    elif kind == "an endless device":
        os.mknod(path, 0o20666, os.makedev(1, 9))


@pytest.mark.parametrize(
    "kind",
    [*PLACES, "symlink to a device", "symlink to the gradebook", "a device", "an endless device"],
)
def test_a_file_that_is_no_file_is_not_opened(course, tmp_path, monkeypatch, kind):
    if "device" in kind and not kind.startswith("symlink") and os.getuid() != 0:
        pytest.skip("only root can make device files")
    monkeypatch.chdir(tmp_path)
    victim = course.submit("victim")
    path = course.folder / "submitted" / f"s{abs(hash(kind))}" / "01" / "tiny.ipynb"
    make_place(kind, path, victim)
    verdict = course.judge(path)
    assert points(verdict) == NOTHING
    assert verdict["status"] == "needs attention"
    assert verdict["notes"]
    assert json.loads(victim.read_text())["cells"]


def test_a_symlink_in_place_of_the_folder_is_not_followed(course):
    course.submit("victim")
    folder = course.folder / "submitted" / "copycat"
    folder.mkdir()
    (folder / "01").symlink_to(course.folder / "submitted" / "victim" / "01")
    verdict = course.judge(folder / "01" / "tiny.ipynb")
    assert points(verdict) == NOTHING
    assert verdict["status"] == "needs attention"


def test_a_hard_link_or_copy_of_another_submission_is_a_submission_like_any_other(course):
    """Copying is plagiarism, not an attack on the grader: it is judged, and its hash gives it away."""
    victim = course.submit("victim")
    path = course.folder / "submitted" / "linker" / "01" / "tiny.ipynb"
    path.parent.mkdir(parents=True)
    os.link(victim, path)
    one, two = course.judge(victim), course.judge(path)
    assert points(one) == points(two) == POINTS
    assert one["submission"] == two["submission"]


def test_a_missing_file_is_nothing_and_needs_attention(course):
    verdict = course.judge(course.folder / "submitted" / "nobody" / "01" / "tiny.ipynb")
    assert points(verdict) == NOTHING
    assert verdict["status"] == "needs attention"


def test_a_file_that_may_not_be_read_is_nothing_and_needs_attention(course):
    path = course.submit("locked")
    path.chmod(0)
    try:
        verdict = course.judge(path)
    finally:
        path.chmod(0o600)
    expected = POINTS if os.getuid() == 0 else NOTHING  # root reads everything
    assert points(verdict) == expected


# Sizes --------------------------------------------------------------------------------------------------------


def test_a_notebook_of_500_megabytes_is_refused_at_once(course):
    path = course.submit("sparse")
    with path.open("r+b") as file:
        file.truncate(500 << 20)
    start = time.monotonic()
    verdict = course.judge(path)
    assert time.monotonic() - start < 2
    assert points(verdict) == NOTHING
    assert verdict["status"] == "needs attention"
    path.unlink()


def test_a_file_that_grows_while_it_is_read_is_read_to_its_limit(course):
    """Its size when opened is not to be trusted."""
    path, stop = course.submit("growing"), threading.Event()

    def grow():
        with path.open("ab") as file:
            while not stop.is_set() and file.tell() < 200 << 20:
                file.write(b" " * (1 << 20))

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        submission = take_in(path, course.files)
    finally:
        stop.set()
        writer.join()
        path.unlink()
    assert not submission.readable or set(submission.answers) == set(POINTS)


def test_an_answer_of_50_megabytes_costs_its_own_submission_only(course):
    path = course.submit("large", {"softmax": "# " + "x" * (50 << 20) + "\n" + HONEST["softmax"]})
    verdict = course.judge(path)
    assert points(verdict) == NOTHING
    assert verdict["status"] == "needs attention"
    path.unlink()


def test_an_answer_of_10_megabytes_costs_its_own_task_at_most(course):
    verdict = course.judge(course.submit("large", {"softmax": "x = 1\n" * 1_700_000 + HONEST["softmax"]}))
    kept = points(verdict)
    assert kept == POINTS | {"softmax": kept["softmax"]}


def test_outputs_and_attachments_of_15_megabytes_do_not_matter(course):
    content = tiny_notebook(HONEST)
    content["cells"][1]["outputs"] = [
        {
            "output_type": "display_data",
            "metadata": {},
            "data": {"image/png": base64.b64encode(bytes(10 << 20)).decode()},
        }
    ]
    assert points(course.judge(course.submit_notebook("picture", content))) == POINTS


def test_a_hundred_thousand_cells_are_read_in_time(course):
    content = tiny_notebook(HONEST)
    content["cells"] = [{"cell_type": "code", "source": "", "metadata": {}}] * 100_000 + content["cells"]
    assert points(course.judge(course.submit_notebook("cells", content))) == POINTS


# Cells ---------------------------------------------------------------------------------------------------------


def edited(change):
    content = tiny_notebook(HONEST)
    change(content["cells"])
    return content


def find(cells, grade_id):
    return next(cell for cell in cells if cell["metadata"]["nbgrader"]["grade_id"] == grade_id)


def without(grade_id):
    return edited(lambda cells: cells.remove(find(cells, grade_id)))


def with_nbgrader(name, **values):
    return edited(lambda cells: find(cells, name)["metadata"]["nbgrader"].update(values))


def with_cell(grade_id, **values):
    return edited(lambda cells: find(cells, grade_id).update(values))


def with_more(*cells, first=False):
    return edited(lambda old: old.__setitem__(slice(0, 0) if first else slice(len(old), len(old)), cells))


EVIL_SETUP = SETUP + "\ntorch.softmax = torch.Tensor.softmax = lambda *a, **k: 0\n"
HARMLESS = {
    "a second, wrong cell of the same name": with_more(code_cell("softmax", WRONG["softmax"], solution=True)),
    "an edited check cell that gives points": with_cell("check-softmax", source="100"),
    "a check cell with a million points": with_nbgrader("check-softmax", points=10**6),
    "a check cell with points below zero": with_nbgrader("check-softmax", points=-5),
    "a check cell with points that are no number": with_nbgrader("check-softmax", points="NaN"),
    "a check cell unlocked": with_nbgrader("check-softmax", locked=False),
    "a check cell made a solution": with_nbgrader("check-softmax", solution=True, grade=False),
    "no check cells": edited(
        lambda cells: [cells.remove(find(cells, f"check-{task}")) for task in POINTS],
    ),
    "a check cell with outputs of its own": with_cell(
        "check-softmax",
        outputs=[
            {"output_type": "execute_result", "data": {"text/plain": "100"}, "metadata": {}, "execution_count": 1}
        ],
    ),
    "a check cell that runs code": with_cell("check-softmax", source="import os; os._exit(0)"),
    "a setup cell edited": with_cell("setup", source=EVIL_SETUP),
    "a setup cell that exits": with_cell("setup", source="import os; os._exit(0)"),
    "no setup cell": without("setup"),
    "a second setup cell": with_more(code_cell("setup", EVIL_SETUP, locked=True)),
    "a setup cell made a solution": with_nbgrader("setup", solution=True),
    "cells in reverse order": edited(lambda cells: cells.reverse()),
    "a solution cell that claims points": with_nbgrader("softmax", grade=True, points=100),
    "a solution cell locked": with_nbgrader("softmax", locked=True),
    "an old schema": with_nbgrader("softmax", schema_version=1),
    "a schema of the future": with_nbgrader("softmax", schema_version=99),
    "a schema that is no number": with_nbgrader("softmax", schema_version=None),
    "no cell identifiers": edited(lambda cells: [cell.pop("id") for cell in cells]),
    "the same identifier for all cells": edited(lambda cells: [cell.update(id="x") for cell in cells]),
    "an unknown graded cell": with_more(code_cell("bonus", "100", grade=True, points=100)),
    "the written answer made code": with_cell("why", cell_type="code", source="import os; os._exit(0)"),
    "a source as a list of lines": with_cell("softmax", source=HONEST["softmax"].splitlines(keepends=True)),
    "Windows line ends": with_cell("softmax", source=HONEST["softmax"].replace("\n", "\r\n")),
    "other metadata of the wrong type": with_more(
        {"cell_type": "code", "source": "", "metadata": []},
        {"cell_type": "code", "source": "", "metadata": {"nbgrader": []}},
        {"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": ["softmax"]}}},
        {"cell_type": "code", "source": "", "metadata": {"nbgrader": {"grade_id": {"a": 1}}}},
        {"cell_type": 5, "source": {}, "metadata": {"nbgrader": {"grade_id": 7}}},
        {},
        first=True,
    ),
    "a notebook that says another language": {
        **tiny_notebook(HONEST),
        "metadata": {"kernelspec": {"name": "bash", "language": "bash"}, "language_info": {"name": "R"}},
    },
    "metadata that is no object": {**tiny_notebook(HONEST), "metadata": []},
    "another format": {**tiny_notebook(HONEST), "nbformat": 99, "nbformat_minor": -1},
    "Latin-1 in a comment": json.dumps(
        tiny_notebook(HONEST | {"softmax": HONEST["softmax"] + "# café\n"}), ensure_ascii=False
    ).encode("latin-1"),
    "the byte order mark": b"\xef\xbb\xbf" + json.dumps(tiny_notebook(HONEST)).encode(),
    "keys that stand twice": json.dumps(tiny_notebook(HONEST)).replace('"nbformat": 4', '"nbformat": 3, "nbformat": 4'),
    "a NaN where nobody looks": json.dumps(tiny_notebook(HONEST))[:-1] + ', "x": NaN}',
    "an integer of 5,000 digits where nobody looks": json.dumps(tiny_notebook(HONEST))[:-1] + f', "x": {"9" * 4000}}}',
    "a markdown cell with a task's name behind": with_more(
        code_cell("softmax", "text", solution=True, cell_type="markdown")
    ),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_a_changed_notebook_neither_gains_nor_loses(course, change):
    verdict = course.judge(course.submit_notebook("mallory", HARMLESS[change]))
    assert points(verdict) == POINTS
    assert verdict["status"] == "graded"


COSTLY = {
    "a deleted answer": without("softmax"),
    "a renamed answer": with_nbgrader("softmax", grade_id="softmax2"),
    "an answer renamed by a blank": with_nbgrader("softmax", grade_id="softmax "),
    "an answer renamed by case": with_nbgrader("softmax", grade_id="Softmax"),
    "an answer without nbgrader's metadata": with_cell("softmax", metadata={}),
    "an answer whose name is a path": with_nbgrader("softmax", grade_id="../../softmax"),
    "an answer whose name is no text": with_nbgrader("softmax", grade_id=["softmax"]),
    "an answer whose source is missing": edited(lambda cells: find(cells, "softmax").pop("source")),
    "an answer whose source is a number": with_cell("softmax", source=5),
    "an answer whose source is a list of numbers": with_cell("softmax", source=[1, 2, 3]),
    "an answer whose source is an object": with_cell("softmax", source={"a": 1}),
    "an empty answer": with_cell("softmax", source=""),
    "the stub": with_cell("softmax", source=STUB),
    "an answer in bad syntax": with_cell("softmax", source="def softmax(x:\n"),
    "an answer with a zero byte": with_cell("softmax", source="\0" + HONEST["softmax"]),
    "an answer with lone surrogates": with_cell("softmax", source="x = '\ud800'\n\udfff"),
    "an answer in brackets a thousand deep": with_cell("softmax", source="x = " + "(" * 5000 + ")" * 5000),
    "an answer of a million nested operators": with_cell("softmax", source="x = " + "-" * 1_000_000 + "1"),
    "an answer that declares another encoding": with_cell(
        "softmax", source="# coding: utf-7\n+AGQ-ef softmax(x): pass"
    ),
    "an answer that is an IPython command": with_cell("softmax", source="%%bash\nid > /tmp/evil\n"),
    "an answer for another name": with_cell("softmax", source=HONEST["softmax"].replace("softmax", "sоftmax")),
    "a wrong first cell before the right one": with_more(
        code_cell("softmax", WRONG["softmax"], solution=True), first=True
    ),
}


@pytest.mark.parametrize("change", COSTLY)
def test_a_spoilt_answer_costs_its_own_task_only(course, change):
    verdict = course.judge(course.submit_notebook("mallory", COSTLY[change]))
    assert points(verdict) == POINTS | {"softmax": 0}


EITHER = {
    "an answer retyped as markdown": with_cell("softmax", cell_type="markdown"),
    "an answer retyped as raw": with_cell("softmax", cell_type="raw"),
    "a markdown cell with a task's name before it": with_more(
        code_cell("softmax", "my thoughts", solution=True, cell_type="markdown"), first=True
    ),
    "a check cell with the name of the task before it": with_more(code_cell("softmax", "1", grade=True), first=True),
    "invisible characters in the source": with_cell("softmax", source="\ufeff" + HONEST["softmax"]),
}


@pytest.mark.parametrize("change", EITHER)
def test_whatever_becomes_of_an_odd_cell_the_other_tasks_keep_their_points(course, change):
    kept = points(course.judge(course.submit_notebook("mallory", EITHER[change])))
    assert kept == POINTS | {"softmax": kept["softmax"]}
    assert kept["softmax"] in (0, POINTS["softmax"])


def test_the_first_of_two_cells_counts_and_the_report_says_so(course):
    content = with_more(code_cell("softmax", WRONG["softmax"], solution=True))
    verdict = course.judge(course.submit_notebook("mallory", content))
    assert "softmax" in notes(verdict)


def test_notes_hold_no_text_of_the_notebook(course):
    """Names and texts in the notebook are the student's: a note that shows them must not carry markup or controls."""
    evil = "<script>alert(1)</script>\x1b[2J\u202e"
    content = with_more(
        code_cell(evil, "1", grade=True, points=3),
        code_cell("softmax" + evil, "1", solution=True),
    )
    verdict = course.judge(course.submit_notebook("mallory", content))
    assert points(verdict) == POINTS
    assert "\x1b" not in notes(verdict) and "\u202e" not in notes(verdict)


def test_a_notebook_with_a_million_notes_worth_of_cells_has_few_notes(course):
    """A hundred thousand duplicates do not make a report of a hundred thousand lines."""
    content = with_more(*[code_cell("softmax", "1", solution=True)] * 20_000)
    verdict = course.judge(course.submit_notebook("mallory", content))
    assert points(verdict) == POINTS
    assert len(json.dumps(verdict)) < 100_000


@pytest.mark.parametrize("cells", [[], [1, None, [], "x", True, {}]], ids=["no cells", "cells that are no objects"])
def test_a_notebook_without_any_answer_is_nothing_and_says_so(course, cells):
    verdict = course.judge(course.submit_notebook("mallory", notebook(cells)))
    assert points(verdict) == NOTHING and verdict["status"] == "needs attention"
    assert "none of the cells for answers" in notes(verdict)
