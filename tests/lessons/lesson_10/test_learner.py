"""The page trains on the learner's functions, and shows what is measured."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_10 import learner, recipes, results
from course_lib.lessons.lesson_10.tasks import TASKS


@pytest.fixture(scope="module")
def tuned():
    return load_trained("demonstrated").model


def test_the_reward_model_learns_with_the_learners_loss(tuned, monkeypatch):
    monkeypatch.setattr(recipes, "SETTINGS", recipes.replace(recipes.SETTINGS, reward_steps=3, batch_size=8))
    asked = []

    def loss(chosen, rejected):
        asked.append(chosen.shape)
        return TASKS["pair_loss"].reference(chosen, rejected)

    reward = learner.learn_reward(tuned, learner.asked(tuned, 20), loss)
    assert asked == [(8,)] * 3 and not reward.training and 0 <= learner.agrees(reward, tuned) <= 1


def test_ppo_runs_on_the_learners_three_parts_and_measures_on_the_way(tuned):
    called = set()

    def noted(name):
        def called_(*args):
            called.add(name)
            return TASKS[name].reference(*args)

        return called_

    parts = learner.Parts(*map(noted, ("token_rewards", "gae", "clipped")))
    course = learner.improve(tuned, load_trained("kindness").model, parts, beta=0.1, rounds=2)
    assert called == {"token_rewards", "gae", "clipped"} and len(course["points"]) == 2
    before, after = (point["KL"] for point in course["points"])
    assert abs(before) < 1e-4 < after
    policy = learner.with_weights(tuned, course)
    assert not torch.equal(policy.token_embed.weight, tuned.token_embed.weight)


def test_dpo_runs_on_the_learners_loss_and_leaves_the_reference_alone(tuned, monkeypatch):
    monkeypatch.setattr(recipes, "SETTINGS", recipes.replace(recipes.SETTINGS, dpo_steps=2, batch_size=8))
    before = [parameter.clone() for parameter in tuned.parameters()]
    seen = []

    def loss(*args):
        seen.append(TASKS["direct_loss"].reference(*args))
        return seen[-1]

    policy = learner.directly(tuned, learner.asked(tuned, 20), loss)
    assert seen[0].item() == pytest.approx(torch.tensor(2.0).log().item(), abs=1e-5)
    assert all(map(torch.equal, before, tuned.parameters())) and not policy.training


def test_kind_and_unkind_words_of_the_answer_are_marked_and_grammar_is_judged():
    painted = learner.painted("the good farmer helps a strange student .".split())
    assert painted.count("solid") == 1 and painted.count("dotted") == 1 and "✓" in painted
    assert "✗" in learner.painted("the farmer good good .".split())


def test_the_line_between_two_penalties():
    near, far = {"KL": 1.0, "true goal": 2.0}, {"KL": 3.0, "true goal": 6.0}
    assert results.between({"KL": 2.0}, near, far) == 4.0
