"""The three playgrounds of lesson 05 show what the mathematics says, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.data.translation import translate as gold_translation
from course_lib.lessons.lesson_05 import playground as play
from course_lib.lessons.lesson_05.playground import mask_painter, softmax_explorer, translator
from course_lib.training.translation import Translation
from tests.lessons.common import reached

SIZE = len(play.WORDS)


# ------------------------------------------------------------------ softmax


def weights(**state):
    return play.weights_at(softmax_explorer().state(**state))


def test_softmax_and_jacobian_are_torchs():
    z = torch.tensor([1.2, 0.4, -0.3, -1.1, 0.0], dtype=torch.float64)
    np.testing.assert_allclose(weights(), z.softmax(0).numpy(), atol=1e-12)
    exact = torch.autograd.functional.jacobian(lambda z: z.softmax(0), z)
    np.testing.assert_allclose(play.jacobian(weights()), exact.numpy(), atol=1e-12)
    assert weights(d_k=1024, temperature=0.1, z1=3.0).tolist() == [1, 0, 0, 0, 0]  # of huge scores, too
    divided = weights(d_k=1024, scaled=True)  # division by the root undoes the width
    np.testing.assert_allclose(divided, weights(d_k=1, scaled=False), atol=1e-12)


def test_width_without_division_saturates_the_softmax():
    explorer = softmax_explorer()
    sizes = [play.gradient_size(explorer.state(d_k=d)) for d in (1, 4, 16, 64, 256)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 0.3 and sizes[-1] < 1e-4


def test_the_softmax_says_how_far_the_width_spreads_the_scores_and_when_it_is_saturated():
    plain, divided = (softmax_explorer().frame({"d_k": 64, "scaled": scaled}).alt for scaled in (False, True))
    assert "multiplies the standard deviation of the scores by √d_k = 8. " in plain and "saturated" in plain
    assert "by √d_k = 8, and the division takes that back. " in divided and "saturated" not in divided


def test_the_gradient_with_respect_to_the_scores_has_the_divisor_in_it():
    state = softmax_explorer().state(d_k=16, scaled=True, temperature=2.0)
    q_k = torch.tensor(play.STARTS, dtype=torch.float64) * 4
    exact = torch.autograd.functional.jacobian(lambda scores: (scores / 4 / 2.0).softmax(0), q_k)
    said = softmax_explorer().frame(state).alt
    assert (
        f"is {play.gradient_size(state):.3f}. With respect to the scores q·k it is divided by 8: {exact.norm():.3f}."
        in said
    )
    assert "q·k" not in softmax_explorer().frame().alt  # divided by 1


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ((1.2, 0.4, -0.3, -1.1, 0.0), "key 1 has the largest."),
        ((0.3, 0.3, 0.3, 0.3, 0.3), "they are equal."),
        ((0.1, 2.0, 0.1, 2.0, 0.1), "keys 2 and 4 have the largest."),
        ((2.0, 2.0, 0.1, 2.0, 0.1), "keys 1, 2 and 4 have the largest."),
    ],
)
def test_of_equal_weights_none_is_called_the_largest(scores, said):
    state = {f"z{i}": score for i, score in enumerate(scores, start=1)}
    assert f"; {said} d_k = 1 " in softmax_explorer().frame(state).alt


@pytest.mark.parametrize(
    ("state", "goals"),
    [
        ({}, [False, False, False]),
        ({"d_k": 64}, [True, False, False]),
        ({"temperature": 0.1}, [False, False, False]),  # sharp, but by the temperature
        ({"d_k": 64, "temperature": 8.0}, [False, True, False]),
        ({"d_k": 64, "scaled": True}, [False, False, False]),
        ({f"z{i}": 0.3 for i in range(1, 6)}, [False, False, True]),
    ],
)
def test_the_goals_of_the_softmax(state, goals):
    assert reached(softmax_explorer(), **state) == goals


# ------------------------------------------------------------------ masks


def presets():
    return {name: np.array(grid) for name, grid in mask_painter().controls[0].presets.items()}


def test_the_painted_mask_hides_before_the_softmax():
    causal = play.weights_of(mask_painter().controls[0].presets["causal"])
    hidden = torch.ones(SIZE, SIZE).triu(1).bool()
    torch.testing.assert_close(causal, play.SCORES.masked_fill(hidden, -torch.inf).softmax(1))


def test_a_row_that_sees_nothing_is_zero_and_is_said_in_words():
    mask = ((False,) * SIZE, *((True,) * SIZE for _ in range(SIZE - 1)))
    frame = mask_painter().frame({"mask": mask})
    assert (play.weights_of(mask)[0] == 0).all()
    assert "'le' may attend to nothing: all weights there are zero, and so is the output, not NaN." in frame.alt
    assert "'ministre' attends most to 'signe'" in frame.alt and frame.html.count("×") == SIZE


def test_the_presets_are_the_masks_they_are_named_after():
    named, (row, column) = presets(), np.indices((SIZE, SIZE))
    assert (named["causal"] == (column <= row)).all()
    assert (named["local (1 word)"] == (abs(row - column) <= 1)).all()
    assert (named["padding"] == (column < SIZE - 1)).all()
    assert named["full"].all() and not named["nothing"].any()


def test_the_goals_of_the_mask_are_not_on_a_button():
    explorer = mask_painter()
    wanted = {"causal": [True, False, False], "padding": [False, True, False]}
    for name, grid in explorer.controls[0].presets.items():
        assert reached(explorer, mask=grid) == wanted.get(name, [False] * 3), name
    assert not set(wanted) & set(explorer.controls[0].buttons)
    one_blind = presets()["full"]
    one_blind[2] = False
    assert reached(explorer, mask=one_blind.tolist()) == [False, False, True]


# ------------------------------------------------------------------ translation


@pytest.fixture
def calls():
    return []


def spoken(text, french=None, unknown=()):
    """What a perfect translator says, with weights on the gold links; or other French, looking straight ahead."""
    pair = gold_translation(text)
    target = french or pair.french
    weights = torch.full((len(target), len(pair.english)), 0.1)
    for i, j in pair.alignment if french is None else [(j, j) for j in range(len(target))]:
        weights[j, i] = 0.8
    return Translation(source=pair.english, target=tuple(target), weights=weights, unknown=unknown)


@pytest.fixture
def interpreter(calls):
    def translate(text):
        calls.append(text)
        if text == "the law is <b>":
            return Translation(source=("the", "<b>"), target=("l'", "<i>", "."), weights=None, unknown=("<b>",))
        if text == "the cat sees":
            return Translation(source=("the", "cat"), target=(), weights=None, unknown=("cat",))
        if text == "she signs the law":
            return spoken(text, french=("elle", "signe", "le", "loi", "."))
        return spoken(text)

    return translator(translate, ["the", "minister", "law", "is", "sees"], ["the minister signs the law", "he talks"])


def test_the_translation_its_attention_and_the_verdict_are_said_in_words(interpreter):
    alt = interpreter.frame().alt
    assert "Translation: “le ministre signe la loi .”. ✓ The grammar says the same." in alt
    assert "“ministre” to “minister”, “signe” to “signs”" in alt
    assert "✗ The grammar says: elle signe la loi." in interpreter.frame({"text": "she signs the law"}).html


def test_the_translation_stands_large_and_its_words_are_linked_to_the_english_ones(interpreter):
    html = interpreter.frame({"text": "the rich actress signs the law"}).html
    assert 'l&#x27;</span><span class="row-1" tabindex="0">actrice</span> <span class="row-2"' in html
    assert 'loi</span><span class="row-6" tabindex="0">.</span>' in html
    assert ".column-1{" in html and ":has(.row-2:is(:hover,:focus,:focus-within)){--light-0:0.10;--light-1:0.80" in html


def test_an_unknown_word_is_named_with_near_ones_and_marked_and_no_translation_is_said(interpreter):
    frame = interpreter.frame({"text": "the law is <b>"})
    assert "I do not know the word “b” yet, so I can only guess." in frame.alt
    assert "&lt;b&gt; (?)</span>" in frame.html and "&lt;i&gt;</span>" in frame.html and "<table>" not in frame.html
    frame = interpreter.frame({"text": "the cat sees"})
    assert "There is no translation." in frame.alt and "There is no translation." in frame.html


@pytest.mark.parametrize(
    ("text", "sentence"), [("   ", "Type a sentence"), ("the " * 50, "has 50 words; please keep to 40")]
)
def test_a_text_that_is_no_sentence_gets_a_kind_answer(interpreter, calls, text, sentence):
    frame = interpreter.frame({"text": text})
    assert sentence in frame.alt and "<table>" not in frame.html and calls == []
    assert reached(interpreter, text=text) == [False, False, False]


def test_one_frame_translates_once(interpreter, calls):
    interpreter.frame({"text": "  the   minister signs the law "})
    assert calls == ["the minister signs the law"]


@pytest.mark.parametrize(
    ("text", "goals"),
    [
        ("the minister signs the law", [False, False, False]),
        ("the european minister signs the law", [True, False, False]),
        ("the minister does not sign the law", [False, True, False]),  # ne ... pas is no swap
        ("she does not see them", [True, True, False]),  # elle ne les voit pas
        ("he signed the law", [False, False, False]),  # a signé: two words side by side
        ("she signs the law", [False, False, True]),  # le loi
        ("the cat sees", [False, False, False]),
    ],
)
def test_the_goals_of_the_translator(interpreter, text, goals):
    assert reached(interpreter, text=text) == goals


def test_neither_an_example_nor_a_sentence_with_an_unknown_word_reaches_a_goal(interpreter):
    swap = "the european minister signs the law"
    guessing = translator(lambda text: spoken(text, unknown=("european",)), ["the"], ["he talks"])
    assert reached(guessing, text=swap) == [False] * 3
    assert reached(translator(spoken, ["the"], [swap]), text=swap) == [False] * 3
    assert reached(interpreter, text=swap) == [True, False, False]


# ------------------------------------------------------------------ all


@pytest.mark.parametrize("make", [softmax_explorer, mask_painter])
def test_a_playground_draws_the_same_twice_and_every_value_of_every_choice(make):
    explorer = make()
    assert explorer.frame() == make().frame()
    for control in explorer.controls:
        for value in getattr(control, "options", getattr(control, "presets", {})).values():
            assert "cannot be drawn" not in explorer.frame({control.name: value}).alt
