"""Lesson 16, acting: its results, each with figure, alt text, claims and what it means."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import nn

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.lessons.lesson_16 import control_experiments as experiments
from course_lib.lessons.lesson_16 import control_figures as figures
from course_lib.lessons.lesson_16 import control_learner as learner
from course_lib.lessons.lesson_16.recipes import control
from course_lib.tasks.claims import above, below

Card = Mapping[str, Any]
PAIR = 4  # the held-out pair whose trajectories are drawn
METHODS = (control.SHIPPED, control.RETURN_MLP)  # conditioned on the return
VARIANTS = tuple(control.VARIANTS)


def opening(model: nn.Module, *, predicted=None) -> Result:
    """`model` is a Decision Transformer, that of `mazes` or one of the learner's class that opened it."""
    shown = {f"asked for {asked}": learner.trajectory(model, asked, pair=PAIR) for asked in (-10, -22, -34)}
    got = [learner.mean_return(model, wanted) for wanted in control.ASKED]
    return Result(
        figures.opening(control.maze(), shown, control.ASKED, got),
        came=got[-1],
        values={"best": got[0], "worst": got[-1]},
    )


def compounding(loss: experiments.Loss, dagger: Callable[..., tuple], *, predicted=None) -> Result:
    """`loss` and `dagger` are the learner's."""
    aggregated = [experiments.dataset_aggregation(seed, loss, dagger) for seed in experiments.SEEDS]
    counts = [[agent.labels for agent in agents] for agents in aggregated]
    some = [0, 3, 6, experiments.ROUNDS - 1]
    cloned = [
        experiments.behaviour_cloning(seed, [labels[at] for at in some], loss)
        for seed, labels in zip(experiments.SEEDS, counts, strict=True)
    ]
    last = {
        "behaviour cloning": [agents[-1] for agents in cloned],
        "DAgger": [agents[-1] for agents in aggregated],
    }
    shown = experiments.HORIZON // 2 + 1  # later, few are still on their way
    curves = {
        title: {name: np.stack([getattr(agent, part)[:shown] for agent in agents]) for name, agents in last.items()}
        for title, part in (("Off the shortest paths, %", "wrong"), ("In a state without label, %", "unseen"))
    }
    labels = np.mean(counts, axis=0)
    success = {
        "behaviour cloning": (labels[some], np.array([[agent.reached for agent in agents] for agents in cloned])),
        "DAgger": (labels, np.array([[agent.reached for agent in agents] for agents in aggregated])),
    }
    its, means = experiments.course(), {name: fmean(agent.reached for agent in agents) for name, agents in last.items()}
    clone = last["behaviour cloning"]
    return Result(
        figures.compounding(its.maze, experiments.two_paths(0, loss), its.goal, curves, success, predicted),
        claims={
            "shift": min(agent.on_own / agent.on_expert for agent in clone) > 4,
            "DAgger": min(agent.reached for agent in last["DAgger"]) > max(agent.reached for agent in clone),
        },
        came=100 * means["DAgger"],
        values={
            "expert": 100 * fmean(agent.on_expert for agent in clone),
            "own": 100 * fmean(agent.on_own for agent in clone),
            "cloned": 100 * means["behaviour cloning"],
            "dagger": 100 * means["DAgger"],
            "first": 100 * fmean(agents[0].reached for agents in cloned),
            "labels": labels[-1],
            "few": labels[0],
            "unseen": 100 * curves["In a state without label, %"]["behaviour cloning"][:, -1].mean(),
        },
    )


def agents(card: Card, *, predicted=None) -> Result:
    reached, returns = (
        {name: by_seed(card, f"{score}, {name}") for name in VARIANTS} for score in ("reaches the goal", "return")
    )
    transformer, mlp = (reached[name] for name in METHODS)
    others = [value for name, values in reached.items() if name not in METHODS for value in values]
    greedy = (
        fmean(by_seed(card, f"reaches the goal, greedy, {name}")) for name in (*METHODS, "Transformer without returns")
    )
    return Result(
        figures.agents(reached, returns, predicted),
        claims={"conditioned": min(transformer + mlp) > max(others)},
        came=100 * fmean(mlp),
        values={
            "transformer": 100 * fmean(transformer),
            "mlp": 100 * fmean(mlp),
            "without": 100 * fmean(reached["Transformer without returns"]),
            "cloning": 100 * fmean(reached["behaviour cloning"]),
            "best_cloning": 100 * fmean(reached["behaviour cloning, best 10 %"]),
            "best_transformer": 100 * fmean(reached["Transformer without returns, best 10 %"]),
            "gail": 100 * fmean(reached["GAIL"]),
            **{
                f"{name}_greedy": 100 * value
                for name, value in zip(("transformer", "mlp", "without"), greedy, strict=True)
            },
            "transformer_low": 100 * min(transformer),
            "transformer_high": 100 * max(transformer),
            "mlp_low": 100 * min(mlp),
            "mlp_high": 100 * max(mlp),
            "transformer_seconds": fmean(by_seed(card, f"CPU seconds, {METHODS[0]}")),
            "mlp_seconds": fmean(by_seed(card, f"CPU seconds, {METHODS[1]}")),
        },
    )


def stitching(*, predicted=None) -> Result:
    its = experiments.pieces(0)
    got = {
        name: [list(experiments.conditioned(settings, seed).values()) for seed in experiments.SEEDS]
        for name, settings in experiments.PLANNERS.items()
    }
    planned = [experiments.planned(seed).returns.item() for seed in experiments.SEEDS]
    best = -float(its.maze.distances[its.letters["A"], its.letters["C"]])
    seen = its.kinds["A, long way, C"].returns.max().item()
    at_best = [row[experiments.WISHES.index(int(best))] for rows in got.values() for row in rows]
    beyond = [max(row[: experiments.WISHES.index(int(best))]) for rows in got.values() for row in rows]
    return Result(
        figures.stitching(
            its.maze, its.letters, its.kinds, experiments.planned(0), experiments.WISHES, got, best, seen
        ),
        claims={"stitches": min(planned) == best and max(at_best) <= seen},
        came=fmean(at_best),
        values={
            "best": best,
            "seen": seen,
            "at_best": fmean(at_best),
            "beyond": sum(value > seen for value in beyond),
            "models": len(beyond),
        },
    )


def stochastic(*, predicted=None) -> Result:
    safe, prize, chance = experiments.SAFE, experiments.PRIZE, experiments.CHANCE
    wanted = torch.linspace(0, prize, 41)
    chosen = torch.stack([experiments.gambler(seed)(wanted) for seed in experiments.SEEDS])
    expected = experiments.expected_return(chosen)
    at = {value: int((wanted == value).nonzero()) for value in (safe, prize)}
    return Result(
        figures.stochastic(
            {"safe": [(1.0, safe)], "gamble": [(chance, prize), (1 - chance, 0.0)]},
            wanted,
            chosen,
            {value: experiments.posterior(value) for value in (0.0, safe, prize)},
            expected,
            {"safe": safe, "gamble": chance * prize},
            predicted,
        ),
        claims={"gamble": (above(chosen[:, at[prize]].min(), 0.95), below(expected[:, at[prize]].max(), safe - 1))},
        came=expected[:, at[prize]].mean().item(),
        values={
            "prize": prize,
            "safe": safe,
            "chance": 100 * chance,
            "gambles": 100 * chosen[:, at[prize]].mean().item(),
            "got": expected[:, at[prize]].mean().item(),
            "got_safe": expected[:, at[safe]].mean().item(),
        },
    )


def gail(log: Sequence[tuple[int, float, float]], *, predicted=None) -> Result:
    """`log` has the round, the discriminator's accuracy and the policy's success, as often as they were measured."""
    rounds, accuracy, success = zip(*log, strict=True)
    return Result(
        figures.gail(rounds, accuracy, success),
        claims={"success": above(success[-1] - success[0], 0.2)},
        came=100 * success[-1],
        values={
            "first": varies(f"{100 * success[0]:.0f}"),
            "last": varies(f"{100 * success[-1]:.0f}"),
            "highest": varies(f"{100 * max(accuracy):.0f}"),
            "end": varies(f"{100 * accuracy[-1]:.0f}"),
        },
    )


RESULTS = {function.__name__: function for function in (opening, compounding, agents, stitching, stochastic, gail)}
