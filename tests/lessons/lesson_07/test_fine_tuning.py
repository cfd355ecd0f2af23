"""What pre-training is worth: the file that the page shows is of these settings, and can be made again."""

import json

import pytest

from course_lib.lessons.lesson_07 import fine_tuning, learner

FILE = json.loads(fine_tuning.FILE.read_text(encoding="utf-8"))


def test_the_file_is_of_these_settings_and_has_all_draws():
    assert json.dumps(FILE["settings"]) == json.dumps(fine_tuning.settings())
    assert learner.measured() == FILE["test accuracy (%)"]
    for name in fine_tuning.COUNTS:
        assert {way: len(draws) for way, draws in learner.measured()[name].items()} == dict.fromkeys(
            ("scratch", "frozen", "fine-tuned"), len(fine_tuning.DRAWS)
        )
        for way, rates in fine_tuning.RATES.items():
            assert [float(rate) for rate in FILE["validation accuracy (%)"][name][way]] == [*rates]


@pytest.mark.parametrize("way", ["scratch", "frozen"])
def test_it_can_be_trained_again(way):
    assert 0 <= fine_tuning.run("gender", way, 1e-3, 0, "validation", steps=2) <= 100


def test_a_row_of_questions_is_printed_with_segments_and_both_ends(capsys):
    learner.show_row(learner.answers(20))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["0", "[CLS]", "segment", "0"] and lines[3].split()[2:4] == ["segment", "1"]
    assert sum("first" in line for line in lines) == sum("last" in line for line in lines) == 1
