"""What a change is checked for: stamps of notebooks, and the weight of the clone."""

import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from course_lib.authoring import changes
from course_lib.authoring.changes import LIMIT, Wrong, check_large, check_stamps, new_binaries

ROOT = Path(__file__).parents[2]
NAMES = {f"GIT_{who}_{what}": "a@b.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Repository:
    """A repository with one commit, called `base`."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        (folder / "old.bin").write_bytes(b"\0" * (2 * LIMIT))
        self.commit("The first one")
        self.git("tag", "base")

    def git(self, *arguments):
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(
            ["git", *arguments], cwd=self.folder, check=True, capture_output=True, env=os.environ | NAMES | settings
        )

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_large_text_and_what_the_base_has_do_not_count(repository):
    (repository.folder / "text.md").write_text("word " * LIMIT)
    (repository.folder / "old.bin").rename(repository.folder / "moved.bin")
    repository.commit("A long text, and a file that only moved")
    assert check_large("base", repository.folder).startswith("0.00 MB of new binary files")


def test_binary_files_up_to_the_limit_are_let_through_and_above_it_named(repository):
    (repository.folder / "first.bin").write_bytes(b"\0" * LIMIT)
    repository.commit("At the limit")
    assert check_large("base", repository.folder).startswith("1.00 MB")
    (repository.folder / "ünd mehr.bin").write_bytes(b"\0 more")
    repository.commit("Six bytes more")
    with pytest.raises(Wrong, match=r"1 MB allowed: first\.bin \(1\.00 MB\), ünd mehr\.bin .* `Large-files: `"):
        check_large("base", repository.folder)


def test_a_file_that_was_added_and_deleted_still_counts(repository):
    (repository.folder / "gone.bin").write_bytes(b"\0" * 2 * LIMIT)
    (repository.folder / "gone.bin").write_bytes(b"\0" * 2 * LIMIT + b"1")
    repository.commit("Added")
    (repository.folder / "gone.bin").unlink()
    repository.commit("Deleted")
    assert [path for path, _ in new_binaries("base", repository.folder)] == ["gone.bin"]


@pytest.mark.parametrize(
    ("message", "passes"),
    [
        ("Weights\n\nLarge-files: the lesson shows them", True),
        ("Weights\n\nLarge-files:", False),
        ("Weights, see Large-files: in the guide", False),
    ],
)
def test_only_a_line_with_a_reason_lets_more_through(repository, message, passes):
    (repository.folder / "large.bin").write_bytes(b"\0" * 2 * LIMIT + b"!")
    repository.commit(message)
    repository.commit("Another one on top")
    if passes:
        assert "gives the reason" in check_large("base", repository.folder)
    else:
        with pytest.raises(Wrong, match="large"):
            check_large("base", repository.folder)


def test_an_unknown_base_is_said_in_a_sentence(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository.folder)
    assert changes.main(["large", "--base", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith("git rev-list failed: fatal: ")


def test_a_notebook_whose_code_was_changed_is_named_with_its_cure(tmp_path, capsys):
    lesson = tmp_path / "00_start_here.ipynb"
    shutil.copy(ROOT / "notebooks" / lesson.name, lesson)
    assert check_stamps([lesson]) == "1 notebook(s): the stored outputs are those of the code."
    notebook = nbformat.read(lesson, as_version=4)
    next(cell for cell in notebook.cells if cell.cell_type == "code").source += "\nchanged = 1"
    nbformat.write(notebook, lesson)
    assert changes.main(["stamps", str(lesson)]) == 1
    said = capsys.readouterr().err
    assert "made by other code" in said and said.endswith("authoring.notebooks build 00\n")
    with pytest.raises(Wrong, match="there is no notebook"):
        check_stamps([tmp_path / "05_none.ipynb"])
