import pytest
import torch

from course_lib.functional.experts import expert_load, load_balance_loss
from course_lib.layers.experts import route


def logits(tokens=7, experts=4, seed=0):
    return torch.randn(tokens, experts, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_gates_are_a_softmax_over_the_chosen_logits():
    scores = logits()
    gates, chosen = route(scores, 2)
    for row, gate, which in zip(scores, gates, chosen, strict=True):
        assert set(which.tolist()) == set(row.argsort(descending=True)[:2].tolist())
        torch.testing.assert_close(gate, row[which].exp() / row[which].exp().sum(), rtol=0, atol=1e-12)
    torch.testing.assert_close(gates.sum(dim=1), torch.ones(7, dtype=torch.float64))


def test_of_one_expert_the_gate_is_its_probability_among_all_so_that_the_router_gets_a_gradient():
    scores = logits().requires_grad_()
    gates, chosen = route(scores, 1)
    torch.testing.assert_close(gates, scores.softmax(dim=1).gather(1, chosen), rtol=0, atol=1e-12)
    gates.sum().backward()
    assert (scores.grad.abs().sum(dim=1) > 0).all()


def test_the_load_counts_choices():
    assert expert_load(torch.tensor([[0, 1], [0, 2], [0, 1]]), 4).tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6, 0])


def test_the_balance_loss_by_hand():
    """Fedus et al. 2022, eqs. (4)-(6): three tokens, two experts, two of the tokens at expert 0."""
    probs = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], dtype=torch.float64)
    expected = 2 * (2 / 3 * (0.9 + 0.6 + 0.2) / 3 + 1 / 3 * (0.1 + 0.4 + 0.8) / 3)
    assert load_balance_loss(probs.log()).item() == pytest.approx(expected)


def test_the_balance_loss_is_1_where_all_experts_are_chosen_equally_often_and_larger_where_one_is():
    even = torch.eye(4, dtype=torch.float64).repeat(3, 1)
    assert load_balance_loss(even).item() == pytest.approx(1)
    assert load_balance_loss(even.roll(1, dims=1), k=1).item() == pytest.approx(1)
    one = torch.zeros(12, 4, dtype=torch.float64)
    one[:, 2] = 50.0
    assert load_balance_loss(one).item() == pytest.approx(4)


def test_its_gradient_lowers_the_probability_of_the_busiest_expert():
    scores = torch.zeros(10, 3, dtype=torch.float64)
    scores[:7, 0], scores[7:, 1] = 0.1, 0.1
    scores.requires_grad_()
    load_balance_loss(scores).backward()
    assert (scores.grad[:, 0] > 0).all() and (scores.grad[:, 2] < 0).all()
