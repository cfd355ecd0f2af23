"""The playgrounds of lesson 11 show what the networks say, and know when a goal is reached."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_11 import looking
from course_lib.lessons.lesson_11 import playground as play
from course_lib.lessons.picture import the_picture
from tests.lessons.common import reached

ALL = frozenset(range(1, 17))


@pytest.fixture(scope="module")
def vit():
    return load_trained("vit").model


@pytest.fixture(scope="module")
def coin():
    return the_picture().pixels


@pytest.fixture(scope="module")
def hide(vit, coin):
    return play.hide(vit, coin)


@pytest.fixture(scope="module")
def draw():
    return play.draw(load_trained("vit_digits").model)


# ------------------------------------------------------------------ what the network sees


def test_with_nothing_hidden_it_sees_what_the_network_sees_and_the_brightest_patches_are_counted_from_one(vit, coin):
    seen = play.look(vit, coin[0, 0])
    torch.testing.assert_close(seen.probs, vit(standardise(coin))[0].softmax(dim=-1))
    torch.testing.assert_close(seen.rollout, looking.rollout(vit, coin)[0])
    torch.testing.assert_close(seen.heads, looking.attention_maps(vit, coin)[0, :, :, 0, 1:])
    assert int(seen.rollout.argmax()) + 1 in seen.brightest(1) < seen.brightest(4) < ALL


def test_what_is_hidden_is_not_read_and_not_looked_at(vit, coin):
    hidden, seen = frozenset({1, 6}), torch.ones(16, dtype=torch.bool)
    seen[[0, 5]] = False
    found = play.look(vit, coin[0, 0], hidden)
    torch.testing.assert_close(found.probs, looking.classes(vit, coin, seen.nonzero().T)[0])
    assert not found.heads[..., ~seen].any() and found.heads[..., seen].all()
    changed = coin.clone()
    changed[..., :8, :8] = 0.5
    torch.testing.assert_close(play.look(vit, changed[0, 0], hidden).probs, found.probs)


# ------------------------------------------------------------------ drawing


def test_at_the_start_no_goal_is_reached_and_all_patches_can_be_clicked(draw):
    assert reached(draw) == [False, False, False]
    page = draw.frame()
    assert "It says 5" in page.alt and "As drawn it would say 5" in page.alt
    assert all(f'data-step="{number}"' in page.html for number in ALL)
    assert page.html.count("<img") == 16 + 16 + 2  # patches, heads, the drawing and rollout


def test_a_small_digit_off_the_middle_needs_its_preparation_and_empty_paper_reaches_nothing_and_says_so(draw):
    small = play.placed(*play.EXAMPLES["a small two, off the middle"])
    assert reached(draw, pad=small) == [True, False, False]
    assert "Prepared: It says 2" in draw.frame({"pad": small}).alt
    paper = np.zeros((play.PAD, play.PAD), np.uint8)
    assert reached(draw, pad=paper, hidden=ALL - {1}) == [False, False, False]
    assert all(play.EMPTY in words for words in (draw.frame({"pad": paper}).alt, draw.frame({"pad": paper}).html))


def test_three_quarters_of_the_ink_can_go(draw):
    wide = play.placed(*play.EXAMPLES["a wide three"])
    ink = play.inked(play.look(load_trained("vit_digits").model, play.as_digit(torch.from_numpy(wide))[0, 0]))
    assert ink < ALL
    assert not reached(draw, pad=wide, hidden=ALL - ink)[2]  # only empty patches
    assert not reached(draw, pad=wide, hidden=ALL)[2]
    assert any(reached(draw, pad=wide, hidden=ink - {a, b})[2] for a in ink for b in ink)


def test_of_a_picture_that_is_hidden_whole_no_digit_survives(draw, hide):
    network = load_trained("vit_digits").model
    blind = play.look(network, torch.ones(28, 28), ALL)
    assert blind.sure > 0.1
    sure = replace(blind, probs=torch.eye(10)[blind.digit])
    assert not play.survives(play.Reading(raw=sure, whole=replace(sure, hidden=play.NOTHING), now=sure))
    for picture in (play.NAME, *play.SCENES):
        assert reached(hide, picture=picture, hidden=ALL) == [False, False, False]


@pytest.mark.parametrize(
    ("first", "second", "hidden", "expected"),
    [(0.5, 0.45, (), True), (0.48, 0.3, (), True), (0.6, 0.35, (), False), (0.3, 0.25, (), False)]
    + [(0.5, 0.45, (1,), False)],
)
def test_two_digits_nearly_equal_is_judged_by_both_shares(first, second, hidden, expected):
    seen = play.look(load_trained("vit_digits").model, torch.zeros(28, 28))
    probs = torch.tensor([first, second] + [(1 - first - second) / 8] * 8)
    now = replace(seen, probs=probs, hidden=frozenset(hidden))
    assert play.is_ambiguous(play.Reading(raw=now, whole=now, now=now)) == expected


# ------------------------------------------------------------------ hiding


def test_one_patch_changes_the_class_and_four_are_enough(hide, vit, coin):
    assert reached(hide) == [False, False, False]
    assert reached(hide, hidden={6}) == [True, False, False]
    assert not reached(hide, hidden=ALL)[0] and "All patches are hidden" in hide.frame({"hidden": ALL}).alt

    def still_sure(hidden):
        return play.look(vit, coin[0, 0], hidden).probs[3]

    greedy = frozenset()
    while len(greedy) < 12:  # as a learner would: away with what is missed least
        greedy = max((greedy | {number} for number in ALL - greedy), key=still_sure)
    assert reached(hide, hidden=greedy)[1]


def test_the_brightest_can_go_and_the_digit_stays(hide, vit, coin):
    bright = play.look(vit, coin[0, 0]).brightest(4)
    assert reached(hide, hidden=bright) == [False, False, True]
    assert not reached(hide, hidden=bright - {min(bright)})[2]


def test_each_picture_is_named_and_another_one_keeps_what_is_hidden(hide):
    for name, digit in {"a white nine": 9, "a dark eight": 8, "a small seven": 7}.items():
        assert f"It says {digit}" in hide.frame({"picture": name}).alt
        assert "2 of 16 patches are hidden: 1, 16" in hide.frame({"picture": name, "hidden": {1, 16}}).alt
    with pytest.raises(ValueError, match="numbers from 1 to 16"):
        hide.state(hidden={17})


def test_a_network_that_knows_nothing_is_drawn_too_and_a_page_without_a_kernel_steps_through(vit, coin, draw, hide):
    assert "10.0%" in play.hide(type(vit)(vit.config), coin).frame().html
    assert [explorer.stepper().count("<details") for explorer in (draw, hide)] == [6, 8]
    drawings = [play.any_digit() for _ in range(5)]
    assert all(one.shape == (play.PAD, play.PAD) and (one > 127).sum() > 20 for one in drawings)
