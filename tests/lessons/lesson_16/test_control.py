import pytest
import torch

from course_lib.data import mazes
from course_lib.lessons.lesson_16.recipes import control
from course_lib.lessons.lesson_16.recipes.control import AdversarialSettings, CloningSettings

CLONING = CloningSettings(model="transformer", returns=True, dim=8, depth=1, context_steps=5, batch_size=300)


@pytest.fixture(scope="module")
def walks():
    return control.demonstrations(0)


def test_no_demonstration_begins_with_a_held_out_start_and_goal(walks):
    splits = {name: set(map(tuple, part.tolist())) for name, part in control.pairs().items()}
    assert sum(map(len, splits.values())) == len(set.union(*splits.values()))
    begun = set(zip(walks.cells[:, 0].tolist(), walks.goals.tolist(), strict=True))
    assert begun == splits["train"]
    apart = control.maze().distances[tuple(torch.cat(list(control.pairs().values())).T)]
    assert (apart == control.DISTANCE).all()


def test_demonstrations_are_mixed_and_differ_from_seed_to_seed(walks):
    counts = list(control.MIXTURE.values())
    expert, detour, wanderer = (part.mean() for part in walks.returns.split(counts))
    assert expert == -control.DISTANCE > detour > wanderer
    assert not torch.equal(control.demonstrations(1).actions, walks.actions)


def test_the_best_trajectories_are_those_with_the_highest_returns(walks):
    best = control.best_of(walks, 0.1)
    assert len(best.goals) == len(walks.goals) // 10
    assert best.returns.min() >= walks.returns.sort(descending=True).values[len(best.goals) - 1]


def test_windows_are_parts_of_trajectories_with_the_return_that_was_still_to_go(walks):
    batch = control.windows_at(walks, CLONING)(3)
    maze, states = control.maze(), batch["states"].unflatten(2, (2, -1)).argmax(dim=3)
    assert batch["valid"][:, 0].all() and not batch["valid"].all()
    cells, goals = states.unbind(2)
    for row in range(300):
        count = int(batch["valid"][row].sum())
        assert batch["valid"][row, :count].all()
        for t in range(count - 1):
            assert maze.after[cells[row, t], batch["actions"][row, t]] == cells[row, t + 1]
            assert batch["times"][row, t + 1] == batch["times"][row, t] + 1
        assert (goals[row] == goals[row, 0]).all()
        left = batch["to_go"][row, :count] * control.LENGTH
        assert ((left[1:] - left[:-1] - 1).abs() < 1e-4).all() and left.max() < 0
        if count < 5:  # the walk ends within the window
            assert left[count - 1].item() == pytest.approx(-1)


def test_without_returns_all_windows_have_the_same_return(walks):
    batch = control.windows_at(walks, CloningSettings(model="transformer"))(0)
    assert not batch["to_go"].any()
    model, seen = control.build(CLONING), []
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    control.walks_of(model, "validation")
    assert not any(each.any() for each in seen)


def test_an_agent_asked_for_a_return_is_conditioned_on_what_is_left_of_it():
    model, seen = control.build(CLONING), []
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0] * control.LENGTH))
    control.walks_of(model, "validation", asked=-16.0)
    for t, to_go in enumerate(seen[:8]):  # all are still on their way
        expected = torch.arange(-16.0, -15.0 + t)[-5:].expand_as(to_go)
        torch.testing.assert_close(to_go, expected, rtol=0, atol=1e-4)


def test_an_agent_that_has_arrived_waits_at_the_goal(walks):
    states, actions = control.pairs_of(walks)
    cells = states.unflatten(2, (2, -1)).argmax(dim=3)
    assert torch.equal(actions.sum(dim=2), walks.valid.float())
    assert (cells[..., 0] == cells[..., 1])[~walks.valid].all()
    assert not (cells[..., 0] == cells[..., 1])[walks.valid].any()


def test_gail_learns_to_reach_goals_from_experts_alone():
    settings = AdversarialSettings(steps=16 * 30, entropy=0.03)
    before, trained = control.build(settings), control.train(settings).model
    reached = [
        mazes.rollout(control.maze(), control.policy_of(model), control.pairs()["train"].repeat(4, 1), length=40)
        for model in (before, trained)
    ]
    assert reached[0].reached.float().mean() < 0.2
    assert reached[1].reached.float().mean() > reached[0].reached.float().mean() + 0.25


def test_the_maze_has_75_cells_and_its_data_say_so():
    assert len(control.maze().cells) == 75 == control.SIDE**2 + (control.SIDE**2 - 1) + control.LOOPS
    assert "one maze of 75 cells" in control.DATA


def test_the_mlp_gets_the_window_of_the_transformer_but_not_the_action_that_it_predicts(walks):
    settings = control.VARIANTS[control.RETURN_MLP]
    model, transformer = control.build(settings), control.build(control.DECISION)
    size, other = (sum(each.numel() for each in one.parameters()) for one in (model, transformer))
    assert 0.9 * other < size <= other
    batch = control.windows_at(walks, settings)(0)
    actions = torch.nn.functional.one_hot(batch["actions"], 4).float()
    given = [batch["to_go"], batch["states"], actions, batch["times"]]
    logits = model(*given)
    for which, changed in enumerate(((0, 1), (0, 1), (1,), (0, 1))):  # of two steps, the logits that depend on it
        other = [each.clone() for each in given]
        other[which][:, 0] += 1
        differs = (model(*other) - logits).abs().amax(dim=(0, 2)) > 0
        assert tuple(differs.nonzero()[:, 0].tolist()) == changed
    last = [each.clone() for each in given]
    last[2][:, 1] += 1
    assert torch.equal(model(*last), logits)


def test_the_mlp_acts_on_what_is_left_of_the_return():
    model, seen = control.build(control.VARIANTS[control.RETURN_MLP]), []
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0] * control.LENGTH))
    control.walks_of(model, "validation", asked=-16.0)
    assert [round(each[0, -1].item()) for each in seen[:4]] == [-16, -15, -14, -13]
    assert seen[5].shape[1] == 2
