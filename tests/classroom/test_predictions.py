"""Predictions come before results: a result is closed until its prediction is placed, then both stand side by side."""

import pytest

from course_lib.classroom import Page, Prediction, Result
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.viz.style import figure

WINS = Prediction("Which wins?", ("fixed", "attention"))
GAIN = Prediction("How many points?", low=0, high=1, step=0.05, unit="BLEU")


def drawn(predicted=None, *, came=None, holds=True):
    fig, axes = figure(3, 2)
    axes.plot([1, 2])
    alt = "A line that rises." if predicted is None else f"A line that rises, and the prediction {predicted}."
    return Result(fig, alt, {"it *rises*": True, "it is straight": holds}, came, "It rose, as lines do.")


@pytest.fixture
def lesson(page):
    """A lesson with a prediction of each kind, and a result to each; "plain" has no prediction."""
    return Page(
        "06",
        predictions={"wins": WINS, "gain": GAIN, "idle": WINS},
        results={
            "wins": lambda predicted: drawn(predicted, came=1),
            "gain": lambda predicted: drawn(predicted, came=0.7),
            "plain": lambda number, predicted: drawn(came=number),
        },
    )


def shown(lesson, name):
    """What the learner sees of a result."""
    return "".join(getattr(part, "value", part.description) for part in lesson.shown["result", name].box.children)


def place(lesson, name, value):
    lesson.shown["prediction", name].placed.place(value)


def marks(lesson):
    return [button.description for button in lesson.shown["prediction", "wins"].choices.buttons]


def test_a_bet_has_a_mark_of_its_own_and_may_be_changed(lesson, record):
    lesson.predict("wins")
    form = lesson.shown["prediction", "wins"]
    form.choices.buttons[1].click()
    form.choices.buttons[0].click()
    assert marks(lesson) == ["A ●", "B"] and "your prediction" in form.choices.texts[0].value
    assert "You predicted <strong>A</strong> (fixed)" in form.said.value
    assert record("predictions", "wins") == {"met": True, "choice": 0, "first": 1}


def test_a_slider_bets_only_when_the_learner_says_so(lesson, record):
    lesson.predict("gain")
    form = lesson.shown["prediction", "gain"]
    form.slider.value = 0.25
    assert form.said.value == "" and "choice" not in record("predictions", "gain")
    form.controls[1].click()
    assert (
        "You predicted <strong>0.25 BLEU</strong>" in form.said.value
        and record("predictions", "gain")["choice"] == 0.25
    )


def test_a_result_is_closed_until_its_bet_is_placed(lesson, record):
    lesson.predict("gain")
    lesson.result("gain")
    assert "Make your prediction first" in shown(lesson, "gain") and "<img" not in shown(lesson, "gain")
    place(lesson, "gain", 0.4)
    text = shown(lesson, "gain")
    assert (
        "and the prediction 0.4" in text
        and "You predicted <strong>0.40 BLEU</strong>; it was <strong>0.70 BLEU" in text
    )
    assert "✓ it <em>rises</em>" in text and "It rose, as lines do." in text
    assert record("parts", "gain") == {"seen": True, "came": 0.7}


def test_a_result_whose_bet_is_placed_is_open(lesson):
    lesson.predict("wins")
    place(lesson, "wins", 0)
    lesson.result("wins")
    assert "✗ You predicted <strong>A</strong> (fixed); it was <strong>B</strong> (attention)." in shown(lesson, "wins")


def test_a_bet_cannot_be_changed_once_the_result_was_seen(lesson):
    lesson.predict("wins")
    lesson.result("wins")
    place(lesson, "wins", 1)
    place(lesson, "wins", 0)
    assert marks(lesson) == ["A", "B ●"]
    assert all(button.disabled for button in lesson.shown["prediction", "wins"].choices.buttons)
    assert "✓ You predicted <strong>B</strong> (attention), and that was right." in shown(lesson, "wins")


def test_a_result_can_be_seen_without_a_bet_and_then_it_is_too_late_for_one(lesson, record):
    lesson.predict("wins")
    lesson.result("wins")
    lesson.shown["result", "wins"].box.children[-1].click()
    assert "It rose" in shown(lesson, "wins") and "You predicted" not in shown(lesson, "wins")
    place(lesson, "wins", 1)
    assert "choice" not in record("predictions", "wins")
    assert "without a prediction" in lesson.shown["prediction", "wins"].said.value


def test_in_a_second_sitting_bet_and_result_are_as_they_were(lesson):
    lesson.predict("gain")
    place(lesson, "gain", 0.4)
    lesson.result("gain")
    lesson.open()
    lesson.predict("gain")
    lesson.result("gain")
    assert lesson.shown["prediction", "gain"].slider.value == 0.4 and "You predicted" in shown(lesson, "gain")


def test_a_bet_of_the_first_edition_still_counts(lesson):
    for name in ("wins", "gain"):
        lesson.session.record("predictions", name, choice=1)
        lesson.predict(name)
    assert marks(lesson) == ["A", "B ●"]
    assert lesson.shown["prediction", "gain"].said.value == ""  # now a slider, where it was a choice


def test_a_result_without_a_bet_is_open_and_not_folded(lesson, page, record):
    lesson.result("plain", 3)
    assert set(page[0]) == {"text/plain", "text/html"} and "<details>" not in page[0]["text/html"]
    assert record("parts", "plain") == {"seen": True}


def test_the_stored_result_is_folded_readable_and_never_tells_the_bet(lesson, page, stored):
    lesson.result("gain")
    place_before = stored()
    assert page[0]["text/html"].startswith("<details><summary>The result")
    assert page[0]["text/plain"] == ("Figure: A line that rises.\n✓ it rises\n✓ it is straight\nIt rose, as lines do.")
    page.clear()
    lesson.predict("gain")
    place(lesson, "gain", 0.4)
    page.clear()
    lesson.result("gain")
    assert stored() == place_before and WIDGET_VIEW in page[0]


def test_a_figure_may_be_html(page):
    Page("06", results={"map": lambda predicted: Result("<table></table>", "A map.")}).result("map")
    assert page[0] == {"text/plain": "Figure: A map.", "text/html": "<table></table>"}


@pytest.mark.parametrize("parts", [{}, {"low": 1, "high": 1}, {"low": 0, "high": 1, "step": 0}])
def test_a_bet_that_gives_no_choice_is_refused(parts):
    with pytest.raises(ValueError, match="needs options, or low < high"):
        Prediction("?", **parts)


def test_without_a_kernel_everything_is_printed(capsys):
    lesson = Page("06", predictions={"gain": GAIN}, results={"gain": drawn})
    lesson.predict("gain")
    lesson.result("gain")
    out = capsys.readouterr().out
    assert "A number from 0 to 1 BLEU." in out and "✓ it rises" in out
