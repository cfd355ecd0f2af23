import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.positions import fit_positions
from course_lib.lessons.lesson_11 import icon_recipes as recipes_of_icons
from course_lib.lessons.lesson_11 import learner, official, recipes
from course_lib.models.vit import ViT


def test_an_example_shows_the_category_of_each_drawing():
    figure = learner.reads(recipes_of_icons.build(recipes_of_icons.IconSettings()))  # one that knows nothing
    assert len(figure.axes) == 8 and all("17 %" in axes.get_xlabel() for axes in figure.axes)


def test_drawings_are_called_by_their_names():
    said = learner.sorts(recipes_of_icons.build(recipes_of_icons.IconSettings()), learner.icons("test"))
    assert len(said) == 8 and all(line.endswith(", 17 %") and ": " in line for line in said)


def test_the_most_frequent_category_of_the_training_is_right_for_a_fifth_of_1594_new_drawings():
    new = learner.new_drawings()
    assert len(new.names) == len(new.pixels) == 1594 and 15 < learner.majority(new) < 25
    assert not torch.isin(learner.icons("new names").names, learner.icons("train").names).any()


def test_at_its_own_size_fitted_positions_change_nothing_and_new_ones_do_harm():
    model = load_trained("vit_digits").model
    assert learner.at_size(model, 28, fit_positions, count=60) > 0.9
    assert learner.at_size(model, 28, learner.drawn_anew, count=60) < 0.6
    assert learner.at_size(model, 28, learner.as_a_list, count=60) > 0.9


def test_new_positions_have_the_size_of_the_learned_ones_and_the_class_token_keeps_its_own():
    table = 3 * torch.randn(1, 17, 64)
    drawn = learner.drawn_anew(table, (4, 4), (6, 6))
    assert drawn.shape == (1, 37, 64) and torch.equal(drawn[:, 0], table[:, 0])
    assert drawn[:, 1:].std().item() == pytest.approx(table.std().item(), rel=0.1)


def test_the_official_library_opens_ours():
    assert official.opened_by_both().count("True") == 2


def test_positions_are_compared_inside_and_at_the_border():
    model = ViT(recipes.ViTConfig(image_size=20, patch_size=4, in_channels=1, num_classes=10, dim=32, depth=1,
                                  num_heads=2, mlp_dim=4))  # fmt: skip
    grid = torch.zeros(5, 5, 32)
    grid[..., 31] = 1.0  # one code for all of the border
    for number, (row, column) in enumerate((r, c) for r in (1, 2, 3) for c in (1, 2, 3)):
        grid[row, column] = torch.eye(32)[number]
    grid[1, 2] = grid[1, 1]  # one pair of twelve that lie side by side
    with torch.no_grad():
        model.pos_embed[0, 1:] = grid.flatten(0, 1)
    found = recipes.likeness(model)
    assert found["likeness, border"] == pytest.approx(1)
    assert found["likeness, side by side"] == pytest.approx(1 / 12)
    assert found["likeness, farther apart"] == pytest.approx(0)


def test_the_card_has_the_mixer_level_with_the_vit_on_clean_digits():
    seeds = load_trained("vit_digits").card["seeds"]
    vit, mixer = ([seed["test"][f"accuracy, {name}"] for seed in seeds] for name in ("ViT", "Mixer"))
    assert len(vit) == 3 and abs(sum(mixer) - sum(vit)) / 3 < max(vit) - min(vit)
