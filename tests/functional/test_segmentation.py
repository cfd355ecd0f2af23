import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from course_lib.functional import segmentation

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
    confusion = segmentation.confusion_matrix(predicted, true, 4)
    assert np.array_equal(confusion.numpy(), metrics.confusion_matrix(a, b, labels=range(4)))
    there = sorted({*a.tolist(), *b.tolist()})
    wanted = metrics.jaccard_score(a, b, labels=there, average=None)
    per_class = segmentation.intersection_over_union(confusion)
    assert per_class[there].tolist() == pytest.approx(wanted, abs=1e-12)
    assert set(range(4)) - set(there) == {k for k in range(4) if math.isnan(per_class[k])}
    assert segmentation.mean_iou(predicted, true, 4) == pytest.approx(wanted.mean(), abs=1e-12)


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
    assert segmentation.boundary_f_score(predicted, true, tolerance=tolerance) == pytest.approx(
        np.mean(wanted), abs=1e-12
    )


def test_the_dice_loss_pools_a_batch_and_follows_the_gradient_to_larger_overlap():
    torch.manual_seed(0)
    logits, true = torch.randn(3, 4, 5, 5, dtype=torch.float64, requires_grad=True), torch.randint(4, (3, 5, 5))
    loss = segmentation.dice_loss(logits, true)
    p = logits.softmax(1)
    wanted = [(2 * p[:, k][true == k].sum() + 1) / (p[:, k].sum() + (true == k).sum() + 1) for k in range(4)]
    assert loss.item() == pytest.approx(1 - (sum(wanted) / 4).item())
    (gradient,) = torch.autograd.grad(loss, logits)
    assert segmentation.dice_loss(logits - 10 * gradient, true) < loss
