"""The playgrounds of lesson 10 learn from votes, write for them, and know when a goal is reached."""

import pytest
import torch

from course_lib.classroom.widgets.votes import told_apart
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_10 import learner, playground, taste
from course_lib.lessons.lesson_10.tasks import TASKS
from tests.lessons.common import reached


@pytest.fixture(scope="module")
def labeller():
    return playground.labeller(learner.before().model)


@pytest.fixture(scope="module")
def pairs():
    return tuple(taste.Answered.of(learner.before().model).pairs)


def will(text):
    return text.count("will")


def test_votes_for_a_word_teach_that_word_and_no_votes_nothing(pairs):
    votes = taste.voted(pairs, will, 12)
    assert taste.learned(votes, pairs).argmax() == taste.recipes.words().index("will") + 1
    assert not taste.learned("", pairs).any() and not taste.learned(taste.NEITHER * 5, pairs).any()
    assert sum(taste.foreseen(votes, pairs)[-8:]) >= 7


def test_a_friend_votes_until_he_has_chosen_so_often_and_leaves_the_rest_alone(pairs):
    votes = taste.voted(pairs, will, 12)
    assert told_apart(votes) == 12 and votes[-1] != taste.NEITHER
    for vote, (one, other) in zip(votes, pairs, strict=False):
        expected = "first second neither".split()[0 if will(one) > will(other) else 1 if will(one) < will(other) else 2]
        assert {"first": taste.FIRST, "second": taste.SECOND, "neither": taste.NEITHER}[expected] == vote


def test_the_policy_is_the_best_one_for_its_rewards_and_its_kl_is_right():
    texts = [("a", "b", "good"), ("a", "b", "old"), ("a", "b", "new")]
    weights = torch.zeros_like(taste.features(()))
    weights[taste.recipes.words().index("good") + 1] = 2.0
    policy = taste.write(texts, weights, beta=0.5)
    right = TASKS["best_policy"].reference(torch.full((3,), 1 / 3), torch.tensor([2.0, 0.0, 0.0]), 0.5)
    torch.testing.assert_close(policy.probabilities, right)
    assert policy.kl == pytest.approx(float((right * (3 * right).log()).sum()), abs=1e-5)
    assert taste.write(texts, torch.zeros_like(weights), beta=0.5).kl == pytest.approx(0, abs=1e-6)


def test_the_goals_can_be_reached_and_are_not_at_the_start(labeller, pairs):
    assert reached(labeller) == [False, False, False]
    votes = taste.voted(pairs, will, 20)
    assert reached(labeller, votes=votes, prompt="our young")[0]
    assert reached(labeller, votes=votes, prompt="the minister", beta=0.05)[1]
    assert reached(labeller, votes=labeller.steps["votes"][1], beta=0.01)[2]


def test_all_pairs_can_be_compared_and_then_it_says_so(labeller, pairs):
    assert "There are no more pairs" in labeller.frame(labeller.state(votes=taste.NEITHER * len(pairs))).html
    with pytest.raises(ValueError, match="votes of a, b and ="):
        labeller.state(votes="xyz")


def test_a_nat_has_its_price():
    tuned, reward = load_trained("demonstrated").model, load_trained("kindness").model
    parts = learner.Parts(*(TASKS[name].reference for name in ("token_rewards", "gae")))
    weights = load_trained("aligned").model.state_dict()
    course = {"weights": weights, "critic": reward.state_dict(), "points": [learner.measure(tuned, tuned, reward)]}
    paid = learner.paid(tuned, reward, course)
    assert len(paid.words) == len(paid.ratios) == len(paid.values) and paid.words[-1] == "<end>"
    explorer = playground.paid(tuned, reward, course, course, parts)
    assert f"The score of this answer is {paid.score:.1f}" in explorer.frame().html
    assert reached(explorer) == [False, False] and reached(explorer, trace=0.0) == [False, True]
