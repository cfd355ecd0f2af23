"""Mazes to walk in, walks of mixed quality through them, and a policy's own walks, many at once.

A small stand-in for the data sets of Fu et al., "D4RL: datasets for deep data-driven reinforcement learning", 2020,
arXiv 2004.07219, whose mazes too are walked for other purposes than the one that is asked for later.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from course_lib.data.draws import generator

MOVES = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])  # right, down, left, up: (rows, columns)
KINDS = ("expert", "detour", "wanderer")
Policy = Callable[[Float[Tensor, "N t S"], Float[Tensor, "N t1 A"], Float[Tensor, "N t1"]], Float[Tensor, "N A"]]


class Walks(NamedTuple):
    """N walks of up to T steps. A step costs 1; a walk ends at its goal, and what follows counts for nothing."""

    cells: Int[Tensor, "N T"]  # where each step begins
    goals: Int[Tensor, " N"]
    actions: Int[Tensor, "N T"]
    rewards: Float[Tensor, "N T"]  # -1 for each step, 0 after the end
    valid: Bool[Tensor, "N T"]  # True at steps up to the end
    reached: Bool[Tensor, " N"]  # True where the walk ended at its goal

    def take(self, rows: Int[Tensor, " M"] | Bool[Tensor, " N"]) -> "Walks":
        """Some of the walks."""
        return Walks(*(each[rows] for each in self))

    @property
    def returns(self) -> Float[Tensor, " N"]:
        """The sum of each walk's rewards: minus the number of its steps."""
        return self.rewards.sum(dim=1)


class Maze:
    """Walls and the C open cells between them, numbered row by row; an action against a wall leaves one where one is.

    Raises ValueError for walls that are no (height, width), without two open cells, or that cut a cell off.
    """

    num_actions = len(MOVES)

    def __init__(self, walls: Bool[Tensor, "H W"]):
        if walls.ndim != 2 or int((~walls).sum()) < 2:
            raise ValueError(f"a maze is (height, width) with two open cells, got {tuple(walls.shape)} walls")
        self.walls, self.cells = walls, (~walls).nonzero()  # cells: (C, 2)
        if (self.distances < 0).any():
            raise ValueError(f"cell {int((self.distances[0] < 0).nonzero()[0, 0])} cannot be reached from cell 0")

    @property
    def state_dim(self) -> int:
        """S = 2 C."""
        return 2 * len(self.cells)

    @cached_property
    def after(self) -> Int[Tensor, "C A"]:
        """The cell that each action leads to."""
        numbers = F.pad(torch.full(self.walls.shape, -1), (1, 1, 1, 1), value=-1)  # a wall around it all
        rows, columns = (self.cells + 1).T
        numbers[rows, columns] = torch.arange(len(self.cells))
        there = self.cells[:, None] + 1 + MOVES  # (C, A, 2)
        reached = numbers[there[..., 0], there[..., 1]]
        return torch.where(reached < 0, torch.arange(len(self.cells))[:, None], reached)

    @cached_property
    def distances(self) -> Int[Tensor, "C C"]:
        """Steps on a shortest way from each cell to each; -1 where there is none."""
        steps = torch.full((len(self.cells), len(self.cells)), -1)
        front = torch.eye(len(self.cells), dtype=torch.bool)  # [i, j]: j is reached from i in so many steps
        for distance in range(len(self.cells)):
            steps[front & (steps < 0)] = distance
            front = front[:, self.after].any(dim=2)  # moves lead back and forth alike
        return steps

    def states(self, cells: Int[Tensor, "N T"], goals: Int[Tensor, " N"]) -> Float[Tensor, "N T S"]:
        """What a policy sees: the cell and the goal, each as a one among zeros."""
        both = torch.stack([cells, goals[:, None].expand_as(cells)], dim=2)
        return F.one_hot(both, len(self.cells)).flatten(2).float()

    def pairs(self, distance: int) -> Int[Tensor, "P 2"]:
        """All (start, goal) so many steps apart. Raises ValueError if there are none."""
        found = (self.distances == distance).nonzero()
        if not len(found) or distance < 1:
            raise ValueError(f"no two cells are {distance} steps apart; the most is {int(self.distances.max())}")
        return found


def carve(side: int, *, loops: int = 0, seed: int = 0) -> Maze:
    """A maze of side x side rooms: a passage to a random neighbour that was not visited, back when there is none.

    The depth-first maze has one way between two rooms; `loops` walls more are opened. Raises ValueError for a side
    below 2, or more loops than walls.
    """
    if side < 2:
        raise ValueError(f"side must be 2 rooms or more, got {side}")
    random = generator("maze", side, loops, seed)
    walls, path = torch.ones(2 * side - 1, 2 * side - 1, dtype=torch.bool), [(0, 0)]
    walls[0, 0] = False
    while path:
        row, column = path[-1]
        around = [(row + 2 * dr, column + 2 * dc) for dr, dc in MOVES.tolist()]
        new = [(r, c) for r, c in around if 0 <= r < len(walls) and 0 <= c < len(walls) and walls[r, c]]
        if not new:
            path.pop()
            continue
        r, c = new[int(torch.randint(len(new), (), generator=random))]
        walls[r, c] = walls[(row + r) // 2, (column + c) // 2] = False
        path.append((r, c))
    rows, columns = torch.meshgrid(torch.arange(len(walls)), torch.arange(len(walls)), indexing="ij")
    closed = (walls & ((rows + columns) % 2 == 1)).nonzero()  # between two rooms
    if not 0 <= loops <= len(closed):
        raise ValueError(f"loops must be 0 to {len(closed)}, the walls between two rooms that are left, got {loops}")
    opened = closed[torch.randperm(len(closed), generator=random)[:loops]]
    walls[opened[:, 0], opened[:, 1]] = False
    return Maze(walls)


def rollout(
    maze: Maze, policy: Policy, pairs: Int[Tensor, "N 2"], *, length: int, greedy: bool = False, seed: int = 0
) -> Walks:
    """The walks of a policy from each start towards each goal, all at once, of at most `length` steps.

    `policy(states, actions, rewards)` sees the t + 1 states up to now and the t actions (ones among zeros) and rewards
    before, and gives the logits of the next action, which is drawn from them, or with `greedy` their argmax.
    Raises ValueError for a length below 1.
    """
    if length < 1:
        raise ValueError(f"length must be 1 step or more, got {length}")
    random, (cell, goals) = generator("rollout", seed), pairs.T
    states = maze.states(cell[:, None].expand(-1, length), goals).clone()
    chosen, rewards = torch.zeros(len(pairs), length, maze.num_actions), torch.zeros(len(pairs), length)
    cells, actions = cell[:, None].repeat(1, length), torch.zeros(len(pairs), length, dtype=torch.long)
    valid = torch.zeros(len(pairs), length, dtype=torch.bool)
    for t in range(length):
        walking = cell != goals
        cells[:, t], valid[:, t], states[:, t] = cell, walking, maze.states(cell[:, None], goals)[:, 0]
        if not walking.any():
            cells[:, t:] = cell[:, None]
            break
        logits = policy(states[:, : t + 1], chosen[:, :t], rewards[:, :t])
        action = logits.argmax(dim=1) if greedy else torch.multinomial(logits.softmax(1), 1, generator=random)[:, 0]
        actions[:, t], rewards[:, t] = action, -walking.float()
        chosen[:, t] = F.one_hot(action, maze.num_actions).float()
        cell = torch.where(walking, maze.after[cell, action], cell)
    return Walks(cells, goals, actions, rewards, valid, cell == goals)


def demonstrate(maze: Maze, kind: str, pairs: Int[Tensor, "N 2"], *, length: int, seed: int = 0) -> Walks:
    """Walks that somebody took: an expert a shortest way, a detour by a random cell first, a wanderer at random.

    A wanderer takes any open way, so that only luck ends the walk. Raises ValueError for another `kind`.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    random = generator("demonstrate", kind, seed)
    towards = torch.randint(len(maze.cells), (len(pairs),), generator=random) if kind == "detour" else pairs[:, 1]

    def policy(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        cell, goal = states[:, -1].unflatten(1, (2, -1)).argmax(dim=2).T
        passed = (states[:, :, : len(maze.cells)].argmax(dim=2) == towards[:, None]).any(dim=1)
        target = torch.where(passed, goal, towards)
        nearer = maze.distances[maze.after[cell], target[:, None]] < maze.distances[cell, target][:, None]
        wanted = maze.after[cell] != cell[:, None] if kind == "wanderer" else nearer
        wanted = wanted | (cell == goal)[:, None]  # at the goal anything, since nothing happens
        return torch.where(wanted, 0.0, -torch.inf)

    return rollout(maze, policy, pairs, length=length, seed=int(torch.randint(2**31, (), generator=random)))


def returns_to_go(rewards: Float[Tensor, "N T"]) -> Float[Tensor, "N T"]:
    """R_t = r_t + r_{t+1} + ...: what is still to be got at each step, Chen et al. 2021, section 3."""
    return rewards.flip(1).cumsum(dim=1).flip(1)


def joined(*parts: Walks) -> Walks:
    """All walks of several parts, of one length, one after the other."""
    return Walks(*(torch.cat(each) for each in zip(*parts, strict=True)))
