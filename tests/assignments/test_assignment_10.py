"""Assignment 10: its references are what statistics say, its cells are what the grader has, its faults are told."""

import math

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.functional import preference
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_10.assignment import COMPARED, NEIGHBOURS, NOT, SAME, SLIPS, WORDS, Taste, rewards
from course_lib.tasks import Draw
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "10")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_a_ranking_costs_what_the_library_says():
    (ranked,) = TABLES["ranking_loss"].cases[0].inputs(Draw(0))
    torch.testing.assert_close(TABLES["ranking_loss"].reference(ranked), preference.ranking_loss(ranked))


def test_the_best_of_n_is_worth_what_draws_say_and_as_far_as_their_chances_are():
    worth, n = TABLES["best_of_n"].cases[0].inputs(Draw(0))
    mean, far = TABLES["best_of_n"].reference(worth, n)
    drawn = torch.randint(len(worth), (100_000, n), generator=torch.Generator().manual_seed(0))
    assert abs(worth[drawn].amax(dim=1).mean() - mean) < 0.02
    many = torch.arange(20_000.0)  # a continuum of answers, for which the formula of the KL is exact
    chances = ((many + 1) / len(many)) ** n - (many / len(many)) ** n
    assert abs((chances * (chances * len(many)).log()).sum() - far) < 1e-2


def test_the_estimate_has_the_mean_of_the_kl_and_is_never_negative():
    logits = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    policy, reference = logits.log_softmax(dim=1)
    drawn = torch.multinomial(policy.exp(), 200_000, replacement=True, generator=torch.Generator().manual_seed(1))
    valid = torch.ones(len(drawn), 1, dtype=torch.bool)
    found = TABLES["kl_estimate"].reference(policy[drawn][:, None], reference[drawn][:, None], valid)
    assert abs(found - F.kl_div(reference, policy, reduction="sum", log_target=True)) < 0.02
    one = TABLES["kl_estimate"].reference(policy[:1, None], reference[:1, None], valid[:1])
    assert one >= 0


def test_the_identity_loss_is_0_at_its_goal():
    goal = torch.tensor([1 / (2 * 0.25)])
    zero = torch.zeros(1)
    assert TABLES["identity_loss"].reference(goal, zero, zero, zero, 0.25) == 0


def test_the_stranger_of_the_notebook_is_that_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "taste"):
            exec(cell.source, names)
    theirs, ours = names["Taste"](seed=3), Taste(torch.Generator().manual_seed(3))
    for one, other in zip(theirs.compare(50, slips=SLIPS), ours.compare(50, SLIPS), strict=True):
        assert torch.equal(one, other)


def test_not_turns_the_next_word_round_and_slips_turn_votes():
    taste = Taste(torch.Generator().manual_seed(0))
    texts = torch.tensor([[5, 6, 0], [NOT, 5, 6], [5, NOT, 6]])
    five, six = taste.worth[5], taste.worth[6]
    torch.testing.assert_close(taste.value(texts), torch.stack([five + six, six - five, five - six]))
    first, second, wins = taste.compare(COMPARED, SLIPS)
    slipped = (taste.value(first) > taste.value(second)) != wins
    assert abs(slipped.float().mean() - SLIPS) < 0.02 and first.max() == WORDS - 1 and first.min() == 0
    assert math.isclose(wins.float().mean(), 0.5, abs_tol=0.05)


class Says(nn.Module):
    """Rewards made of texts by a function."""

    def __init__(self, says):
        super().__init__()
        self.says = says

    def forward(self, texts):
        return self.says(texts)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (lambda x: torch.rand(len(x)), RANDOM),
        (lambda x: x.sum(1).float() - x.sum(1).float().mean(), NEIGHBOURS.misconception),
        (lambda x: torch.ones(len(x)), SAME.misconception),
        (lambda x: x.float(), "wrong shape"),
    ],
)
def test_chance_neighbours_sameness_and_shapes_are_told(says, told):
    texts = Taste(torch.Generator().manual_seed(0)).texts(50)
    with pytest.raises(CheckFailed) as fault:
        rewards(ModuleProbe(Says(says)), texts)
    assert fault.value.finding.misconception == told


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("ranking_loss", "logarithm of a sigmoid that is 0"),
        ("kl_estimate", "infinity times 0"),
        ("identity_loss", "sum instead of mean"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert 0 < sum(check.points for check in right) < table.points


def test_beta_and_n_are_drawn():
    for name in ("identity_loss", "best_of_n"):
        assert len({TABLES[name].cases[0].inputs(Draw(seed))[-1] for seed in range(20)}) > 2


def test_a_model_that_cannot_take_a_single_text_is_told():
    texts = Taste(torch.Generator().manual_seed(0)).texts(50)
    with pytest.raises(CheckFailed, match="shape"):
        rewards(ModuleProbe(Says(lambda x: x.float().sum(1).squeeze())), texts)
