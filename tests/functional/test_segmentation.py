import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from course_lib.functional.segmentation import (
    boundary_f_score,
    confusion_matrix,
    dice_loss,
    intersection_over_union,
    mean_iou,
    outlines,
    thickened,
)

SEEDS = st.integers(0, 2**16)


def maps(seed, *shape, classes=4):
    generator = torch.Generator().manual_seed(seed)
    kinds = 1 + int(torch.randint(classes, (1,), generator=generator))  # sometimes classes are missing
    return torch.randint(kinds, shape, generator=generator)


@settings(max_examples=60, deadline=None)
@given(SEEDS, SEEDS)
def test_the_scores_of_areas_equal_scikit_learn(first, second):
    predicted, true = maps(first, 2, 3, 4), maps(second, 2, 3, 4)
    a, b = true.flatten().numpy(), predicted.flatten().numpy()
    confusion = confusion_matrix(predicted, true, 4)
    assert np.array_equal(confusion.numpy(), metrics.confusion_matrix(a, b, labels=range(4)))
    there = sorted({*a.tolist(), *b.tolist()})
    wanted = metrics.jaccard_score(a, b, labels=there, average=None)
    per_class = intersection_over_union(confusion)
    assert per_class[there].tolist() == pytest.approx(wanted, abs=1e-12)
    assert set(range(4)) - set(there) == {k for k in range(4) if math.isnan(per_class[k])}
    assert mean_iou(predicted, true, 4) == pytest.approx(wanted.mean(), abs=1e-12)


def test_a_class_that_is_only_guessed_counts_as_zero_and_one_that_is_nowhere_not_at_all():
    true = torch.tensor([[0, 0, 1, 1]])
    assert mean_iou(true, true, 11) == 1.0
    assert mean_iou(torch.tensor([[0, 2, 1, 1]]), true, 11) == pytest.approx((1 / 2 + 1 + 0) / 3)


def brute_force_f(predicted, true, tolerance):
    def edges(labels):
        near = ((0, 1), (1, 0), (0, -1), (-1, 0))
        return [
            (r, c)
            for (r, c), label in np.ndenumerate(labels)
            if any(
                0 <= r + i < labels.shape[0] and 0 <= c + j < labels.shape[1] and labels[r + i, c + j] != label
                for i, j in near
            )
        ]

    def share(some, others):
        return sum(any(math.dist(a, b) <= tolerance for b in others) for a in some) / len(some) if some else 0.0

    guessed, actual = edges(predicted), edges(true)
    if not guessed and not actual:
        return 1.0
    precision, recall = share(guessed, actual), share(actual, guessed)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def blobs(seed, *shape):
    """Few areas instead of noise, and now and then a single one."""
    coarse = maps(seed, shape[0], 3, 3, classes=3)
    return coarse.repeat_interleave(3, dim=1).repeat_interleave(3, dim=2)[:, : shape[1], : shape[2]]


@settings(max_examples=40, deadline=None)
@given(SEEDS, SEEDS, st.sampled_from([0, 1, 1.5, 2, 3]))
def test_the_score_of_outlines_equals_brute_force(first, second, tolerance):
    predicted, true = blobs(first, 3, 8, 7), blobs(second, 3, 8, 7)
    wanted = [brute_force_f(p.numpy(), t.numpy(), tolerance) for p, t in zip(predicted, true, strict=True)]
    assert boundary_f_score(predicted, true, tolerance=tolerance) == pytest.approx(np.mean(wanted), abs=1e-12)


def test_an_outline_is_on_both_sides_of_an_edge():
    labels = torch.tensor([[[0, 0, 5, 5], [0, 0, 5, 5], [0, 0, 0, 0]]])
    assert outlines(labels)[0].int().tolist() == [[0, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert torch.equal(outlines(labels == 5), outlines(labels))


def test_a_tolerance_is_a_disc():
    dot = torch.zeros(1, 7, 7, dtype=torch.bool)
    dot[0, 3, 3] = True
    assert [int(thickened(dot, radius).sum()) for radius in (0, 1, 1.5, 2, 3)] == [1, 5, 9, 13, 29]


def test_empty_images_count_one_if_both_are_empty_and_else_zero():
    blank, square = torch.zeros(1, 6, 6, dtype=torch.long), torch.zeros(1, 6, 6, dtype=torch.long)
    square[0, 2:4, 2:4] = 3
    assert boundary_f_score(blank, blank) == boundary_f_score(square, square) == 1
    assert boundary_f_score(blank, square) == boundary_f_score(square, blank) == 0
    assert boundary_f_score(torch.cat([blank, blank]), torch.cat([blank, square])) == 0.5


def test_the_outline_s_score_does_not_ask_for_the_class_but_for_the_place():
    square, moved = torch.zeros(1, 12, 12, dtype=torch.long), torch.zeros(1, 12, 12, dtype=torch.long)
    square[0, 2:8, 2:8], moved[0, 4:10, 2:8] = 3, 3
    assert boundary_f_score(square * 2, square) == 1
    scores = [boundary_f_score(moved, square, tolerance=tolerance) for tolerance in (0, 1, 2)]
    assert scores[0] < scores[1] < scores[2] == 1


def test_the_dice_loss_of_sure_predictions_counts_pixels():
    true = torch.tensor([[[0, 0, 1], [2, 2, 2]]])
    predicted = torch.tensor([[[0, 1, 1], [2, 2, 0]]])
    logits = 100 * torch.nn.functional.one_hot(predicted, 4).movedim(-1, 1).double()
    dice = [(2 * 1 + 1) / (2 + 2 + 1), (2 * 1 + 1) / (2 + 1 + 1), (2 * 2 + 1) / (2 + 3 + 1), 1]
    assert dice_loss(logits, true).item() == pytest.approx(1 - sum(dice) / 4)
    assert dice_loss(100 * torch.nn.functional.one_hot(true, 4).movedim(-1, 1).double(), true).item() < 1e-12


def test_the_dice_loss_pools_a_batch_and_follows_the_gradient_to_larger_overlap():
    torch.manual_seed(0)
    logits, true = torch.randn(3, 4, 5, 5, dtype=torch.float64, requires_grad=True), torch.randint(4, (3, 5, 5))
    loss = dice_loss(logits, true)
    p = logits.softmax(1)
    wanted = [(2 * p[:, k][true == k].sum() + 1) / (p[:, k].sum() + (true == k).sum() + 1) for k in range(4)]
    assert loss.item() == pytest.approx(1 - (sum(wanted) / 4).item())
    (gradient,) = torch.autograd.grad(loss, logits)
    assert dice_loss(logits - 10 * gradient, true) < loss


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: confusion_matrix(torch.tensor([0, 4]), torch.tensor([0, 1]), 4), "predicted labels run from 0 to 4"),
        (lambda: confusion_matrix(torch.tensor([0, 1]), torch.tensor([-1, 1]), 4), "true labels run from -1 to 1"),
        (lambda: dice_loss(torch.zeros(1, 3, 1, 2), torch.tensor([[[0, 255]]])), "labels run from 0 to 255, 3 classes"),
        (lambda: dice_loss(torch.zeros(1, 3, 1, 2), torch.tensor([[[-1, 0]]])), "labels run from -1 to 0, 3 classes"),
        (lambda: mean_iou(torch.zeros(0).long(), torch.zeros(0).long(), 4), "no pixel"),
        (lambda: boundary_f_score(*[torch.zeros(0, 3, 3).long()] * 2), "0 images"),
        (lambda: boundary_f_score(*[torch.zeros(1, 3, 3).long()] * 2, tolerance=-1), "and -1"),
    ],
)
def test_undefined_scores_are_refused_with_a_reason(call, words):
    with pytest.raises(ValueError, match=words):
        call()
