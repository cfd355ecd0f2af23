"""Each step moves what it should: on a language of six words, one of which is wanted."""

import copy

import pytest
import torch

from course_lib.models.gpt import GPT, GPTConfig
from course_lib.models.reward import reward_model_on
from course_lib.training import preference as p
from course_lib.training.config import FitConfig
from course_lib.training.loop import fit

VOCAB, END, WANTED, LENGTH = 6, 0, 3, 5
TINY = GPTConfig(vocab_size=VOCAB, context_length=12, dim=16, depth=1, num_heads=2, dropout=0.0)


@pytest.fixture
def policy():
    torch.manual_seed(0)
    return GPT(TINY).eval()


def prompts(number=0, count=32):
    return torch.randint(1, VOCAB, (count, 2), generator=torch.Generator().manual_seed(number))


def wanted(answers):
    """How many of an answer's words are the wanted one."""
    return ((answers.tokens == WANTED) & answers.valid).sum(dim=1).float()


def answers_of(policy, number=0, count=200):
    draws = torch.Generator().manual_seed(number)
    return p.answer(policy, prompts(number, count), max_new_tokens=LENGTH, end_id=END, generator=draws)


def pairs(policy, count=256):
    """Two answers to each prompt; the one with more of the wanted word is preferred."""
    first, second = (answers_of(policy, 1, count), answers_of(policy, 1, count))
    second = p.Answers(first.prompt, *answers_of(policy, 2, count)[1:])
    gap = wanted(first) - wanted(second)
    keep, better = gap != 0, (gap > 0)[gap != 0, None]

    def choose(which):
        one, other = (first, second) if which else (second, first)
        return p.Answers(first.prompt[keep], torch.where(better, one.tokens[keep], other.tokens[keep]),
                         torch.where(better, one.valid[keep], other.valid[keep]))  # fmt: skip

    return p.Comparison(choose(True), choose(False))


def test_an_answer_ends_with_its_first_end_and_its_probability_with_it(policy):
    answers = answers_of(policy)
    for tokens, valid in zip(answers.tokens.tolist(), answers.valid.tolist(), strict=True):
        ends = tokens.index(END) + 1 if END in tokens else LENGTH
        assert valid == [True] * ends + [False] * (LENGTH - ends)
    row = next(i for i, valid in enumerate(answers.valid) if 1 < valid.sum() < LENGTH)
    one = answers.whole[row : row + 1]
    shares = policy(one[:, :-1]).log_softmax(-1)[0, 1:]
    size = int(answers.valid[row].sum())
    expected = shares[torch.arange(size), answers.tokens[row, :size]].sum()
    torch.testing.assert_close(p.answer_log_probs(policy, answers)[row], expected)


def test_demonstrations_teach_the_answer_and_not_the_prompt(policy):
    answers = answers_of(policy)
    loss = p.demonstration_loss(policy, answers)
    torch.testing.assert_close(loss, -p.answer_log_probs(policy, answers).sum() / answers.valid.sum())
    shown = p.Answers(prompts(), torch.full((32, LENGTH), WANTED), torch.ones(32, LENGTH, dtype=torch.bool))
    fit(policy, lambda step: shown, p.demonstration_loss, config=FitConfig(steps=60, learning_rate=1e-2))
    assert wanted(answers_of(policy.eval())).mean() > 0.9 * LENGTH


def test_a_reward_model_reads_the_last_real_token(policy):
    model = reward_model_on(policy)
    torch.nn.init.normal_(model.head.weight)
    answers = answers_of(policy, count=8)
    found = model(answers.whole, valid=answers.whole_valid)
    for row, size in enumerate(answers.valid.sum(dim=1).tolist()):
        alone = model(answers.whole[row : row + 1, : 2 + size])
        torch.testing.assert_close(found[row : row + 1], alone)
    assert torch.equal(reward_model_on(policy).backbone.token_embed.weight, policy.token_embed.weight)


def test_a_reward_model_begins_at_ln_2_and_learns_whom_people_prefer(policy):
    model, pair = reward_model_on(policy), pairs(policy)
    assert p.comparison_loss(model, pair).item() == pytest.approx(0.6931, abs=1e-3)
    fit(model, lambda step: pair, p.comparison_loss, config=FitConfig(steps=80, learning_rate=1e-2))
    fresh = pairs(policy, 400)
    rewards = [model.eval()(each.whole, valid=each.whole_valid) for each in fresh]
    assert (rewards[0] > rewards[1]).float().mean() > 0.9


def test_a_value_is_asked_before_each_word_and_nothing_is_expected_behind_the_end(policy):
    critic, answers = reward_model_on(policy), answers_of(policy, count=8)
    torch.nn.init.normal_(critic.head.weight)
    values = p.ActorCritic(policy, critic).values(answers)
    before = critic.values(answers.whole[:, :4])[:, -1]  # the prompt and two words
    torch.testing.assert_close(values[:, 2], before * answers.valid[:, 2])
    assert not values[~answers.valid].any() and values[answers.valid].all()


def ppo(policy, beta, rounds=12):
    reference = copy.deepcopy(policy).requires_grad_(False)
    config = p.PPOConfig(beta=beta, max_new_tokens=LENGTH, epochs=2, minibatches=2)
    model = p.ActorCritic(copy.deepcopy(policy), reward_model_on(policy))
    torch.manual_seed(0)
    fit(
        model,
        p.ppo_rollouts(reference, wanted, lambda number: prompts(number, 128), config, end_id=END),
        p.ppo_loss(config),
        config=FitConfig(steps=4 * rounds, learning_rate=1e-2, schedule="constant"),
    )
    answers = answers_of(model.policy.eval(), 9)
    kl = (p.answer_log_probs(model.policy, answers) - p.answer_log_probs(reference, answers)).mean().item()
    return wanted(answers).mean().item(), kl


def test_ppo_gets_what_it_is_paid_for_and_the_penalty_holds_it_back(policy):
    before = wanted(answers_of(policy, 9)).mean().item()
    free, far = ppo(policy, beta=0.0)
    held, near = ppo(policy, beta=3.0)
    assert free > before + 2 and free > held + 1
    assert far > 2 and near < 0.5 * far


def test_dpo_moves_the_policy_to_what_was_preferred(policy):
    reference, pair = copy.deepcopy(policy), pairs(policy)
    loss = p.direct_loss(reference, beta=0.5)
    assert loss(policy, pair).item() == pytest.approx(0.6931, abs=1e-3)
    before = wanted(answers_of(policy, 9)).mean()
    fit(policy, lambda step: pair, loss, config=FitConfig(steps=40, learning_rate=5e-3))
    assert wanted(answers_of(policy.eval(), 9)).mean() > before + 1
    assert all(parameter.grad is None for parameter in reference.parameters())
