import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.data.digits import LabelledImages
from course_lib.layers import windows
from course_lib.layers.windows import WindowAttention
from course_lib.lessons.lesson_12 import crossing, learner, looking
from course_lib.lessons.lesson_12 import playground as play
from course_lib.lessons.lesson_12 import recipes as task
from course_lib.lessons.lesson_12.tasks import TASKS
from tests.lessons.common import reached


def test_the_marks_lie_on_either_side_of_a_border_and_the_label_says_whether_they_differ():
    pixels, labels = crossing.marks(200, 0)
    patches = pixels[:, 0, ::4, ::4]
    across = torch.stack([patches[:, :, 1:3], patches.mT[:, :, 1:3]], dim=1)  # side by side, or one below the other
    for picture, pair, label in zip(patches, across, labels, strict=True):
        marked = (pair != 0.5).all(dim=-1)
        assert marked.sum() == 1 and (picture != 0.5).sum() == 2
        left, right = pair[marked][0]
        assert (left != right) == label
    assert 0.3 < labels.float().mean() < 0.7


@pytest.mark.parametrize("shifted", [False, True])
def test_without_a_shift_the_scores_are_a_sum_over_windows_and_with_one_they_are_not(shifted):
    torch.manual_seed(0)
    model = crossing.build(shifted=shifted, seed=0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.8)
    board = torch.full((4, 1, 16, 16), 0.5)
    for number, (left, right) in enumerate(itertools.product((0.0, 1.0), repeat=2)):
        board[number, :, 4:8, 4:8], board[number, :, 4:8, 8:12] = left, right
    dark, mixed, turned, light = model.eval()(board).detach()
    assert torch.allclose(dark + light, mixed + turned, atol=1e-3) != shifted


def test_a_training_tells_its_losses_and_the_share_that_is_right():
    found = crossing.learn(shifted=True, steps=3)
    assert len(found.losses) == 3 and 0 <= found.right <= 1


def test_each_step_has_digits_of_its_own_and_they_are_standardised():
    (images, labels), (again, _), (others, _) = (learner.batch(4, step) for step in (0, 0, 1))
    assert images.shape == (4, 1, 32, 32) and len(labels) == 4
    assert torch.equal(images, again) and not torch.equal(images, others)
    assert images.min() == -2  # black: (0 - 0.5) / 0.25
    digits, (images, labels) = learner.test_digits(5), learner.test_batch(5)
    torch.testing.assert_close(images, (digits.pixels - 0.5) / 0.25)
    assert torch.equal(labels, digits.labels)


def test_an_untrained_network_of_hers_can_be_watched():
    model = TASKS["swin"].module(1, 10, 4, 8, (2, 2), (1, 2), 4)
    figure = learner.showing(learner.test_digits(20))(model)
    assert len(figure.axes) == 6


def layer(size, shift, bias_std=0.5):
    torch.manual_seed(0)
    attn = WindowAttention(8, 2, size, shift=shift)
    for parameter in attn.parameters():
        torch.nn.init.normal_(parameter, std=bias_std)
    return attn


@pytest.mark.parametrize(
    ("size", "shift", "height", "width", "count"), [(4, 2, 8, 8, 9), (4, 1, 8, 12, 12), (3, 1, 6, 6, 9)]
)
def test_a_roll_with_its_mask_equals_padding_every_window(size, shift, height, width, count):
    attn, x = layer(size, shift), torch.randn(2, height, width, 8)
    naive, found = looking.padded(attn, x)
    torch.testing.assert_close(naive, attn(x).detach())
    assert found == count


def test_a_roll_without_the_mask_does_not_equal_padding(monkeypatch):
    attn, x = layer(4, 2), torch.randn(1, 8, 8, 8)
    naive, _ = looking.padded(attn, x)
    monkeypatch.setattr(windows, "hidden_pairs", lambda *_: torch.zeros(4, 16, 16, dtype=torch.bool))
    assert not torch.allclose(naive, attn(x), atol=1e-3)


def test_an_offset_map_shows_where_the_key_lies_as_seen_from_the_query():
    attn = layer(2, 0)
    found, bias = looking.offset_maps(attn), attn.position_bias(2).detach()[0]
    for place, key in {(2, 1): bias[:, 0, 2], (0, 1): bias[:, 2, 0], (1, 2): bias[:, 0, 1]}.items():
        torch.testing.assert_close(found[:, *place], key)  # a row below the query, a row above, a column to the right


def test_news_stays_in_a_window_that_never_moves_and_travels_with_one_that_does():
    for moved, expected in ((False, [4, 4, 4, 4]), (True, [4, 16, 36, 64])):
        assert [int(looking.reach(count, shifted=moved).sum()) for count in (1, 2, 3, 4)] == expected


def test_the_price_of_swin_is_linear_in_the_pixels_and_that_of_a_vit_is_not():
    operations, seconds = looking.price([32, 64])
    assert operations["Swin"][1] == pytest.approx(4 * operations["Swin"][0], rel=0.01)
    assert operations["ViT"][1] > 5 * operations["ViT"][0]
    assert len(seconds["ViT"]) == 2


def test_every_switch_changes_the_answer_and_none_touches_the_model_of_the_next():
    digits, model = learner.test_digits(60), looking.load_trained("swin").model
    for name, change in looking.SWITCHES.items():
        other = looking.load_trained("swin").model
        change(other)
        with torch.no_grad():
            same = torch.allclose(other(digits.pixels), model(digits.pixels), atol=1e-4)
        assert same == (name == "as trained"), name
    found = looking.switched(LabelledImages(digits.pixels, digits.labels))
    assert list(found) == list(looking.SWITCHES) and all(0 <= value <= 1 for value in found.values())


def test_an_effective_field_sums_to_100_and_has_most_in_its_own_patch():
    field = looking.effective_field(looking.load_trained("swin").model, learner.test_digits(20).pixels, 0, (4, 4))
    assert field.shape == (8, 8) and float(field.sum()) == pytest.approx(100, abs=0.01)
    assert divmod(int(field.argmax()), 8) == (4, 4)


def test_an_empty_picture_stirs_nothing_and_a_digit_both_stages():
    model, digits = looking.load_trained("swin").model, learner.test_digits(1)
    assert [float(stage.max()) for stage in looking.stirred(model, torch.zeros(1, 1, 32, 32))] == [0, 0]
    found = looking.stirred(model, digits.pixels)
    assert [tuple(stage.shape) for stage in found] == [(8, 8), (4, 4)]
    assert all(stage.max() > 0 for stage in found)


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_the_rule_of_reach_is_what_a_gradient_finds(blocks, shifted):
    found = looking.reach(blocks, shifted=shifted)
    assert torch.equal(play.reach(3 * 8 + 3, blocks, side=8, shifted=shifted), found)


def test_reach_has_three_goals_and_each_can_be_reached():
    explorer = play.reached_by()
    assert reached(explorer) == [False, False, False]
    assert reached(explorer, blocks=4) == [True, False, False]
    assert reached(explorer, patch=1, blocks=2) == [False, True, False]
    assert reached(explorer, patch=6, blocks=2, stage=4) == [False, False, True]
    assert reached(explorer, patch=1, blocks=2, shift=False) == [False, False, False]
    beyond = explorer.frame({"patch": 60, "stage": 4}).alt  # of a small map: its last
    assert "Position 16 (row 4, column 4) of stage 2" in beyond
    assert explorer.frame().html.count("<img") == 64 and explorer.stepper().count("<details") == 8


@pytest.fixture(scope="module")
def reader():
    return play.reader(load_trained("swin").model)


def test_the_examples_are_read_right_and_need_their_preparation_and_empty_paper_reaches_no_goal(reader):
    for name, digit in {"a three": 3, "a seven": 7, "a four": 4}.items():
        drawing = play.on_the_pad(play.EXAMPLES[name])
        assert f"Prepared, it says {digit}" in reader.frame({"pad": drawing}).alt
    paper = np.zeros((play.PAD, play.PAD), np.uint8)
    assert "Draw a digit" in reader.frame({"pad": paper}).alt and reached(reader, pad=paper) == [False, False]
    assert reader.stepper().count("<details") == 3


def test_the_variants_differ_in_their_shifts_alone():
    shifted, unshifted = (task.build(replace(task.COMPARED, shifted=flag)) for flag in (True, False))
    shifts = [max(block.attn.shift for stage in model.stages for block in stage) for model in (shifted, unshifted)]
    assert shifts[0] > 0 == shifts[1]
    torch.testing.assert_close(dict(shifted.state_dict()), dict(unshifted.state_dict()), rtol=0, atol=0)


def test_between_the_variants_windows_only_shifts_lead_from_one_to_the_next():
    model = task.build(replace(task.COMPARED, shifted=False)).eval()
    side = task.COMPARED.window_size * task.COMPARED.patch_size
    image = torch.rand(1, 1, task.COMPARED.size, task.COMPARED.size, requires_grad=True)
    model.feature_maps(image)[-1][0, :, 0, 0].square().sum().backward()
    assert side < task.COMPARED.size / 2 and len(model.merges) == 0 and model.pos_embed is None
    assert image.grad[..., :side, :side].any()
    assert not image.grad[..., side:].any() and not image.grad[..., side:, :].any()


def test_the_shipped_model_reads_digits_that_nothing_was_chosen_by():
    trained = load_trained("swin")
    images = task.CleanDigits(split="test", size=trained.extra["recipe"]["size"]).batch(500, seed=1)
    assert task.accuracy(trained.model, images.pixels, images.labels) >= 0.95
    assert all(seed["test"]["accuracy"] >= 0.95 for seed in trained.card["seeds"])


def test_shifts_paid_with_every_seed_and_both_variants_had_learned():
    for seed in load_trained("shifted_windows").card["seeds"]:
        shifted, unshifted = (seed["test"][f"accuracy, {name}"] for name in ("shifted", "unshifted"))
        assert shifted > unshifted + 0.05 and unshifted > 0.5  # chance is 0.1
