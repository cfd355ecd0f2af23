import itertools

import pytest
import torch

from course_lib.lessons.lesson_12 import crossing


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
    assert len(found.losses) == 3
    assert 0 <= found.right <= 1
