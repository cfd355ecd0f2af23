"""Preferences: by hand, by their properties, and as PyTorch's autograd sees them."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.functional import preference as p


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def test_a_ranking_of_three_asks_three_pairs():
    loss = p.ranking_loss(torch.tensor([[2.0, 1.0, -1.0]]))
    expected = -sum(math.log(1 / (1 + math.exp(-gap))) for gap in (1, 3, 2)) / 3
    assert loss.item() == pytest.approx(expected)


def test_the_score_is_paid_on_the_last_real_token_and_the_kl_on_each():
    valid = torch.tensor([[True, True, False], [True, True, True]])
    log_probs, reference = drawn(2, 3), drawn(2, 3, seed=1)
    paid = p.penalised_rewards(torch.tensor([5.0, -2.0]).double(), log_probs, reference, beta=0.3, valid=valid)
    kl = 0.3 * (log_probs - reference)
    expected = torch.stack([torch.stack([-kl[0, 0], 5 - kl[0, 1], torch.zeros(()).double()]), -kl[1]])
    expected[1, 2] -= 2
    torch.testing.assert_close(paid, expected)


def test_advantages_with_lambda_1_are_returns_less_values_and_with_0_surprises():
    rewards, values = drawn(3, 6), drawn(3, 7, seed=1)
    values[:, -1] = 0
    discounts = 0.9 ** torch.arange(6).double()
    returns = torch.stack([(rewards[:, t:] * discounts[: 6 - t]).sum(1) for t in range(6)], dim=1)
    torch.testing.assert_close(p.advantages(rewards, values, discount=0.9, trace=1.0), returns - values[:, :-1])
    surprises = rewards + 0.9 * values[:, 1:] - values[:, :-1]
    torch.testing.assert_close(p.advantages(rewards, values, discount=0.9, trace=0.0), surprises)


def test_advantages_by_hand():
    found = p.advantages(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 1.0, 0.0]]), discount=0.5, trace=0.5)
    torch.testing.assert_close(found, torch.tensor([[1.25, 1.0]]))  # 1 + .5 - .5 = 1, 2 - 1 = 1; 1 + .25 * 1


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "moves"),
    [
        (1.5, 1.0, 1.2, False),
        (1.1, 1.0, 1.1, True),
        (0.5, 1.0, 0.5, True),
        (0.5, -1.0, -0.8, False),
        (1.5, -1.0, -1.5, True),
    ],
)
def test_the_objective_is_cut_off_where_enough_was_done(ratio, advantage, value, moves):
    log_prob = torch.tensor([math.log(ratio)], requires_grad=True)
    objective = p.clipped_objective(log_prob, torch.zeros(1), torch.tensor([advantage]))
    objective.backward()
    assert objective.item() == pytest.approx(value) and (log_prob.grad.item() != 0) == moves


def test_at_the_old_policy_the_objective_has_the_policy_gradient():
    log_probs, advantage = drawn(8).requires_grad_(), drawn(8, seed=1)
    p.clipped_objective(log_probs, log_probs.detach(), advantage).backward()
    torch.testing.assert_close(log_probs.grad, advantage / 8)


def test_values_may_not_run_away_from_the_old_ones_for_free():
    old, returns = torch.zeros(1), torch.tensor([1.0])
    assert p.clipped_value_loss(torch.tensor([0.1]), old, returns).item() == pytest.approx(0.5 * 0.9**2)
    assert p.clipped_value_loss(torch.tensor([0.9]), old, returns).item() == pytest.approx(0.5 * 0.8**2)
    valid = torch.tensor([True, False])
    assert p.clipped_value_loss(torch.tensor([1.0, 9.0]), torch.ones(2), torch.ones(2), valid=valid) == 0


def test_dpo_begins_at_ln_2_and_its_gradient_pushes_the_pair_apart():
    reference = drawn(2, 4)
    chosen, rejected = (row.clone().requires_grad_() for row in reference)
    loss = p.dpo_loss(chosen, rejected, *reference, beta=0.2)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    torch.testing.assert_close(chosen.grad, torch.full((4,), -0.2 * 0.5 / 4).double())
    torch.testing.assert_close(rejected.grad, -chosen.grad)


def test_dpo_is_the_ranking_loss_of_its_implicit_rewards():
    chosen, rejected, first, second = drawn(4, 6)
    rewards = [p.implicit_rewards(*pair, beta=0.5) for pair in ((chosen, first), (rejected, second))]
    expected = -F.logsigmoid(rewards[0] - rewards[1]).mean()
    torch.testing.assert_close(p.dpo_loss(chosen, rejected, first, second, beta=0.5), expected)
