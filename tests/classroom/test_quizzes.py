"""Questions explain every answer, predictions are compared with what came, and stored text gives nothing away."""

import pytest

from course_lib.classroom import lesson, predict, quiz, reveal
from course_lib.classroom.output import WIDGET_VIEW

PARTS = {"options": ["one", "**two**", "$3$"], "answer": 1, "why": ["too few", "just right", "too many"]}


@pytest.fixture
def one(page, item):
    lesson("06")
    quiz("q", "How *many*?", **PARTS)
    return item("quizzes", "q")


@pytest.fixture
def several(page, item):
    lesson("06")
    quiz("q", "Which?", options=["a", "b", "c"], answer=[0, 2], why=["why a", "why b", "why c"])
    return item("quizzes", "q")


@pytest.fixture
def guess(page, item):
    lesson("06")
    predict("p", "Which wins?", options=["fixed", "attention"])
    return item("predictions", "p")


def test_a_wrong_answer_is_explained_and_may_be_tried_again(one, record):
    one.buttons[2].click()
    assert "C is not right" in one.feedback.value and "too many" in one.feedback.value
    assert "just right" not in one.feedback.value
    assert record("quizzes", "q") == {"met": True, "tries": 1}
    one.buttons[1].click()
    assert "B is right" in one.feedback.value and "just right" in one.feedback.value
    assert record("quizzes", "q") == {"met": True, "tries": 2, "right": True, "first_try": False}


def test_a_right_answer_explains_the_others_too(one, record):
    one.buttons[1].click()
    assert all(why in one.feedback.value for why in PARTS["why"])
    assert record("quizzes", "q")["first_try"] is True


def test_an_answer_shows_on_its_button_without_colour(one):
    one.buttons[2].click()
    assert [button.description for button in one.buttons] == ["A", "B", "C ✗"]
    one.buttons[1].click()
    assert [button.description for button in one.buttons] == ["A", "B ✓", "C"]


def test_a_wrong_click_later_does_not_take_the_right_answer_away(one, record):
    one.buttons[1].click()
    one.buttons[0].click()
    assert record("quizzes", "q") == {"met": True, "tries": 2, "right": True, "first_try": True}


def test_feedback_is_spoken_and_buttons_say_their_option(one):
    one.buttons[0].click()
    assert 'role="alert"' in one.feedback.value
    assert [button.tooltip for button in one.buttons] == ["A: one", "B: two", "C: $3$"]


def test_several_answers_are_right_only_together(several, record):
    submit = several.widget().children[0].children[-1]
    submit.click()
    assert "at least one" in several.feedback.value and "tries" not in record("quizzes", "q")
    several.buttons[0].value = several.buttons[1].value = True
    submit.click()
    assert "Not yet" in several.feedback.value and "why b" in several.feedback.value
    assert "missing: 1" in several.feedback.value and "why c" not in several.feedback.value
    several.buttons[1].value, several.buttons[2].value = False, True
    submit.click()
    assert "A and C is right" in several.feedback.value and record("quizzes", "q")["right"] is True


def test_the_stored_question_is_readable_and_keeps_the_answer_behind_a_click(one, page):
    question, answer = page
    assert question["text/plain"] == "Question. How many?\n  A. one\n  B. two\n  C. $3$"
    assert WIDGET_VIEW not in question and WIDGET_VIEW in answer
    assert "just right" not in question["text/html"]
    assert answer["text/html"].index("<details>") < answer["text/html"].index("just right")
    assert answer["text/plain"].startswith("Answer: B\n  A ✗ (wrong): too few\n  B ✓ (right): just right")


def texts(page):
    return [{mime: text for mime, text in shown.items() if mime != WIDGET_VIEW} for shown in page]


def test_the_stored_text_is_the_same_whatever_was_answered(one, page, item):
    before = texts(page)
    one.buttons[1].click()
    page.clear()
    lesson("06")
    quiz("q", "How *many*?", **PARTS)
    assert texts(page) == before
    assert "right before" in item("quizzes", "q").feedback.value


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"options": ["one"], "why": ["x"], "answer": 0}, "2 to 26 options"),
        ({"why": ["x"]}, "3 options and 1 explanations"),
        ({"answer": 3}, "number from 0 to 2"),
        ({"answer": [0, 7]}, "number from 0 to 2"),
        ({"answer": []}, "number from 0 to 2"),
    ],
)
def test_a_question_whose_parts_do_not_fit_is_refused(page, change, sentence):
    lesson("06")
    with pytest.raises(ValueError, match=sentence):
        quiz("q", "?", **PARTS | change)


def test_a_question_before_the_lesson_is_opened_says_what_to_do(page):
    with pytest.raises(ValueError, match="first code cell"):
        quiz("q", "?", **PARTS)


def test_a_prediction_is_kept_and_can_be_changed(guess, record):
    guess.buttons[1].click()
    guess.buttons[0].click()
    assert record("predictions", "p")["choice"] == 0
    assert [button.description for button in guess.buttons] == ["A ✓", "B"]


def test_a_result_stands_beside_the_prediction_and_follows_it(guess, page, monkeypatch):
    live = []
    monkeypatch.setattr("course_lib.classroom.quizzes.widgets.HTMLMath", lambda: live.append(Html()) or live[-1])
    reveal("p", "98 against 41.", answer=1)
    assert "You predicted" not in live[0].value and "<strong>B</strong> came true" in live[0].value
    guess.buttons[0].click()
    assert "You predicted <strong>A</strong>" in live[0].value and "✗ but <strong>B</strong>" in live[0].value
    guess.buttons[1].click()
    assert "✓ and that came true" in live[0].value and "98 against 41." in live[0].value


class Html:
    """Stands in for the live text of `reveal`, so that the test can read it."""

    value, model_id = "", "id"


def test_the_stored_result_never_tells_the_prediction(guess, page):
    reveal("p", "98 against 41.", answer=1)
    guess.buttons[0].click()
    reveal("p", "98 against 41.", answer=1)
    assert texts(page)[-1] == texts(page)[-2]
    assert page[-1]["text/plain"] == "B came true: attention\n\n98 against 41."


def test_a_result_without_its_prediction_says_what_is_missing(guess):
    with pytest.raises(ValueError, match="'x' is not known yet.*predict.*'p'"):
        reveal("x", "?")
    with pytest.raises(ValueError, match="options 0 to 1, but answer=2"):
        reveal("p", "?", answer=2)


def test_without_a_kernel_everything_is_printed(capsys):
    lesson("06")
    quiz("q", "How *many*?", **PARTS)
    predict("p", "Which?", options=["a", "b"])
    reveal("p", "It was b.", answer=1)
    out = capsys.readouterr().out
    assert "How many?" in out and "B ✓ (right): just right" in out and "It was b." in out


def test_a_name_alone_takes_the_question_from_the_lessons_content(page, monkeypatch):
    lesson("06")
    from course_lib.classroom import session

    class Content:
        QUIZZES = {"sum": {"question": "1 + 1?"} | PARTS}
        PREDICTIONS = {"up": {"question": "Up?", "options": ["yes", "no"]}}
        OUTCOMES = {"up": {"text": "It fell.", "answer": 1}}

    monkeypatch.setattr(session.current_session(), "content", Content)
    quiz("sum")
    predict("up")
    assert page[0]["text/plain"].startswith("Question. 1 + 1?")
    assert page[2]["text/plain"].startswith("Predict before you run. Up?")
    reveal("up")
    assert page[-1]["text/plain"] == "B came true: no\n\nIt fell."
    reveal("up", answer=0)
    assert page[-1]["text/plain"] == "A came true: yes\n\nIt fell."
    reveal("up", "It rose.")
    assert page[-1]["text/plain"] == "It rose."
    predict("down", "Down?", options=["yes", "no"])
    with pytest.raises(ValueError, match="no 'down' among its outcomes; it has 'up'"):
        reveal("down")
    with pytest.raises(ValueError, match="no 'sums' among its quizzes; it has 'sum'"):
        quiz("sums")
