"""Questions explain every answer, may be tried again, and their stored text gives nothing away."""

import pytest

from course_lib.classroom.output import WIDGET_VIEW
from course_lib.classroom.quizzes import Number, Quiz, numbers_in, question
from course_lib.classroom.session import Session

OPTIONS = {"one": "too few", "**two**": "just right", "$3$": "too many"}
QUIZ = Quiz("How *many*?", OPTIONS, 1)
NUMBER = Number("How wide?", 0.5, 0.01, "Half of one.", unit="m", near={2.0: "That is its inverse."})


@pytest.fixture
def asked(page):
    """Show a question and return its live form."""

    def ask(quiz):
        form = question(Session("06"), "q", quiz)
        form.show()
        return form

    return ask


@pytest.fixture
def one(asked):
    return asked(QUIZ)


@pytest.fixture
def several(asked):
    return asked(Quiz("Which?", {"a": "why a", "b": "why b", "c": "why c"}, [0, 2]))


@pytest.fixture
def number(asked):
    return asked(NUMBER)


def letters(form):
    return [button.description for button in form.choices.buttons]


def test_a_wrong_answer_is_explained_and_may_be_tried_again(one, record):
    one.choices.buttons[2].click()
    assert "C is not right" in one.feedback.value and "too many" in one.feedback.value
    assert "just right" not in one.feedback.value
    assert record("quizzes", "q") == {"met": True, "tries": 1}
    one.choices.buttons[1].click()
    assert "B is right" in one.feedback.value and "just right" in one.feedback.value
    assert record("quizzes", "q") == {"met": True, "tries": 2, "right": True, "first_try": False}


def test_the_verdict_stands_above_its_reasons_and_the_right_answer_explains_the_others(one, record):
    one.choices.buttons[1].click()
    assert one.feedback.value.index("B is right") < one.feedback.value.index("just right")
    assert all(why in one.feedback.value for why in OPTIONS.values())
    assert record("quizzes", "q")["first_try"] is True


def test_a_tick_means_right_and_a_cross_wrong(one):
    one.choices.buttons[2].click()
    assert letters(one) == ["A", "B", "C ✗"]
    one.choices.buttons[1].click()
    assert letters(one) == ["A", "B ✓", "C"]


def test_close_folds_the_explanation_and_the_question_can_be_answered_anew(one, record):
    assert one.close_button.layout.display == "none"
    one.choices.buttons[1].click()
    assert one.close_button.layout.display == ""
    one.close_button.click()
    assert (letters(one), one.feedback.value, one.close_button.layout.display) == (["A", "B", "C"], "", "none")
    assert record("quizzes", "q")["right"] is True


def test_a_wrong_click_later_does_not_take_the_right_answer_away(one, record):
    for index in (1, 0, 1):
        one.choices.buttons[index].click()
    assert record("quizzes", "q") == {"met": True, "tries": 3, "right": True, "first_try": True}


def test_feedback_is_spoken_and_buttons_say_their_option(one):
    one.choices.buttons[0].click()
    assert 'role="alert"' in one.feedback.value
    assert [button.tooltip for button in one.choices.buttons] == ["A: one", "B: two", "C: $3$"]


def test_several_answers_are_right_only_together(several, record):
    several.submit.click()
    assert "at least one" in several.feedback.value and "tries" not in record("quizzes", "q")
    several.choices.buttons[0].value = several.choices.buttons[1].value = True
    assert letters(several) == ["A ●", "B ●", "C"]
    several.submit.click()
    assert "Not yet" in several.feedback.value and "why b" in several.feedback.value
    assert "missing: 1" in several.feedback.value and "why c" not in several.feedback.value
    several.choices.buttons[1].value, several.choices.buttons[2].value = False, True
    several.submit.click()
    assert "A and C are right" in several.feedback.value and record("quizzes", "q")["right"] is True


def test_the_stored_question_is_readable_and_keeps_the_answer_behind_a_click(one, page):
    (shown,) = page
    text = shown["text/html"]
    assert shown["text/plain"].startswith("Question. How many?\n  A. one\n  B. two\n  C. $3$\nAnswer: B\n  A ✗ (wrong)")
    assert WIDGET_VIEW in shown and text.index("<strong>two") < text.index("<details>") < text.index("just right")


def test_the_stored_text_is_the_same_whatever_was_answered(one, page, asked, stored):
    before = stored()
    one.choices.buttons[1].click()
    page.clear()
    assert "right before" in asked(QUIZ).widget().children[0].value
    assert stored() == before


def test_the_program_with_the_bug_stands_in_the_question(asked, page):
    form = asked(Quiz("Which line?", {"1": "no", "2": "yes"}, 1, kind="bug", code="\nx = 1\n  y = x < 2\n"))
    assert "<code>x = 1\n  y = x &lt; 2</code>" in form.widget().children[0].value
    assert "Which line?\nx = 1\n  y = x < 2\n  A. 1" in page[0]["text/plain"]


@pytest.mark.parametrize("answer", [3, [0, 7], []])
def test_an_answer_that_is_no_option_is_refused(answer):
    with pytest.raises(ValueError, match="number from 0 to 2"):
        Quiz("?", OPTIONS, answer)


def test_a_question_with_one_option_is_refused(page):
    with pytest.raises(ValueError, match="2 to 26 options"):
        question(Session("06"), "q", Quiz("?", {"one": "x"}, 0))


@pytest.mark.parametrize("text", ["0.5", "0,5", "1/2", " .505 ", "5e-1"])
def test_a_right_number_may_be_written_in_several_ways(number, record, text):
    number.field.value = text
    assert "is right" in number.feedback.value and "Half of one." in number.feedback.value
    assert record("quizzes", "q") == {"met": True, "tries": 1, "right": True, "first_try": True}


def test_a_near_miss_is_explained_and_another_wrong_number_is_not(number, record):
    number.field.value = "2"
    assert "2 is not right" in number.feedback.value and "That is its inverse." in number.feedback.value
    number.submit.click()  # the same number again is not another try
    assert record("quizzes", "q")["tries"] == 1
    number.field.value = "3"
    assert "inverse" not in number.feedback.value and "Half" not in number.feedback.value
    assert record("quizzes", "q") == {"met": True, "tries": 2}


def test_what_is_no_number_is_said_kindly_and_does_not_count(number, record):
    number.field.value = "<b>half</b>"
    assert "cannot read" in number.feedback.value and "<b>" not in number.feedback.value
    assert "tries" not in record("quizzes", "q")


def test_the_stored_number_stands_behind_a_click(number, page):
    text = page[0]["text/html"]
    assert page[0]["text/plain"] == (
        "Question. How wide? (in m)\nAnswer: 0.5 m. Half of one.\n  2 ✗ (wrong): That is its inverse."
    )
    assert text.index("<details>") < text.index("0.5 m")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("−3", [-3.0]),
        ("8,192", [8.192, 8192.0]),
        ("1,234,567.5", [1234567.5]),
        ("8 192", [8192.0]),
        ("8.6e9", [8.6e9]),
        ("-1/8", [-0.125]),
        ("1/0", []),
        ("1/2/3", []),
        ("", []),
        ("nan", []),
        ("1e999999", [float("inf")]),
    ],
)
def test_a_text_means_these_numbers(text, numbers):
    assert numbers_in(text) == numbers


def test_without_a_kernel_everything_is_printed(capsys):
    question(Session("06"), "q", QUIZ).show()
    out = capsys.readouterr().out
    assert "How many?" in out and "B ✓ (right): just right" in out
