"""Small tasks: what came first, and signs that nobody has seen before."""

import pytest
import torch

from course_lib.data.sequences import first_symbol
from course_lib.data.signs import SIDE, Script


def test_the_answer_is_the_first_symbol_and_every_symbol_occurs():
    tokens, first = first_symbol(2000, 12, num_symbols=5)
    assert tokens.shape == (2000, 12) and torch.equal(tokens[:, 0], first)
    shares = first.bincount(minlength=5) / 2000
    assert shares.shape == (5,) and (shares - 0.2).abs().max() < 0.04


def test_later_symbols_say_nothing_of_the_first():
    tokens, first = first_symbol(4000, 6, num_symbols=4)
    for t in range(1, 6):
        assert (tokens[:, t] == first).float().mean().item() == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_noise_is_the_share_of_symbols_after_the_first(noise):
    tokens, first = first_symbol(500, 41, num_symbols=6, noise=noise)
    later = tokens[:, 1:]
    assert (later != 6).float().mean().item() == pytest.approx(noise, abs=0.02)
    assert torch.equal(tokens[:, 0], first) and (first < 6).all()
    assert (tokens >= 0).all() and (tokens <= 6).all()


def seeded(number):
    return torch.Generator().manual_seed(number)


def test_a_picture_holds_its_sign_whole_somewhere():
    script = Script(5, seeded(0))
    kinds = torch.arange(5).repeat(20)
    pixels = script.pictures(kinds, seeded(1))
    found = torch.nn.functional.conv2d(pixels[:, None], script.signs[:, None]).flatten(2).amax(dim=2)
    ink = script.signs.sum(dim=(1, 2))
    assert pixels.shape == (100, SIDE, SIDE)
    assert (found[torch.arange(100), kinds] > 0.5 * ink[kinds]).all()
    corners = pixels.flatten(1).argmax(dim=1).unique()
    assert len(corners) > 30  # it lies in many places
