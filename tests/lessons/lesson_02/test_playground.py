"""The playgrounds of lesson 02 show who is near, and know when a goal is reached."""

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_02 import looking
from course_lib.lessons.lesson_02 import playground as play
from tests.lessons.common import reached


@pytest.fixture(scope="module")
def model():
    return load_trained("simclr").model


@pytest.fixture(scope="module")
def neighbours(model):
    return play.neighbours(model)


@pytest.fixture(scope="module")
def plane(model):
    return play.embedding_map(model)


def test_a_drawing_of_an_eight_has_eights_for_neighbours_only_after_the_training(neighbours):
    state = neighbours.state(pad=play.drawings()["an eight"])
    assert neighbours.frame(state).alt.endswith("SimCLR: 8, 8, 8, 8, 8.")
    assert reached(neighbours, pad=play.drawings()["an eight"]) == [True, False]


def test_an_empty_pad_is_a_sentence_and_no_goal(neighbours):
    empty = np.zeros((play.PAD, play.PAD), np.uint8)
    assert "There is nothing on the pad" in neighbours.frame(neighbours.state(pad=empty)).alt
    assert reached(neighbours, pad=empty) == [False, False]


def test_a_drawing_turned_by_a_right_angle_is_the_turned_picture():
    picture = torch.rand(1, 1, 28, 28)
    assert torch.allclose(play.turned(picture, 90.0), picture.rot90(-1, (2, 3)), atol=1e-4)


def test_the_goals_of_the_map_can_be_reached_and_are_not_at_the_start(plane):
    assert reached(plane) == [False, False, False]
    assert reached(plane, point=50, turn=40, crop=0.3) == [True, False, False]
    assert reached(plane, point=50, turn=90, crop=0.9) == [False, True, False]
    assert reached(plane, point=198)[2]


def test_unchanged_views_land_where_their_picture_is(model):
    its = play.Plane(looking.encoders(model)["SimCLR"], play.map_pictures())
    landed = its.land(7, looking.NOTHING)
    assert (landed.nearest == 7).all() and its.at_home(7, landed) == play.VIEWS
    spread = its.places.std()
    assert (landed.places - its.places[7]).norm(dim=1).max() < spread


def test_the_page_gets_each_picture_of_the_map_and_its_neighbours(plane):
    config, labels = plane._page_config(), play.map_pictures().labels
    assert config["labels"] == labels.tolist()
    for its in config["maps"].values():
        assert len(its["places"]) == len(its["near"]) == 10 * play.PER_DIGIT
    near = ", ".join(str(config["labels"][n]) for n in config["maps"]["pixels"]["near"][7])
    assert f"its nearest: {near}." in plane.frame({"features": "pixels", "point": 8}).alt
