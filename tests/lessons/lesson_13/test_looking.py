import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.layers.patches import random_mask
from course_lib.lessons.lesson_13 import icon_recipes, learner, looking
from course_lib.lessons.lesson_13 import playground as play
from course_lib.lessons.lesson_13.tasks import TASKS
from course_lib.lessons.picture import the_picture
from tests.lessons.common import reached


def test_the_trained_model_in_the_solution_s_class_reconstructs_better_than_interpolation():
    mine = learner.trained(TASKS["mae"].module, load_trained("mae_icons").model)
    errors = learner.errors(mine, learner.icons("validation"))
    assert errors["your MAE"] < 0.7 * errors["interpolation"] < errors["interpolation"] < errors["mean colour"]


@pytest.mark.parametrize("kind", looking.KINDS)
def test_every_kind_of_mask_hides_as_many(kind):
    masked = random_mask(looking.noise_of(kind, 5, (6, 8)), 0.5).masked
    assert masked.sum(dim=1).tolist() == [24] * 5


def test_visible_patches_are_left_as_they_are_and_the_example_beside_the_training_has_three_rows():
    model = icon_recipes.build(icon_recipes.SETTINGS).eval()
    drawings = learner.icons("validation").take(torch.arange(4))
    pixels = drawings.on(1.0)
    filled, masked = looking.reconstructions(model, pixels, learner.noise_for(drawings))
    visible = ~masked.expand_as(pixels)
    torch.testing.assert_close(filled[visible], pixels[visible], atol=1e-6, rtol=0)
    assert masked.float().mean() == 0.75 and not torch.equal(filled, pixels)
    assert len(learner.showing(count=4)(model).axes) == 12


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


ALL = frozenset(range(1, 50))


@pytest.fixture(scope="module")
def mask():
    return play.mask(load_trained("mae").model)


@pytest.fixture(scope="module")
def ruin():
    return play.ruin(load_trained("mae_scenes").model, the_picture().pixels)


def test_only_hidden_patches_are_painted():
    model, reader = load_trained("mae").model, load_trained("vit_digits").model
    pixels = play.as_trained(play.on_the_pad(1).tobytes())
    its = play.repair(model, reader, pixels, frozenset({1, 25}))
    changed = (its.painted - pixels).abs() > 1e-5
    assert changed[12:16, 12:16].any() and not changed[:12, 4:].any() and not changed[16:].any()
    assert model.encoder.mask_ratio == 0.75


def test_three_goals_of_a_drawing_can_be_reached(mask):
    assert reached(mask) == [False, False, False]
    border = frozenset(number for number in ALL if (number - 1) // 7 in (0, 6) or (number - 1) % 7 in (0, 6))
    assert reached(mask, pad=play.on_the_pad(7), hidden=border)[2]
    torn = [at_random(seed) for seed in range(8)]
    found = [reached(mask, pad=play.on_the_pad(number), hidden=hidden) for number in (1, 7, 15) for hidden in torn]
    assert any(goals[0] for goals in found) and any(goals[1] for goals in found)


def at_random(seed, hidden=41, of=49):
    order = torch.randperm(of, generator=torch.Generator().manual_seed(seed))
    return frozenset((order[:hidden] + 1).tolist())


def test_all_hidden_or_nothing_is_told(mask, ruin):
    assert "leave the encoder one" in mask.frame({"hidden": ALL}).alt
    assert reached(mask, hidden=ALL) == [False, False, False]
    empty = np.zeros((play.PAD, play.PAD), np.uint8)
    assert reached(mask, pad=empty, hidden=frozenset(range(1, 21))) == [False, False, False]
    assert "No patch is hidden" in ruin.frame({"hidden": frozenset()}).alt


def test_the_ruin_is_that_of_the_page_and_reaches_no_goal_by_itself(ruin):
    assert "16 of 64 patches are visible" in ruin.frame().alt
    assert reached(ruin) == [False, False, False]
    fooled = (reached(ruin, hidden=at_random(seed, 48, 64))[1] for seed in range(60))
    assert any(fooled)


def test_each_picture_is_repaired_and_its_error_said_and_a_page_without_a_kernel_steps_through(ruin, mask):
    hidden = play.at_random(64, 48)
    for name in ("a three on a Greek coin", "another digit", "a dahlia", "coins"):
        assert "16 of 64 patches are visible. Error (MSE)" in ruin.frame({"picture": name, "hidden": hidden}).alt
    assert mask.stepper().count("<details") == 6 and ruin.stepper().count("<details") == 8


def test_a_drawing_anywhere_is_prepared_like_the_training_digits():
    paper = np.zeros((play.PAD, play.PAD), np.uint8)
    paper[2:20, 3:7] = 255
    rows = (play.as_trained(paper.tobytes()) > 0.5).any(dim=1).nonzero()[:, 0]
    assert 17 <= int(rows.max() - rows.min()) <= 22 and abs(int(rows.max() + rows.min()) - 27) <= 1
    assert torch.equal(play.as_trained(np.zeros_like(paper).tobytes()), torch.zeros(28, 28))
