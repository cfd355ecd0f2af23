"""What the page of lesson 13 shows: the learner's functions inside an MAE, masks of several kinds, and costs."""

import pytest
import torch

from course_lib.functional.images import standardise
from course_lib.layers.patches import random_mask
from course_lib.lessons.lesson_13 import learner, looking, recipes
from course_lib.lessons.lesson_13.tasks import TASKS


@pytest.fixture(scope="module")
def batch():
    return learner.held_out(6)


def test_a_model_on_the_references_paints_what_the_library_paints(batch):
    library = recipes.build(recipes.SETTINGS)
    image = standardise(batch.pixels)
    with torch.no_grad():
        expected = library(image, batch.noise)
        model = learner.with_learner_parts(library, TASKS["random_mask"].reference, TASKS["restore_order"].reference)
        torch.testing.assert_close(model(image, batch.noise), expected)
        loss = learner.painting_loss(TASKS["hidden_loss"].reference, model, batch)
    torch.testing.assert_close(loss, torch.tensor(learner.error(model, batch)))


@pytest.mark.parametrize("kind", looking.KINDS)
def test_every_kind_of_mask_hides_as_many(kind):
    masked = random_mask(looking.noise_of(kind, 5, (6, 8)), 0.5).masked
    assert masked.sum(dim=1).tolist() == [24] * 5


def test_the_ratio_comes_back_and_grey_is_a_mean(batch):
    model = recipes.build(recipes.SETTINGS)
    painted, grey = looking.errors(model, torch.full_like(batch.pixels, 0.3), batch.noise, 0.25)
    assert model.encoder.mask_ratio == 0.75
    assert grey == pytest.approx(0, abs=1e-6)
    assert painted > 0


def test_visible_patches_are_left_as_they_are(batch):
    seen, painted = learner.seen_and_painted(recipes.build(recipes.SETTINGS), batch.pixels, batch.noise)
    masked = random_mask(batch.noise, 0.75).masked.unflatten(1, (7, 7)).repeat_interleave(4, 1).repeat_interleave(4, 2)
    assert (seen[masked] == 0.5).all()
    for picture in (seen, painted):
        torch.testing.assert_close(picture[~masked], batch.pixels[:, 0][~masked], atol=1e-6, rtol=0)
