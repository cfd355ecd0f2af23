import torch
import torch.nn.functional as F

from course_lib.models.imitation import GAIL, ImitationConfig, Policy

SIZES = ImitationConfig(state_dim=5, action_dim=3, hidden_dim=7)


def make(kind, config=SIZES, seed=0):
    torch.manual_seed(seed)
    return kind(config).double()


def states(count=4, seed=0):
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def actions(kinds):
    return F.one_hot(torch.tensor(kinds), 3).double()


def test_a_policy_is_two_tanh_layers_and_a_linear_one():
    model, x = make(Policy), states()
    first, second = (part for part in model.backbone.modules() if isinstance(part, torch.nn.Linear))
    hidden = ((x @ first.weight.T + first.bias).tanh() @ second.weight.T + second.bias).tanh()
    torch.testing.assert_close(model(x), hidden @ model.head.weight.T + model.head.bias, rtol=0, atol=1e-12)
    assert (first.out_features, second.out_features) == (7, 7)


def test_the_discriminators_loss_is_that_of_equation_17():
    model, ours, theirs = make(GAIL), (states(), actions([0, 1, 2, 0])), (states(3, seed=1), actions([2, 1, 1]))
    D = [torch.sigmoid(model.judge(*pair)) for pair in (ours, theirs)]
    expected = -D[0].log().mean() - (1 - D[1]).log().mean()
    torch.testing.assert_close(model.discriminator_loss(*ours, *theirs), expected, rtol=0, atol=1e-12)


def test_its_loss_moves_the_discriminator_alone():
    model, chosen = make(GAIL), actions([0, 1, 2, 0])
    model.discriminator_loss(states(), chosen, states(seed=1), chosen).backward()
    moved = {name.split(".")[0] for name, each in model.named_parameters() if each.grad is not None}
    assert moved == {"discriminator"}


def test_rewards_are_high_where_the_discriminator_sees_the_expert():
    model, pair = make(GAIL), (states(), actions([0, 1, 2, 0]))
    rewards, D = model.rewards(*pair), torch.sigmoid(model.judge(*pair))
    torch.testing.assert_close(rewards, -D.log(), rtol=0, atol=1e-12)
    assert not rewards.requires_grad and (rewards.argsort() == D.argsort(descending=True)).all()
