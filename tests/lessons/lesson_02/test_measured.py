"""What is measured once and stored: the files are of these settings, and their functions do what they say."""

import json

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.icons import icon_names
from course_lib.lessons.lesson_02 import across, learner, measures
from course_lib.lessons.lesson_02.tasks import TASKS

CROP = TASKS["random_crop"].reference


@pytest.mark.parametrize("its", [across, measures])
def test_the_file_is_of_these_settings(its):
    assert json.loads(its.FILE.read_text(encoding="utf-8"))["settings"] == its.settings()


def test_all_draws_and_seeds_are_there(capsys):
    assert {len(draws) for draws in measures.measured().values()} == {measures.DRAWS}
    assert len(measures.measured()) == 4 * len(measures.COUNTS)
    measures.show()
    assert "fine-tuned" in capsys.readouterr().out
    assert {name: len(seeds) for name, seeds in across.measured().items()} == {
        "pixels": 1, "untrained": 3, across.SAME: 3, across.OTHER: 3
    }  # fmt: skip


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
