"""The page with a learner's answers: as a plain file, and in three kernels."""

from tests.lessons.answered import alone, kernels, unsaid

DRIVER = """
import copy
from collections import namedtuple
clipped, token_rewards, gae = my_clipped, my_token_rewards, my_gae
group_advantage, grpo_loss = my_group_advantage, my_grpo_loss

class Answers(namedtuple("Answers", "prompt tokens valid")):
    whole = property(lambda self: torch.cat([self.prompt, self.tokens], dim=1))
    whole_valid = property(lambda self: torch.cat([self.prompt >= 0, self.valid], dim=1))

class learner:
    END, EVERY = 0, 12
    def prompts(count): return torch.randint(1, 6, (count, 2))
    def measure(policy, *_):
        answers = sample(policy, learner.prompts(300))
        return reward(answers.whole, answers.whole_valid).mean().item()
    def showing(): pass

class page:
    stopped = False
    def watch(*_, **__): return page
    def update(*_, **__): pass
    def close(): pass

def reward(tokens, valid): return ((tokens[:, 2:] == 3) & valid[:, 2:]).sum(dim=1).float()
def threes(answers): return reward(answers.whole, answers.whole_valid) >= 3

torch.manual_seed(0)
tuned = MyGPT(6, 16, 32, 1, 2)
before, after = ppo(0.02, 12)["points"]
print(before, after)
_, accepted = grpo(threes, rounds=30)
print(accepted[0], accepted[-1])
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loops_learns_without_the_course(tmp_path):
    solutions = "attention block gpt reward_model token_rewards gae clipped group_advantage grpo_loss"
    cells = "update update sample answer_part log_probs rollout ppo_loss ppo rows_of grpo"  # update in two sittings
    parts = {"others": ("08",), "solutions": solutions, "cells": cells}
    before, after, first, last = map(float, alone(tmp_path, "10", driver=DRIVER, lines=300, **parts))
    assert after > before + 1 and last > first + 0.2


def test_her_parts_go_on_in_new_kernels(tmp_path, monkeypatch):
    few = (("range(150)", "range(2)"), ("range(200)", "range(2)"), ("rounds=32", "rounds=1"))
    few += (("rounds=40", "rounds=1"), ("asked(tuned)", "asked(tuned, 64)"), ("randint(2_000", "randint(64"))
    few += (("learner.accuracy(reward, tuned)", "0"),)
    cut = {"begin": 1, "end": "page.close()", "left_out": ("free", "estimators"), "shorter": few}
    first, second, third = kernels(tmp_path, monkeypatch, "10", **cut)
    parts = "my_sft_loss RewardModel my_pair_loss my_token_rewards my_gae my_clipped"
    assert not unsaid(first, passes="RewardModel", opens="RewardModel")
    assert not unsaid(second, goes_on=parts)
    assert not unsaid(third, goes_on="my_clipped", passes="my_grpo_loss")
