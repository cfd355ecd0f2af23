"""Assignment 16: its references are what the library does, and its cells are what the grader has."""

import contextlib
import io
import math
import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_16.assignment import TOGETHER, Road, chosen, drive, road_shape
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed
from course_lib.tasks.trained import ELSEWHERE
from course_lib.tasks.wrong import ignored
from tests.assignments.mistaken import passed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "16")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
CELLS = {cell.id: cell.source for cell in nbformat.reads(FILES.source_notebook.decode(), as_version=4).cells}


@pytest.fixture(scope="module")
def cells():
    """What the notebook's own cells define, with the references of a slot."""
    names = {}
    for name in ("setup", "stitch", "implicit_q", "try-room", "road"):
        exec(CELLS[name], names)
    return names


def printed(name, names):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(CELLS[name], dict(names))
    return said.getvalue()


# experts -----------------------------------------------------------------------------------------------------


def test_without_a_preference_the_actions_are_those_of_the_data():
    draw = Draw(0)
    p, given = draw(4, 5).softmax(dim=1), draw(4, 5, 3).softmax(dim=2)
    found = TABLES["expert_policy"].reference(p.log(), draw(5), given.log(), 0.0)
    torch.testing.assert_close(found, torch.einsum("bk,bka->ba", p, given))


def test_a_strong_preference_leaves_the_highest_return_alone():
    draw = Draw(0)
    actions, returns = draw(4, 5, 3), torch.arange(5.0)
    found = TABLES["expert_policy"].reference(draw(4, 5), returns, actions, 100.0)
    torch.testing.assert_close(found, actions[:, -1].softmax(dim=1))


def test_a_temporal_ensemble_is_that_of_a_loop():
    for case in TABLES["temporal_ensemble"].cases[:3]:
        chunks, m = case.inputs(Draw(4))
        found, K = TABLES["temporal_ensemble"].reference(chunks, m), chunks.shape[2]
        for t in range(chunks.shape[1]):
            made = [step for step in range(t + 1) if t - step < K]  # the oldest first
            weights = [math.exp(-m * i) for i in range(len(made))]
            wanted = sum(weight * chunks[:, step, t - step] for weight, step in zip(weights, made, strict=True))
            torch.testing.assert_close(found[:, t], wanted / sum(weights))


def test_predictions_that_agree_are_what_the_agent_does():
    actions = torch.randn(2, 205, 3)
    chunks = torch.stack([actions[:, t : t + 5] for t in range(200)], dim=1)
    torch.testing.assert_close(TABLES["temporal_ensemble"].reference(chunks, 2.0), actions[:, :200])


# stitching ---------------------------------------------------------------------------------------------------


def test_with_all_transitions_the_table_is_that_of_value_iteration():
    S, A, gamma = 6, 3, 0.9
    draw = Draw(0)
    rewards, following = draw(S, A).double(), draw.integers(-1, S, S, A)
    values = torch.zeros(S, dtype=torch.float64)
    for _ in range(300):
        after = torch.cat([values, values.new_zeros(1)])[following]  # the index -1 is the end
        values = (rewards + gamma * after).amax(dim=1)
    pairs = torch.cartesian_prod(torch.arange(S), torch.arange(A))
    pairs = pairs[draw(len(pairs)).argsort()]
    states, actions = pairs.unbind(dim=1)
    inputs = states, actions, rewards[states, actions], following[states, actions]
    found = TABLES["stitch"].reference(*inputs, S, A, gamma, 300)
    torch.testing.assert_close(found.amax(dim=1), values)


def doubled(inputs):
    return [value.double() if torch.is_tensor(value) and value.is_floating_point() else value for value in inputs]


def test_the_expectile_approaches_the_maximum():
    for case in TABLES["implicit_q"].cases:
        *inputs, _, sweeps = doubled(case.inputs(Draw(4)))
        found = TABLES["implicit_q"].reference(*inputs, 1 - 1e-6, sweeps)
        torch.testing.assert_close(found, TABLES["stitch"].reference(*inputs, sweeps), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("tau", [0.5, 0.7, 0.9])
def test_one_more_sweep_of_implicit_q_uses_the_expectile_of_a_search(tau):
    for case in TABLES["implicit_q"].cases:
        states, actions, rewards, following, S, A, gamma, _, _ = case.inputs(Draw(4))
        inputs = states, actions, rewards, following, S, A, gamma, tau
        before, after = (TABLES["implicit_q"].reference(*inputs, sweeps) for sweeps in (3, 4))
        values = torch.zeros(S + 1)  # the last is the end
        grid = torch.linspace(-20, 10, 30001)[:, None]
        for state in states.unique():
            known = before[state, actions[states == state]]
            losses = ((tau - (known < grid).float()).abs() * (known - grid) ** 2).sum(dim=1)
            values[state] = grid[losses.argmin(), 0]
        for state, action in set(zip(states.tolist(), actions.tolist(), strict=True)):
            there = (states == state) & (actions == action)
            wanted = (rewards[there] + gamma * values[following[there]]).mean()
            torch.testing.assert_close(after[state, action], wanted, atol=3e-3, rtol=0)


@pytest.mark.parametrize("name", ["stitch", "implicit_q"])
def test_the_table_leads_to_the_goal_where_no_trajectory_of_the_data_does(cells, name):
    lines = printed(f"try-{name}", cells).splitlines()[:5]
    found = [pair for line in lines for pair in re.findall(r"(\d+) \((\d+|-)\)", line)]
    steps = [int(steps) for steps, _ in found]
    assert steps == [8 - row - column for row in range(5) for column in range(5)]
    unknown = sum(best == "-" for _, best in found)
    assert unknown == 10 and f"From {unknown} of the 24 squares" in CELLS["in-your-own-words"]


# images and texts --------------------------------------------------------------------------------------------


def test_the_sigmoid_loss_is_a_binary_cross_entropy_summed_over_the_texts():
    draw = Draw(0)
    images, texts, matches = draw(5, 4), draw(7, 4), draw(5, 7) > 0
    cosines = F.cosine_similarity(images[:, None], texts, dim=2)
    wanted = F.binary_cross_entropy_with_logits(3 * cosines - 1, matches.float(), reduction="sum") / 5
    torch.testing.assert_close(TABLES["sigmoid_loss"].reference(images, texts, matches, 3.0, -1.0), wanted)


def test_the_first_loss_of_siglip_is_what_the_graded_answer_says():
    N, loss = 1000, TABLES["sigmoid_loss"].reference
    images, texts = torch.eye(2 * N)[:N], torch.eye(2 * N)[N:]  # all cosines are 0
    assert loss(images, texts, torch.eye(N) > 0, 10.0, -10.0).item() == pytest.approx(10.05, abs=0.01)
    assert loss(images, texts, torch.eye(N) > 0, 10.0, 0.0).item() == pytest.approx(N * math.log(2), abs=0.1)


def test_late_interaction_is_that_of_a_loop():
    for case in TABLES["late_interaction"].cases:
        patches, words, counts, scale = case.inputs(Draw(4))
        N = len(patches)
        s, t = torch.zeros(N, N), torch.zeros(N, N)
        for i in range(N):
            for j in range(N):
                cosines = F.cosine_similarity(patches[i][:, None], words[j, : counts[j]], dim=2)
                s[i, j], t[i, j] = cosines.amax(dim=1).mean(), cosines.amax(dim=0).mean()
        right = (scale * s).log_softmax(dim=1).diag() + (scale * t).log_softmax(dim=0).diag()
        torch.testing.assert_close(
            TABLES["late_interaction"].reference(patches, words, counts, scale), -right.mean() / 2
        )


def test_late_interaction_of_one_patch_and_one_word_is_the_loss_of_clip():
    draw = Draw(0)
    images, texts, counts = draw(5, 4), draw(5, 4), torch.ones(5, dtype=torch.int64)
    logits = 3 * F.cosine_similarity(images[:, None], texts, dim=2)
    wanted = (F.cross_entropy(logits, torch.arange(5)) + F.cross_entropy(logits.T, torch.arange(5))) / 2
    found = TABLES["late_interaction"].reference(images[:, None], texts[:, None], counts, 3.0)
    torch.testing.assert_close(found, wanted)


def test_with_one_prompt_for_each_class_zero_shot_is_a_softmax_of_cosines():
    draw = Draw(0)
    images, prompts = draw(5, 4), draw(3, 1, 4)
    cosines = F.cosine_similarity(images[:, None], prompts[:, 0], dim=2)
    found = TABLES["zero_shot"].reference(images, prompts, torch.ones(3, dtype=torch.int64), 0.1)
    torch.testing.assert_close(found, (cosines / 0.1).softmax(dim=1))


# mistakes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.cases])
def test_no_argument_can_be_ignored(name):
    assert list(ignored(TABLES[name])) == []


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("expert_policy", "exponential too large"),
        ("temporal_ensemble", "weights too small"),
        ("implicit_q", "one sweep too many"),
        ("sigmoid_loss", "logarithm of zero"),
        ("late_interaction", "exponential too large"),
    ],
)
def test_a_mistake_that_the_example_does_not_show_costs_part_of_the_points(name, mistake):
    table = TABLES[name]
    right = passed(table, mistake)
    assert table.points / 5 <= sum(check.points for check in right) < table.points


# the road ----------------------------------------------------------------------------------------------------


def test_the_road_of_the_notebook_is_that_of_the_grader(cells):
    shape = road_shape(torch.Generator().manual_seed(0))
    theirs, ours = cells["Road"](shape), Road(shape)
    starts = [road.start(20, torch.Generator().manual_seed(1)) for road in (theirs, ours)]
    assert torch.equal(*starts)
    expert = cells["Expert"](theirs, 20 * 30)
    for push in (0.0, 0.5):
        runs = [
            run(road, policy, starts[0], 15, push, torch.Generator().manual_seed(2))
            for run, road, policy in ((cells["drive"], theirs, expert.ask), (drive, ours, ours.expert))
        ]
        for mine, other in zip(*runs, strict=True):
            assert torch.equal(mine, other)
    with pytest.raises(ValueError, match="no further question"):
        expert.ask(starts[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_expert_stays_on_the_road_and_a_car_that_goes_straight_on_does_not(seed):
    random = torch.Generator().manual_seed(seed)
    road = Road(road_shape(random))
    assert drive(road, road.expert, road.start(100, random), 600, 0.5, random)[2].float().mean() > 0.95
    straight = drive(road, lambda states: torch.ones(len(states)).long(), road.start(100, random), 60)[2]
    assert not straight.any()


def test_the_cell_below_the_road_shows_what_the_text_says_of_the_expert(cells):
    last = printed("look-at-one", cells).splitlines()[-1]
    assert "600 steps: 0.99 stay" in last and "The expert itself keeps 99 %" in CELLS["train-how"]


# answers -----------------------------------------------------------------------------------------------------

STATES = Road(road_shape(torch.Generator().manual_seed(0))).start(40, torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("network", "told"),
    [
        (nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=0)), TOGETHER.misconception),
        (nn.Sequential(nn.Linear(4, 3), nn.Dropout()), RANDOM),
    ],
)
def test_a_policy_that_depends_on_other_states_or_on_chance_is_told(network, told):
    with pytest.raises(CheckFailed) as fault:
        chosen(ModuleProbe(network), STATES)
    assert fault.value.finding.misconception == told


def test_the_expert_itself_is_no_answer():
    class Computed(nn.Module):
        def __init__(self, road):
            super().__init__()
            self.road = road

        def forward(self, states):
            return F.one_hot(self.road.expert(states), 3).float()

    check = TABLES["train"].scored[0]
    report = run_checks(lambda states, actions, shape: Computed(Road(shape)), [check], asks="states, actions, shape")
    assert report.misconceptions == [ELSEWHERE]
