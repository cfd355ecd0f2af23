import random

import numpy as np
import pytest
import torch

from course_lib.training.seeding import random_state, restore_random_state, seed_everything, seeded


def draw():
    # An odd number of normals leaves one waiting inside NumPy's and Python's generators.
    return [random.random(), random.gauss(0, 1), np.random.normal(), *np.random.rand(2), *torch.randn(3).tolist()]


def test_the_same_seed_gives_the_same_numbers_everywhere():
    seed_everything(5)
    first = draw()
    seed_everything(5)
    assert draw() == first
    seed_everything(6)
    assert all(a != b for a, b in zip(draw(), first, strict=True))


def test_a_seeded_block_leaves_no_trace_even_if_it_fails():
    seed_everything(1)
    expected = draw() + draw()
    seed_everything(1)
    first = draw()
    with pytest.raises(KeyError), seeded(2):
        inside = draw()
        raise KeyError
    assert first + draw() == expected
    with seeded(2):
        assert draw() == inside


def test_the_state_survives_a_file_that_may_hold_no_code(tmp_path):
    seed_everything(3)
    draw()
    torch.save(random_state(), tmp_path / "state.pt")
    expected = draw()
    seed_everything(9)
    restore_random_state(torch.load(tmp_path / "state.pt", weights_only=True))
    assert draw() == expected
