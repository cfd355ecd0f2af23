import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.functional.positions import fit_positions
from course_lib.lessons.lesson_11 import figures, icon_recipes, learner, looking, official, recipes
from course_lib.lessons.picture import the_picture
from course_lib.models.vit import ViT


def test_an_example_shows_the_category_of_each_drawing_and_calls_it_by_its_name():
    fresh = icon_recipes.build(icon_recipes.IconSettings())  # one that knows nothing
    figure, said = learner.reads(fresh), learner.sorts(fresh, learner.icons("test"))
    assert len(figure.axes) == 8 and all("17 %" in axes.get_xlabel() for axes in figure.axes)
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


def test_inside_has_no_two_labels_of_axes_side_by_side():
    fig = figures.inside(torch.rand(3, 3, 3, 3), torch.rand(2, 2), torch.rand(2, 2), uniform=(10.0, 10), patch_size=4)
    FigureCanvasAgg(fig).draw()
    near, far = sorted(axes.yaxis.label.get_window_extent().x0 for axes in fig.axes if axes.get_ylabel())
    assert far - near > fig.bbox.width / 5  # a panel lies between the two


@pytest.fixture(scope="module")
def vit():
    return load_trained("vit").model


def test_all_patches_visible_is_the_network_itself_and_with_none_at_all_there_is_still_an_answer(vit):
    coin = the_picture().pixels
    found = looking.classes(vit, coin, torch.arange(16)[None])
    torch.testing.assert_close(found, vit(standardise(coin)).softmax(dim=-1))
    assert found.argmax() == 3
    assert looking.classes(vit, coin, torch.empty(1, 0, dtype=torch.long)).sum().item() == pytest.approx(1)


def test_hidden_patches_are_not_read(vit):
    coin, kept = the_picture().pixels, torch.arange(16)[None, torch.arange(16) != 5]
    other = coin.clone()
    other[..., 8:16, 8:16] = torch.rand(8, 8)  # patch 5
    assert torch.equal(*(looking.classes(vit, picture, kept) for picture in (coin, other)))


def test_the_class_tokens_row_of_a_rollout_is_without_its_own_share(vit):
    found = looking.rollout(vit, looking.held_out(3).pixels)
    assert found.shape == (3, 16) and (found > 0).all() and (found.sum(dim=1) < 1).all()


def test_patches_of_the_smallest_order_are_dropped_first(vit, monkeypatch):
    pictures, seen = looking.held_out(4), []
    order = torch.arange(16.0).expand(4, 16)

    def spy(model, pixels, kept):
        seen.append(sorted(kept[0].tolist()))
        return torch.eye(10)[pictures.labels]

    monkeypatch.setattr(looking, "classes", spy)
    assert looking.right_without(vit, pictures, order, (0, 2, 14)) == [1, 1, 1]
    assert seen == [list(range(16)), list(range(2, 16)), [14, 15]]


def test_orders_are_the_rollout_from_both_ends_its_mean_and_chance(vit):
    own, mean, chance, largest = looking.orders(vit, looking.held_out(5)).values()
    assert torch.equal(largest, -own) and torch.equal(mean[0], mean[4])
    torch.testing.assert_close(mean[0], own.mean(dim=0))
    assert not torch.equal(chance[0], chance[1])


def test_patches_that_carry_their_positions_along_may_be_shuffled_each_picture_in_an_order_of_its_own(vit):
    right = looking.right_shuffled(vit, looking.held_out(60))
    assert right["as it is"] == right["shuffled, each with its position"]
    assert right["shuffled, positions stay"] < right["as it is"] - 0.3
    places = looking.shuffles(6, 16)
    assert (places.sort(dim=1).values == torch.arange(16)).all() and len(places.unique(dim=0)) == 6


def test_the_picture_is_one_small_scene_with_a_three():
    scene = the_picture()
    assert scene.pixels.shape == (1, 1, 32, 32) and scene.labels.tolist() == [[3]]
    assert set(scene.semantic.unique().tolist()) == {0, 4}
