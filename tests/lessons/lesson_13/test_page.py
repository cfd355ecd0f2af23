"""The page with a learner's answers: as a plain file, and in two kernels; and what it shows of a model."""

from pathlib import Path

import nbformat
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.layers.patches import random_mask
from course_lib.lessons.lesson_11.tasks import TASKS as TASKS_11
from course_lib.lessons.lesson_13 import icon_recipes, learner, looking
from course_lib.lessons.lesson_13.tasks import TASKS
from tests.lessons.answered import run_alone, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "13_masked_autoencoders.ipynb"
BLOCK = """
class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_dim):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            dim, num_heads, mlp_dim, 0.0, "gelu", batch_first=True, norm_first=True)

    def forward(self, x):
        return self.layer(x)
"""
DRIVER = """
random_mask, visible, restore_order = my_random_mask, my_visible, my_restore_order
hidden_loss, pretrain_step, patchify = my_hidden_loss, my_pretrain_step, my_patchify

def random_images(size):
    colour = torch.randn(size, 3, 1, 1)                     # of all pixels of an image
    return (colour + 0.1 * torch.randn(size, 3, 16, 16)).contiguous()

torch.manual_seed(0)
model = MAE(16, 4, 3, 32, 2, 2, 16, 1, 2, 0.75)
losses = []

class screen:
    stopped = False
    def update(done, steps, loss): losses.append(loss)

train(model, 200, 3e-3, masked_step, screen)
print(sum(losses[:10]) / 10, sum(losses[-10:]) / 10)
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    names = ("random_mask", "visible", "restore_order", "hidden_loss", "encoder", "mae", "pretrain_step")
    printed = run_alone(
        tmp_path,
        TASKS_11 | TASKS,
        nbformat.read(PAGE, as_version=4),
        solutions=("patchify", *names),
        cells=("positions_2d", "train", "masked_step"),
        driver=BLOCK + DRIVER,
        lines=220,
    )
    first, last = map(float, printed.split())
    assert first > 0.8 and last < 0.3, (first, last)  # the noise of the images alone is 0.01


def test_her_mae_goes_on_in_a_new_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    few = (("steps=600", "steps=3"), ("range(60)", "range(3)"), ("train(tuned, 300", "train(tuned, 3"))
    first, second = sittings(nbformat.read(PAGE, as_version=4), TASKS, end="opened_by_both", shorter=few)
    assert "your MAE passes its check" in first and "the page runs on your model" in first
    assert "MAE opens the trained weights." in first
    assert "Your MAE goes on here." in second and "parameters: encoder 203,200, decoder 62,160" in second
    assert "their target is zero: True" in second and "fine-tuned, your loop" in second


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
