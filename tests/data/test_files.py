import pytest

from course_lib.data.files import data_folder, data_path


def test_the_data_lie_beside_the_package(monkeypatch):
    monkeypatch.delenv("COURSE_DATA", raising=False)
    assert data_folder().name == "data"
    assert (data_folder().parent / "course_lib" / "data" / "files.py").is_file()


def test_the_environment_names_another_folder(monkeypatch, tmp_path):
    (tmp_path / "prose").mkdir()
    (tmp_path / "prose" / "text").write_text("words", encoding="utf-8")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_path("prose", "text").read_text(encoding="utf-8") == "words"
    assert data_path() == tmp_path


def test_what_is_missing_is_named_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"lack 'prose/text' .*git restore data.*COURSE_DATA"):
        data_path("prose", "text")


@pytest.mark.parametrize("parts", [("..", "secret"), ("/etc/passwd",)])
def test_a_path_out_of_the_folder_is_refused(monkeypatch, tmp_path, parts):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "data"))
    (tmp_path / "secret").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="leads out"):
        data_path(*parts)
