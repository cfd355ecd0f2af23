"""Lesson 10, Aligning a language model: its results, each with figure, alt text, claims and what it means."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from course_lib.classroom.results import Result
from course_lib.lessons.lesson_10 import figures, recipes, yours
from course_lib.models.gpt import GPT
from course_lib.tasks.claims import above

LEFT = "text-align:left"
Card = Mapping[str, Any]
PPO = {"PPO, beta 1": "beta 1", "PPO": "beta 0.1", "PPO without KL": "no penalty"}


def scores(card: Card, name: str, *keys: str) -> list[dict[str, float]]:
    """Some scores of a contestant on held-out prompts, for each seed."""
    return [{key: seed["test"][f"{key}, {name}"] for key in keys} for seed in card["seeds"]]


def curves(card: Card, name: str) -> list[list[dict[str, float]]]:
    """What PPO did on its way, for each seed."""
    keys = ("reward", "true goal", "KL")
    return [
        [
            {key: seed["test"][f"{key} after part {part}, {name}"] for key in keys}
            for part in range(recipes.SETTINGS.parts + 1)
        ]
        for seed in card["seeds"]
    ]


def steps(*, bet=None) -> Result:
    return Result(
        figures.steps(),
        alt="Three columns. 1, show it: people write good answers, they are learned token by token, that gives the "
        "fine-tuned model. 2, compare: it answers twice, people say which is better, a reward model learns who wins. "
        "3, improve: it answers, the reward model says how good, the policy does more of what is better than expected, "
        "and stays near step 1.",
    )


def sentences(policies: Mapping[str, GPT], *, bet=None) -> Result:
    rows = ""
    for name, policy in policies.items():
        lines = "".join(f"<div>{yours.painted(text)}</div>" for text in yours.answered(policy))
        rows += f'<tr><th scope="row" style="{LEFT}">{html.escape(name)}</th><td style="{LEFT}">{lines}</td></tr>'
    return Result(
        f"<div><table><tbody>{rows}</tbody></table></div>",
        alt="What each model answers to the same three prompts; kind words are underlined, unkind ones dotted, and a "
        "mark says whether it is a sentence of our grammar.",
    )


def moved(points: Mapping[str, Mapping[str, float]], *, bet=None) -> Result:
    named = {
        "true goal": "kind and grammatical",
        "kindness": "kindness",
        "grammatical": "grammatical",
        "KL": "KL, nats",
    }
    head = "".join(f"<th>{words}</th>" for words in ("", *named.values()))
    rows = ""
    for name, point in points.items():
        cells = "".join(
            f'<td style="text-align:right">{f"{point[key]:.0%}" if key == "grammatical" else f"{point[key]:.1f}"}</td>'
            for key in named
        )
        rows += f'<tr><th scope="row" style="text-align:left">{html.escape(name)}</th>{cells}</tr>'
    plain, shown, better = points.values()
    return Result(
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        alt="A table of what is really wanted, a mean over held-out prompts: before about 0, after demonstrations "
        "about 1, after PPO about 2; grammatical sentences a little fewer.",
        claims=(
            ("the demonstrations bring at least half a kind word more, PPO at least another quarter",
             above(shown["true goal"] - plain["true goal"], 0.5),
             above(better["true goal"] - shown["true goal"], 0.25)),
        ),
        outcome="Each step moves what is wanted. PPO goes furthest, with the same model and no new sentence to copy: "
        "it only heard, of its own answers, how kind the reward model found them.",
    )  # fmt: skip


def unpenalised(kept: Mapping[str, Any], free: Mapping[str, Any], *, bet=None) -> Result:
    ways = {"with penalty": kept["points"], "without": free["points"]}
    held, lost = (points[-1] for points in ways.values())
    return Result(
        figures.climb(ways, yours.EVERY, bet),
        alt="Three panels over 36 rounds of PPO. What the reward model says rises quickly in both, and a little higher "
        "without the penalty. What is really wanted rises to about 2 with the penalty; without it, it ends lower. "
        "Grammatical sentences, at the end: over half with the penalty, under half without.",
        claims=(
            ("without the penalty the reward model is as content or more",
             above(lost["reward"] - held["reward"], -0.1)),
            ("and over 10 percentage points fewer of its answers are grammatical",
             above(100 * (held["grammatical"] - lost["grammatical"]), 10)),
        ),
        came=100 * lost["grammatical"],
        outcome="Nobody told the policy to forget grammar. One in eight of the answers that the labellers saw was no "
        "sentence, and no vote ever turned on that: there was nothing to learn. The policy then found word lists that "
        "are kinder than any sentence. With the penalty grammar suffers, too, and comes back part of the way: the "
        "penalty keeps the policy near what was compared.",
    )  # fmt: skip


def over(card: Card, *, bet=None) -> Result:
    ways = {shown: curves(card, name) for name, shown in PPO.items()}
    direct = scores(card, "DPO", "reward", "true goal", "KL")
    free = ways["no penalty"]
    return Result(
        figures.over(ways, direct),
        alt="Two panels over the distance from the fine-tuned model, three seeds. Left: what the reward model says "
        "rises with the distance and never falls. Right: what is really wanted rises up to about 6 nats with a penalty "
        "of 0.1; without one it peaks early and falls to nearly nothing at 50 nats.",
        claims=(
            ("no penalty, each seed: the reward model's score at the end is within 0.1 of its highest",
             all(points[-1]["reward"] > max(point["reward"] for point in points) - 0.1 for points in free)),
            ("but what is really wanted is at most half of its highest",
             all(points[-1]["true goal"] < 0.5 * max(point["true goal"] for point in points) for points in free)),
        ),
        outcome="The reward model is a *proxy*. As far as it is followed gently, both rise; then the proxy goes on "
        "rising, and the goal falls: **over-optimisation**. Gao, Schulman & Hilton (2022) drew such curves, over the "
        "root of the KL, too. There the proxy departs from the judge that labelled its pairs; here it is the judges "
        "who leave something out: their own kindness goes on rising. The curves look alike, the cause differs, and "
        "neither can be seen in the left panel. (The diamonds are DPO; it comes below.)",
    )  # fmt: skip


def comparisons(card: Card, *, bet=None) -> Result:
    seeds = {
        count: [seed["test"][f"accuracy, {count} comparisons"] for seed in card["seeds"]]
        for count in recipes.COMPARISONS
    }
    few, _, many = seeds.values()
    return Result(
        figures.comparisons(seeds, bet),
        alt="How often a reward model agrees with the labellers on new pairs, three seeds: about 74 % after 125 "
        "comparisons, 88 % after 500, 97 % after 2,000.",
        claims=(("in every seed 2,000 comparisons beat 125 by 15 points", min(many) > max(few) + 0.15),),
        came=100 * float(np.mean(many)),
        outcome="Right means here: what they would say without a slip. One comparison in twenty was the wrong way "
        "round, and that did not keep it from 97 %: wrong votes do not agree with one another. Real labellers agree "
        "with each other in about 73 % of the cases only, and the reward model of InstructGPT with them in about 72 % "
        "(Ouyang et al. 2022, sections 3.4 and 4.1).",
    )


def between(point: Mapping[str, float], near: Mapping[str, float], far: Mapping[str, float]) -> float:
    """What PPO would reach at the KL of a point, on the straight line between two of its penalties."""
    share = (point["KL"] - near["KL"]) / (far["KL"] - near["KL"])
    return near["true goal"] + share * (far["true goal"] - near["true goal"])


def direct(card: Card, *, bet=None) -> Result:
    keys = ("true goal", "kindness", "grammatical", "KL")
    names = {"SFT": "demonstrations only", "PPO, beta 1": "PPO, beta 1", "DPO": "DPO, beta 1", "PPO": "PPO, beta 0.1"}
    found = {name: scores(card, name, *keys) for name in names}
    line = [between(*three) for three in zip(found["DPO"], found["PPO, beta 1"], found["PPO"], strict=True)]
    ahead = [point["true goal"] - by for point, by in zip(found["DPO"], line, strict=True)]
    head = "".join(
        f"<th>{words}</th>" for words in ("", "KL, nats", "kind and grammatical", "three seeds", "grammatical")
    )
    rows = "".join(_row(words, found[name]) for name, words in names.items())
    rows += (
        '<tr><th scope="row" style="text-align:left">PPO at the KL of DPO, on the line between</th><td></td>'
        f'<td style="text-align:right">{np.mean(line):.1f}</td>'
        f'<td style="text-align:right">{min(line):.1f} to {max(line):.1f}</td><td></td></tr>'
    )
    return Result(
        f"<div><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        alt="A table of three seeds. DPO reaches about 1.8 at 3 nats, PPO with beta 1 about 1.7 at 2 nats, with beta "
        "0.1 about 2.4 at 6 nats; on the line between them PPO has about 1.9 where DPO is.",
        claims=(("in every seed DPO is within 0.4 of PPO's line at its own KL", max(map(abs, ahead)) < 0.4),),
        came=1,
        outcome="At the same distance both are about as good, by different ways: DPO's answers are kinder, and more of "
        "them break the grammar. DPO needs neither reward model nor critic nor dice while it learns. What it cannot do "
        "is try: it learns from answers that were written before. PPO at 0.1 goes twice as far and *still* gains; DPO "
        "with a smaller beta goes further, to about 9 nats, and loses its grammar (so the card's notes).",
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
    "comparisons": comparisons,
    "direct": direct,
}
