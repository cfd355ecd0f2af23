"""A GPT to write with: what temperature, top-k and top-p do to the next token, throw by throw.

Holtzman, Buys, Du, Forbes & Choi, "The curious case of neural text degeneration", ICLR 2020, arXiv 1904.09751.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Pen, Slider, TextBox
from course_lib.classroom.widgets.explorer import State
from course_lib.classroom.widgets.pen import DRAWN, LIKELIEST
from course_lib.functional import sampling
from course_lib.models.gpt import GPT
from course_lib.text.tokenizer import Tokenizer
from course_lib.viz.style import PALETTE

START = "\n"  # an entry of the training text begins behind a line feed
MOST_STROKES, MOST_PROMPT = 60, 64  # tokens
BARS = 10  # of the most probable tokens
PROMPTS = ("florpness (noun):", "moonwalk (verb):", "slowly (adverb): in a")


# ----------------------------------------------------------------------------------------------------- the pen


@dataclass(frozen=True, kw_only=True)
class Prompt(TextBox):
    """A prompt, with a remark if it ends with a blank."""

    def remark(self, value: str) -> str:
        if not value.endswith(" "):
            return ""
        return "The prompt ends with a blank. Most tokens bring their own blank along: take it away and compare."


# --------------------------------------------------------------------------------------------------- the writing


class Step(NamedTuple):
    """The next token's probabilities after each setting, (V,), and the random number, from 0 to 1."""

    model: Float[Tensor, " V"]
    warmed: Float[Tensor, " V"]  # after the temperature
    top_k: Float[Tensor, " V"]
    top_p: Float[Tensor, " V"]
    throw: float

    @property
    def likeliest(self) -> int:
        return int(self.model.argmax())

    @property
    def drawn(self) -> int:
        """The token on whose part of the line from 0 to 1 the random number falls, the most probable one first."""
        chances, tokens = self.top_p.sort(descending=True, stable=True)
        place = int((chances.cumsum(0) <= self.throw).sum())
        return int(tokens[min(place, int((chances > 0).sum()) - 1)])


class Text(NamedTuple):
    """A prompt, what was written behind it, how likely the model found each token, and what may come next."""

    prompt: list[int]
    written: list[int]
    chances: list[float]
    first: float  # the probability of the most probable token after the prompt
    next: Step


class Writer:
    """Writes by a GPT; it remembers what the model said, since most of a text stays when one moves a knob."""

    def __init__(self, model: GPT, tokenizer: Tokenizer):
        self.model, self.tokenizer = model, tokenizer
        self._said: dict[tuple[int, ...], Tensor] = {}
        self._read: tuple[int, ...] = ()
        self._cache: Any = None

    def text(self, state: State) -> Text:
        """What the pen writes; raises ValueError for a prompt that is too long, or no text."""
        dice, strokes = state["pen"]
        prompt = self.tokenizer.encode(START + state["prompt"], specials=False)
        if len(prompt) > MOST_PROMPT:
            raise ValueError(f"This prompt has {len(prompt)} tokens; please keep to {MOST_PROMPT}.")
        throws = torch.rand(MOST_STROKES + 1, generator=torch.Generator().manual_seed(dice)).tolist()
        written, chances = [], []
        for stroke, throw in zip(strokes, throws, strict=False):
            step = self._step((*prompt, *written), state, throw)
            written.append(step.likeliest if stroke == LIKELIEST else step.drawn)
            chances.append(float(step.model[written[-1]]))
        step = self._step((*prompt, *written), state, throws[len(strokes)])
        first = float(self.logits(tuple(prompt)).softmax(dim=-1).max())
        return Text(prompt, written, chances, first, step)

    def _step(self, ids: tuple[int, ...], state: State, throw: float) -> Step:
        logits = self.logits(ids)
        warmed = sampling.temperature(logits, state["temperature"])
        of_k = sampling.top_k(warmed, state["top_k"]) if state["top_k"] else warmed
        of_p = sampling.top_p(of_k, state["top_p"])
        return Step(*(station.softmax(dim=-1) for station in (logits, warmed, of_k, of_p)), throw)

    @torch.inference_mode()
    def logits(self, ids: tuple[int, ...]) -> Float[Tensor, " V"]:
        """The logits of the next token: remembered, or read on with the keys and values of what was read before."""
        if ids not in self._said:
            if len(self._said) > 4096:
                self._said.clear()
            if self._cache is None or len(self._read) >= len(ids) or ids[: len(self._read)] != self._read:
                self._read, self._cache = (), self.model.new_cache(MOST_PROMPT + MOST_STROKES)
            unread = torch.tensor([ids[len(self._read) :]])
            self._said[ids], self._read = self.model.next_logits(unread, self._cache)[0], ids
        return self._said[ids]

    def name(self, token: int) -> str:
        return self.tokenizer.decode([token])


def goes_round(text: Text) -> bool:
    """Whether somewhere three tokens or more stand three times in a row."""
    ids = text.written
    return any(
        ids[i : i + n] == ids[i + n : i + 2 * n] == ids[i + 2 * n : i + 3 * n]
        for n in range(3, len(ids) // 3 + 1)
        for i in range(len(ids) - 3 * n + 1)
    )


def writer(model: GPT, tokenizer: Tokenizer) -> Explorer:
    """A prompt, the knobs of sampling, and a pen that takes the most probable token, samples one, or several."""
    pen = Writer(model, tokenizer)

    def like_greedy(state: State) -> bool:
        dice, strokes = state["pen"]
        if state["temperature"] < 1.5 or strokes.count(DRAWN) < 20:
            return False
        return pen.text(state).written == pen.text(state | {"pen": (dice, LIKELIEST * len(strokes))}).written

    return Explorer(
        name="writer",
        title="Write with a GPT",
        controls=[
            Prompt(name="prompt", label="Prompt", value=PROMPTS[0], examples=PROMPTS),
            Slider(name="temperature", label="Temperature", low=-2, high=0.5, step=0.05, value=1.0, log=True),
            Choice(name="top_k", label="Top-k", options={"off": 0} | {str(k): k for k in (1, 2, 3, 5, 10, 40)}),
            Slider(name="top_p", label="Top-p (1: off)", low=0.05, high=1, step=0.05, value=1.0),
            Pen(name="pen", label="Pen", most=MOST_STROKES, value=(1, 24 * DRAWN)),
        ],
        draw=lambda state: _html(pen, state),
        alt=lambda state: _in_words(pen, state),
        speaks=True,
        height="34em",
        goals=(
            Goal("a prompt after which one token has a probability above 90 %", lambda at: pen.text(at).first > 0.9),
            Goal("20 tokens sampled at temperature 1.5 or more, the same as in greedy decoding", like_greedy),
            Goal(
                "at a temperature of 0.1 or less, a text that repeats itself",
                lambda at: at["temperature"] <= 0.1 and goes_round(pen.text(at)),
            ),
        ),
        steps={"temperature": (0.1, 1.0, 2.0), "top_p": (0.7, 1.0)},
        script="writer",
        config={"models": ["dictionary"], "examples": PROMPTS, "most": MOST_PROMPT + MOST_STROKES},
        answers={
            "logits": lambda asked: pen.logits(tuple(asked["ids"])).numpy(),
            "tokenizer": lambda _: tokenizer.state_dict(),
        },
    )


# --------------------------------------------------------------------------------------------------- the drawing


def _left(chances: Tensor) -> int:
    return int((chances > 0).sum())


def _percent(chance: float) -> str:
    return "<1%" if 0 < chance < 0.005 else f"{chance:.0%}"


def _visible(token: str) -> str:
    return html.escape(token.replace(" ", "␣").replace("\n", "⏎"))


def _stations(state: State, step: Step) -> list[tuple[str, str, Tensor]]:
    """Each column's head, what is left there, and the chances."""
    size = len(step.model)
    heads = (
        "the model says",
        f"temperature {state['temperature']:.2f}",
        f"top-k {state['top_k'] or 'off'}",
        f"top-p {'off' if state['top_p'] == 1 else format(state['top_p'], '.2f')}",
    )
    return [
        (head, "all tokens" if left == size else f"{left} token{'s' if left > 1 else ''} left", chances)
        for head, chances in zip(heads, step[:4], strict=True)
        for left in (_left(chances) if chances is step.top_k or chances is step.top_p else size,)
    ]


_CSS = """<style>
.course-knobs table {border-collapse:collapse;margin:.3em 0;width:max-content;font-size:inherit;line-height:1.25}
.course-knobs caption {text-align:left;color:inherit;font-size:inherit;padding:0}
.course-knobs tr {background:none}
.course-knobs :is(th,td) {border:0;padding:.1em .6em;font-weight:400;font-size:inherit;text-align:left;
  white-space:nowrap}
.course-knobs tbody th {text-align:right}
.course-knobs .gone {opacity:.75}
.course-knobs th.gone {text-decoration:line-through}
.course-knobs td > div {display:flex;align-items:center;gap:.4em;width:9.5em}
.course-knobs td > div > div {min-width:1px}
.reveal .course-knobs tbody tr:nth-child(n+6):not(:last-child), .reveal .course-hint {display:none}
.reveal .course-written {max-height:4.6em}
</style>"""


def _bars(pen: Writer, state: State, step: Step) -> str:
    """The most probable tokens as rows, the settings as columns: a bar each, a cross for what was cut away."""
    likely = step.model.topk(min(BARS, len(step.model))).indices.tolist()
    stations = _stations(state, step)
    colours = (PALETTE["sky"], PALETTE["orange"], PALETTE["green"], PALETTE["blue"])

    def bar(chance: float, before: float, colour: str) -> str:
        if not chance:
            return f'<td class="gone">✕{" cut away" if before else ""}</td>'
        bar = f'<div style="width:{6.5 * chance:.2f}em;height:.95em;background-color:{colour}"></div>'
        return f"<td><div>{bar}<span>{_percent(chance)}</span></div></td>"

    def row(name: str, chances: Sequence[float]) -> str:
        gone = "" if chances[-1] else ' class="gone"'
        return f'<tr><th scope="row"{gone}>{name}</th>{"".join(map(bar, chances, [1, *chances], colours))}</tr>'

    rows = [
        row(f"<code>{_visible(pen.name(token))}</code>", [float(c[token]) for *_, c in stations]) for token in likely
    ]
    others = [float(c.sum() - c[likely].sum()) for *_, c in stations]
    if rest := len(step.model) - len(likely):
        rows.append(row(f"the other {rest:,}", [share if share > 5e-7 else 0.0 for share in others]))
    heads = "".join(f'<th scope="col"><b>{html.escape(head)}</b><br>{left}</th>' for head, left, _ in stations)
    caption = "<caption>The most probable next tokens, and their probabilities after each setting</caption>"
    return (
        f'{_CSS}<div class="course-knobs"><table>{caption}<thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _dice(pen: Writer, step: Step) -> str:
    """The line from 0 to 1, cut into the probabilities that remain, and where the random number falls on it."""
    chances, tokens = step.top_p.sort(descending=True, stable=True)
    parts = [(pen.name(t), c) for t, c in zip(tokens[:BARS].tolist(), chances[:BARS].tolist(), strict=True) if c]
    rest = max(0.0, 1 - sum(chance for _, chance in parts))
    shown = "".join(
        f'<span style="width:{100 * chance:.2f}%;overflow:hidden;border-right:1px solid #767676;'
        f'box-sizing:border-box;text-align:center;white-space:nowrap">'
        f"{_visible(name) if chance > 0.05 else ''}</span>"
        for name, chance in parts
    )
    end = "others" if rest > 0.12 else ""
    shown += f'<span style="width:{100 * rest:.2f}%;overflow:hidden;text-align:center">{end}</span>'
    return (
        f"<div>The random number is {step.throw:.2f}: sampling takes "
        f"<code><b>{_visible(pen.name(step.drawn))}</b></code>, "
        f"greedy decoding <code>{_visible(pen.name(step.likeliest))}</code>.</div>"
        '<div aria-hidden="true" style="position:relative;max-width:46em;margin:.2em 0 .4em">'
        '<div style="display:flex;border:1px solid #767676;line-height:1.5;font-family:monospace">'
        f"{shown}</div>"
        f'<div style="position:absolute;top:-3px;bottom:-3px;left:{100 * step.throw:.2f}%;width:3px;'
        f'background-color:{PALETTE["vermilion"]}"></div></div>'
    )


def _surprise(chance: float) -> float:
    """How strong a written token's colour is: 0 for a sure one, 0.55 for one of 8 bits or more."""
    return min(0.55, -0.07 * math.log2(max(chance, 1e-9)))


def _page(pen: Writer, text: Text) -> str:
    """The prompt and what was written; the less the model expected a token, the stronger its colour."""

    def lines(name: str) -> str:
        return html.escape(name).replace("\n", "⏎<br>")

    prompt = "".join(
        f'<span style="border-bottom:1px dotted;margin-right:1px">{lines(pen.name(token))}</span>'
        for token in text.prompt[1:]
    )
    written = "".join(
        f'<b style="background-color:rgba(230,159,0,{_surprise(chance):.2f})" title="{_percent(chance)} by the model">'
        f"{lines(pen.name(token))}</b>"
        for token, chance in zip(text.written, text.chances, strict=True)
    )
    return (
        '<p class="course-written" style="font-size:1.15em;line-height:1.5;margin:0 0 .2em;'
        'max-width:44em;height:6.1em;overflow:auto;white-space:pre-wrap">'
        f'{prompt}{written}<span aria-hidden="true">▏</span></p>'
        f'<div class="course-hint"><small>{len(text.prompt) - 1} tokens of the prompt, {len(text.written)} written; '
        "the stronger the colour, the less the model expected the token.</small></div>"
    )


def _html(pen: Writer, state: State) -> str:
    text = pen.text(state)
    return f"{_page(pen, text)}{_bars(pen, state, text.next)}{_dice(pen, text.next)}"


def _in_words(pen: Writer, state: State) -> str:
    text = pen.text(state)
    step, written = text.next, pen.tokenizer.decode(text.written)
    chances, tokens = step.model.topk(3)
    said = ", ".join(
        f"“{pen.name(t).strip() or '⏎'}” {_percent(c)}" for t, c in zip(tokens.tolist(), chances.tolist(), strict=True)
    )
    left = _left(step.top_p)
    return (
        f"Prompt: “{state['prompt']}”. {f'Written: “{written.strip()}”. ' if text.written else ''}"
        f"The model's most probable next tokens: {said}. After temperature, top-k and top-p {left} of "
        f"{len(step.model)} are left; the most probable one then has {_percent(float(step.top_p.max()))}. "
        f"Sampled next: “{pen.name(step.drawn).strip()}”."
    )
