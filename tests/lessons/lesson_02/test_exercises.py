"""What the exercises of lesson 02 ask for is what the library does."""

import pytest
import torch

from course_lib.classroom.opening import compare, copy_weights
from course_lib.functional.losses import nt_xent
from course_lib.lessons.lesson_02.models import MODELS
from course_lib.lessons.lesson_02.tasks import TASKS, loss_of_views, random_crop
from course_lib.tasks import Draw
from course_lib.training.probes import nearest_neighbours


def asked(name, seed=0, case=0):
    task = TASKS[name]
    return task.reference, task.cases[case].inputs(Draw(seed))


def test_a_learners_class_is_the_librarys_model():
    shipped = MODELS["simclr"]
    ours = shipped.model()
    mine = TASKS["simclr"].module(**shipped.sizes(ours))
    assert copy_weights(ours, mine, shipped.names) == sum(p.numel() for p in ours.parameters())
    compare(ours, mine, shipped.inputs(), shipped.names)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_the_librarys(seed):
    loss, (z, temperature) = asked("nt_xent", seed)
    torch.testing.assert_close(loss(z, temperature), nt_xent(*z.chunk(2), temperature=temperature))
    torch.testing.assert_close(loss_of_views(z, temperature), loss(z, temperature))


@pytest.mark.parametrize("seed", range(3))
def test_the_crop_of_the_solution_is_that_of_the_page(seed):
    crop, given = asked("random_crop", seed)
    torch.testing.assert_close(crop(*given), random_crop(*given))


def test_a_whole_crop_that_is_not_turned_changes_nothing():
    images = torch.rand(3, 1, 9, 9)
    torch.testing.assert_close(random_crop(images, torch.full((4, 3), 0.5), 1.0, 0.0), images, atol=1e-5, rtol=0)


def test_the_neighbours_vote_as_the_librarys_probe_does():
    vote, (h, stored, labels, k) = asked("knn")
    assert vote(h, stored, labels, k).tolist() == nearest_neighbours(stored, labels, k=k).predict(h).tolist()
