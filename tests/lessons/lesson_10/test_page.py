"""The page with a learner's answers: as a plain file, and in three kernels."""

from pathlib import Path

import nbformat

from course_lib.lessons.lesson_08.tasks import TASKS as OF_LESSON_08
from course_lib.lessons.lesson_10.tasks import TASKS
from tests.lessons.answered import run_alone, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "10_alignment.ipynb"
DRIVER = """
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
    parts = {name: OF_LESSON_08[name] for name in ("attention", "block", "gpt")}
    printed = run_alone(
        tmp_path,
        parts | TASKS,
        nbformat.read(PAGE, as_version=4),
        solutions=(*parts, "reward_model", "token_rewards", "gae", "clipped", "group_advantage", "grpo_loss"),
        # update stands in two sittings
        cells=(
            "update",
            "update",
            "sample",
            "answer_part",
            "log_probs",
            "rollout",
            "ppo_loss",
            "ppo",
            "rows_of",
            "grpo",
        ),
        driver="import copy\n" + DRIVER,
        lines=300,
    )
    before, after, first, last = map(float, printed.split())
    assert after > before + 1 and last > first + 0.2


def test_her_parts_go_on_in_new_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    notebook = nbformat.read(PAGE, as_version=4)
    shorter = (("range(150)", "range(2)"), ("range(200)", "range(2)"), ("rounds=32", "rounds=1"),
               ("rounds=40", "rounds=1"), ("asked(tuned)", "asked(tuned, 64)"), ("randint(2_000", "randint(64"),
               ("learner.accuracy(reward, tuned)", "0"))  # fmt: skip
    left_out = ("free", "estimators")
    first, second, third = sittings(notebook, TASKS, begin=1, end="page.close()", left_out=left_out, shorter=shorter)
    assert "your RewardModel passes its check" in first and "RewardModel opens the trained weights." in first
    for name in ("my_sft_loss", "RewardModel", "my_pair_loss", "my_token_rewards", "my_gae", "my_clipped"):
        assert f"Your {name} goes on here." in second
    assert "Your my_clipped goes on here." in third and "your my_grpo_loss passes its check" in third
