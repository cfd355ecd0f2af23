"""Sentences, drawings and pictures as controls: what they say, take and refuse."""

import numpy as np
import pytest
import torch

from course_lib.classroom.widgets import Explorer, Goal, Pad, Pictures, Sentence, as_digit, shaken
from course_lib.classroom.widgets.pad import PadWidget
from course_lib.data.checkpoints import load_trained
from course_lib.data.digits import CleanDigits
from course_lib.functional.images import standardise
from tests.classroom.widgets.test_explorer import parts

# ------------------------------------------------------------------ a sentence


def sentence(**options):
    words = {"vocabulary": ["the", "minister", "signs"], "value": "the minister"}
    return Sentence(name="text", label="Text", **words | options)


def test_unknown_words_are_said_once_with_near_ones():
    said = sentence().remark("The ministr, the ministr signs zyzzyva.")
    assert said == (
        "I do not know the word “ministr” yet, so I can only guess. Did you mean “minister”? "
        "I do not know the word “zyzzyva” yet, so I can only guess."
    )
    assert sentence().remark("The minister signs!") == ""


def test_a_remark_stands_before_the_drawing_and_in_its_words():
    explorer = Explorer(name="x", title="x", controls=[sentence()], draw=lambda _: "<b>d</b>", alt=lambda _: "Drawn.")
    frame = explorer.frame({"text": "oops"})
    assert frame.alt.startswith("I do not know the word “oops”") and frame.alt.endswith("Drawn.")


# ------------------------------------------------------------------ a pad


def square(size=28):
    drawing = np.zeros((size, size), np.uint8)
    drawing[8:20, 10:18] = 255
    return drawing


def pad(**options):
    return Pad(name="pad", label="Pad", **options)


def test_a_pad_hands_on_what_is_drawn_and_what_its_buttons_make():
    seen = []
    widget, put = pad(example=square).build(seen.append)
    widget._handle_custom_msg({"ask": "Give me an example"}, [])
    assert np.array_equal(seen[-1], square())
    widget._handle_custom_msg({"ask": "Shake it"}, [])
    assert not np.array_equal(seen[-1], square()) and seen[-1].any()
    widget.set_state({"pixels": memoryview(bytes(28 * 28))})  # as it arrives from the page
    assert not seen[-1].any()
    put(square())
    assert np.array_equal(seen[-1], square())


def test_a_goal_is_not_reached_while_the_pen_is_down():
    goals = (Goal("ink", lambda state: state["pad"].any()), Goal("none", lambda state: not state["pad"].any()))
    live = Explorer(
        name="x", title="x", controls=[pad()], goals=goals,
        draw=lambda state: f"<b>{state['pad'].any()}</b>", alt=lambda state: "Drawn.",
    ).widget().explorer  # fmt: skip
    (widget,) = parts(live.box, PadWidget)
    widget.set_state({"pen_down": True, "pixels": memoryview(square().tobytes())})
    assert "<b>True</b>" in live.drawing.value and live.goals.reached == [False, False]
    widget.set_state({"pixels": memoryview(bytes(28 * 28))})
    widget.set_state({"pen_down": False})
    assert live.goals.reached == [False, True]


def test_a_pad_starts_with_its_first_named_drawing_and_says_what_is_on_it():
    control = pad(drawings={"a square": square()})
    assert control.words(control.start) == "a square"
    assert control.words(np.zeros((28, 28), np.uint8)) == "empty paper"
    assert control.same(square(), square()) and control.words(square()) == "a square"
    assert pad().words(square()) == "a drawing, 12% of it ink"


def test_drawings_can_be_the_steps_of_a_page_without_a_kernel():
    drawings = {"blank": np.zeros((28, 28), np.uint8), "a square": square()}
    explorer = Explorer(
        name="x", title="x", controls=[pad(drawings=drawings)], steps={"pad": tuple(drawings.values())},
        draw=lambda state: f"<b>{state['pad'].any()}</b>", alt=lambda state: "Drawn.",
    )  # fmt: skip
    html = explorer.stepper()
    assert '<details data-at="0" open>' in html and "<summary>Pad: a square</summary><b>True</b>" in html


@pytest.mark.parametrize("value", [np.zeros((28, 27), np.uint8), np.zeros((28, 28))])
def test_a_drawing_of_another_kind_is_refused(value):
    with pytest.raises(ValueError, match="Pad takes 28 x 28 pixels of uint8, but got"):
        pad().check(value)


@pytest.mark.parametrize("size", [27, 65])
def test_a_pad_of_another_size_is_refused(size):
    with pytest.raises(ValueError, match=f"28 to 64 pixels a side, but got {size}"):
        pad(size=size)


@pytest.mark.parametrize("size", [28, 64])
def test_what_is_shaken_stays_nearly_where_it_is(size):
    drawing = np.asarray(np.kron(square(), np.ones((2, 2), np.uint8))[:size, :size] if size > 28 else square())
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = shaken(drawing, rng)
        assert moved.shape == drawing.shape and not np.array_equal(moved, drawing)
        there = [np.argwhere(picture > 127).mean(axis=0) for picture in (drawing, moved)]
        assert np.abs(there[0] - there[1]).max() < 0.15 * size


# ------------------------------------------------------------------ a digit


@pytest.fixture(scope="module")
def reader():
    model = load_trained("vit_digits").model
    return lambda pixels: model(standardise(pixels)).argmax(dim=-1)


@pytest.fixture(scope="module")
def digits():
    return CleanDigits(split="test").batch(40, seed=0)


@torch.no_grad()
def test_a_small_digit_in_a_corner_is_read_only_after_the_preprocessing(reader, digits):
    small = torch.zeros(len(digits.pixels), 28, 28, dtype=torch.uint8)
    small[:, 1:15, 1:15] = (255 * torch.nn.functional.avg_pool2d(digits.pixels, 2)[:, 0]).byte()
    read = reader(torch.cat([as_digit(drawing) for drawing in small]))
    assert (read == digits.labels).float().mean() > 0.85
    assert (reader(small[:, None].float() / 255) == digits.labels).float().mean() < 0.5


def test_dark_ink_on_bright_paper_is_the_same_digit(digits):
    drawing = (255 * digits.pixels[0, 0]).byte()
    torch.testing.assert_close(as_digit(255 - drawing), as_digit(drawing))


def test_empty_paper_stays_empty():
    assert not as_digit(torch.zeros(64, 64, dtype=torch.uint8)).any()


# ------------------------------------------------------------------ pictures


@pytest.fixture
def pictures():
    return Pictures(name="p", label="Picture", pictures={"a square": square(), "noise": np.zeros((9, 9, 3), np.uint8)})


def test_a_click_on_a_picture_gives_its_name(pictures):
    seen = []
    widget, put = pictures.build(seen.append)
    widget.chosen = 1
    put("a square")
    assert seen == ["noise", "a square"] and pictures.start == "a square"
    assert [words for words, _ in widget.pictures] == ["a square", "noise"]


def test_a_picture_that_is_not_there_is_refused(pictures):
    with pytest.raises(ValueError, match="Picture must be one of 'a square', 'noise', but got 'moon'"):
        pictures.check("moon")
