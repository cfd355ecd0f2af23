"""The playgrounds of lesson 03 do what their matrices and networks do, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.lessons.lesson_03 import playground as play
from tests.lessons.common import reached


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
