"""What lesson 13 shows of a masked autoencoder."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.layers.patches import random_mask
from course_lib.lessons.lesson_13 import icon_recipes, learner, looking
from course_lib.lessons.lesson_13.tasks import TASKS


def test_the_trained_model_in_the_solution_s_class_reconstructs_better_than_interpolation():
    mine = learner.trained(TASKS["mae"].module, load_trained("mae_icons").model)
    errors = learner.errors(mine, learner.icons("validation"))
    assert errors["your MAE"] < 0.7 * errors["interpolation"] < errors["interpolation"] < errors["mean colour"]


@pytest.mark.parametrize("kind", looking.KINDS)
def test_every_kind_of_mask_hides_as_many(kind):
    masked = random_mask(looking.noise_of(kind, 5, (6, 8)), 0.5).masked
    assert masked.sum(dim=1).tolist() == [24] * 5


def test_visible_patches_are_left_as_they_are():
    model = icon_recipes.build(icon_recipes.SETTINGS).eval()
    drawings = learner.icons("validation").take(torch.arange(4))
    pixels = drawings.on(1.0)
    filled, masked = looking.reconstructions(model, pixels, learner.noise_for(drawings))
    visible = ~masked.expand_as(pixels)
    torch.testing.assert_close(filled[visible], pixels[visible], atol=1e-6, rtol=0)
    assert masked.float().mean() == 0.75 and not torch.equal(filled, pixels)


def test_probes_have_labels_of_each_category_and_a_percentage():
    given = learner.labelled(per_category=50)
    assert given.categories.bincount().tolist() == [50] * 6
    logits = torch.nn.functional.one_hot(given.categories, 6).float()
    assert learner.percent(logits, given) == 100
    assert standardise(given.on(1.0)).shape == (300, 3, 32, 32)


def test_the_measured_operations_are_those_of_the_exercise_and_the_model_stays_trainable():
    model, pixels = icon_recipes.build(icon_recipes.SETTINGS), learner.icons("validation").on(1.0)[:2]
    cost = looking.cost(model, pixels)
    expected = [TASKS["encoder_cost"].reference(64, ratio, 64, 4, 256) / 2 for ratio in (0.75, 0)]
    assert [cost[f"encoder, {which} patches"][0] for which in ("visible", "all")] == expected
    saved = (expected[1] + cost["decoder, all patches"][0]) / (expected[0] + cost["decoder, all patches"][0])
    assert round(saved, 1) == 2.5  # as the page says
    assert all(seconds > 0 for _, seconds in cost.values())
    assert all(parameter.requires_grad for parameter in model.encoder.blocks.parameters())


def test_the_example_beside_the_training_has_three_rows():
    fig = learner.showing(count=4)(icon_recipes.build(icon_recipes.SETTINGS))
    assert len(fig.axes) == 12
