"""Lesson 16, Acting, and seeing with words: what its assignment's check cells ask; the tables are in hidden/16."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from course_lib.tasks import TRAINING_SECONDS, Check, Finding, Task, gradients, keeps_type
from course_lib.tasks.core import ModuleProbe, Probe
from course_lib.tasks.findings import RANDOM, CheckFailed, general
from course_lib.tasks.trained import ELSEWHERE, in_parameters

# a closed road, drawn anew for each training -------------------------------------------------------------------

LAPS, STEPS, LONG = 3, 150, 600
CARS, PUSH = 200, 0.5


def road_shape(generator: Generator) -> Tensor:
    """The four numbers of a road."""
    low, high = torch.tensor([[0.1, 0.0, 0.06, 0.0], [0.2, 6.28, 0.12, 6.28]])
    return low + (high - low) * torch.rand(4, generator=generator)


class Road:
    """A closed road round the origin, whose middle has a distance from the origin that depends on the angle."""

    speed, turn, half_width = 0.05, 0.2, 0.15

    def __init__(self, shape: Tensor):
        self.a, self.b, self.c, self.d = shape.tolist()

    def radius(self, angle: Tensor) -> Tensor:
        return 1 + self.a * torch.cos(2 * angle + self.b) + self.c * torch.cos(3 * angle + self.d)

    def heading(self, angle: Tensor) -> Tensor:
        """The direction of the road, for cars that drive anticlockwise."""
        slope = -2 * self.a * torch.sin(2 * angle + self.b) - 3 * self.c * torch.sin(3 * angle + self.d)
        return angle + math.pi / 2 - torch.atan2(slope, self.radius(angle))

    def start(self, count: int, random: Generator | None) -> Tensor:
        """States (count, 4) near the middle of the road."""
        angle = 2 * math.pi * torch.rand(count, generator=random)
        radius = self.radius(angle) + 0.08 * (torch.rand(count, generator=random) - 0.5)
        heading = self.heading(angle) + 0.4 * (torch.rand(count, generator=random) - 0.5)
        return torch.stack([radius * angle.cos(), radius * angle.sin(), heading.cos(), heading.sin()], dim=1)

    def step(self, states: Tensor, actions: Tensor, push: float = 0.0, random: Generator | None = None) -> Tensor:
        """The next states; actions are 0 (right), 1 (straight on) and 2 (left). A push turns one car in 20."""
        heading = torch.atan2(states[:, 3], states[:, 2]) + self.turn * (actions - 1)
        if push:
            pushed = torch.rand(len(states), generator=random) < 0.05
            heading = heading + pushed * push * (2 * torch.rand(len(states), generator=random) - 1)
        x, y = states[:, 0] + self.speed * heading.cos(), states[:, 1] + self.speed * heading.sin()
        return torch.stack([x, y, heading.cos(), heading.sin()], dim=1)

    def holds(self, states: Tensor) -> Tensor:
        """True for cars that are on the road."""
        angle = torch.atan2(states[:, 1], states[:, 0])
        return (states[:, :2].norm(dim=1) - self.radius(angle)).abs() < self.half_width

    def expert(self, states: Tensor) -> Tensor:
        """What the expert does in these states (N, 4)."""
        angle = torch.atan2(states[:, 1], states[:, 0])
        off = states[:, :2].norm(dim=1) - self.radius(angle)
        error = self.heading(angle + 0.05) + torch.atan(6 * off) - torch.atan2(states[:, 3], states[:, 2])
        error = torch.remainder(error + math.pi, 2 * math.pi) - math.pi
        return 1 + (error > self.turn / 2).long() - (error < -self.turn / 2).long()


@torch.no_grad()
def drive(
    road: Road,
    policy: Callable[[Tensor], Tensor],
    states: Tensor,
    steps: int,
    push: float = 0.0,
    random: Generator | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The states (B, steps, 4) and actions (B, steps) of a policy, and which cars never left the road (B,)."""
    visited, done, safe = [], [], torch.ones(len(states), dtype=torch.bool)
    for _ in range(steps):
        visited.append(states)
        done.append(policy(states))
        states = road.step(states, done[-1], push, random)
        safe = safe & road.holds(states)
    return torch.stack(visited, dim=1), torch.stack(done, dim=1), safe


TOGETHER = Finding(
    "result depends on the other states",
    "The logits of a state change with the other states of its batch.",
    "A batch norm in training mode uses the batch. Return the network in evaluation mode: `model.eval()`.",
)
NOT_LEARNED = Finding(
    "not learned",
    "In the states of the demonstrations, the policy often takes other actions than the expert.",
    "Does the training loss fall until the end? Try another learning rate, more steps, or a wider network.",
)
COMPOUNDING = Finding(
    "compounding errors",
    "In the states of the demonstrations the actions are mostly right, and yet many cars leave the road.",
    "Errors and pushes lead to states that no demonstration has. In which states should you ask the expert?",
)


def chosen(model: ModuleProbe, states: Tensor) -> Tensor:
    """The actions with the largest logits; a CheckFailed if these depend on chance, or on the other states."""
    few, again = (model.tensor(states[:8], shape=(8, 3)) for _ in range(2))
    alone, logits = model.tensor(states[:1], shape=(1, 3)), model.tensor(states, shape=(len(states), 3))
    for one, other, fault in (
        (few, again, general(RANDOM)),
        (few[:1], alone, TOGETHER),
        (few, logits[:8], TOGETHER),
    ):
        if not torch.allclose(one, other, atol=1e-2, rtol=1e-2):
            raise CheckFailed(fault)
    return logits.argmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """How often a trained policy agrees with the demonstrations, and how many cars stay on the road."""

    agrees: float
    safe: dict[int, float]  # after so many steps with pushes


def stays(model: ModuleProbe, road: Road, random: Generator, steps: int) -> float:
    """The fraction of cars that never leave the road, with pushes."""

    def policy(states: Tensor) -> Tensor:
        return model.tensor(states, shape=(len(states), 3)).argmax(dim=1)

    return drive(road, policy, road.start(CARS, random), steps, PUSH, random)[2].float().mean().item()


def _trained(probe: Probe) -> Trained:
    """A CheckFailed if the policy depends on chance or on other states, or knows the road without its parameters."""
    random = probe.draw.generator
    shape = road_shape(random)
    road = Road(shape)
    states, actions, _ = drive(road, road.expert, road.start(LAPS, random), STEPS)
    model = probe.make("train", states, actions, shape)
    agrees = (chosen(model, states.flatten(0, 1)) == actions.flatten()).float().mean().item()
    safe = {steps: stays(model, road, random, steps) for steps in (STEPS, LONG)}
    in_parameters(model, states[0, :8], knows=lambda: stays(model, road, random, 60) > 0.3)
    return Trained(agrees=agrees, safe=safe)


def on_the_road(name: str, points: float, *, above: float, steps: int = STEPS) -> Check:
    """The fraction of cars that never leave the road is above this, with pushes."""

    def run(probe: Probe) -> list[Finding]:
        trained = probe.once("trained", _trained)
        if trained.safe[steps] > above:
            return []
        return [NOT_LEARNED if trained.agrees < 0.7 else COMPOUNDING]

    told = (TOGETHER, NOT_LEARNED, COMPOUNDING)
    return Check(name=name, points=points, run=run, detects=(*(one.misconception for one in told), ELSEWHERE))


# the examples -----------------------------------------------------------------------------------------------

THREE = math.log(3)
EXPERTS = (
    (
        [[math.log(3 / 4), math.log(1 / 4)]],
        [0.0, 1.0],
        [[[math.log(1 / 2), math.log(1 / 2)], [math.log(1 / 4), math.log(3 / 4)]]],
        THREE,
    ),
    [[3 / 8, 5 / 8]],
)
CHUNKS = (([[[[1.0], [2], [7]], [[5], [0], [9]], [[14], [8], [8]]]], math.log(2)), [[[1.0], [3], [6]]])
JOINED = (
    (
        torch.tensor([0, 1, 2, 1]),
        torch.tensor([0, 0, 1, 1]),
        [0.0, -4.0, 2.0, -2.0],
        torch.tensor([1, -1, 1, -1]),
        3,
        2,
        0.5,
        2,
    ),
    [[-1.0, 0.0], [-4.0, -2.0], [0.0, 1.0]],
)
EXPECTILES = (
    (
        torch.tensor([0, 1, 2, 1, 1]),
        torch.tensor([0, 0, 1, 1, 1]),
        [0.0, -4.0, 2.0, -1.0, -3.0],
        torch.tensor([1, -1, 1, -1, -1]),
        3,
        2,
        0.5,
        2 / 3,
        2,
    ),
    [[-1.2, 0.0], [-4.0, -2.0], [0.0, 0.8]],
)
PAIRS = (
    ([[3.0, 4.0]], [[6.0, 8.0], [4.0, -3.0]], torch.tensor([[True, False]]), 2 * THREE, -THREE),
    -2 * math.log(3 / 4),
)
LATE = (
    (
        [[[1.0, 0.0], [2.0, 0.0]], [[0.0, 3.0], [-5.0, 0.0]]],
        [[[-4.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [7.0, 0.0]]],
        torch.tensor([2, 1]),
        2 * THREE,
    ),
    (math.log(10 / 9) + math.log(4) + math.log(28) + math.log(82 / 81)) / 4,
)
CLASSES = (
    (
        [[7.0, 7.0]],
        [[[2.0, 0.0], [0.0, 5.0]], [[3.0, -3.0], [9.0, 9.0]]],
        torch.tensor([2, 1]),
        1 / math.log(4),
    ),
    [[0.8, 0.2]],
)

SHOWN = (
    Task(
        "expert_policy",
        "Acting like an expert",
        asks="return_logits, returns, action_logits, kappa",
        also=(keeps_type,),
        example=(EXPERTS,),
    ),
    Task(
        "temporal_ensemble",
        "A temporal ensemble",
        asks="chunks, m",
        also=(keeps_type,),
        example=(CHUNKS,),
    ),
    Task(
        "stitch",
        "Joining trajectories",
        asks="states, actions, rewards, following, S, A, gamma, sweeps",
        example=(JOINED,),
    ),
    Task(
        "implicit_q",
        "Implicit Q-learning",
        asks="states, actions, rewards, following, S, A, gamma, tau, sweeps",
        example=(EXPECTILES,),
    ),
    Task(
        "sigmoid_loss",
        "A sigmoid for each pair",
        asks="images, texts, matches, scale, bias",
        also=(keeps_type, gradients),
        example=(PAIRS,),
    ),
    Task(
        "late_interaction",
        "Late interaction",
        asks="patches, words, counts, scale",
        also=(keeps_type, gradients),
        example=(LATE,),
    ),
    Task(
        "zero_shot",
        "Classes in several words",
        asks="images, prompts, counts, temperature",
        also=(keeps_type,),
        example=(CLASSES,),
    ),
    Task(
        "train",
        "An agent that may ask",
        asks="states, actions, shape",
        seconds=TRAINING_SECONDS,
        checks=(
            on_the_road("150 steps: above 75 % stay on the road", 8, above=0.75),
            on_the_road("600 steps: above 50 % stay on the road", 8, above=0.5, steps=LONG),
            on_the_road("600 steps: above 85 % stay on the road", 8, above=0.85, steps=LONG),
        ),
    ),
)
ASSIGNMENT = {task.name: task for task in SHOWN}
