"""The names are the frozen ones, and no thing is in two splits."""

import pytest

from course_lib.data import build_names, names
from course_lib.data.names import HELD_OUT, LANGUAGE_NAMES, LONGEST, letter_runs, name_splits, split_of


def test_no_name_and_no_thing_is_in_two_splits_and_none_in_two_languages():
    splits = name_splits()
    texts = [name.text for split in splits for name in split]
    things = [{name.thing for name in split} for split in splits]
    assert len(set(texts)) == len(texts) == 9188
    assert not things[0] & things[1] | things[0] & things[2] | things[1] & things[2]
    assert {name.language for name in splits.train} == set(LANGUAGE_NAMES) == {name.language for name in splits.test}
    assert all(3 <= len(text) <= LONGEST and text == text.lower() for text in texts)


def test_about_as_many_things_are_held_out_as_asked_for():
    shares = {split: 100 * len(names) / 9188 for split, names in name_splits()._asdict().items()}
    assert all(shares[split] == pytest.approx(percent, abs=3) for split, percent in HELD_OUT.items())
    assert split_of("territories/FR") == split_of("territories/FR")


def test_a_damaged_file_is_noticed(monkeypatch, tmp_path):
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / names.FILE).write_text("de\tterritories/XX\tnirgendwo\n")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="is damaged"):
        name_splits.__wrapped__()


def test_letter_runs_know_where_a_name_begins_and_ends():
    assert letter_runs("ab", longest=2) == ["^", "a", "b", "$", "^a", "ab", "b$"]


def test_the_recipe_keeps_plain_names_only():
    assert build_names.plain("Côte d’Ivoire") == "côte d'ivoire"
    assert build_names.plain("Kongo (Demokratische Republik)") == "kongo"
    assert build_names.plain("日本") is None and build_names.plain("UN") is None


def test_the_installed_babel_still_has_nearly_all_names():
    made = {(code, text) for code, _, text in build_names.collect()}
    kept = {(name.language, name.text) for split in name_splits() for name in split}
    same = sum((names.LANGUAGES[code], text) in kept for code, text in made)
    assert same > 0.8 * len(kept)
