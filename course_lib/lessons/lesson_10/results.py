"""Lesson 10, Aligning a language model: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_lib.classroom.output import varies
from course_lib.classroom.results import Result
from course_lib.data.checkpoints import by_seed
from course_lib.lessons.lesson_10 import figures, learner, recipes
from course_lib.models.gpt import GPT
from course_lib.tasks.claims import above, below

LEFT = "text-align:left"
# on the page, by the names that it gives them
TRAINED_HERE = ("1: demonstrations", "3: PPO", "no penalty", "DPO", "checked: both", "checked: number of words")
Card = Mapping[str, Any]


def scores(card: Card, name: str, *keys: str) -> list[dict[str, float]]:
    """Some scores of a variant on held-out prompts, for each seed."""
    return [{key: seed["test"][f"{key}, {name}"] for key in keys} for seed in card["seeds"]]


def curves(card: Card, name: str, parts: int, *keys: str) -> list[list[dict[str, float]]]:
    """What a variant did on its way, for each seed."""
    return [
        [{key: seed["test"][f"{key} after part {part}, {name}"] for key in keys} for part in range(parts + 1)]
        for seed in card["seeds"]
    ]


def steps(*, predicted=None) -> Result:
    return Result(figures.steps())


def sentences(policies: Mapping[str, GPT], *, predicted=None) -> Result:
    rows = ""
    for name, policy in policies.items():
        lines = "".join(f"<div>{learner.painted(text)}</div>" for text in learner.answered(policy))
        lines = varies(lines) if name in TRAINED_HERE else lines
        rows += f'<tr><th scope="row" style="{LEFT}">{html.escape(name)}</th><td style="{LEFT}">{lines}</td></tr>'
    return Result(f"<div><table><tbody>{rows}</tbody></table></div>")


def moved(points: Mapping[str, Mapping[str, float]], *, predicted=None) -> Result:
    named = {
        "true goal": "true goal",
        "kindness": "kindness",
        "grammatical": "grammatical",
        "KL": "KL, nats",
    }
    head = "".join(f"<th>{words}</th>" for words in ("", *named.values()))
    rows = ""
    for name, point in points.items():
        told = [f"{point[key]:.0%}" if key == "grammatical" else f"{point[key]:.1f}" for key in named]
        told = map(varies, told) if name in TRAINED_HERE else told
        cells = "".join(f'<td style="text-align:right">{text}</td>' for text in told)
        rows += f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>{cells}</tr>'
    plain, shown, better = points.values()
    return Result(
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        claims={
            "gains": (
                above(shown["true goal"] - plain["true goal"], 0.5),
                above(better["true goal"] - shown["true goal"], 0.25),
            )
        },
    )


def unpenalised(kept: Mapping[str, Any], free: Mapping[str, Any], *, predicted=None) -> Result:
    ways = {"with penalty": kept["points"], "without": free["points"]}
    held, lost = (points[-1] for points in ways.values())
    return Result(
        figures.climb(ways, learner.EVERY, predicted),
        claims={
            "reward": above(lost["reward"] - held["reward"], -0.1),
            "grammar": above(100 * (held["grammatical"] - lost["grammatical"]), 10),
        },
        came=100 * lost["grammatical"],
        values={"rounds": learner.ROUNDS},
    )


def over(card: Card, *, predicted=None) -> Result:
    parts = recipes.ProxySettings().parts
    ways = {name: curves(card, name, parts, "reward", "true goal", "KL") for name in recipes.PROXIES}
    few, many = ways.values()
    accuracy = {
        key: 100 * float(np.mean(by_seed(card, f"accuracy, {name}")))
        for key, name in zip(("few", "many"), ways, strict=True)
    }
    goals = {
        "start": few[0][0]["true goal"],
        "few_end": float(np.mean([points[-1]["true goal"] for points in few])),
        "many_end": float(np.mean([points[-1]["true goal"] for points in many])),
    }
    return Result(
        figures.over(ways),
        claims={
            "over": all(
                points[-1]["reward"] > max(point["reward"] for point in points) - 0.2
                and points[-1]["true goal"] < points[0]["true goal"] - 0.15
                for points in few
            ),
            "more": all(points[-1]["true goal"] > points[0]["true goal"] + 0.2 for points in many),
        },
        came=2,
        values=accuracy | goals,
    )


def drift(card: Card, *, predicted=None) -> Result:
    settings = recipes.SameBetaSettings()
    gains = [f"gain, {kind}, compared" for kind in ("chosen", "rejected")]
    direct = curves(card, "DPO", settings.parts, "KL", "grammatical", *gains)
    ppo = curves(card, "PPO", settings.parts, "KL")
    best = by_seed(card, "KL of the best policy")
    tokens = {
        key: float(np.mean(by_seed(card, name)))
        for key, name in {
            "chosen": "tokens, chosen after part 0, DPO",
            "rejected": "tokens, rejected after part 0, DPO",
            "sft": "tokens after part 0, DPO",
            "dpo": "tokens after part 4, DPO",
            "ppo": "tokens, PPO at the end",
        }.items()
    }
    ends = {
        "best": float(np.mean(best)),
        "ppo_kl": float(np.mean([points[-1]["KL"] for points in ppo])),
        "dpo_kl": float(np.mean([points[-1]["KL"] for points in direct])),
        "dpo_grammar": 100 * float(np.mean([points[-1]["grammatical"] for points in direct])),
        "chosen_loss": -float(np.mean([points[-1][gains[0]] for points in direct])),
        "rejected_loss": -float(np.mean([points[-1][gains[1]] for points in direct])),
    }
    steps = settings.dpo_steps // settings.parts, 8 * settings.rounds // settings.parts
    return Result(
        figures.drift(direct, ppo, best, steps),
        claims={
            "ends": all(
                abs(near[-1]["KL"] - value) < 1.2 and far[-1]["KL"] > 3 * value
                for near, far, value in zip(ppo, direct, best, strict=True)
            ),
            "chosen": all(points[-1][gains[0]] < -1 for points in direct),
        },
        values=tokens | ends,
    )


def grpo(ways: Mapping[str, Sequence[float]], ends: Mapping[str, Mapping[str, float]], *, predicted=None) -> Result:
    before, careful, careless = ends.values()
    return Result(
        figures.accepted(ways, ends),
        claims={
            "solved": (above(careful["both"], 0.6), below(before["both"], 0.25)),
            "careless": (
                above(careless["eight words"], 0.7),
                below(careless["grammatical"], before["grammatical"] - 0.1),
            ),
        },
    )


def between(point: Mapping[str, float], near: Mapping[str, float], far: Mapping[str, float]) -> float:
    """What PPO would reach at the KL of a point, on the straight line between two of its penalties."""
    share = (point["KL"] - near["KL"]) / (far["KL"] - near["KL"])
    return near["true goal"] + share * (far["true goal"] - near["true goal"])


def direct(card: Card, *, predicted=None) -> Result:
    keys = ("true goal", "kindness", "grammatical", "KL")
    names = {"SFT": "demonstrations only", "PPO, beta 1": "PPO, beta 1", "DPO": "DPO, beta 1", "PPO": "PPO, beta 0.1"}
    found = {name: scores(card, name, *keys) for name in names}
    line = [between(*three) for three in zip(found["DPO"], found["PPO, beta 1"], found["PPO"], strict=True)]
    ahead = [point["true goal"] - by for point, by in zip(found["DPO"], line, strict=True)]
    head = "".join(f"<th>{words}</th>" for words in ("", "KL, nats", "true goal", "three seeds", "grammatical"))
    rows = "".join(_row(words, found[name]) for name, words in names.items())
    rows += (
        '<tr><th scope="row" style="text-align:left">PPO at the KL of DPO, on the line between</th><td></td>'
        f'<td style="text-align:right">{np.mean(line):.1f}</td>'
        f'<td style="text-align:right">{min(line):.1f} to {max(line):.1f}</td><td></td></tr>'
    )
    return Result(
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        claims={"close": max(map(abs, ahead)) < 0.4},
        came=1,
    )


def _row(words: str, seeds: Sequence[Mapping[str, float]]) -> str:
    goal = [seed["true goal"] for seed in seeds]
    cells = (
        f"{np.mean([seed['KL'] for seed in seeds]):.1f}",
        f"{np.mean(goal):.1f}",
        f"{min(goal):.1f} to {max(goal):.1f}",
        f"{np.mean([seed['grammatical'] for seed in seeds]):.0%}",
    )
    columns = "".join(f'<td style="text-align:right">{cell}</td>' for cell in cells)
    return f'<tr><th scope="row" style="text-align:left">{html.escape(words)}</th>{columns}</tr>'


RESULTS = {
    "steps": steps,
    "sentences": sentences,
    "moved": moved,
    "unpenalised": unpenalised,
    "over": over,
    "direct": direct,
    "drift": drift,
    "grpo": grpo,
}
