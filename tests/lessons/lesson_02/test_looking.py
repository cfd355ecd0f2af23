"""Lesson 02: what is measured, once or on the page, and what one plays with."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.data.checkpoints import load_trained
from course_lib.data.icons import icon_names
from course_lib.lessons.lesson_02 import across, learner, looking, measures, recipes
from course_lib.lessons.lesson_02 import playground as play
from course_lib.lessons.lesson_02.tasks import TASKS
from course_lib.training.progress import Silent
from tests.lessons.common import reached


def test_each_change_alone_changes_the_picture_and_no_other_does():
    pixels, labels = looking.one_of_each()
    assert labels.tolist() == list(range(10))
    assert torch.equal(looking.NOTHING(pixels, torch.Generator()), pixels)
    seen = [looking.changed_by(name, pixels) for name in (*recipes.CHANGES, "all")]
    assert all((one != pixels).flatten(1).any(dim=1).all() for one in seen)
    assert not any(torch.equal(a, b) for n, a in enumerate(seen) for b in seen[:n])


def test_brightness_can_be_read_from_a_feature_that_is_brightness_and_from_no_other():
    bright = looking.kept(lambda pixels: pixels.amax(dim=(1, 2, 3))[:, None])
    blind = looking.kept(lambda pixels: torch.ones(len(pixels), 1) + 1e-9 * pixels[:, 0, 0, :1])
    assert bright["bright"] > 0.85 > 0.7 > blind["bright"] and blind["digit"] < 0.2


def test_alignment_and_uniformity_of_known_points():
    axes = torch.eye(2)
    sphere = recipes.on_the_sphere(axes, axes.flip(0))
    assert torch.allclose(torch.tensor(sphere), torch.tensor([2.0, -4.0, 0.0]))


def vote(h, stored, labels, k):
    return labels[:1].expand(len(h))


def test_the_log_asks_the_neighbours_now_and_then_and_counts_each_step():
    log = learner.Log(learner.fresh(), vote, steps=22)
    for step in range(22):
        log(5 - step)
    assert log.steps == [0, 20, 22] and log.losses == [5.0 - step for step in range(22)]
    assert 0.05 < log.votes[0] == log.votes[2] < 0.2


def test_a_training_that_is_stopped_ends_after_its_step_with_the_length_as_planned_and_a_last_vote():
    display = Silent()
    log = learner.Log(learner.fresh(), vote, display, steps=9)
    batches, seen = learner.UntilStopped([torch.zeros(1)] * 9, display), []
    for batch in batches:
        seen.append(batch)
        display.stopped = len(seen) == 3
        log(1.0)
    assert len(batches) == 9 and len(seen) == 3 and log.steps == [0, 3] and len(log.votes) == 2


def test_batches_are_new_digits_with_new_noise_each_time():
    seen = []
    batches = learner.Batches(lambda x, noise: seen.append((x, noise)) or torch.cat([x, x]), steps=2, size=3)
    assert len(batches) == 2 and [each.shape for each in batches] == [(6, 1, 28, 28)] * 2
    (first, noise), (second, other) = seen
    assert noise.shape == (2, 7, 3) and not torch.equal(first, second) and not torch.equal(noise, other)


CROP = TASKS["random_crop"].reference


@pytest.mark.parametrize("its", [across, measures])
def test_the_file_is_of_these_settings(its):
    assert json.loads(its.FILE.read_text(encoding="utf-8"))["settings"] == its.settings()


def test_all_draws_and_seeds_are_there(capsys):
    assert {len(draws) for draws in measures.measured().values()} == {measures.DRAWS}
    assert len(measures.measured()) == 4 * len(measures.COUNTS)
    measures.show()
    assert "fine-tuned" in capsys.readouterr().out
    seeds = {name: len(seeds) for name, seeds in across.measured().items()}
    assert seeds == {"pixels": 1, "untrained": 3, across.SAME: 3, across.OTHER: 3}


def test_fine_tuning_leaves_the_encoder_as_it_was():
    encoder = learner.fresh().encoder
    before = [weight.clone() for weight in encoder.parameters()]
    images, labels = torch.rand(8, 1, 28, 28), torch.arange(8)
    tuned = measures.fine_tune(encoder, images, labels, 1e-2, steps=2)
    assert tuned(images).shape == (8, 10) and not tuned.training
    assert all(torch.equal(one, other) for one, other in zip(before, encoder.parameters(), strict=True))


def test_a_partner_is_the_same_thing_by_another_designer_or_the_same_drawing():
    train = across.drawings("train")
    rows = across.chosen(torch.Generator().manual_seed(0), count=50)
    one, other = rows[:50], rows[50:]
    families = across.FAMILY_OF[train.designers]
    assert torch.equal(train.names[one], train.names[other]) and len(train.names[one].unique()) == 50
    assert (families[one] != families[other]).all()
    rows = across.chosen(torch.Generator().manual_seed(0), across.SAME, count=50, tuning=True)
    assert torch.equal(rows[:50], rows[50:])
    assert not across.kept_for_tuning() & {*train.names[rows].tolist()}


@pytest.mark.parametrize("views", across.VIEWS)
def test_batches_are_views_for_the_loop_and_come_again_with_their_seed(views):
    one, again = (next(iter(across.Batches(CROP, steps=1, seed=3, views=views))) for _ in range(2))
    assert one.shape == (2 * across.THINGS, 3, 32, 32) and torch.equal(one, again)


def test_features_that_know_the_thing_find_it_always_and_those_of_nothing_seldom():
    new = across.drawings("new names")
    known = F.one_hot(new.names, len(icon_names())).float()
    lonely = F.one_hot(torch.arange(len(new.names))).float()
    assert across.recall(new, new, lambda pixels: known) == 1
    assert across.recall(new, new, lambda pixels: lonely) < 0.2
    nearest = across.ranked(new, new, lambda pixels: known, 2)
    families = across.FAMILY_OF[new.designers]
    assert (families[nearest] != families[:, None]).all()


def test_a_thing_is_found_by_its_name_and_an_unknown_one_gets_a_list():
    rows = across.called("penguin")
    assert len(rows) > 3 and len(across.drawings("new names").names[rows].unique()) == 1
    with pytest.raises(ValueError, match="penguin"):
        across.called("pinguin")


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
