import nbformat
import pytest

from course_lib.authoring import notebooks
from course_lib.authoring.notebooks import (
    build_notebook,
    check_notebook,
    differences,
    main,
    notebook_to_text,
    text_to_notebook,
)
from course_lib.authoring.stamps import stamp_problems
from course_lib.commands.execute import execute_notebook
from course_lib.commands.files import read_notebook
from tests.authoring.conftest import outputs_text, write_code

COUNTER = "from pathlib import Path\nlog = Path('runs.txt')\nlog.open('a').write('x')\nprint('ran')"


def runs(folder):
    log = folder / "runs.txt"
    return len(log.read_text()) if log.exists() else 0


# ------------------------------------------------------------------------------------------- as text

SCRIPT = """\
# ---
# jupyter:
#   course:
#     kind: lesson
#     lesson: '05'
#     minutes: 75
# ---

# %% [markdown] tags=["section:1"]
# # Attention

# %% tags=["widget"]
print('a')

# %%
print('b')
"""


def test_a_script_comes_back_from_its_notebook_unchanged():
    assert notebook_to_text(text_to_notebook(SCRIPT)) == SCRIPT


def test_the_same_script_always_gives_the_same_file():
    assert nbformat.writes(text_to_notebook(SCRIPT)) == nbformat.writes(text_to_notebook(SCRIPT))


def test_cells_keep_their_ids_when_others_change_or_come_between():
    old = text_to_notebook(SCRIPT)
    for number, cell in enumerate(old.cells):
        cell["id"] = f"kept{number}"
    changed = SCRIPT.replace("# # Attention", "# # Attention, again").replace(
        "# %%\nprint('b')", "# %%\nprint('new')\n\n# %%\nprint('b')"
    )
    ids = [cell.id for cell in text_to_notebook(changed, previous=old).cells]
    assert ids[:2] == ["kept0", "kept1"] and ids[3] == "kept2" and not ids[2].startswith("kept")


SLIDE = """# %% [markdown] slide="30 90" minutes=2 show="text" code=["print", "print"] steps=true
# ## A thought
#
# - a point
#
# **Notes**
#
# Ask: why?

"""


def test_slides_stand_above_their_cells_in_the_text_and_in_no_cell_of_the_notebook():
    text = SCRIPT.replace("# %%\n", SLIDE + "# %%\n", 1)
    notebook = text_to_notebook(text)
    assert text != SCRIPT and notebook_to_text(notebook) == text
    plain = text_to_notebook(SCRIPT)
    assert [(cell.id, cell.source) for cell in notebook.cells] == [(cell.id, cell.source) for cell in plain.cells]


def test_equal_cells_get_different_ids():
    cells = text_to_notebook("# %%\nprint(1)\n\n# %%\nprint(1)\n").cells
    assert len({cell.id for cell in cells}) == 2


# ------------------------------------------------------------------------------------------- builds


def test_a_build_executes_afresh_and_stamps(tmp_path):
    path = tmp_path / "05_attention.ipynb"
    report = build_notebook(path, text=SCRIPT)
    built = read_notebook(path)
    assert report.error is None and report.path == path
    assert outputs_text(built) == ["a\n", "b\n"] and stamp_problems(built) == []
    assert built.metadata.course == {"kind": "lesson", "lesson": "05", "minutes": 75}
    assert list(tmp_path.iterdir()) == [path]


def test_a_notebook_with_a_current_stamp_is_not_run_again(tmp_path):
    path = write_code(tmp_path / "n.ipynb", COUNTER)
    build_notebook(path)
    before = path.read_bytes()
    assert build_notebook(path) is None
    assert runs(tmp_path) == 1 and path.read_bytes() == before


def test_a_forced_build_of_unchanged_code_changes_no_byte(tmp_path):
    path = write_code(
        tmp_path / "n.ipynb",
        "import ipywidgets\nimport matplotlib.pyplot as plt",
        "display(ipywidgets.IntSlider(value=3))\nplt.plot([1, 2])\nplt.show()",
        "1 + 1",
    )
    build_notebook(path)
    before = path.read_bytes()
    build_notebook(path, force=True)
    assert path.read_bytes() == before


def test_changed_prose_keeps_the_outputs_and_changed_code_makes_new_ones(tmp_path):
    path = tmp_path / "n.ipynb"
    script = f"# %% [markdown]\n# Old\n\n# %%\n{COUNTER}\n"
    build_notebook(path, text=script)
    assert build_notebook(path, text=script.replace("# Old", "# New")) is None
    built = read_notebook(path)
    assert runs(tmp_path) == 1 and built.cells[0].source == "New"
    assert outputs_text(built) == ["ran\n"] and stamp_problems(built) == []
    build_notebook(path, text=script.replace("'ran'", "'ran again'"))
    assert runs(tmp_path) == 2 and outputs_text(read_notebook(path)) == ["ran again\n"]


def test_an_output_edited_by_hand_is_made_again(tmp_path):
    path = write_code(tmp_path / "n.ipynb", "print('made')")
    build_notebook(path)
    path.write_text(path.read_text().replace("made\\n", "claimed\\n"))
    assert outputs_text(read_notebook(path)) == ["claimed\n"]
    build_notebook(path)
    assert outputs_text(read_notebook(path)) == ["made\n"]


def test_a_failing_build_leaves_the_file_as_it_was(tmp_path):
    path = write_code(tmp_path / "n.ipynb", "1 / 0")
    before = path.read_bytes()
    assert "ZeroDivisionError" in build_notebook(path).error
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_notebook_that_grows_too_large_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "MAX_BYTES", 2000)
    path = write_code(tmp_path / "n.ipynb", "print('x' * 2000)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"is the most"):
        build_notebook(path)
    assert path.read_bytes() == before


def test_no_trace_of_who_saved_or_timed_a_notebook_is_stored(tmp_path):
    path = write_code(tmp_path / "n.ipynb", "import ipywidgets\nipywidgets.IntSlider()")
    notebook = read_notebook(path)
    notebook.metadata["signature"] = "someone"
    notebook.cells[0].metadata["execution"] = {"iopub.execute_input": "2026-01-01"}
    nbformat.write(notebook, path)
    build_notebook(path)
    text = path.read_text()
    for trace in ("signature", "iopub", "widget-view", "widget-state"):
        assert trace not in text


def test_a_build_sees_neither_the_authors_progress_nor_threads(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", "/author")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    code = "import os\nprint(os.environ['COURSE_HOME'] == '/author', os.environ['OMP_NUM_THREADS'])"
    path = write_code(tmp_path / "n.ipynb", code)
    build_notebook(path)
    assert outputs_text(read_notebook(path)) == ["False 1\n"]


# ------------------------------------------------------------------------------------------- checks


def test_a_check_finds_text_that_changes_from_run_to_run(tmp_path):
    path = write_code(tmp_path / "n.ipynb", "print('same')", "import time\nprint(time.time_ns())")
    build_notebook(path)
    problems = check_notebook(path, runs=2)
    assert [problem.split(":")[0] for problem in problems] == ["run 1 of 2", "run 2 of 2"]
    assert all("code cell 2 gave other text" in problem for problem in problems)


def test_a_check_passes_text_that_stays_and_pixels_that_change(tmp_path):
    noise = "import random\nfrom IPython.display import Image\nImage(random.randbytes(9), format='png')"
    path = write_code(tmp_path / "n.ipynb", "print('same')", noise)
    build_notebook(path)
    assert check_notebook(path) == []


def test_an_ignored_cell_may_give_other_text(lesson):
    fresh = nbformat.from_dict(lesson.notebook)
    ignored = next(c for c in fresh.cells if "nbval-ignore-output" in c.metadata.get("tags", []))
    ignored.outputs[0]["text"] = "9.99\n"
    assert differences(lesson.notebook, fresh) == []
    del ignored.metadata["tags"]
    assert differences(fresh, lesson.notebook) != []


def test_a_check_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one run"):
        check_notebook(write_code(tmp_path / "n.ipynb", "1"), runs=0)


# ------------------------------------------------------------------------------------------- commands


def test_an_author_goes_from_notebook_to_text_and_back(tmp_path, capsys):
    path = tmp_path / "05_attention.ipynb"
    build_notebook(path, text=SCRIPT)
    assert main(["text", str(path), "--to", str(tmp_path / "drafts")]) == 0
    script = tmp_path / "drafts" / "05_attention.py"
    script.write_text(script.read_text().replace("print('b')", "print('c')"))
    assert main(["build", str(path), "--from", str(script)]) == 0
    assert outputs_text(read_notebook(path)) == ["a\n", "c\n"]
    assert main(["build", str(path)]) == 0
    assert "has not changed" in capsys.readouterr().out


def test_the_check_command_fails_with_a_line_for_each_broken_rule(tmp_path, capsys, lesson):
    assert main(["check", "--runs", "0", str(lesson.path)]) == 0
    path = write_code(tmp_path / "n.ipynb", "1")
    assert main(["check", "--runs", "0", str(path)]) == 1
    assert "n.ipynb: the notebook has no stamp" in capsys.readouterr().err


def test_commands_answer_a_wrong_name_with_one_sentence(tmp_path, capsys):
    assert main(["build", str(tmp_path / "absent.ipynb")]) == 1
    assert main(["build", "99"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and "absent.ipynb" in errors[0] and "no lesson 99" in errors[1]


# ------------------------------------------------------------------------------------------- claims

CLAIMS = """\
import os
from course_lib.tasks.claims import above, below, record
threads = int(os.environ["OMP_NUM_THREADS"])
record("it is large", [above(threads, 0.5)])
record("it stays small", [below(threads, 3.5), True])
record("it is odd", [threads % 2 == 1])
record("all of it is near", [below(10 + threads / 8, 11)])
"""


def test_a_build_stores_what_was_measured_and_new_prose_keeps_it(tmp_path):
    path = tmp_path / "n.ipynb"
    script = f"# %% [markdown]\n# Old\n\n# %%\n{CLAIMS}"
    build_notebook(path, text=script)
    measured = {"it is large": "1", "it stays small": "1", "all of it is near": "10.12"}
    assert read_notebook(path).metadata.course_claims == measured
    assert build_notebook(path, text=script.replace("# Old", "# New")) is None
    assert read_notebook(path).metadata.course_claims == measured and "course_claims" not in notebook_to_text(
        read_notebook(path)
    )


def test_a_check_reports_every_claim_at_every_number_of_threads_and_stops_at_none(tmp_path, capsys):
    stop = "if threads == 4:\n    raise KeyError('four')"
    path = write_code(
        tmp_path / "n.ipynb", CLAIMS, "from course_lib.classroom import claim\nclaim(threads < 2, 'one')", stop
    )
    before = path.read_bytes()
    assert main(["check", str(path), "--threads", "1,2,4"]) == 1
    printed = capsys.readouterr().out
    assert "~ it is large (close)\n    1 thread: held, 1 (more than 0.5 was expected)\n    2 threads: held" in printed
    assert "✗ it stays small\n" in printed and "4 threads: DID NOT HOLD, 4 (less than 3.5 was expected)" in printed
    assert "✗ it is odd\n    1 thread: held\n    2 threads: DID NOT HOLD\n" in printed
    assert "✓ all of it is near\n" in printed and "✗ one\n" in printed
    assert "4 threads: code cell 3 raised KeyError: 'four'" in printed and path.read_bytes() == before


def test_a_check_whose_claims_all_hold_succeeds(tmp_path, capsys):
    path = write_code(tmp_path / "n.ipynb", "from course_lib.classroom import claim\nclaim(True, 'it holds')")
    assert main(["check", str(path), "--threads", "2"]) == 0
    assert capsys.readouterr().out == "n.ipynb:\n✓ it holds\n    2 threads: held\n"


@pytest.mark.parametrize("counts", ["0", "1,,2", "two"])
def test_numbers_of_threads_that_cannot_be_are_refused(counts, capsys):
    with pytest.raises(SystemExit):
        main(["check", "05", "--threads", counts])
    assert "--threads" in capsys.readouterr().err


def test_a_run_for_the_shelf_stops_at_a_claim_and_a_learners_does_not(tmp_path, monkeypatch):
    path = write_code(tmp_path / "n.ipynb", "from course_lib.classroom import claim\nclaim(False, 'it holds')")
    assert "ClaimError" in build_notebook(path).error
    monkeypatch.delenv("COURSE_STRICT")
    assert execute_notebook(path).error is None
