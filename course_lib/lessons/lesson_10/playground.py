"""What one plays with in lesson 10: whose taste a model gets is decided by who compares."""

import html
from collections.abc import Iterable

import torch
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Slider, Votes
from course_lib.classroom.widgets.votes import told_apart
from course_lib.lessons.lesson_10 import learner, recipes, taste
from course_lib.models.gpt import GPT
from course_lib.models.reward import RewardModel
from course_lib.viz.style import PALETTE

SHOWN = 5  # words of each end
ENOUGH = 12  # votes


def labeller(model: GPT) -> Explorer:
    """Pairs of sentences to choose from, what a reward model makes of the choices, and what is written for it."""
    answered = taste.Answered.of(model)
    pairs = tuple(answered.pairs)
    friends = {
        "20 votes of a friend of short sentences": taste.voted(pairs, lambda text: -len(text), 20),
        "20 votes of somebody who dislikes “not”": taste.voted(
            pairs, lambda text: -sum(word in ("not", "never", "rarely") for word in text), 20
        ),
    }

    def policy(state, beta: float | None = None) -> taste.Policy:
        weights = taste.learned(state["votes"], pairs)
        return taste.write(answered.choices[state["prompt"]], weights, beta or state["beta"])

    def before(state) -> taste.Policy:
        return taste.write(answered.choices[state["prompt"]], taste.learned("", pairs), 1.0)

    def lately(state) -> list[bool]:
        return taste.foreseen(state["votes"], pairs)[-8:]

    def words(state) -> str:
        count, written = told_apart(state["votes"]), policy(state)
        right = lately(state)
        told = f"Of your last {len(right)} votes it foresaw {sum(right)}. " if right else ""
        return (
            f"{count} votes. {told}The policy has gone {written.kl:.1f} nats away from the language model; its lines: "
            f"{' '.join(' '.join(line) for line in written.lines)}"
        )

    def draw(state) -> str:
        votes, written = state["votes"], policy(state)
        right = lately(state)
        told = f"Of the last {len(right)} votes it foresaw <b>{sum(right)}</b>. " if right else ""
        told += f"KL: <b>{written.kl:.1f}</b> nats."
        columns = [
            ("before", _lines(before(state).lines)),
            (f"written for {told_apart(votes)} votes", _lines(written.lines)),
            ("what the reward model has learned", _weights(votes, pairs)),
        ]
        body = "".join(f'<div><p style="margin:0"><b>{title}</b></p>{text}</div>' for title, text in columns)
        return (
            f"<div>{_question(votes, pairs)}"
            f'<div style="display:flex;flex-wrap:wrap;gap:1em">{body}</div><p style="margin:.3em 0 0">{told}</p></div>'
        )

    return Explorer(
        name="labeller",
        title="You are the labeller",
        controls=[
            Votes(name="votes", label="Better is", most=len(pairs), others=friends),
            Choice(name="prompt", label="prompt", options={prompt: prompt for prompt in taste.PROMPTS}),
            Slider(name="beta", label="beta", low=-2, high=0.5, step=0.1, value=0.2, log=True),
        ],
        draw=draw,
        alt=words,
        speaks=True,
        goals=(
            Goal(f"after {ENOUGH} votes or more of yours: it foresaw 7 of the last 8",
                 lambda state: told_apart(state["votes"]) >= ENOUGH and state["votes"] not in friends.values()
                 and sum(lately(state)) >= 7),
            Goal("all six lines hold one word that at most one of the lines before held",
                 lambda state: bool(state["votes"])
                 and len(set(policy(state).lines)) > 1
                 and taste.shared_word(policy(state).lines, before(state).lines) is not None),
            Goal("a beta so small that six times the same is written",
                 lambda state: bool(state["votes"]) and len(set(policy(state).lines)) == 1),
        ),
        steps={"votes": ("", *friends.values()), "beta": (0.2, 0.01)},
        script="labeller",
        config={
            **_numbered(answered),
            "friends": friends,
            "dice": taste.dice().tolist(),
            "penalty": taste.PENALTY,
            "enough": ENOUGH,
            "shown": SHOWN,
            "start": {"votes": "", "prompt": taste.PROMPTS[0], "beta": 0.2},
        },
    )  # fmt: skip


def _numbered(answered: taste.Answered) -> dict:
    """The words, and all answers by their numbers."""
    words = recipes.words()
    number = {word: index for index, word in enumerate(words)}

    def ids(texts: Iterable[taste.Text]) -> list[list[int]]:
        return [[number[word] for word in text] for text in texts]

    return {
        "words": words,
        "stop": number["."],
        "prompt": recipes.PROMPT,
        "pairs": [ids(pair) for pair in answered.pairs],
        "choices": {prompt: ids(texts) for prompt, texts in answered.choices.items()},
    }


def _question(votes: str, pairs: tuple[tuple[taste.Text, taste.Text], ...]) -> str:
    if len(votes) == len(pairs):
        return "<p>There are no more pairs.</p>"
    both = "".join(
        f'<p style="margin:.1em 0 .1em 1em">{name}: <b>{html.escape(" ".join(text))}</b></p>'
        for name, text in zip(("first", "second"), pairs[len(votes)], strict=True)
    )
    return f'<div style="margin-bottom:.6em"><p style="margin:0">Which is better? ({len(votes) + 1})</p>{both}</div>'


def _lines(lines: list[taste.Text]) -> str:
    return "".join(
        f'<p style="margin:.1em 0;max-width:20em;font-size:.85em">{html.escape(" ".join(line))}</p>' for line in lines
    )


def _weights(votes: str, pairs: tuple[tuple[taste.Text, taste.Text], ...]) -> str:
    if not told_apart(votes):
        return "<p>nothing yet</p>"
    weights = taste.learned(votes, pairs)
    names = ["each four words more", *recipes.words()]
    order = weights.sort(descending=True, stable=True).indices.tolist()
    most = float(weights.abs().max())
    plain = "border:0;padding:0 .4em;font-weight:400;text-align:right;white-space:nowrap"
    rows = ""
    for index in (*order[:SHOWN], *order[-SHOWN:]):
        weight = float(weights[index])
        colour = PALETTE["blue" if weight > 0 else "vermilion"]
        rows += (
            f'<tr style="background:none"><th scope="row" style="{plain}">{html.escape(names[index])}</th>'
            f'<td style="border:0;width:7em;padding:0"><div style="width:{100 * abs(weight) / most:.0f}%;height:.9em;'
            f'background-color:{colour}"></div></td><td style="{plain}">{weight:+.1f}</td></tr>'
        )
    return f'<table style="border-collapse:collapse;margin:0;font-size:inherit"><tbody>{rows}</tbody></table>'


# ------------------------------------------------------------------------------------------ the reward of a token


def paid(model: GPT, reward: RewardModel, kept: learner.Course, free: learner.Course, parts: learner.Parts) -> Explorer:
    """Answers of two policies, token by token: the reward of each, and how much better than expected it was."""
    answers = {"with penalty": learner.paid(model, reward, kept), "without": learner.paid(model, reward, free)}

    def worth(state, which: str | None = None) -> tuple[Tensor, Tensor]:
        answer = answers[which or state["policy"]]
        row, everything = answer.ratios[None], torch.ones(1, len(answer.words), dtype=torch.bool)
        pay = parts.token_rewards(torch.tensor([answer.score]), row, 0 * row, everything, state["beta"])
        return pay[0], parts.gae(pay, answer.values[None], state["trace"])[0]

    def draw(state) -> str:
        answer, (pay, better) = answers[state["policy"]], worth(state)
        rows = {
            "ln π / π_ref": answer.ratios,
            "reward": pay,
            "the critic expected": answer.values,
            "advantage": better,
        }
        head = "".join(f"<th>{html.escape(word)}</th>" for word in ("", *answer.words))
        body = "".join(
            f'<tr><th scope="row" style="text-align:left;white-space:nowrap">{html.escape(name)}</th>'
            + "".join(_cell(value, coloured=name == "advantage") for value in values.tolist())
            + "</tr>"
            for name, values in rows.items()
        )
        sums = ", ".join(f"{name}: <b>{float(worth(state, name)[0].sum()):.1f}</b>" for name in answers)
        return (
            f'<div><div style="overflow-x:auto"><table style="font-size:smaller"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div><p>The score of this answer is {answer.score:.1f}. The sum of the "
            f"rewards, for the answers of the two policies, trained {sums}.</p></div>"
        )

    return Explorer(
        name="paid",
        varies=True,
        title="The reward of each token",
        controls=[
            Choice(name="policy", label="policy trained", options={name: name for name in answers}),
            Slider(name="beta", label="beta", low=-4, high=0, step=0.1, value=0.1, log=True),
            Slider(name="trace", label="lambda", low=0, high=1, step=0.05, value=0.95),
        ],
        draw=draw,
        alt=lambda state: "A table of the answer's tokens: how much likelier each has become, its reward, what "
        "the critic expected before it, and its advantage.",
        speaks=True,
        goals=(
            Goal("a beta at which the word list is worth more than the sentence",
                 lambda state: worth(state, "without")[0].sum() > worth(state, "with penalty")[0].sum()),
            Goal("a lambda at which the score changes the advantage of one token only",
                 lambda state: state["trace"] == 0),
        ),
        steps={"policy": tuple(answers), "beta": (0.1, 0.0001)},
        script="paid",
        config={
            "answers": {
                name: {
                    "words": answer.words,
                    "ratios": answer.ratios.tolist(),
                    "values": answer.values.tolist(),
                    "score": answer.score,
                    "points": course["points"],
                }
                for (name, answer), course in zip(answers.items(), (kept, free), strict=True)
            },
            "most": {
                "kl": max(10.0, *(point["KL"] for course in (kept, free) for point in course["points"])),
                "reward": max(4.0, *(point["reward"] for course in (kept, free) for point in course["points"])),
            },
        },
        answers={"worth": lambda asked: torch.cat([part for name in answers for part in worth(asked, name)]).numpy()},
    )  # fmt: skip


def _cell(value: float, *, coloured: bool) -> str:
    strength = min(1.0, abs(value) / 2)
    tint = ("0,114,178" if value > 0 else "213,94,0") if coloured else "0,0,0"
    style = f"background-color:rgba({tint},{0.55 * strength if coloured else 0:.2f})"
    return f'<td style="text-align:right;{style}">{value:+.1f}</td>'


PLAYGROUNDS = {"labeller": labeller, "rewards": paid}
