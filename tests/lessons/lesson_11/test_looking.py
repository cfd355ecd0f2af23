import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.functional.images import standardise
from course_lib.lessons.lesson_11 import looking
from course_lib.lessons.picture import the_picture


@pytest.fixture(scope="module")
def vit():
    return load_trained("vit").model


def test_all_patches_visible_is_the_network_itself(vit):
    coin = the_picture().pixels
    found = looking.classes(vit, coin, torch.arange(16)[None])
    torch.testing.assert_close(found, vit(standardise(coin)).softmax(dim=-1))
    assert found.argmax() == 3


def test_hidden_patches_are_not_read(vit):
    coin, kept = the_picture().pixels, torch.arange(16)[None, torch.arange(16) != 5]
    other = coin.clone()
    other[..., 8:16, 8:16] = torch.rand(8, 8)  # patch 5
    assert torch.equal(*(looking.classes(vit, picture, kept) for picture in (coin, other)))


def test_with_no_patch_at_all_there_is_still_an_answer(vit):
    found = looking.classes(vit, the_picture().pixels, torch.empty(1, 0, dtype=torch.long))
    assert found.sum().item() == pytest.approx(1)


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


def test_patches_that_carry_their_positions_along_may_be_shuffled(vit):
    right = looking.right_shuffled(vit, looking.held_out(60))
    assert right["as it is"] == right["shuffled, each with its position"]
    assert right["shuffled, positions stay"] < right["as it is"] - 0.3


def test_each_picture_is_shuffled_in_an_order_of_its_own():
    places = looking.shuffles(6, 16)
    assert (places.sort(dim=1).values == torch.arange(16)).all() and len(places.unique(dim=0)) == 6
