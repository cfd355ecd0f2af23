import pytest
import torch

from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig

SIZES = {"state_dim": 5, "action_dim": 3, "max_steps": 9, "context_steps": 4, "dim": 12, "depth": 2, "num_heads": 3}


def make(seed=0, **overrides):
    """A tiny model with large random weights, in double precision and evaluation mode."""
    torch.manual_seed(seed)
    model = DecisionTransformer(DecisionTransformerConfig(**SIZES | overrides)).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def batch(steps=6, rows=2, seed=0):
    """Returns to go, states, actions and times."""
    random = torch.Generator().manual_seed(seed)
    draw = {"generator": random, "dtype": torch.float64}
    numbers = [torch.randn(rows, steps, *size, **draw) for size in ((), (5,), (3,))]
    return *numbers, torch.randint(9, (rows, steps), generator=random)


def test_an_action_depends_on_its_own_return_and_state_and_on_all_before_but_on_nothing_later():
    model, (*given, times) = make(), batch()
    given = [each.requires_grad_() for each in given]
    grads = torch.autograd.grad(model(*given, times)[:, 3].sum(), given)
    for grad, last in zip(grads, (4, 4, 3), strict=True):  # of the actions, those before
        assert (grad[:, last:] == 0).all() and (grad[:, :last] != 0).flatten(2 if grad.ndim == 3 else 1).any(-1).all()


def test_times_count_from_zero_if_not_given():
    model, (*given, _) = make(), batch()
    torch.testing.assert_close(model(*given), model(*given, torch.arange(6).expand(2, -1)), rtol=0, atol=0)


def test_padding_at_the_left_and_at_the_right_changes_nothing():
    model, inputs = make(), batch()
    valid = torch.tensor([[False] * 2 + [True] * 4, [True] * 4 + [False] * 2])
    found = model(*inputs, valid=valid)
    left, right = [each[:1, 2:] for each in inputs], [each[1:, :4] for each in inputs]
    torch.testing.assert_close(found[:1, 2:], model(*left), rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1:, :4], model(*right), rtol=0, atol=1e-12)
    torch.testing.assert_close(model(*inputs)[1:, :4], model(*right), rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 3, 4, 6])
def test_to_act_is_to_ask_for_what_is_left_of_the_return_within_the_context(steps):
    model, (_, states, actions, _) = make(), batch(steps)
    rewards, asked = torch.randn(2, steps - 1, dtype=torch.float64), torch.tensor([7.0, -2.0]).double()
    left = torch.stack([asked - rewards[:, :t].sum(dim=1) for t in range(steps)], dim=1)
    first = max(0, steps - 4)
    seen = [each[:, first:] for each in (left, states, actions)]  # the last action is the one that is asked for
    expected = model(*seen, torch.arange(first, steps).expand(2, -1))[:, -1]
    found = model.act(asked, states, actions[:, :-1], rewards)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    assert not found.requires_grad
