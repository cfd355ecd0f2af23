import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional.attention_maps import attention_distance, attention_rollout, position_similarity


def random_weights(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).mul(2).softmax(dim=-1)


def distance_by_loops(weights, height, width, patch_size, extra):
    """Of one head: the definition, with a loop over queries and keys."""
    places = [(row * patch_size, column * patch_size) for row in range(height) for column in range(width)]
    total = 0.0
    for q, here in enumerate(places):
        row = weights[q + extra, extra:].tolist()
        total += sum(weight * math.dist(here, there) for weight, there in zip(row, places, strict=True)) / sum(row)
    return total / len(places)


@pytest.mark.parametrize("extra", [0, 1])
def test_attention_distance_equals_its_definition(extra):
    height, width = 3, 4
    weights = random_weights(2, 5, height * width + extra, height * width + extra)
    found = attention_distance(weights, height, width, 8)
    assert found.shape == (2, 5)
    for b in range(2):
        for h in range(5):
            assert found[b, h].item() == pytest.approx(distance_by_loops(weights[b, h], height, width, 8, extra))


def test_rollout_of_a_hand_worked_example():
    first = torch.tensor([[1.0, 0.0], [0.5, 0.5]])  # with the identity: [[1, 0], [.25, .75]]
    second = torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # with the identity: [[.5, .5], [0, 1]]
    rollout = attention_rollout(torch.stack([first, second])[None, :, None])
    assert rollout[0].tolist() == [[0.625, 0.375], [0.25, 0.75]]


def test_rollout_equals_the_sum_over_all_paths():
    weights = random_weights(2, 3, 4, 5, 5).double()
    mixed = [0.7 * layer.mean(dim=0) + 0.3 * torch.eye(5) for layer in weights[1]]
    found = attention_rollout(weights, residual=0.3)[1]
    for out in range(5):
        for start in range(5):
            paths = (mixed[2][out, b] * mixed[1][b, a] * mixed[0][a, start] for a in range(5) for b in range(5))
            assert found[out, start].item() == pytest.approx(sum(paths).item())
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(5).double())


def test_rollout_refuses_rows_that_do_not_sum_to_one():
    weights = random_weights(2, 3, 4, 5, 5)
    columns, scores, damaged = weights.mT, weights.log(), weights.clone()
    damaged[1, 2, 3, 4, 0] = math.nan
    for wrong in (columns, scores, damaged, 1.002 * weights, 0.998 * weights):
        with pytest.raises(ValueError, match=r"of shape \(2, 3, 4, 5, 5\), must sum to one over the last axis"):
            attention_rollout(wrong)
    attention_rollout(1.0005 * weights)


def test_position_similarity_is_the_cosine_of_every_pair():
    positions = torch.randn(3, 2, 5, generator=torch.Generator().manual_seed(0)) * 4
    found = position_similarity(positions)
    for i in range(3):
        for j in range(2):
            for k in range(3):
                for m in range(2):
                    cosine = F.cosine_similarity(positions[i, j], positions[k, m], dim=0)
                    torch.testing.assert_close(found[i, j, k, m], cosine)
    torch.testing.assert_close(found[1, 1, 1, 1], torch.tensor(1.0))
