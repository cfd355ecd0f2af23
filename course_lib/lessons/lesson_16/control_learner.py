"""Lesson 16: demonstrations, windows and trajectories in plain tensors for the learner's agents, and their tests."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure
from torch import Tensor, nn

from course_lib.data import mazes
from course_lib.data.mazes import Policy, Walks
from course_lib.lessons.lesson_16 import control_figures
from course_lib.lessons.lesson_16.recipes import control

SCALE = control.LENGTH  # returns are divided by it, so that they go from -1 to 0
STATES, ACTIONS = control.maze().state_dim, control.maze().num_actions


class Trajectories(NamedTuple):
    """N trajectories of up to T steps in plain tensors; steps behind the end of one are padding."""

    states: Float[Tensor, "N T S"]  # cell and goal, both one-hot
    actions: Int[Tensor, "N T"]
    rewards: Float[Tensor, "N T"]  # -1 for each step
    valid: Bool[Tensor, "N T"]  # False at the padding
    pairs: Float[Tensor, "N T P"]  # state and one-hot action, of an agent at the goal: zeros for the action
    reached: Bool[Tensor, " N"]  # True where the goal is reached


def plain(walks: Walks) -> Trajectories:
    """The same trajectories as plain tensors."""
    states, actions = control.pairs_of(walks)
    pairs = torch.cat([states, actions], dim=2)
    return Trajectories(states, walks.actions, walks.rewards, walks.valid, pairs, walks.reached)


def demonstrations(*, seed: int = 0, best: float = 1.0) -> Trajectories:
    """The 1,600 trajectories of mixed quality, or the fraction of them with the highest returns."""
    return plain(control.best_of(control.demonstrations(seed), best))


def expert_pairs(*, seed: int = 0) -> Float[Tensor, "E P"]:
    """State and action of every step of the best 10 % of the demonstrations, also of those that wait at the goal."""
    return demonstrations(seed=seed, best=control.BEST).pairs.flatten(0, 1)


def windows(valid: Bool[Tensor, "N T"], count: int, steps: int = 2) -> tuple[Int[Tensor, "B K"], Int[Tensor, "B K"]]:
    """The trajectories and the times of random windows of consecutive steps, each beginning at a valid step."""
    begins = valid[:, : valid.shape[1] - steps + 1].nonzero()
    rows, first = begins[torch.randint(len(begins), (count,))].T
    return rows[:, None].expand(-1, steps), first[:, None] + torch.arange(steps)


def conditioned(model: Callable[..., Tensor], asked: float, *, context: int = 2) -> Policy:
    """The policy of a learner's Decision Transformer, asked for a return, that attends to the last steps."""

    def decide(states: Tensor, actions: Tensor, rewards: Tensor) -> Tensor:
        to_go = (asked - F.pad(rewards.cumsum(dim=1), (1, 0))) / SCALE
        times = torch.arange(states.shape[1]).expand(len(states), -1)
        seen = to_go, states, F.pad(actions, (0, 0, 0, 1)), times
        return model(*(each[:, -context:] for each in seen))[:, -1]

    return decide


@torch.no_grad()
def act(policy: Policy, pairs: Int[Tensor, "N 2"], *, greedy: bool = False, seed: int = 0) -> Walks:
    """Trajectories of a policy between these starts and goals."""
    return mazes.rollout(control.maze(), policy, pairs, length=control.LENGTH, greedy=greedy, seed=seed)


def rollout(policy: Callable[[Tensor], Tensor], count: int) -> Trajectories:
    """Trajectories of a policy that maps states to logits, between random starts and goals of the training."""
    pairs = control.pairs()["train"]
    chosen = pairs[torch.randint(len(pairs), (count,))]
    return plain(
        act(lambda states, actions, rewards: policy(states[:, -1]), chosen, seed=int(torch.randint(2**31, ())))
    )


def test_pairs(split: str = "test") -> Int[Tensor, "N 2"]:
    """Starts and goals that training lacks, each several times."""
    return control.pairs()[split].repeat(control.REPEATS, 1)


def success(policy: Callable[[Tensor], Tensor], split: str = "test") -> float:
    """The fraction of the trajectories between held-out starts and goals that arrive."""
    return act(lambda states, actions, rewards: policy(states[:, -1]), test_pairs(split)).reached.double().mean().item()


def trajectory(model: nn.Module, asked: float, *, pair: int = 0) -> Walks:
    """The most probable trajectory of a Decision Transformer, the course's or a learner's, for a held-out pair."""
    policy = control.policy_of(model, asked) if hasattr(model, "act") else conditioned(model, asked)
    return act(policy, control.pairs()["test"][pair : pair + 1], greedy=True)


def mean_return(model: nn.Module, asked: float) -> float:
    """The mean return on held-out pairs of a Decision Transformer, hers or the course's, that is asked for one."""
    policy = control.policy_of(model, asked) if hasattr(model, "act") else conditioned(model, asked)
    return act(policy, test_pairs()).returns.mean().item()


def showing(*, asked: tuple[float, ...] = (-10, -28), pair: int = 4) -> Callable[[nn.Module], Figure]:
    """An example for `page.watch`: the trajectories of a Decision Transformer that is asked for several returns."""

    def example(model: nn.Module) -> Figure:
        training = model.training
        model.eval()
        shown = [(f"asked for {wanted}", trajectory(model, wanted, pair=pair)) for wanted in asked]
        model.train(training)
        return control_figures.training(control.maze(), shown)

    return example
