"""Lesson 03: what the page measures, and playgrounds that do what matrices and networks do."""

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_03 import clipping, learner, shapes
from course_lib.lessons.lesson_03 import playground as play
from course_lib.lessons.lesson_03.tasks import RNN
from course_lib.training.language_models import tokenized_prose
from tests.lessons.common import reached


class Uniform(torch.nn.Module):
    """A character model to which all characters are equally probable."""

    def forward(self, tokens, h=None):
        return torch.zeros(*tokens.shape, len(tokenized_prose().tokenizer)), None


def test_a_model_without_preferences_has_the_size_of_its_vocabulary_as_perplexity_and_longer_n_grams_predict_better():
    assert learner.perplexity(Uniform()) == pytest.approx(len(tokenized_prose().tokenizer), rel=1e-5)
    bigram, trigram = (learner.ngram_perplexity(n) for n in (2, 3))
    assert 9 < bigram < 14 and trigram < bigram - 3


def test_clipping_is_applied_before_the_step():
    loss, norm = clipping.sgd_run(0.5, lambda gradients, limit: [0 * g for g in gradients], sigma=0.9, seed=0, steps=20)
    assert loss == pytest.approx(4.4, abs=0.3) and norm > 0  # nothing is learned
    assert clipping.sgd_run(0.5, None, sigma=0.9, seed=0, steps=20)[0] < loss


def test_one_unit_has_a_cliff():
    below, above = clipping.one_unit_loss(torch.full((2,), 5.2), torch.tensor([-2.75, -2.72]))
    assert (below - above).abs() > 0.1


def test_the_five_arrangements_take_inputs_and_give_outputs_at_their_own_times():
    five = shapes.run_all("görögország", "the women sign a law .", "les femmes signent un accord important .")
    one, caption, language, translation, tags = five
    assert [len(shape.given) for shape in five] == [1, 1, 11, 6, 7]
    assert len(one.said) == 1 and len(caption.said) > 5 and language.said == ["Hungarian"] and language.waits == 10
    assert caption.taught == ("start", "a", "small", "bright", "eight", "at", "the")  # teacher forcing
    assert translation.waits == 6 and translation.said[1] == "femmes"
    assert [shape.feeds_back for shape in five] == [False, True, False, True, False]
    assert len(tags.said) == 7 and tags.said[0] == "DET|m|p"  # wrong: the gender of "les" comes a word later


def test_our_layer_is_that_of_torch():
    ours, theirs = RNN(3, 5), torch.nn.RNN(3, 5, batch_first=True)
    values = (ours.ih.weight, ours.hh.weight, ours.ih.bias, ours.hh.bias)
    theirs.load_state_dict(dict(zip(theirs.state_dict(), values, strict=True)))
    x = torch.randn(2, 7, 3)
    torch.testing.assert_close(ours(x), theirs(x)[0])


@pytest.fixture(scope="module")
def eigenvalues():
    return play.eigenvalues()


@pytest.fixture(scope="module")
def reader():
    return play.reader()


def test_the_matrix_has_the_eigenvalues_that_are_set():
    found = np.linalg.eigvals(play.matrix(1.2, 50.0))
    expected = 1.2 * np.exp(1j * np.radians([50.0, -50.0]))
    assert np.allclose(np.sort_complex(found), np.sort_complex(expected))


@pytest.mark.parametrize("squashed", [False, True])
def test_the_gradient_is_that_of_autograd(squashed):
    theta = torch.tensor(play.matrix(1.1, 35.0))
    start = torch.tensor(play.START, requires_grad=True)
    state = start
    for _ in range(play.STEPS):
        state = theta @ state
        state = state.tanh() if squashed else state
    (gradient,) = torch.autograd.grad(state[0], start)
    its = play.fate(1.1, 35.0, squashed)
    assert np.allclose(its.states[-1], state.detach().numpy())
    assert np.isclose(its.gradient[-1], gradient.norm().item()) and its.gradient[0] == 1


def test_the_goals_of_the_eigenvalues_can_be_reached_and_are_not_at_the_start(eigenvalues):
    assert reached(eigenvalues) == [False, False, False]
    assert reached(eigenvalues, radius=1.4, angle=45) == [True, False, False]
    assert reached(eigenvalues, radius=1.0, angle=45) == [False, True, False]
    assert reached(eigenvalues, radius=1.0, angle=90) == [False, False, False]  # back after four steps
    assert reached(eigenvalues, radius=1.0, angle=0) == [False, False, False]  # it never leaves
    assert reached(eigenvalues, radius=1.3, angle=0, between="tanh") == [False, False, True]
    assert reached(eigenvalues, radius=1.3, angle=30, between="tanh") == [False, False, False]  # it turns for ever


def test_the_goals_of_the_reader_can_be_reached_and_are_not_at_the_start(reader):
    assert reached(reader) == [False, False, False]
    found = [reached(reader, text=text) for text in (*play.NAMES, "lykisch", "märvä", "šumava", "criollo", "reunión")]
    assert all(any(goals[number] for goals in found) for number in range(3))


def test_what_cannot_be_read_is_told_and_unknown_letters_are_read(reader):
    assert "Write a name" in reader.frame({"text": " "}).alt
    assert reached(reader, text="") == [False, False, False]
    assert "漢字" in reader.frame({"text": "漢字"}).alt
    assert "<b>" not in reader.frame({"text": "<b>"}).html
