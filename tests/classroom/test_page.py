"""A page knows its items by name, and its cards what is done and where to go on."""

import pytest

from course_lib.classroom import Number, Page, Prediction, Quiz, Result, Section
from course_lib.tasks import Case, Task

SECTIONS = (
    Section("See it", 3),
    Section("Prediction", 7, ("rise", "sum")),
    Section("Write", 20, ("double", "width", "pad")),
    Section("More", 5, ("extra",), optional=True),
)


class Playground:
    def live(self, touched):
        self.touched = touched
        played.append(self)


played = []


@pytest.fixture
def lesson(page):
    one = {"no": "not this", "yes": "this"}
    doubled = Case(name="doubled", inputs=lambda draw: (draw(3),))
    task = Task(
        name="double", title="Double it", asks="x", reference=lambda x: 2 * x, cases=(doubled,), hints=("x + x",)
    )
    return Page(
        "06",
        sections=SECTIONS,
        quizzes={"sum": Quiz("1 + 1?", one, 1), "width": Number("How wide?", 3), "extra": Quiz("?", one, 1)},
        predictions={"rise": Prediction("Up?", ("yes", "no"))},
        results={"rise": lambda predicted: Result("<p></p>", "A line.", came=1)},
        tasks={"double": task},
        playgrounds={"pad": Playground},
    )


def card(lesson, which="head"):
    return lesson.shown["card", which].box.outputs[0]["data"]["text/html"]


def do(lesson, *names):
    for name in names:
        match name:
            case "sum" | "width" | "extra":
                lesson.session.record("quizzes", name, right=True)
            case "rise":
                lesson.session.record("predictions", name, choice=0)
                lesson.result(name)
            case "pad":
                lesson.play(name)
                played[-1].touched()
            case "double":
                lesson.check(name, lambda x: x + x)


def test_the_head_card_lists_the_beats_with_their_minutes(lesson, page):
    lesson.open()
    assert page[0]["text/plain"] == (
        "Lesson 06, The Transformer: 30 minutes, and 5 that are optional\n"
        "  1 See it (3 min)\n  2 Prediction (7 min)\n  3 Write (20 min)\n  + More (5 min)"
    )
    assert "Begin with section 1: See it" in card(lesson) and "Begin" not in page[0]["text/html"]


def test_the_head_card_follows_what_is_done_and_says_where_to_go_on(lesson):
    lesson.open()
    do(lesson, "sum")
    assert "1 of 2 done" in card(lesson) and "Continue with section 2: Prediction" in card(lesson)
    do(lesson, "rise", "pad")
    assert (
        "✓ done" in card(lesson) and "1 of 3 done" in card(lesson) and "Continue with section 3: Write" in card(lesson)
    )
    do(lesson, "double", "width")
    assert "✓ <strong>All done.</strong>" in card(lesson) and "<td" in card(lesson)


def test_what_the_learner_only_let_run_is_not_done(page):
    lesson = Page(
        "06",
        sections=(Section("See", 3, ("pad", "plain")), Section("Measure", 3, ("plain",))),
        results={"plain": lambda predicted: Result("<p></p>", "A line.")},
        playgrounds={"pad": Playground},
    )
    lesson.open()
    lesson.play("pad")
    lesson.result("plain")
    assert "done" not in card(lesson).replace(">Done<", "") and ">open<" in card(lesson)
    played[-1].touched()
    assert "✓ done" in card(lesson) and "All done" in card(lesson)


def test_a_second_sitting_begins_where_the_first_ended(lesson):
    do(lesson, "sum", "rise")
    lesson.open()
    assert "Continue with section 3: Write" in card(lesson) and list(lesson.shown) == [("card", "head")]


def test_the_stored_cards_are_the_same_for_every_learner(lesson, page, stored):
    lesson.open()
    lesson.close()
    fresh = stored()
    do(lesson, "sum", "rise")
    page.clear()
    lesson.open()
    lesson.close()
    assert stored() == fresh and page[-1]["text/plain"] == "Next: lesson 07, BERT."


def test_the_closing_card_tells_predictions_what_is_open_and_what_comes_next(lesson):
    do(lesson, "rise", "sum")
    lesson.close()
    end = card(lesson, "end")
    assert "✗ you predicted <strong>A</strong> (yes); it was <strong>B</strong> (no)" in end
    assert "section 3, Write: the exercise <code>double</code>" in end
    assert "optional, More: the question <code>extra</code>" in end
    assert "Next: lesson 07, BERT.</strong></p><p>It is" in end


def test_the_closing_card_remembers_the_first_bet(lesson):
    lesson.session.record("predictions", "rise", choice=1, first=0)
    lesson.result("rise")
    lesson.close()
    assert "you predicted <strong>A</strong>" in card(lesson, "end")


@pytest.mark.parametrize(
    ("written", "said"), [(True, 'It is in <a href="07_bert.ipynb">07_bert.ipynb</a>.'), (False, "not written yet")]
)
def test_the_closing_card_looks_whether_the_next_lesson_exists(lesson, tmp_path, monkeypatch, written, said):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_attention.ipynb").touch()
    if written:
        (tmp_path / "notebooks" / "07_bert.ipynb").touch()
    monkeypatch.setattr("course_lib.classroom.cards.course_folder", lambda: tmp_path)
    lesson.close()
    assert said in card(lesson, "end")


def test_after_the_last_lesson_none_comes(page):
    Page("17").close()
    assert page[-1]["text/plain"] == "This was the last lesson."


@pytest.mark.parametrize("act", ["quiz", "predict", "result", "exercise", "play"])
def test_a_name_that_the_lesson_does_not_have_is_refused_with_those_it_has(lesson, act):
    with pytest.raises(ValueError, match=r"Lesson 06 has no 'nought' among its \w+; it has '"):
        getattr(lesson, act)("nought")


@pytest.mark.parametrize("act", ["check", "use"])
def test_a_task_that_the_lesson_does_not_have_is_refused(lesson, act):
    with pytest.raises(ValueError, match="no 'nought' among its tasks; it has 'double'"):
        getattr(lesson, act)("nought", abs)


def test_beats_hold_only_what_the_lesson_has():
    with pytest.raises(ValueError, match="hold 'sums'; it has 'sum'"):
        Page("06", sections=[Section("One", 1, ("sums",))], quizzes={"sum": Number("1 + 1?", 2)})


def test_a_lesson_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no lesson '18'"):
        Page("18")


def test_making_a_page_touches_no_file(lesson, home):
    assert not home.exists()
    lesson.open()
    assert (home / "progress.json").exists()


def test_without_a_kernel_the_cards_are_printed(capsys):
    lesson = Page("06", sections=[Section("One", 2)])
    lesson.open()
    lesson.close()
    assert capsys.readouterr().out == (
        "Lesson 06, The Transformer: 2 minutes\n  1 One (2 min)\nNext: lesson 07, BERT.\n"
    )
