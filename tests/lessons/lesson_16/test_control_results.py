"""What lesson 16 measures of acting: the small experiments and their results, helpers of the learner."""

import pytest
import torch

from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_16 import control_experiments as experiments
from course_lib.lessons.lesson_16 import control_learner as learner
from course_lib.lessons.lesson_16.recipes import control
from course_lib.lessons.lesson_16.tasks import TASKS
from tests.lessons.modern import holds, in_words


def test_the_results_of_the_card_hold():
    assert holds(in_words("16", "agents", load_trained("mazes").card, predicted=60))


def test_the_opening_holds_for_the_shipped_model():
    result = in_words("16", "opening", load_trained("mazes").model)
    assert holds(result) and result.came < -25


def test_a_policy_that_gambles_when_much_is_asked_for_fails_in_expectation():
    result = in_words("16", "stochastic", predicted=8)
    assert holds(result) and result.came == pytest.approx(experiments.CHANCE * experiments.PRIZE, abs=0.1)


@pytest.mark.parametrize(("asked", "probability"), [(0.0, 1.0), (5.0, 0.0), (10.0, 1.0)])
def test_the_posterior_is_the_fraction_of_gambles_among_the_episodes(asked, probability):
    actions, returns = experiments.episodes(0)
    assert actions[returns == asked].double().mean() == experiments.posterior(asked) == probability


def test_a_log_of_gail_is_drawn_and_one_without_progress_fails():
    assert holds(in_words("16", "gail", [(0, 0.5, 0.02), (10, 0.9, 0.3), (20, 0.7, 0.6)], predicted=50))
    assert not holds(in_words("16", "gail", [(0, 0.5, 0.02), (10, 0.9, 0.03)]))


# --------------------------------------------------------------------------------------------- compounding errors


def test_the_expert_arrives_and_its_moves_are_on_shortest_paths():
    table, its = experiments.expert_table(), experiments.course()
    assert (table * its.shortest).sum(dim=1).min() == 1
    expert = experiments.tested(table, torch.arange(len(table)))
    assert expert.reached > 0.97 and expert.on_expert == expert.on_own == 0
    assert expert.unseen.max() == 0


def test_a_clone_errs_more_in_its_own_states_and_dagger_mends_it(monkeypatch):
    monkeypatch.setattr(experiments, "TRIALS", 150)
    monkeypatch.setattr(experiments, "ROUNDS", 6)
    loss, dagger = TASKS["cloning_loss"].reference, TASKS["dagger"].reference
    aggregated = experiments.dataset_aggregation(0, loss, dagger)
    (clone,) = experiments.behaviour_cloning(0, [aggregated[-1].labels], loss)
    assert len(aggregated) == 6 and clone.labels == aggregated[-1].labels == 6 * aggregated[0].labels
    assert clone.on_own > 4 * clone.on_expert and clone.on_own > 1.2 * aggregated[-1].on_own
    assert clone.wrong[0] < 0.1 and clone.unseen[0] == 0 and clone.unseen[40] > 0.3


# --------------------------------------------------------------------------------------------- stitching


def test_no_trajectory_goes_from_a_past_b_to_c():
    its = experiments.pieces(0)
    assert [len(walks.goals) for walks in its.kinds.values()] == [experiments.COPIES] * 3
    data = its.data
    passed = (data.cells == its.letters["B"]) & data.valid
    from_a = data.cells[:, 0] == its.letters["A"]
    assert not (passed.any(dim=1) & data.reached & from_a).any()
    assert (passed.any(dim=1) & data.reached).sum() == experiments.COPIES


def test_q_iteration_stitches_and_its_values_are_exact_on_the_short_way():
    its = experiments.pieces(0)
    planned = experiments.planned(0)
    assert planned.returns.item() == -its.maze.distances[its.letters["A"], its.letters["C"]] == -8
    q = experiments.q_iteration(its.data, len(its.maze.cells), its.letters["C"])
    assert q[its.letters["A"]].max() == -8 and q[its.letters["B"]].max() == -4


def test_an_action_without_data_has_no_value():
    its = experiments.pieces(0)
    q = experiments.q_iteration(its.kinds["E, B, C"], len(its.maze.cells), its.letters["C"])
    assert q[its.letters["D"]].max() == -torch.inf


# --------------------------------------------------------------------------------------------- the learner's agents


def test_windows_begin_at_valid_steps_and_are_consecutive():
    valid = learner.demonstrations().valid
    torch.manual_seed(0)
    rows, times = learner.windows(valid, 300)
    assert rows.shape == times.shape == (300, 2) and (times[:, 1] - times[:, 0] == 1).all()
    assert valid[rows[:, 0], times[:, 0]].all() and not valid[rows, times].all() and times.max() < valid.shape[1]


def test_the_pairs_of_the_expert_are_the_best_tenth_of_the_demonstrations():
    best = learner.demonstrations(best=control.BEST)
    assert torch.equal(best.pairs.flatten(0, 1), learner.expert_pairs())
    assert len(best.valid) == 160 and best.reached.all()
    assert torch.equal(best.pairs[..., learner.STATES :].argmax(dim=2)[best.valid], best.actions[best.valid])


def test_a_learners_model_acts_as_the_course_s_does():
    model = load_trained("mazes").model
    pairs = control.pairs()["test"]
    ours = learner.act(control.policy_of(model, -16.0), pairs, greedy=True)
    hers = learner.act(learner.conditioned(model.forward, -16.0), pairs, greedy=True)
    assert torch.equal(ours.cells, hers.cells)


def test_an_untrained_policy_seldom_arrives_and_its_trajectories_are_padded():
    torch.manual_seed(0)
    policy = torch.nn.Linear(learner.STATES, learner.ACTIONS)
    run = learner.rollout(policy, 12)
    assert run.states.shape == (12, 40, 150) and run.pairs.shape == (12, 40, 154)
    assert torch.equal(run.rewards, -run.valid.float()) and learner.success(policy) < 0.2


def test_the_example_beside_the_training_has_a_panel_for_each_return():
    fig = learner.showing()(control.build(control.DECISION))
    assert [axes.get_title("left") for axes in fig.axes] == ["asked for -10", "asked for -28"]


def test_dagger_that_forgets_the_old_data_ends_with_fewer_labels(monkeypatch):
    monkeypatch.setattr(experiments, "TRIALS", 20)
    monkeypatch.setattr(experiments, "ROUNDS", 3)

    def forgetful(states, actions, visited, taken, expert):
        return visited, expert(visited)

    found = experiments.dataset_aggregation(0, TASKS["cloning_loss"].reference, forgetful)
    assert found[-1].labels == found[0].labels
