import hashlib

import pytest

from course_lib.commands.data import fetch_set, list_sets
from course_lib.data.place import CannotStart
from course_lib.data.sets import SETS, DataFile, DataSet


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A set of one file, which a folder holds."""
    content = b"To be, or not to be."
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "words.txt").write_bytes(content)
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COURSE_DATA_MIRROR", str(tmp_path / "mirror"))
    file = DataFile(path="words.txt", size=len(content), checksum="sha256:" + hashlib.sha256(content).hexdigest())
    known = DataSet(title="Some words", licence="public domain", source="https://example.org", files=(file,))
    monkeypatch.setitem(SETS, "words", known)
    return tmp_path


def test_the_list_tells_each_set_with_size_licence_and_source_and_what_is_here(mirror, capsys):
    list_sets()
    before = capsys.readouterr().out
    assert fetch_set("words") == 0
    capsys.readouterr()
    list_sets()
    after = capsys.readouterr().out
    for name, known in SETS.items():
        assert f"  {name} " in before and known.title in before and known.source in before and known.licence in before
    assert "170.1 MB" in before and "size not known" in before
    assert " here " not in before.split("  words ")[1] and " here " in after.split("  words ")[1]


def test_fetch_says_where_the_files_are_and_whose_and_copies_them_to_a_folder(mirror, capsys):
    fetch_set("words")
    printed = capsys.readouterr().out
    assert f"{mirror / 'home' / 'data' / 'words.txt'}\n" in printed and "Licence: public domain" in printed
    fetch_set("words", to=mirror / "here" / "below")
    assert (mirror / "here" / "below" / "words.txt").read_bytes() == b"To be, or not to be."
    assert [path.name for path in (mirror / "here" / "below").iterdir()] == ["words.txt"]
    assert f"{mirror / 'here' / 'below' / 'words.txt'}\n" in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_and_an_unknown_set_are_told(mirror):
    with pytest.raises(CannotStart, match="cannot be written"):
        fetch_set("words", to=mirror / "mirror" / "words.txt")
    with pytest.raises(CannotStart, match="no data set 'word'"):
        fetch_set("word")
