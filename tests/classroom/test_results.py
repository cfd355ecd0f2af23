"""A claim that does not hold: marked beside what was shipped for a learner, an error where the course is tested."""

import json

import pytest

import course_lib
from course_lib.classroom import Page, Prediction, Result
from course_lib.classroom.output import WIDGET_VIEW
from course_lib.tasks.claims import ClaimError, above, below
from course_lib.viz.style import figure

WINS = Prediction("Which wins?", ("fixed", "attention"))
DIFFERENT = "On this machine this result came out differently from the shipped one."


def drawn(predicted=None):
    fig, axes = figure(3, 2)
    axes.plot([1, 2])
    claims = {"it *rises*": True, "it is straight, and steep": (below(0.5, 0.1), True, above(3, 2))}
    return Result(fig, "A line that rises.", claims, 1, "It rose, as lines do.")


@pytest.fixture
def lesson(page):
    return Page("06", predictions={"wins": WINS}, results={"wins": drawn, "plain": drawn})


@pytest.fixture
def learner(monkeypatch, tmp_path):
    """Where claims stop nothing; returns the shipped notebook of the lesson."""
    monkeypatch.delenv("COURSE_STRICT")
    monkeypatch.setattr(course_lib, "__file__", str(tmp_path / "course_lib" / "__init__.py"))
    notebook = tmp_path / "notebooks" / "06_transformer.ipynb"
    notebook.parent.mkdir()
    notebook.write_text(json.dumps({"metadata": {"course_claims": {"it is straight, and steep": "0.03; 4"}}}))
    return notebook


def test_where_the_course_is_tested_a_claim_that_fails_shows_its_figure_and_stops_with_one_line(lesson, page):
    said = (
        r"✗ This result did not come out .*: it is straight, and steep. Measured: 0.5 \(less than 0.1 was expected\); 3"
    )
    with pytest.raises(ClaimError, match=said) as stop:
        lesson.result("wins")
    assert "<img" in page[0]["text/html"] and "✗ it is straight" in page[0]["text/plain"]
    assert WIDGET_VIEW not in page[0] and "<details>" not in page[0]["text/html"]
    assert len(stop.value._render_traceback_()) == 1


def test_on_a_learners_machine_a_claim_that_fails_stands_beside_the_shipped_measurement(lesson, page, learner, record):
    lesson.result("plain")
    for kind, mark in (("text/plain", "✗ it is straight"), ("text/html", "✗ it is straight")):
        seen = page[0][kind]
        assert mark in seen and DIFFERENT in seen and "It rose, as lines do." in seen
        assert "Expected: it is straight, and steep." in seen and "In the shipped lesson: 0.03; 4." in seen
        assert "Measured here: 0.5 (less than 0.1 was expected); 3 (more than 2 was expected)." in seen
    assert record("parts", "plain") == {"seen": True}


def test_behind_a_bet_it_waits_like_any_other_result(lesson, page, learner):
    lesson.predict("wins")
    lesson.result("wins")
    assert page[1]["text/html"].startswith("<details>") and WIDGET_VIEW in page[1]
    box = lesson.shown["result", "wins"].box
    assert DIFFERENT not in box.children[0].value
    lesson.shown["prediction", "wins"].placed.place(0)
    lesson.shown["result", "wins"].update()
    assert DIFFERENT in box.children[0].value and "In the shipped lesson: 0.03; 4." in box.children[0].value


@pytest.mark.parametrize("stored", ["{", "{}", '{"metadata": {}}', None])
def test_without_a_shipped_measurement_it_says_what_it_knows(lesson, page, learner, stored):
    learner.unlink() if stored is None else learner.write_text(stored)
    lesson.result("plain")
    assert DIFFERENT in page[0]["text/plain"] and "In the shipped lesson" not in page[0]["text/plain"]


def test_a_result_whose_claims_hold_says_nothing_about_machines(lesson, page, learner):
    holds = Result("<table></table>", "A table.", {"it rises": above(2, 1)})
    Page("06", results={"table": lambda predicted: holds}).result("table")
    assert page[0]["text/plain"] == "Figure: A table.\n✓ it rises" and DIFFERENT not in page[0]["text/html"]


def test_a_result_that_is_none_of_the_predictions_options_is_refused(page):
    lesson = Page(
        "06", predictions={"wins": WINS}, results={"wins": lambda predicted=None: Result("<p>It</p>", came=27.5)}
    )
    with pytest.raises(ValueError, match="'wins' came to 27.5; its prediction has 2 options"):
        lesson.result("wins")
