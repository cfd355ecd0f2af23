"""The playgrounds of lesson 15 show what the models do, and know when a goal is reached."""

import pytest

from course_lib.data.checkpoints import load_trained
from course_lib.functional.ctc import collapse
from course_lib.lessons.lesson_15 import playground as play
from course_lib.lessons.lesson_15.recipes import speech


@pytest.fixture(scope="module")
def transcribe():
    return play.transcribe(load_trained("tones").model)


def reached(explorer, **state):
    return [goal(explorer.state(**state)) for goal in explorer.goals]


def test_each_goal_can_be_reached_and_none_at_the_start(transcribe):
    assert reached(transcribe) == [False, False, False]
    assert reached(transcribe, noise=0.8) == [True, False, False]
    assert reached(transcribe, melody="CCDEE", noise=2.0, pause=0)[1]
    assert not reached(transcribe, melody="CCDEE", noise=0.8, pause=0)[1]
    assert not reached(transcribe, melody="CEGc", noise=2.0, pause=0)[1]  # no equal tones
    assert reached(transcribe, noise=2.0) == [False, False, True]


def test_the_greedy_path_collapses_to_what_is_said(transcribe):
    its = play.hear(load_trained("tones").model, speech.TONES.melody("CCDEE"))
    symbols = [play.BLANK, *speech.NAMES]
    path = collapse([symbols.index(symbol) for symbol in its.path])
    assert [symbols[number] for number in path] == its.found == its.played == list("CCDEE")
    alt = transcribe.alt(transcribe.state(melody="CCDEE", noise=0.8))
    assert "Played: C C D E E." in alt and "Collapsed: C C D E E, correct." in alt


def test_without_noise_the_nearest_clean_tone_is_correct_and_without_a_pause_equal_tones_are_one():
    def baseline(tones, pause):
        return play.nearest_tones(speech.replace(speech.TONES, noise=0.0).melody(tones, gap=pause))

    assert baseline("CEGc", 4) == [1, 3, 5, 8]
    assert baseline("CCEE", 0) == [1, 3]


def test_the_figure_says_what_was_played_and_the_path(transcribe):
    fig = transcribe.draw(transcribe.state())
    above, below = fig.axes
    titles = [axes.get_title("left") for axes in (above, below)]
    assert titles == ["played: C E G c", "collapsed: C E G c (correct)"]
    assert sum(text.get_text() == play.BLANK for text in below.texts) > 3


def test_a_page_without_a_kernel_steps_through(transcribe):
    assert transcribe.stepper().count("<details") == 2


@pytest.fixture(scope="module")
def spans():
    return play.spans(load_trained("gaps").model)


def test_a_span_is_what_was_removed_and_the_table_has_a_row_for_each(spans):
    its = play.filled(load_trained("gaps").model, 0, rate=0.3, mean_span=3, draw=0)
    gone = [word for word, dropped in zip(its.words, its.dropped, strict=True) if dropped]
    assert [word for span in its.removed for word in span] == gone and len(its.generated) == len(its.removed)
    assert spans.draw(spans.state(rate=0.3)).count("<tr>") == 1 + len(its.removed)


def test_goals_of_the_spans_can_be_reached_and_none_is_at_the_start(spans):
    assert not any(reached(spans))
    states = [spans.state(text=t, rate=r, length=n, draw=d) for t in range(4) for r in (0.15, 0.3) for n in (2, 4, 5)
              for d in range(1, 11)]  # fmt: skip
    assert all(any(goal(state) for state in states) for goal in spans.goals)
