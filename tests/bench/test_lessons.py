"""What a learner costs: measured on a small notebook, and simulated for a class."""

import json

import nbformat
import pytest

from course_lib.bench import lessons
from course_lib.bench.lessons import Needs, measure, simulate, together
from course_lib.data.place import CannotStart

BUSY = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"


def notebook(path, *cells):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    return path


def test_processor_time_and_memory_are_those_of_the_kernel_cell_by_cell(tmp_path):
    path = notebook(tmp_path / "42_small.ipynb", BUSY.format(1.5), "kept = bytearray(b'1') * 200_000_000", "del kept")
    needs = measure(path)
    assert needs.lesson == "42" and len(needs.cpu) == len(needs.memory) == 3
    assert needs.cpu[0] > 1.4 and needs.cpu[1] + needs.cpu[2] < needs.cpu[0]
    assert needs.memory[1] - needs.memory[2] > 150_000_000 and needs.peak >= max(needs.memory)


def test_a_cell_that_fails_is_named(tmp_path):
    with pytest.raises(CannotStart, match="42_bad was not measured: code cell 1 raised ZeroDivisionError"):
        measure(notebook(tmp_path / "42_bad.ipynb", "1 / 0"))


def test_one_learner_never_waits_and_keeps_a_core_busy_as_long_as_her_cells_take():
    alone = simulate([30.0, 0.0, 30.0], learners=1, cores=1, minutes=10)
    assert alone.slower == 1 and alone.most == 1 and 0 < alone.busy < 1


def test_learners_share_the_cores_and_more_cores_let_nobody_wait():
    few, many = (simulate([60.0] * 5, learners=20, cores=cores, minutes=10) for cores in (2, 20))
    assert few.slower > 2 > many.slower == 1 and few.busy <= 2 < many.busy < 20
    assert few == simulate([60.0] * 5, learners=20, cores=2, minutes=10)


def test_a_cell_that_all_start_at_once_takes_as_long_as_the_cores_are_too_few():
    assert together([1.0, 50.0], learners=60, cores=4) == 750 and together([50.0], learners=2, cores=4) == 50


@pytest.mark.parametrize(("cells", "learners", "cores"), [([], 1, 1), ([1.0], 0, 1), ([1.0], 1, 0)])
def test_a_class_of_nothing_is_refused(cells, learners, cores):
    with pytest.raises(ValueError, match="needs cells, learners and cores, not"):
        simulate(cells, learners=learners, cores=cores)


def test_what_was_kept_is_not_measured_again_and_a_failure_does_not_end_the_rest(tmp_path, monkeypatch, capsys):
    paths = {name: notebook(tmp_path / f"{name}_a.ipynb", "1") for name in ("40", "41", "42")}
    asked = []

    def measured(path):
        asked.append(path.stem)
        if path.stem == "41_a":
            raise CannotStart("41_a was not measured.")
        return Needs(lesson=path.stem[:2], cpu=[1.0, 4.0], memory=[2**30, 2**29], peak=2**31)

    monkeypatch.setattr(lessons, "measure", measured)
    monkeypatch.setattr(lessons, "find_lesson", paths.get)
    keep = tmp_path / "kept.json"
    assert lessons.main(["40", "41", "42", "--keep", str(keep), "--learners", "2", "--cores", "1"]) == 1
    assert lessons.main(["40", "42", "--keep", str(keep), "--learners", "2", "--cores", "1"]) == 0
    assert asked == ["40_a", "41_a", "42_a"] and sorted(json.loads(keep.read_text())) == ["40_a", "42_a"]
    said = capsys.readouterr()
    assert "41_a was not measured." in said.err
    assert "| 42 | 2 | 5 | 2.50 | 4 | 0.75 GiB | 2.00 GiB |" in said.out and "| 8 s |" in said.out
