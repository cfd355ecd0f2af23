"""The three widgets of lesson 05 show what the mathematics says."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_05.masks import mask_painter
from course_lib.lessons.lesson_05.softmax import softmax_explorer
from course_lib.lessons.lesson_05.translator import translator
from course_lib.lessons.lesson_05.masks import SCORES, WORDS, weights_of
from course_lib.lessons.lesson_05.softmax import entropy, jacobian, logits_of, softmax

SIZE = len(WORDS)


# ------------------------------------------------------------------ softmax


def weights(**state):
    return softmax(logits_of(softmax_explorer().state(**state)))


def test_softmax_and_jacobian_are_torchs():
    logits = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    p = softmax(logits.numpy())
    np.testing.assert_allclose(p, logits.softmax(0).numpy(), atol=1e-12)
    exact = torch.autograd.functional.jacobian(lambda z: z.softmax(0), logits)
    np.testing.assert_allclose(jacobian(p), exact.numpy(), atol=1e-12)


def test_softmax_of_huge_scores_is_finite():
    assert softmax(np.array([1e4, 0.0])).tolist() == [1.0, 0.0]


def test_division_by_the_root_undoes_the_width():
    np.testing.assert_allclose(weights(d_k=1024, scaled=True), weights(d_k=1, scaled=False), atol=1e-12)


def test_width_without_division_saturates_the_softmax():
    sizes = [np.linalg.norm(jacobian(weights(d_k=d))) for d in (1, 4, 16, 64, 256)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 0.3 and sizes[-1] < 1e-4


def test_temperature_evens_the_weights_out():
    bits = [entropy(weights(d_k=1, temperature=t)) for t in (0.1, 1.0, 10.0)]
    assert bits == sorted(bits) and bits[-1] > 0.99 * np.log2(5)


def test_entropy_runs_from_nothing_to_all():
    assert entropy(np.array([1.0, 0.0, 0.0])) == 0.0
    assert entropy(np.full(8, 1 / 8)) == pytest.approx(3.0)


def test_the_softmax_says_when_it_is_saturated():
    explorer = softmax_explorer()
    assert "saturated" in explorer.frame({"d_k": 64, "scaled": False}).alt
    assert "saturated" not in explorer.frame({"d_k": 64, "scaled": True}).alt


# ------------------------------------------------------------------ masks


def test_the_painted_mask_hides_before_the_softmax():
    explorer = mask_painter()
    causal = weights_of(explorer.state())
    assert (causal.triu(1) == 0).all()
    torch.testing.assert_close(causal.sum(1), torch.ones(SIZE))
    torch.testing.assert_close(causal[1, :2], SCORES[1, :2].softmax(0))


def test_a_row_that_sees_nothing_is_zero_and_is_said_in_words():
    explorer = mask_painter()
    mask = ((False,) * SIZE, *((True,) * SIZE for _ in range(SIZE - 1)))
    frame = explorer.frame({"mask": mask})
    assert (weights_of(frame.state)[0] == 0).all()
    assert "The row of 'the' may look at nothing: all weights there are zero" in frame.alt
    assert "'cat' looks most at 'sees'" in frame.alt


def test_the_presets_are_the_masks_they_are_named_after():
    presets = {name: np.array(grid) for name, grid in mask_painter().controls[0].presets.items()}
    row, column = np.indices((SIZE, SIZE))
    assert (presets["causal"] == (column <= row)).all()
    assert (presets["local (1 word)"] == (abs(row - column) <= 1)).all()
    assert (presets["padding"] == (column < SIZE - 1)).all()
    assert presets["full"].all() and not presets["nothing"].any()


# ------------------------------------------------------------------ translation


@pytest.fixture
def calls():
    return []


@pytest.fixture
def interpreter(calls):
    french = {"the": "le", "cat": "chat", "sees": "voit"}

    def translate(text):
        calls.append(text)
        source = text.lower().split()
        return SimpleNamespace(
            source=source,
            target=[french.get(word, word) for word in source],
            weights=np.eye(len(source))[:, ::-1],
            unknown=[word for word in source if word not in french],
        )

    return translator(translate, vocabulary=list(french), examples=["the cat sees", "the cat"])


def test_the_translation_and_its_attention_are_said_in_words(interpreter):
    alt = interpreter.frame().alt
    assert "Translation: “le chat voit”." in alt
    assert "“le” at “sees”, “chat” at “cat”, “voit” at “the”" in alt


def test_an_unknown_word_is_named_with_near_ones(interpreter):
    alt = interpreter.frame({"text": "the Caat sees zyzzyva"}).alt
    assert "I do not know the word “caat” yet, so I can only guess. Did you mean “cat”?" in alt
    assert "“zyzzyva” yet, so I can only guess. Translation" in alt


@pytest.mark.parametrize(
    ("text", "sentence"), [("   ", "Type a sentence"), ("the " * 50, "has 50 words; please keep to 40")]
)
def test_a_text_that_is_no_sentence_gets_a_kind_answer(interpreter, calls, text, sentence):
    frame = interpreter.frame({"text": text})
    assert sentence in frame.alt and "<img" not in frame.html and calls == []


def test_one_frame_translates_once(interpreter, calls):
    interpreter.frame({"text": "  the   cat "})
    assert calls == ["the cat"]


def test_no_translation_is_said_too():
    empty = SimpleNamespace(source=["the"], target=[], weights=np.zeros((0, 1)), unknown=[])
    frame = translator(lambda text: empty, vocabulary=[], examples=["the"]).frame()
    assert frame.alt == "There is no translation." and frame.html.startswith("<div")


def test_weights_that_do_not_fit_are_a_sentence():
    odd = SimpleNamespace(source=["the"], target=["le"], weights=np.ones((1, 2)), unknown=[])
    frame = translator(lambda text: odd, vocabulary=[], examples=["the"]).frame()
    assert "shape (1, 2)" in frame.alt


def test_a_translator_without_examples_is_refused():
    with pytest.raises(ValueError, match="at least one example"):
        translator(str, vocabulary=[], examples=[])


# ------------------------------------------------------------------ all


@pytest.mark.parametrize("make", [softmax_explorer, mask_painter])
def test_a_widget_draws_the_same_twice(make):
    assert make().frame() == make().frame()


@pytest.mark.parametrize("make", [softmax_explorer, mask_painter])
def test_every_value_of_every_choice_can_be_drawn(make):
    explorer = make()
    for control in explorer.controls:
        for value in getattr(control, "options", getattr(control, "presets", {})).values():
            assert "<img" in explorer.frame({control.name: value}).html
