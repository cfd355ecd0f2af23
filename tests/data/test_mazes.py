import pytest
import torch

from course_lib.data.mazes import KINDS, Maze, Walks, carve, demonstrate, joined, returns_to_go, rollout

RIGHT, DOWN, LEFT, UP = range(4)
PICTURE = """
...
.#.
..#
"""  # cells 0 1 2 / 3 4 / 5 6


def drawn(picture=PICTURE):
    return Maze(torch.tensor([[place == "#" for place in row] for row in picture.split()]))


def towards(actions):
    """A policy that takes the same row of actions, one after the other, in every walk."""

    def policy(states, taken, rewards):
        logits = torch.full((len(states), 4), -torch.inf)
        logits[:, actions[states.shape[1] - 1]] = 0.0
        return logits

    return policy


def by_search(maze, start):
    """Distances by a queue, one cell at a time."""
    steps, queue = {start: 0}, [start]
    for cell in queue:
        row, column = maze.cells[cell].tolist()
        for place in ((row, column + 1), (row + 1, column), (row, column - 1), (row - 1, column)):
            number = [i for i, each in enumerate(maze.cells.tolist()) if tuple(each) == place]
            if number and number[0] not in steps:
                steps[number[0]] = steps[cell] + 1
                queue.append(number[0])
    return [steps[cell] for cell in range(len(maze.cells))]


def test_actions_lead_to_the_neighbour_and_against_a_wall_nowhere():
    after = drawn().after
    assert after[0].tolist() == [1, 3, 0, 0]
    assert after[1].tolist() == [2, 1, 0, 1]
    assert after[4].tolist() == [4, 4, 4, 2]
    assert after[6].tolist() == [6, 6, 5, 6]


def test_distances_are_those_of_a_search_from_each_cell():
    for maze in (drawn(), carve(4, loops=3, seed=1)):
        assert maze.distances.tolist() == [by_search(maze, start) for start in range(len(maze.cells))]


def test_pairs_are_all_that_are_so_far_apart():
    assert drawn().pairs(5).tolist() == [[2, 6], [4, 5], [5, 4], [6, 2]]
    assert len(drawn().pairs(1)) == 12


@pytest.mark.parametrize("seed", range(4))
def test_a_carved_maze_has_every_room_and_one_way_more_for_each_loop(seed):
    for loops in (0, 5):
        maze = carve(5, loops=loops, seed=seed)
        assert not maze.walls[::2, ::2].any() and maze.walls[1::2, 1::2].all()
        assert len(maze.pairs(1)) // 2 == len(maze.cells) - 1 + loops  # edges: of a tree, and the loops


def test_a_state_is_a_one_for_the_cell_and_a_one_for_the_goal():
    states = drawn().states(torch.tensor([[2, 4]]), torch.tensor([6]))
    assert states.nonzero().tolist() == [[0, 0, 2], [0, 0, 7 + 6], [0, 1, 4], [0, 1, 7 + 6]]
    assert states.shape == (1, 2, drawn().state_dim) and states.sum() == 4


def test_a_walk_by_hand_costs_a_step_each_and_ends_at_its_goal():
    walk = rollout(drawn(), towards([UP, RIGHT, RIGHT, DOWN, LEFT]), torch.tensor([[0, 4], [0, 6]]), length=5)
    assert walk.cells.tolist() == [[0, 0, 1, 2, 4], [0, 0, 1, 2, 4]]
    assert walk.actions[0, :4].tolist() == [UP, RIGHT, RIGHT, DOWN]
    assert walk.rewards.tolist() == [[-1, -1, -1, -1, 0], [-1] * 5]
    assert walk.valid.tolist() == [[True] * 4 + [False], [True] * 5]
    assert walk.reached.tolist() == [True, False] and walk.returns.tolist() == [-4, -5]


def test_a_goal_reached_by_the_last_step_counts():
    assert rollout(drawn(), towards([RIGHT, RIGHT]), torch.tensor([[0, 2]]), length=2).reached.all()


def test_a_policy_sees_the_states_up_to_now_and_the_actions_and_rewards_before():
    maze, seen, policy = drawn(), [], towards([UP, RIGHT, RIGHT])
    pairs = torch.tensor([[0, 4]])
    walk = rollout(
        maze, lambda *given: seen.append([each.clone() for each in given]) or policy(*given), pairs, length=3
    )
    for t, (states, actions, rewards) in enumerate(seen):
        assert torch.equal(states, maze.states(walk.cells[:, : t + 1], walk.goals))
        assert torch.equal(actions.argmax(-1), walk.actions[:, :t]) and actions.sum() == t
        assert torch.equal(rewards, walk.rewards[:, :t])


def test_actions_are_drawn_from_the_logits_or_the_likeliest_is_taken():
    maze, pairs = drawn(), torch.tensor([[1, 6]]).repeat(4000, 1)
    chances = torch.tensor([0.1, 0.2, 0.3, 0.4])
    walks = [
        rollout(maze, lambda *_: chances.log().expand(4000, -1), pairs, length=1, greedy=greedy)
        for greedy in (False, True)
    ]
    torch.testing.assert_close(walks[0].actions[:, 0].bincount() / 4000, chances, rtol=0, atol=0.03)
    assert (walks[1].actions == UP).all()


def test_experts_take_a_shortest_way_and_every_one_of_them():
    maze = carve(5, loops=6, seed=2)
    pairs = maze.pairs(8).repeat(6, 1)
    walks = demonstrate(maze, "expert", pairs, length=9)
    assert walks.reached.all() and (walks.returns == -8).all()
    ways = {tuple(row) for row in walks.cells[:, :8].tolist()}
    assert len(ways) > len(pairs) // 6  # some pairs have several


def test_detours_pass_a_cell_on_shortest_ways_to_it_and_from_it():
    maze = carve(5, loops=2)
    pairs = maze.pairs(8)
    walks = demonstrate(maze, "detour", pairs, length=60)
    assert walks.reached.all() and walks.returns.mean() < -12
    for cells, goal, valid in zip(walks.cells, walks.goals, walks.valid, strict=True):
        path, steps = [*cells[valid].tolist(), int(goal)], int(valid.sum())
        through = [maze.distances[path[0], by] + maze.distances[by, path[-1]] == steps for by in path]
        assert any(through)


def test_wanderers_take_every_open_way_alike_and_rarely_arrive():
    maze = drawn()
    pairs = torch.tensor([[1, 6]]).repeat(3000, 1)
    first = demonstrate(maze, "wanderer", pairs, length=2).actions[:, 0]
    shares = first.bincount(minlength=4) / 3000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.0, 0.5, 0.0]), rtol=0, atol=0.03)
    large = carve(5)
    assert demonstrate(large, "wanderer", large.pairs(10), length=40).reached.float().mean() < 0.3


def test_returns_to_go_are_the_rewards_from_each_step_on():
    rewards = torch.tensor([[-1.0, -1.0, -1.0, 0.0], [2.0, 0.0, 5.0, -1.0]])
    assert returns_to_go(rewards).tolist() == [[-3, -2, -1, 0], [6, 4, 4, -1]]


def test_walks_are_joined_and_taken_by_row():
    maze = drawn()
    parts = [demonstrate(maze, kind, maze.pairs(3), length=6) for kind in KINDS]
    both = joined(*parts)
    count = len(maze.pairs(3))
    assert len(both.goals) == 3 * count
    again = both.take(torch.arange(count, 2 * count))
    assert isinstance(again, Walks) and all(torch.equal(a, b) for a, b in zip(again, parts[1], strict=True))
