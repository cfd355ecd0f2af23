"""Assignment 10: its references are what statistics say, its cells are what the grader has, its faults are told."""

import itertools

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.functional import preference
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_10.assignment import HIGHEST, LOWEST, accepted, accepts
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import CheckFailed
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "10")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_a_ranking_costs_what_the_library_says():
    (ranked,) = TABLES["ranking_loss"].cases[0].inputs(Draw(0))
    torch.testing.assert_close(TABLES["ranking_loss"].reference(ranked), preference.ranking_loss(ranked))


def test_the_probabilities_of_all_rankings_sum_to_one_and_two_answers_are_a_pair():
    loss, rewards = TABLES["listwise_loss"].reference, torch.randn(1, 4)
    for k in (1, 2, 4):
        places = {order[:k] for order in itertools.permutations(range(4))}
        lists = [[*first, *(i for i in range(4) if i not in first)] for first in places]
        torch.testing.assert_close(sum((-loss(rewards[:, order], k)).exp() for order in lists), torch.tensor(1.0))
    torch.testing.assert_close(loss(rewards[:, :2], 1), preference.ranking_loss(rewards[:, :2]))


def test_no_policy_has_a_larger_mean_reward_less_the_penalty_than_the_tilted_one():
    rewards, log_reference, beta = TABLES["tilted_policy"].cases[0].inputs(Draw(0))
    mean, far = TABLES["tilted_policy"].reference(rewards, log_reference, beta)
    best = mean - beta * far
    torch.testing.assert_close(best, beta * (log_reference + rewards / beta).logsumexp(dim=0))  # beta ln Z
    for seed in range(100):
        other = (log_reference + rewards / beta + 0.3 * Draw(seed)(len(rewards))).log_softmax(dim=0)
        assert (other.exp() * (rewards - beta * (other - log_reference))).sum() < best + 1e-5


def test_no_baseline_has_a_smaller_variance():
    rewards, gradients = TABLES["least_variance"].cases[0].inputs(Draw(0))
    advantages = TABLES["least_variance"].reference(rewards, gradients)

    def squares(advantages):
        return (advantages[:, :, None] * gradients).square().sum(dim=(1, 2))

    for step in (-0.1, 0.1):
        assert (squares(advantages + step) > squares(advantages)).all()


def test_the_best_of_n_has_the_mean_of_samples_and_their_divergence():
    worth, n = TABLES["best_of_n"].cases[0].inputs(Draw(0))
    mean, far = TABLES["best_of_n"].reference(worth, n)
    drawn = torch.randint(len(worth), (100_000, n), generator=torch.Generator().manual_seed(0))
    assert abs(worth[drawn].amax(dim=1).mean() - mean) < 0.02
    many = torch.arange(20_000.0)  # a continuum of answers, for which the formula of the KL is exact
    probs = ((many + 1) / len(many)) ** n - (many / len(many)) ** n
    assert abs((probs * (probs * len(many)).log()).sum() - far) < 1e-2


def test_leaving_one_out_is_the_mean_s_baseline_scaled():
    (rewards,) = TABLES["leave_one_out"].cases[0].inputs(Draw(0))
    G = rewards.shape[1]
    expected = (rewards - rewards.mean(dim=1, keepdim=True)) * G / (G - 1)
    torch.testing.assert_close(TABLES["leave_one_out"].reference(rewards), expected)


def test_the_identity_loss_is_0_at_its_target():
    target = torch.tensor([1 / (2 * 0.25)])
    zero = torch.zeros(1)
    assert TABLES["identity_loss"].reference(target, zero, zero, zero, 0.25) == 0


def test_the_program_of_the_notebook_is_that_of_the_grader(capsys):
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "program", "look-at-some"):
            exec(cell.source, names)
    prompts, answers = torch.randint(10, (200,)), torch.randint(10, (200, 3))
    targets = names["targets"]
    assert torch.equal(names["accepts"](targets, prompts, answers), accepts(targets, prompts, answers))
    assert LOWEST <= targets.min() and targets.max() <= HIGHEST and "accepted" in capsys.readouterr().out


class Says(nn.Module):
    """Logits that a function makes of tokens."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def forward(self, tokens):
        return self.says(tokens)


def test_random_answers_are_accepted_one_time_in_twenty_and_one_answer_is_counted_once():
    targets = torch.full((10,), 12)
    fraction, _ = accepted(ModuleProbe(Says(lambda x: torch.zeros(*x.shape, 10))), targets)
    assert 0.02 < fraction < 0.12
    always_four = Says(lambda x: 50.0 * F.one_hot(torch.full_like(x, 4), 10).float())
    assert accepted(ModuleProbe(always_four), targets) == (1.0, 1.0)


def test_logits_of_another_shape_are_told():
    with pytest.raises(CheckFailed, match="shape"):
        accepted(ModuleProbe(Says(lambda x: x.float())), torch.full((10,), 12))


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("ranking_loss", "logarithm of a sigmoid that is 0"),
        ("listwise_loss", "exponentials that overflow"),
        ("tilted_policy", "exponentials that overflow"),
        ("identity_loss", "sum instead of mean"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert 0 < sum(check.points for check in right) < table.points


def test_beta_and_n_are_drawn():
    for name in ("identity_loss", "best_of_n", "tilted_policy", "listwise_loss"):
        assert len({TABLES[name].cases[0].inputs(Draw(seed))[-1] for seed in range(20)}) > 2
