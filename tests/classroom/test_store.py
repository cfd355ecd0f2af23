"""Progress survives crashes, foreign files, full or read-only folders and two notebooks at once."""

import json
import subprocess
import sys
import time

import pytest

import course_lib.classroom.store as store_module
from course_lib.classroom import Page
from course_lib.classroom.store import ProgressStore
from course_lib.data.place import course_home

START = "import runpy, sys, time; Store = runpy.run_path(sys.argv[1])['ProgressStore']; store = Store();"
"""A process that opens the store without importing the rest of the course: it starts in a tenth of a second."""


def start(code, *arguments):
    command = [sys.executable, "-c", START + code, store_module.__file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def right(entry):
    entry["right"] = True


def test_what_was_done_is_there_for_the_next_kernel(home):
    ProgressStore().change("05", "quizzes", "q", right)
    assert ProgressStore().entry("05", "quizzes", "q") == {"right": True}
    assert json.loads((home / "progress.json").read_text())["schema"] == 1


def test_the_home_is_the_users_data_folder_unless_told_otherwise(monkeypatch, home):
    assert course_home() == home
    monkeypatch.delenv("COURSE_HOME")
    assert course_home().name == "course_lib" and course_home().is_absolute()


def test_a_killed_writer_never_leaves_half_a_file(home):
    store = ProgressStore()
    for name in range(1500):  # large, so that a write takes a while
        store._unsaved.append(("05", lambda record, name=name: record["quizzes"].update({f"q{name}": {"tries": 1}})))
    store.open("05")
    body = """
print('up', flush=True)
for n in range(10**9):
    store.change('05', 'quizzes', 'q', lambda entry: entry.update(n=n))
"""
    for delay in (0.03, 0.045, 0.06, 0.075, 0.09, 0.105):
        writer = start(body)
        writer.stdout.readline()
        time.sleep(delay)
        writer.kill()
        writer.wait()
        assert len(json.loads((home / "progress.json").read_text())["lessons"]["05"]["quizzes"]) >= 1500
    store.change("05", "quizzes", "q", right)
    assert store.take_notices() == []
    assert {path.name for path in home.iterdir()} == {"progress.json", "progress.lock"}


def test_two_notebooks_at_once_keep_each_others_entries(home):
    code = """
for n in range(40):
    store.change('05', 'quizzes', f'{sys.argv[2]}{n}', dict.clear)
"""
    writers = [start(code, name) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert len(ProgressStore().lessons()["05"]["quizzes"]) == 80


GOOD = {"opened": True, "quizzes": {}, "predictions": {}, "exercises": {}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"schema": 1, "lessons": {"05": {"ope',
        b"[1, 2]",
        b'{"name": "another program"}',
        b"\xff\xfe\x00\x80",
        b'{"schema": 0, "lessons": {}}',
        json.dumps({"schema": 1, "lessons": {"05": GOOD | {"quizzes": []}}}).encode(),
        json.dumps({"schema": 1, "lessons": {"05": GOOD | {"exercises": {"e": 3}}}}).encode(),
    ],
)
def test_a_file_that_is_not_ours_is_kept_aside_and_said_once(home, content):
    home.mkdir()
    (home / "progress.json").write_bytes(content)
    store = ProgressStore()
    assert store.lessons() == {}
    store.open("05")
    (notice,) = store.take_notices()
    assert "progress.broken" in notice and "starts afresh" in notice
    assert (home / "progress.broken").read_bytes() == content
    store.open("06")
    assert store.take_notices() == [] and set(ProgressStore().lessons()) == {"05", "06"}


def test_a_second_broken_file_does_not_replace_the_first(home):
    home.mkdir()
    for content in ("one", "two", "three"):
        (home / "progress.json").write_text(content)
        ProgressStore().open("05")
    kept = ("progress.broken", "progress.broken-2", "progress.broken-3")
    assert [(home / name).read_text() for name in kept] == ["one", "two", "three"]


def test_a_file_of_a_newer_version_is_left_alone(home):
    home.mkdir()
    content = '{"schema": 2, "lessons": {"05": "whatever"}}'
    (home / "progress.json").write_text(content)
    store = ProgressStore()
    store.change("05", "quizzes", "q", right)
    assert "newer version" in store.take_notices()[0]
    assert (home / "progress.json").read_text() == content and store.entry("05", "quizzes", "q") == {"right": True}


def test_where_nothing_can_be_written_progress_lasts_as_long_as_the_kernel(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = ProgressStore(tmp_path / "file" / "home")
    store.change("05", "quizzes", "q", right)
    store.change("05", "quizzes", "r", right)
    (notice,) = store.take_notices()
    assert "cannot be saved" in notice and "COURSE_HOME" in notice
    assert set(store.lessons()["05"]["quizzes"]) == {"q", "r"}


def test_what_could_not_be_saved_is_saved_as_soon_as_it_can_be(home, monkeypatch):
    store = ProgressStore()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store_module.os, "fsync", full)
        store.change("05", "quizzes", "q", right)
    assert "No space left" in store.take_notices()[0] and not (home / "progress.json").exists()
    store.open("05")
    assert ProgressStore().entry("05", "quizzes", "q") == {"right": True}


def test_a_file_system_without_locks_is_no_obstacle(home, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_):
        raise OSError(store_module.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    store = ProgressStore()
    store.change("05", "quizzes", "q", right)
    assert store.take_notices() == [] and ProgressStore().entry("05", "quizzes", "q") == {"right": True}


def test_nothing_is_written_when_nothing_changes(home):
    store = ProgressStore()
    store.open("05")
    before = (home / "progress.json").stat().st_ino
    store.open("05")
    assert (home / "progress.json").stat().st_ino == before


def test_the_learner_is_told_in_the_first_cell_and_only_there(page, home):
    home.mkdir()
    (home / "progress.json").write_text("{")
    Page("06").open()
    assert "progress.broken" in page[-1]["text/plain"]
    page.clear()
    Page("06").open()
    assert len(page) == 1


def test_opening_a_lesson_marks_nothing_but_that(page, home):
    Page("06").open()
    assert ProgressStore().lessons() == {"06": GOOD | {"parts": {}}}


def test_a_file_of_the_first_edition_is_taken_over(home):
    home.mkdir()
    old = GOOD | {"predictions": {"p": {"choice": 1}}}
    (home / "progress.json").write_text(json.dumps({"schema": 1, "lessons": {"05": old}}))
    store = ProgressStore()
    assert store.entry("05", "parts", "p") == {}
    store.change("05", "parts", "p", right)
    assert ProgressStore().entry("05", "predictions", "p") == {"choice": 1} and store.take_notices() == []


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="kind must be one of quizzes, predictions, exercises, parts"):
        ProgressStore().change("05", "games", "q", right)
