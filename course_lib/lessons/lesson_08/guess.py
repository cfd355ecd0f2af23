"""Guess the next character of a text that nobody has read, against an n-gram, an LSTM and a GPT.

Shannon, "Prediction and entropy of printed English", Bell System Technical Journal 30, 1951, had people guess so.
"""

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.widgets import Explorer, Goal, Keys, token_bars
from course_lib.classroom.widgets.explorer import State
from course_lib.classroom.widgets.keys import Rounds
from course_lib.data.checkpoints import load_trained
from course_lib.data.prose import prose_splits
from course_lib.models.gpt import GPT
from course_lib.models.kneser_ney import KneserNey
from course_lib.models.recurrent import CharacterLM
from course_lib.training.language_models import fitted_n_gram, tokenized_prose
from course_lib.viz.style import PALETTE

Chances = Callable[[str, int], Float[Tensor, "T V"]]  # of a text's characters from one place on, given those before

SHOWN, HIDDEN = 64, 40  # characters, of which the first few are given: up to the end of a word
ORDER = 5  # of the n-gram
BARS = 4
OPENINGS = (  # of paragraphs of the test split, that no model has seen
    "The Bartlett window is very similar",
    "The context manager returns the starting",
    "A graph is Eulerian",
    "This option can impact the convergence",
    "It seems possible to have a disconnected graph",
    "If two or more arbitrary constants",
    "Loop through this logger",
    "Computes the LU factorization of a matrix or batches",
)


@dataclass(frozen=True)
class Passage:
    """What may be read, and what is to be guessed."""

    given: str
    hidden: str

    def begins_word(self, position: int) -> bool:
        """Whether a word begins at this place of the hidden part."""
        before = (self.given + self.hidden)[len(self.given) + position - 1]
        return self.hidden[position].isalnum() and not before.isalnum()


def passages() -> list[Passage]:
    """The paragraphs of `OPENINGS`; raises ValueError if the test split lacks one."""
    paragraphs = prose_splits().text("test").split("\n")
    found = []
    for opening in OPENINGS:
        text = next((paragraph for paragraph in paragraphs if paragraph.startswith(opening)), None)
        if text is None:
            raise ValueError(f"No paragraph of the test split begins with {opening!r}.")
        cut = text.rfind(" ", 0, SHOWN) + 1
        found.append(Passage(text[:cut], text[cut : cut + HIDDEN]))
    return found


# --------------------------------------------------------------------------------------------------- the players


def characters(text: str) -> list[int]:
    return tokenized_prose().tokenizer.encode(text)


def by_network(model: CharacterLM | GPT) -> Chances:
    """A network of characters; a GPT sees no more than its window."""
    window = model.config.context_length if isinstance(model, GPT) else None

    @torch.no_grad()
    def chances(text: str, first: int) -> Tensor:
        ids = torch.tensor(characters("\n" + text))  # a paragraph begins behind a line feed
        if window is None:
            return model(ids[None, :-1])[0, first:].softmax(dim=-1)
        seen = [ids[max(0, position + 1 - window) : position + 1] for position in range(first, len(text))]
        return torch.stack([model(part[None])[0, -1] for part in seen]).softmax(dim=-1)

    return chances


def by_counts(model: KneserNey) -> Chances:
    """An n-gram of characters."""

    def chances(text: str, first: int) -> Tensor:
        ids = characters(text)
        rows = [torch.from_numpy(model.next_probs(ids[:position])) for position in range(first, len(text))]
        return torch.stack(rows).float()

    return chances


def shipped() -> dict[str, Chances]:
    """Counts of the training text, and the two networks that the course comes with."""
    return {
        f"{ORDER}-gram": by_counts(fitted_n_gram(ORDER)),
        "LSTM": by_network(load_trained("lstm_characters").model),
        "GPT": by_network(load_trained("gpt_characters").model),
    }


# ------------------------------------------------------------------------------------------------------ the game


@dataclass(frozen=True)
class Turn:
    """One character: what it was, what the learner typed, and each model's chances of every character."""

    truth: str
    typed: str
    begins_word: bool
    chances: Mapping[str, Float[Tensor, " V"]]

    @property
    def right(self) -> bool:
        return self.typed == self.truth

    def guess(self, player: str) -> str:
        """The most probable character of a model."""
        return tokenized_prose().tokenizer.id_to_token(int(self.chances[player].argmax()))

    def bits(self, player: str) -> float:
        """What this character costs a model: -log2 of the chance that it gave it."""
        return -float(self.chances[player][characters(self.truth)[0]].log2())

    def is_right(self, player: str) -> bool:
        return self.guess(player) == self.truth


@dataclass
class Game:
    """Passages and players; what the models think of a passage is computed when it is first played."""

    players: Mapping[str, Chances]
    passages: list[Passage] = field(default_factory=passages)

    def __post_init__(self) -> None:
        self.chances = cache(self._chances)

    def _chances(self, number: int) -> dict[str, Tensor]:
        passage = self.passages[number]
        text, first = passage.given + passage.hidden, len(passage.given)
        return {name: player(text, first) for name, player in self.players.items()}

    def on_page(self, number: int) -> dict[str, Any]:
        """A passage for the page: of each player and character the most probable ones, and the true one's chance."""
        passage, vocabulary = self.passages[number], tokenized_prose().tokenizer
        truths = characters(passage.hidden)

        def seen(row: Float[Tensor, " V"], truth: int) -> list[Any]:
            likely = row.topk(BARS)
            named = [
                [vocabulary.id_to_token(i), round(p, 4)]
                for i, p in zip(likely.indices.tolist(), likely.values.tolist(), strict=True)
            ]
            return [named, float(f"{row[truth]:.4g}")]

        return {
            "given": passage.given,
            "hidden": list(passage.hidden),
            "begins": [passage.begins_word(position) for position in range(len(passage.hidden))],
            "chances": [
                [seen(row, truth) for row, truth in zip(chances, truths, strict=True)]
                for chances in self.chances(number).values()
            ],
        }

    def passage(self, rounds: Rounds) -> Passage:
        """The one that is being played."""
        return self.passages[(len(rounds) - 1) % len(self.passages)]

    def turns(self, rounds: Rounds) -> list[Turn]:
        """All that was played so far."""
        found = []
        for number, typed in enumerate(rounds):
            number %= len(self.passages)
            passage = self.passages[number]
            for position, letter in enumerate(typed[: len(passage.hidden)]):
                rows = {name: chances[position] for name, chances in self.chances(number).items()} if typed else {}
                found.append(Turn(passage.hidden[position], letter, passage.begins_word(position), rows))
        return found

    def answer(self, rounds: Rounds) -> str:
        """What came of the latest character, in a line."""
        if not rounds[-1]:
            return "Type the character that comes next; a blank counts, too."
        turn = self.turns(rounds)[-1]
        models = ", ".join(f"{name} {'✓' if turn.is_right(name) else '✗'}" for name in turn.chances)
        over = " This text is done: take another one." if len(rounds[-1]) >= len(self.passage(rounds).hidden) else ""
        truth, typed = _named(turn.truth), _named(turn.typed)
        verdict = f"✓ Yes, “{truth}”" if turn.right else f"✗ Not “{typed}” but “{truth}”"
        return f"{verdict}. {models}.{over}"


def guess(players: Mapping[str, Chances] | None = None) -> Explorer:
    """A hidden text to guess character by character, against the shipped models or other `players`."""
    game = Game(shipped() if players is None else players)

    def goal(text: str, reached: Callable[[list[Turn]], bool]) -> Goal:
        return Goal(text, lambda state: reached(game.turns(state["typed"])))

    hidden = game.passages[0].hidden
    return Explorer(
        name="guess",
        title="Guess the next character, against three models",
        controls=[Keys(name="typed", label="Next character", most=HIDDEN, again="Another text", answer=game.answer)],
        draw=lambda state: _html(game, state),
        alt=lambda state: _in_words(game, state),
        speaks=True,
        goals=(
            goal("the first letter of a word, guessed by you", lambda turns: any(map(opens_a_word, turns))),
            goal("a character that you know and all three models miss", lambda turns: any(map(only_you, turns))),
            goal("after 20 characters or more: ahead of a model", is_ahead),
        ),
        steps={"typed": (("",), (hidden[:6],), (hidden[:7] + "s" + hidden[8:20],))},
        script="guess",
        config={"players": list(game.players), "passages": [game.on_page(n) for n in range(len(game.passages))]},
    )


def opens_a_word(turn: Turn) -> bool:
    """Whether the learner knew how a word begins, where no letter of it helps."""
    return turn.right and turn.begins_word


def only_you(turn: Turn) -> bool:
    """Whether the learner was right where every model was wrong."""
    return turn.right and not any(map(turn.is_right, turn.chances))


def is_ahead(turns: list[Turn]) -> bool:
    """Whether the learner has more right than one of the models, after 20 characters at least."""
    if len(turns) < 20:
        return False
    yours = sum(turn.right for turn in turns)
    return any(yours > sum(turn.is_right(name) for turn in turns) for name in turns[0].chances)


# --------------------------------------------------------------------------------------------------- the drawing


def _named(letter: str) -> str:
    return letter.replace(" ", "␣")


def _text_html(passage: Passage, typed: str) -> str:
    """The text so far: a character guessed right on green ground, one missed underlined, with what was typed."""
    colours = {True: "rgba(0,158,115,.35)", False: "rgba(213,94,0,.3)"}
    said = ""
    for letter, truth in zip(typed, passage.hidden, strict=False):
        right = letter == truth
        missed = "" if right else ";text-decoration:underline wavy"
        title = "right" if right else f"you typed {_named(letter)}"
        style = f"background-color:{colours[right]}{missed}"
        said += f'<span style="{style}" title="{html.escape(title)}">{html.escape(truth)}</span>'
    left = len(passage.hidden) - len(typed)
    more = (
        f'<b style="border:2px solid;padding:0 .35em">?</b> <small style="white-space:nowrap">{left} to go</small>'
        if left
        else "<b>…</b>"
    )
    return (
        '<p style="font:1.25em/1.7 monospace;max-width:44em;height:3.5em;margin:0 0 .4em;white-space:pre-wrap">'
        f"{html.escape(passage.given)}{said}{more}</p>"
    )


def _latest_html(turn: Turn | None, names: list[str]) -> str:
    """What each model expected of the latest character."""
    if turn is None:
        return "<p>After each character you see what the models expected there.</p>"
    blocks = []
    for name in names:
        likely = turn.chances[name].topk(BARS)
        bars = [
            (tokenized_prose().tokenizer.id_to_token(i), p)
            for i, p in zip(likely.indices.tolist(), likely.values.tolist(), strict=True)
        ]
        mark = "✓" if turn.is_right(name) else "✗"
        label = f"{mark} {name}: {2 ** -turn.bits(name):.0%} for “{_named(turn.truth)}”"
        blocks.append(token_bars(bars, label=label).replace("width:14em", "width:8em"))
    return f'<div style="display:flex;flex-wrap:wrap;gap:.4em 2em">{"".join(blocks)}</div>'


def _score_html(turns: list[Turn], names: list[str]) -> str:
    """How many each has right: in all, at the start of words, within; and the models' bits per character."""
    plain = "border:0;padding:.1em .8em;font-weight:400;text-align:right;white-space:nowrap;font-size:inherit"
    kinds = [turns, [t for t in turns if t.begins_word], [t for t in turns if not t.begins_word]]
    heads = ["", "right", "at the start of a word", "elsewhere", "bits per character"]
    head = "".join(f'<th scope="col" style="{plain}">{text}</th>' for text in heads)

    def share(right: Callable[[Turn], bool], some: list[Turn]) -> str:
        return f"{sum(map(right, some))} of {len(some)}" if some else "–"

    def row(name: str, right: Callable[[Turn], bool], bits: str) -> str:
        bar = f"{9 * sum(map(right, turns)) / max(1, len(turns)):.2f}em"
        colour = PALETTE["orange" if name == "you" else "blue"]
        cells = "".join(f'<td style="{plain}">{text}</td>' for text in (*(share(right, k) for k in kinds), bits))
        return (
            f'<tr style="background:none"><th scope="row" style="{plain}"><b>{html.escape(name)}</b></th>{cells}'
            f'<td style="{plain}"><div style="width:{bar};height:.9em;background-color:{colour}"></div></td></tr>'
        )

    rows = [row("you", lambda turn: turn.right, "–")]
    for name in names:
        bits = f"{sum(turn.bits(name) for turn in turns) / len(turns):.1f}" if turns else "–"
        rows.append(row(name, lambda turn, name=name: turn.is_right(name), bits))
    return (
        '<table style="border-collapse:collapse;margin:.6em 0 0;width:max-content;font-size:inherit">'
        '<caption style="text-align:left;color:inherit;font-size:inherit">The score so far</caption>'
        f'<thead><tr style="background:none">{head}<td style="{plain}"></td></tr></thead><tbody>{"".join(rows)}</tbody>'
        "</table>"
    )


def _html(game: Game, state: State) -> str:
    rounds, names = state["typed"], list(game.players)
    turns = game.turns(rounds)
    latest = turns[-1] if rounds[-1] else None
    played = _text_html(game.passage(rounds), rounds[-1])
    return f'{played}<div style="min-height:7em">{_latest_html(latest, names)}</div>{_score_html(turns, names)}'


def _in_words(game: Game, state: State) -> str:
    rounds = state["typed"]
    turns, passage = game.turns(rounds), game.passage(rounds)
    read = passage.given + passage.hidden[: len(rounds[-1])]
    if not turns:
        return f"The text so far: “{read}”. {game.answer(rounds)}"
    scores = ", ".join(
        [f"you {sum(t.right for t in turns)}"]
        + [f"{name} {sum(t.is_right(name) for t in turns)}" for name in game.players]
    )
    return f"The text so far: “{read}”. {game.answer(rounds)} Right of {len(turns)}: {scores}."
