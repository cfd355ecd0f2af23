import pytest
import torch
import torch.nn.functional as F

from course_lib.models.decision_transformer import (
    DecisionTransformer,
    DecisionTransformerConfig,
    decision_transformer_gym,
)

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
    times = torch.randint(9, (rows, steps), generator=random)
    return (
        torch.randn(rows, steps, **draw),
        torch.randn(rows, steps, 5, **draw),
        torch.randn(rows, steps, 3, **draw),
        times,
    )


def by_algorithm_1(model, to_go, states, actions, times):
    """The tokens of one row, one after the other, as the paper's pseudocode stacks them."""
    weight, rows = dict(model.named_parameters()), []
    for R, s, a, t in zip(to_go, states, actions, times, strict=True):
        for name, value in (("return", R[None]), ("state", s), ("action", a)):
            x = weight[f"{name}_embed.weight"] @ value + weight[f"{name}_embed.bias"] + weight["time_embed.table"][t]
            x = (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt()
            rows.append(x * weight["embed_norm.weight"] + weight["embed_norm.bias"])
    hidden = model.encode(torch.stack(rows)[None])[0]
    said = [weight["head.weight"] @ hidden[3 * t + 1] + weight["head.bias"] for t in range(len(times))]
    return torch.stack(said)


@pytest.mark.parametrize("tanh", [True, False])
def test_actions_follow_algorithm_1(tanh):
    model, inputs = make(tanh=tanh), batch()
    expected = torch.stack([by_algorithm_1(model, *row) for row in zip(*inputs, strict=True)])
    torch.testing.assert_close(model(*inputs), expected.tanh() if tanh else expected, rtol=0, atol=1e-12)


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


def test_the_models_for_gym_have_the_sizes_of_the_appendix():
    with torch.device("meta"):
        model = decision_transformer_gym(11, 3)
    config = model.config
    assert (config.depth, config.num_heads, config.dim, config.activation) == (3, 1, 128, "relu")
    assert (config.context_steps, config.dropout) == (20, 0.1)
    blocks = 3 * (4 * (128 * 128 + 128) + 2 * 128 * 512 + 512 + 128 + 4 * 128)
    others = (1 + 11 + 3) * 128 + 3 * 128 + 4096 * 128 + 4 * 128 + 128 * 3 + 3
    assert sum(parameter.numel() for parameter in model.parameters()) == blocks + others


def test_first_weights_are_small():
    torch.manual_seed(0)
    model = decision_transformer_gym(40, 40)
    for part in (model.state_embed, model.action_embed, model.head, model.blocks[0].ffn.up_proj):
        assert part.weight.std().item() == pytest.approx(0.02, rel=0.05) and (part.bias == 0).all()
    assert model.time_embed.table.std().item() == pytest.approx(0.02, rel=0.05)


def test_it_does_what_it_is_asked_for_after_seeing_only_chance():
    """A step right or left, drawn by a coin, is the reward: asked for a sum it walks there, from random walks alone."""
    torch.manual_seed(0)
    sizes = {"state_dim": 1, "action_dim": 2, "max_steps": 6, "context_steps": 6, "dim": 32, "depth": 1}
    model = DecisionTransformer(DecisionTransformerConfig(**sizes, num_heads=2, tanh=False, dropout=0.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(250):
        kinds = torch.randint(2, (64, 6))
        rewards = 2.0 * kinds - 1
        to_go = rewards.flip(1).cumsum(1).flip(1)
        logits = model(to_go, torch.zeros(64, 6, 1), F.one_hot(kinds, 2).float())
        loss = F.cross_entropy(logits.flatten(0, 1), kinds.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    asked = torch.tensor([6.0, 4.0, 2.0, 0.0, -2.0, -4.0, -6.0]).repeat(20)
    actions, rewards = torch.zeros(140, 0, 2), torch.zeros(140, 0)
    for t in range(6):
        logits = model.eval().act(asked, torch.zeros(140, t + 1, 1), actions, rewards)
        kinds = torch.multinomial(logits.softmax(-1), 1)
        actions = torch.cat([actions, F.one_hot(kinds, 2).float()], dim=1)
        rewards = torch.cat([rewards, 2.0 * kinds - 1], dim=1)
    assert (rewards.sum(dim=1) == asked).float().mean() > 0.95


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="context_steps must be 1 or more, got 0"):
        DecisionTransformerConfig(context_steps=0)
    with pytest.raises(ValueError, match="dim=12, num_heads=5"):
        make(num_heads=5)
    to_go, states, actions, _ = batch(10)
    with pytest.raises(ValueError, match="positions 0 to 9 .* 0 to 8"):
        make()(to_go, states, actions)
    with pytest.raises(ValueError, match=r"10 states need 9 actions and rewards before them, got \(10, 10\)"):
        make().act(to_go[:, 0], states, actions, to_go)
