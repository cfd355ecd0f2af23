"""The playgrounds of lesson 14 show what the nets mark, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_14 import playground as play


@pytest.fixture(scope="module")
def unet():
    return load_trained("unet").model


@pytest.fixture(scope="module")
def scene(unet):
    return play.scene(unet, load_trained("unet_no_skips").model)


@pytest.fixture(scope="module")
def drawing(unet):
    return play.drawing(unet)


def reached(explorer, **state):
    return [goal(explorer.state(**state)) for goal in explorer.goals]


def test_at_half_the_mask_is_the_likelier_of_ground_and_digit(unet, scene):
    pixels = play.arranged(scene.state()).pixels
    probs = unet(standardise(pixels[None, None])).softmax(dim=1)[0]
    marked = play.mark(unet, pixels)
    assert torch.equal(marked.classes > 0, probs[0] < 0.5)
    assert play.mark(unet, pixels, threshold=0.95).classes.count_nonzero() < marked.classes.count_nonzero()
    assert [thing.digit for thing in marked.things] == [3, 7]


def test_a_scene_has_three_goals_and_each_can_be_reached(scene):
    assert reached(scene) == [False, False, False]
    assert reached(scene, apart=10) == [True, False, False]
    assert reached(scene, apart=0, below=11)[0] and not reached(scene, apart=3, below=3)[0]  # one upon the other
    assert reached(scene, first=7, second=-1, across=32, side=44) == [False, True, False]
    assert reached(scene, first=7, second=-1, across=32, side=6) == [False, False, True]


def test_a_box_stands_around_what_is_marked(scene, unet):
    marked = play.mark(unet, play.arranged(scene.state(second=-1)).pixels)
    (thing,) = marked.things
    x0, y0, x1, y1 = thing.box
    assert marked.classes[y0:y1, x0:x1].count_nonzero() == marked.classes.count_nonzero()
    orange = (play.boxed(marked, 4) == (230, 159, 0)).all(axis=-1)
    assert orange[4 * y0, 4 * x0] and not orange[4 * y0 + 8, 4 * x0 + 8]


def test_without_skips_it_is_less_sure_and_says_so(scene):
    assert "IoU" in scene.frame({"skips": False}).alt
    assert scene.frame({"skips": False}).alt != scene.frame().alt


@pytest.mark.parametrize(("name", "digit"), [("a five", 5), ("a two", 2), ("a four", 4)])
def test_an_example_is_marked_as_its_digit_on_both_grounds(drawing, name, digit):
    pad = play.on_the_pad(play.EXAMPLES[name])
    for ground in ("plain", "coins"):
        assert f"1 object: a {digit}" in drawing.frame({"pad": pad, "ground": ground}).alt


def test_empty_paper_is_marked_nowhere_and_reaches_no_goal(drawing):
    paper = np.zeros((play.PAD, play.PAD), np.uint8)
    assert "Draw a digit" in drawing.frame({"pad": paper}).alt
    assert reached(drawing, pad=paper) == [False, False]


def test_a_page_without_a_kernel_steps_through(drawing, scene):
    assert drawing.stepper().count("<details") == 6 and scene.stepper().count("<details") == 4
