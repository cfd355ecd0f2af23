"""Lesson 16: small experiments that are run on the page: compounding errors, stitching, and a gamble."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.data import mazes
from course_lib.data.draws import generator
from course_lib.data.mazes import Maze, Walks
from course_lib.lessons.lesson_16.recipes import control
from course_lib.lessons.lesson_16.recipes.control import CloningSettings
from course_lib.models.decision_transformer import DecisionTransformer, DecisionTransformerConfig
from course_lib.training.loop import FitConfig, fit
from course_lib.training.progress import Silent
from course_lib.training.seeding import seeded

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # of logits, actions and which of them are valid
SEEDS = (0, 1, 2)

# --------------------------------------------------------------------------------------------- compounding errors

ROOMS, OPENED, SLIP, HORIZON = 8, 30, 0.2, 80  # rooms a side, opened walls, probability of a random move, most steps
ROUNDS, COLLECTED, TRIALS = 10, 3, 400  # of DAgger; trajectories that it collects in each; trajectories of a test


class Course(NamedTuple):
    """One start and one goal in an open maze whose floor is slippery; tables have a row for each cell."""

    maze: Maze
    start: int
    goal: int
    expert: Int[Tensor, " C"]  # the expert's action in each cell
    shortest: Bool[Tensor, "C A"]  # which actions lie on a shortest path


class Agent(NamedTuple):
    """A policy that was trained on some of the expert's labels, and its measurements in tests."""

    labels: int  # pairs of state and expert action
    reached: float  # fraction of the test trajectories that arrive
    on_expert: float  # probability of an action off the shortest paths, at the expert's states
    on_own: float  # likewise, at the states of its own trajectories
    wrong: Float[Tensor, " T"]  # likewise, at each step of its own trajectories
    unseen: Float[Tensor, " T"]  # fraction of the agents, at each step, in a cell without a label of the expert


@lru_cache(maxsize=1)
def course() -> Course:
    """The two cells of the maze with the longest way between them."""
    maze = mazes.carve(ROOMS, loops=OPENED)
    start, goal = divmod(int(maze.distances.argmax()), len(maze.cells))
    after = maze.distances[maze.after, goal]  # (C, A)
    return Course(maze, start, goal, after.argmin(dim=1), after == after.min(dim=1, keepdim=True).values)


def visits(probs: Float[Tensor, "C A"], count: int, random: torch.Generator) -> Int[Tensor, "N T"]:
    """The cell at each step of so many trajectories, -1 after the end, where moves go astray with probability SLIP."""
    its, found = course(), torch.full((count, HORIZON + 1), -1)
    moves, cells = (1 - SLIP) * probs + SLIP / probs.shape[1], torch.full((count,), its.start)
    for t in range(HORIZON + 1):
        acting = cells != its.goal
        found[acting, t] = cells[acting]
        actions = torch.multinomial(moves[cells], 1, generator=random)[:, 0]
        cells = torch.where(acting, its.maze.after[cells, actions], cells)
    return found


def labelled(cells: Int[Tensor, " N"]) -> tuple[Float[Tensor, "N C"], Int[Tensor, " N"]]:
    """The cells as one-hot states, with the expert's actions."""
    return F.one_hot(cells, len(course().maze.cells)).float(), course().expert[cells]


def cloned(
    states: Float[Tensor, "N C"], actions: Int[Tensor, " N"], seed: int, loss: Loss, *, steps: int = 150
) -> Float[Tensor, "C A"]:
    """The action probabilities of an MLP that was trained on these states and actions, with the learner's loss."""
    random, eye = generator("cloned", seed), torch.eye(states.shape[1])
    valid = torch.ones(1, 64, dtype=torch.bool)
    with seeded(seed):
        model = nn.Sequential(control.relu_layers(len(eye), 64, 64), nn.Linear(64, Maze.num_actions))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        some = torch.randint(len(states), (64,), generator=random)
        error = loss(model(states[some])[None], actions[some][None], valid)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    with torch.no_grad():
        return model(eye).softmax(dim=1)


def expert_table() -> Float[Tensor, "C A"]:
    """The expert as a policy."""
    return F.one_hot(course().expert, Maze.num_actions).float()


def tested(probs: Float[Tensor, "C A"], cells: Int[Tensor, " N"]) -> Agent:
    """The measurements of a policy that was trained on the expert's labels in these cells."""
    own = visits(probs, TRIALS, generator("tested"))
    theirs = visits(expert_table(), TRIALS, generator("expert tested"))
    error = 1 - (probs * course().shortest).sum(dim=1)
    new = torch.ones(len(probs), dtype=torch.bool)
    new[cells] = False
    acting = own >= 0
    count = acting.sum(dim=0).clamp_min(1)
    return Agent(
        labels=len(cells),
        reached=(own[:, -1] < 0).double().mean().item(),
        on_expert=error[theirs[theirs >= 0]].mean().item(),
        on_own=error[own[acting]].mean().item(),
        wrong=(error[own] * acting).sum(dim=0) / count,
        unseen=(new[own] & acting).sum(dim=0) / count,
    )


def behaviour_cloning(seed: int, labels: Sequence[int], loss: Loss) -> list[Agent]:
    """Clones of the expert's first trajectories, with so many labels."""
    cells = visits(expert_table(), 4 * ROUNDS, generator("expert", seed))
    cells = cells[cells >= 0]
    return [tested(cloned(*labelled(cells[:count]), seed, loss), cells[:count]) for count in labels]


def two_paths(seed: int, loss: Loss) -> list[list[int]]:
    """The cells of a trajectory of the expert, and of a clone of it that does not arrive."""
    cells = visits(expert_table(), 4 * ROUNDS, generator("expert", seed))
    clone = visits(cloned(*labelled(cells[cells >= 0][:300]), seed, loss), TRIALS, generator("tested"))
    failed = clone[clone[:, -1] >= 0]
    return [[*cells[0][cells[0] >= 0].tolist(), course().goal], failed[0].tolist()]


def dataset_aggregation(seed: int, loss: Loss, dagger: Callable[..., tuple[Tensor, Tensor]]) -> list[Agent]:
    """After one trajectory of the expert, the learner's `dagger` adds as many labels, in cells where the agent was.

    Ross, Gordon & Bagnell, "A reduction of imitation learning and structured prediction to no-regret online learning",
    AISTATS 2011, arXiv 1011.0686, algorithm 3.1, with beta = 0 after the first round.
    """
    random, its = generator("dagger", seed), course()
    cells = visits(expert_table(), 4 * ROUNDS, generator("expert", seed))[0]
    states, actions = labelled(cells[cells >= 0])
    count, found = len(states), []
    for _ in range(ROUNDS):
        probs = cloned(states, actions, seed, loss)
        found.append(tested(probs, states.argmax(dim=1)))
        own = visits(probs, COLLECTED, random)
        own = own[own >= 0]
        visited = own[torch.randperm(len(own), generator=random)[:count]]
        taken = probs[visited].argmax(dim=1)
        states, actions = dagger(states, actions, labelled(visited)[0], taken, lambda x: its.expert[x.argmax(dim=1)])
    return found


# --------------------------------------------------------------------------------------------- stitching

PLAN = (  # A start, B between, C goal, D dead end, E another start
    "A...B...C",
    ".###.###.",
    ".#D...E#.",
    ".#######.",
    ".........",
)
COPIES, MISTAKES = 60, 0.05  # trajectories of each kind; probability of a random action in them
WISHES = tuple(range(0, -41, -2))
PLANNERS = {  # methods that are conditioned on the return
    "Decision Transformer": CloningSettings(
        model="transformer", returns=True, dim=32, depth=1, steps=600, batch_size=64
    ),
    "return-conditioned MLP": CloningSettings(
        model="window mlp", returns=True, hidden_dim=64, steps=600, batch_size=64, learning_rate=5e-3
    ),
}


class Stitching(NamedTuple):
    """The maze of PLAN, its letters' cells, and COPIES trajectories of each kind, with one goal for all."""

    maze: Maze
    letters: dict[str, int]
    kinds: dict[str, Walks]

    @property
    def data(self) -> Walks:
        """All trajectories."""
        return mazes.joined(*self.kinds.values())


@lru_cache(maxsize=3)
def pieces(seed: int) -> Stitching:
    """No trajectory goes from A by B to C."""
    maze = Maze(torch.tensor([[cell == "#" for cell in row] for row in PLAN]))
    numbers = {tuple(cell): number for number, cell in enumerate(maze.cells.tolist())}
    letters = {
        letter: numbers[row, column]
        for row, line in enumerate(PLAN)
        for column, letter in enumerate(line)
        if letter.isalpha()
    }
    corner = numbers[len(PLAN) - 1, len(PLAN[0]) // 2]  # halfway along the bottom
    routes = {"A, B, D": ("A", letters["B"], letters["D"]), "E, B, C": ("E", letters["B"], letters["C"])}
    routes["A, long way, C"] = ("A", corner, letters["C"])
    return Stitching(
        maze,
        letters,
        {name: follow(maze, letters[first], stops, letters["C"], seed) for name, (first, *stops) in routes.items()},
    )


def follow(maze: Maze, start: int, stops: Sequence[int], goal: int, seed: int) -> Walks:
    """Trajectories past these cells, with some mistakes; whoever is at the last one stays there."""
    random = generator("follow", seed, start, *stops)

    def policy(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        passed = states[..., : len(maze.cells)].argmax(dim=2)  # (N, t)
        target = torch.full((len(states),), stops[-1])
        for stop in reversed(stops[:-1]):
            target = torch.where((passed == stop).any(dim=1), target, torch.full_like(target, stop))
        nearest = maze.distances[maze.after[passed[:, -1]], target[:, None]].argmin(dim=1)
        return ((1 - MISTAKES) * F.one_hot(nearest, Maze.num_actions) + MISTAKES / Maze.num_actions).log()

    pairs = torch.tensor([start, goal]).expand(COPIES, 2)
    return mazes.rollout(
        maze, policy, pairs, length=control.LENGTH, seed=int(torch.randint(2**31, (), generator=random))
    )


def q_iteration(data: Walks, cells: int, goal: int) -> Float[Tensor, "C A"]:
    """Q(s, a) = r + max Q(s', .) over the actions that the data have in s', repeated until nothing changes."""
    after = torch.cat([data.cells[:, 1:], torch.full_like(data.cells[:, :1], -1)], dim=1)
    known = data.valid & (after >= 0)
    s, a, following = data.cells[known], data.actions[known], after[known]
    q = torch.full((cells, Maze.num_actions), -torch.inf)
    q[s, a] = -1.0 * control.LENGTH  # no better is known yet
    for _ in range(control.LENGTH):
        value = q.max(dim=1).values
        value[goal] = 0.0
        q[s, a] = (-1.0 + value[following]).clamp_min(-control.LENGTH)
    return q


def conditioned(settings: CloningSettings, seed: int) -> dict[int, float]:
    """The return of a trained model's most probable actions from A, for each return asked for."""
    its = pieces(seed)
    settings = replace(settings, seed=seed)
    model = control.build(settings, its.maze)
    config = FitConfig(
        steps=settings.steps,
        learning_rate=settings.learning_rate,
        schedule="cosine",
        warmup=settings.steps // 10,
        weight_decay=settings.weight_decay,
        seed=seed,
    )
    batch_at = control.windows_at(its.data, settings, world=its.maze)
    fit(model, batch_at, control.cloning_loss, config=config, progress=Silent())
    model.eval()
    pairs = torch.tensor([[its.letters["A"], its.letters["C"]]])
    return {
        asked: mazes.rollout(
            its.maze, control.policy_of(model, asked), pairs, length=control.LENGTH, greedy=True
        ).returns.item()
        for asked in WISHES
    }


def planned(seed: int) -> Walks:
    """The trajectory from A that is greedy for the Q-values."""
    its = pieces(seed)
    q = q_iteration(its.data, len(its.maze.cells), its.letters["C"])

    def policy(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        return q[states[:, -1, : len(its.maze.cells)].argmax(dim=1)]

    pairs = torch.tensor([[its.letters["A"], its.letters["C"]]])
    return mazes.rollout(its.maze, policy, pairs, length=control.LENGTH, greedy=True)


# --------------------------------------------------------------------------------------------- a gamble

SAFE, PRIZE, CHANCE = 5.0, 10.0, 0.3  # the return of the safe action; that of a gamble that is won, and how often it is
EPISODES, SCALE = 2000, 10.0  # of a random policy; returns are divided by SCALE


def episodes(seed: int) -> tuple[Int[Tensor, " N"], Float[Tensor, " N"]]:
    """Actions of a random policy, 0 safe and 1 the gamble, and their returns."""
    random = generator("gamble", seed)
    actions = torch.randint(2, (EPISODES,), generator=random)
    won = torch.rand(EPISODES, generator=random) < CHANCE
    return actions, torch.where(actions == 0, SAFE, torch.where(won, PRIZE, 0.0))


def gambler(seed: int, *, steps: int = 200) -> Callable[[Float[Tensor, " W"]], Float[Tensor, " W"]]:
    """A Decision Transformer of one step, as a function from returns asked for to the probability of the gamble."""
    sizes = {"state_dim": 1, "action_dim": 2, "context_steps": 1, "max_steps": 1}
    with seeded(seed):
        model = DecisionTransformer(
            DecisionTransformerConfig(**sizes, tanh=False, dim=16, depth=1, num_heads=1, dropout=0.0)
        )
    actions, returns = episodes(seed)
    random = generator("gambler", seed)

    def logits(asked: Float[Tensor, " W"]) -> Float[Tensor, "W 2"]:
        alike = torch.zeros(len(asked), 1, 2)
        return model(asked[:, None] / SCALE, alike[..., :1], alike)[:, 0]

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        some = torch.randint(EPISODES, (128,), generator=random)
        loss = F.cross_entropy(logits(returns[some]), actions[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    return lambda asked: logits(asked).softmax(dim=1)[:, 1].detach()


def expected_return(probs: Float[Tensor, "*W"]) -> Float[Tensor, "*W"]:
    """The expected return of a policy that takes the gamble with these probabilities."""
    return probs * CHANCE * PRIZE + (1 - probs) * SAFE


def posterior(asked: float) -> float:
    """p(gamble | return) of the random policy's episodes, by Bayes' rule."""
    gamble = {PRIZE: CHANCE, 0.0: 1 - CHANCE}.get(asked, 0.0)
    safe = float(asked == SAFE)
    return gamble / (gamble + safe)
