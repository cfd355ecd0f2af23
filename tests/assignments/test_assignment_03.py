"""Assignment 03: its references are what torch and the library do, and its cells are what the grader has."""

import nbformat
import pytest
import torch
from torch import nn

from course_lib.data.place import course_folder
from course_lib.grading.folders import Folders
from course_lib.grading.spec import load, read_assignment
from course_lib.lessons.lesson_03.assignment import AT_ONCE, READS_AHEAD, STEP_BY_STEP, Languages, right
from course_lib.tasks import Draw, run_checks
from course_lib.tasks.core import ModuleProbe
from course_lib.tasks.findings import RANDOM, CheckFailed

FOLDERS = Folders(root=course_folder() / "notebooks" / "assignments")
FILES = read_assignment(FOLDERS.root, "03")
TABLES = {table.name: table for table in load(FILES).assignment.tasks}
NOTEBOOK = nbformat.reads(FILES.source_notebook.decode(), as_version=4)


def test_a_step_of_stacked_layers_is_that_of_torch():
    layers, (x, h) = nn.RNN(3, 3, num_layers=4), (Draw(0)(2, 3), Draw(1)(4, 2, 3))
    W, U, b, more = (
        torch.stack([getattr(layers, f"{name}_l{layer}") for layer in range(4)])
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    torch.testing.assert_close(TABLES["deep_step"].reference(x, h, W, U, b + more), layers(x[None], h)[1])


def test_states_at_some_times_are_those_of_step_after_step():
    W, h0, _ = TABLES["states_at"].cases[0].inputs(Draw(0))
    states, state = [h0], h0
    for _ in range(9):
        state = W @ state
        states.append(state)
    times = torch.tensor([0, 9, 4])
    torch.testing.assert_close(TABLES["states_at"].reference(W, h0, times), torch.stack(states)[times])


@pytest.mark.parametrize("length", [2, 3, 50])
def test_a_cut_gradient_is_that_of_autograd_on_detached_pieces(length):
    x, W = Draw(0)(8, 3), (Draw(1)(3, 3) / 2).requires_grad_()
    state, states = torch.zeros(3), [torch.zeros(3)]
    for t in range(8):
        state = torch.tanh(W @ (state.detach() if t % length == 0 else state) + x[t])
        states.append(state)
    direct = Draw(2)(8, 3)
    (expected,) = torch.autograd.grad((torch.stack(states[1:]) * direct).sum(), W)
    h = torch.stack(states).detach()
    torch.testing.assert_close(TABLES["cut_gradient"].reference(W.detach(), h, direct, length), expected)


def test_units_of_one_period_are_a_cell_of_torch():
    x, h, W, U, b, periods, t = TABLES["clockwork_step"].cases[1].inputs(Draw(0))
    cell = nn.RNNCell(x.shape[1], h.shape[1])
    cell.load_state_dict({"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": 0 * b})
    torch.testing.assert_close(TABLES["clockwork_step"].reference(x, h, W, U, b, periods, t), cell(x, h))


def test_echo_states_without_a_leak_are_those_of_a_scaled_matrix():
    W, V, x, radius, _ = TABLES["echo_states"].cases[0].inputs(Draw(0))
    torch.testing.assert_close(*(TABLES["echo_states"].reference(factor * W, V, x, radius, 1.0) for factor in (1, 7)))
    net = nn.RNN(x.shape[1], len(W), bias=False)
    W = W * radius / torch.linalg.eigvals(W).abs().max()
    net.load_state_dict({"weight_ih_l0": V, "weight_hh_l0": W})
    torch.testing.assert_close(TABLES["echo_states"].reference(W, V, x, radius, 1.0), net(x)[0])


def test_gradients_forward_in_time_are_those_of_autograd():
    x, W = Draw(0)(6, 3), (Draw(1)(3, 3) / 2).requires_grad_()
    states = [torch.tanh(Draw(3)(3))]
    for now in x:
        states.append(torch.tanh(W @ states[-1] + now))
    direct = Draw(2)(6, 3)
    losses = [(h * row).sum() for h, row in zip(states[1:], direct, strict=True)]
    expected = torch.stack([torch.autograd.grad(loss, W, retain_graph=True)[0] for loss in losses])
    found = TABLES["forward_gradients"].reference(W.detach(), torch.stack(states).detach(), direct)
    torch.testing.assert_close(found, expected)


def test_a_training_name_has_the_distance_0_from_a_language_of_its_own():
    found = TABLES["out_of_place"].reference(torch.tensor([0, 1]), ["Anna", "otto"], ["otto", "Anna"], 2, 4)
    assert found.tolist() == [[16, 0], [0, 16]]


def test_the_languages_of_the_notebook_are_those_of_the_grader():
    names = {}
    for cell in NOTEBOOK.cells:
        if cell.id in ("setup", "languages"):
            exec(cell.source, names)
    for made in (names["Languages"](0), Languages(Draw(0))):
        words, spoken = made.words(4_000, 15) if isinstance(made, names["Languages"]) else made.words(Draw(1), 4_000)
        assert words.shape == (4_000, 15) and spoken.unique().tolist() == [0, 1, 2, 3]
        likely = made.probs[spoken[:, None], words[:, :-1], words[:, 1:]].log().mean()
        other = made.probs[(spoken[:, None] + 1) % 4, words[:, :-1], words[:, 1:]].log().mean()
        assert likely > other + 1  # nats a letter


def test_a_loop_over_the_steps_is_told_and_powers_of_the_matrix_are_not():
    def step_by_step(W, h0, times):
        state = h0
        for _ in range(int(times.max())):
            state = W @ state
        return state.expand(len(times), -1)

    def powers(W, h0, times):
        return torch.stack([torch.linalg.matrix_power(W, int(time)) @ h0 for time in times])

    assert run_checks(step_by_step, [AT_ONCE]).misconceptions == [STEP_BY_STEP.misconception]
    table = TABLES["states_at"]
    assert run_checks(powers, [AT_ONCE, *table.all_checks], asks=table.asks).passed


class Says(nn.Module):
    """Scores made of letters by a function."""

    def __init__(self, scores):
        super().__init__()
        self.scores = scores

    def forward(self, words):
        return self.scores(nn.functional.one_hot(words % 4, 4).float())


@pytest.mark.parametrize(
    ("scores", "found"),
    [
        (lambda x: x + torch.rand_like(x), RANDOM),
        (lambda x: x.flip(1), READS_AHEAD.misconception),
        (lambda x: x.mean(1, keepdim=True).expand_as(x), READS_AHEAD.misconception),
    ],
)
def test_random_logits_and_later_letters_are_found(scores, found):
    with pytest.raises(CheckFailed) as fault:
        right(ModuleProbe(Says(scores)), *Languages(Draw(0)).words(Draw(1), 50), after=4)
    assert fault.value.finding.misconception == found
    assert 0 <= right(ModuleProbe(Says(lambda x: x.cumsum(1))), *Languages(Draw(0)).words(Draw(1), 50), after=4) <= 1
