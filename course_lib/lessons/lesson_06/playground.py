"""The playgrounds of lesson 06: each step of a beam search, and byte-pair encoding merge by merge."""

import html
import re
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, Sentence, Slider, Steps, TextBox, heat_map, token_bars
from course_lib.classroom.widgets.explorer import State
from course_lib.data.translation import detokenize_french, tokenize_english
from course_lib.lessons.lesson_06.beams import END, Look, Search, Words
from course_lib.lessons.lesson_06.merging import (
    Merging,
    has_ending,
    is_composed,
    is_short,
    merging_html,
    merging_in_words,
)
from course_lib.lessons.lesson_06.tree import LEGEND, boxes_of, number, tree_html
from course_lib.models.transformer import Transformer
from course_lib.training.translation import vocabularies

# ------------------------------------------------------------------------------------------ the decoding explorer

EXAMPLES = (
    "The minister does not see the European Economic Area.",
    "Two ministers think that she will not sign the new agreement.",
    "The zebra visits the old school.",
)
DRAMA = "Judge is the young."  # what leads is not what wins; on slides only: learners look for their own
MAX_WORDS = 30
EVERY = (-1, -1)  # in place of (layer, head)


def _all_heads(search: Search) -> list[tuple[int, int]]:
    config = search.model.config
    return list(np.ndindex(config.depth, config.num_heads))


def explorer(model: Transformer) -> Explorer:
    """A sentence, the tree of beams that became its translation, and what each head of cross-attention attends to."""
    config = model.config
    heads = [(layer, head) for layer in range(config.depth) for head in range(config.num_heads)]

    @lru_cache(maxsize=4)  # one search to draw, to say and to judge, and one more to compare with
    def searched(text: str, num_beams: int, penalty: float) -> Search:
        if len(tokenize_english(text)) > MAX_WORDS:
            raise ValueError(f"This sentence is long for a page; please keep to {MAX_WORDS} words.")
        return Search(model, text, num_beams=num_beams, penalty=penalty)

    def search(state: State, penalty: float | None = None) -> Search:
        text = " ".join(state["text"].split())
        return searched(text, int(state["beams"]), state["penalty"] if penalty is None else penalty)

    @lru_cache(maxsize=1000)  # it depends on the words alone: another penalty, or more beams, ask for the same
    def look(text: str, words: Words) -> State:
        return _look_at(searched(text, 1, 1.0), words)

    def goal(text: str, reached) -> Goal:
        return Goal(text, lambda state: reached(search(state), state))

    def answer(asked: State) -> State:
        state = {"text": asked["text"], "beams": asked["beams"], "penalty": asked["penalty"], "look": EVERY}
        its, text = search(state), " ".join(state["text"].split())
        boxes = [box | look(text, box["words"]) for box in boxes_of(its)]
        reached = [goal(state) for goal in goals[:3]]
        return {
            "boxes": boxes,
            "heads": _heads(its, heads),
            "reached": reached,
            "remark": sentence.remark(text),
        } | _told(its, state)

    start = {"text": EXAMPLES[0], "beams": 3, "penalty": 1.0, "step": 7}
    sentence = Sentence(
        name="text",
        label="English sentence",
        value=start["text"],
        examples=EXAMPLES,
        vocabulary=vocabularies()[0].vocabulary[4:],
        split=tokenize_english,
    )
    goals = (
        goal(
            "beam search and greedy decoding differ (omit a word, or use an unknown one)",
            lambda s, _: s.winner.words != s.greedy.words,
        ),
        goal("a hypothesis that led at some step but did not win", lambda s, _: bool(s.led_and_lost())),
        goal(
            "a winner that differs from the one at penalty 1.00",
            lambda s, state: s.winner.words != search(state, 1.0).winner.words,
        ),
        goal("one head that follows the grammar's alignment at every word", follows),
    )
    return Explorer(
        name="explorer",
        title="From a sentence to its translation: the whole search",
        controls=[
            sentence,
            Slider(name="beams", label="Number of beams", low=1, high=5, step=1, value=start["beams"]),
            Slider(name="penalty", label="Length penalty", low=0, high=2, step=0.1, value=start["penalty"]),
            Steps(name="at", label="Step", value=start["step"], most=2 * MAX_WORDS + 10),
            Choice(
                name="look",
                label="Attention of",
                options={"all heads, at this step": EVERY}
                | {f"layer {at[0] + 1}, head {at[1] + 1}, at all steps": at for at in heads},
            ),
        ],
        draw=lambda state: _explorer_html(search(state), state),
        alt=lambda state: _search_in_words(search(state), state),
        speaks=True,
        height="47em",
        goals=goals,
        steps={"text": (EXAMPLES[0], DRAMA), "at": ((2, ""), (4, ""), (7, ""))},
        script="beams",
        config={
            "texts": [[f"{text[:12]} …", text] for text in EXAMPLES],
            "heads": [f"{layer + 1}.{head + 1}" for layer, head in heads],
            "start": start,
        },
        answers={"search": answer},
    )


def chosen(search: Search, state: State) -> Words:
    """The words up to the step that is shown: of the hypothesis that was clicked, otherwise of the winner."""
    step, item = state["at"]
    level = search.levels[min(step, len(search.levels)) - 1]
    clicked = [h.words for h in level.all if item == " ".join(h.words)]
    return clicked[0] if clicked else search.winner.words[:step]


def follows(search: Search, state: State) -> bool:
    """Whether the chosen head attends most to a linked word each time, as the grammar's own translation is written."""
    if state["look"] == EVERY or search.gold is None or search.winner.words != (*search.gold.french, END):
        return False
    hits = agreement(search, state)
    return hits[0] == hits[1]


def agreement(search: Search, state: State) -> tuple[int, int]:
    """Of the words of the winner that have links: how many attend most to one of theirs, and how many there are."""
    links, (layer, head) = search.links(search.winner.words), state["look"]
    at = search.look(search.winner.words).maps[layer, head].argmax(dim=-1).tolist()
    return sum((j, at[j]) in links for j in {j for j, _ in links}), len({j for j, _ in links})


def french(words: Words) -> str:
    """The words as they are written, without the sign of the end."""
    return detokenize_french([word for word in words if word != END])


def _compared(search: Search) -> list[tuple[str, str, str]]:
    """Who says what: a name, the French, and what there is to say about it."""
    beam, greedy, gold = search.winner, search.greedy, search.gold
    said = f"log p {number(greedy.log_p)}, score {number(search.score(greedy))}: "
    said += "less likely as a whole" if greedy.log_p < beam.log_p else "likelier as a whole, but a worse score"
    same = greedy.words == beam.words
    rows = [("Greedy", "" if same else french(greedy.words), "the same" if same else said)]
    if gold is None:
        return [*rows, ("Grammar", "", "does not cover this sentence, so there is no reference")]
    if french(gold.french) == french(beam.words):
        return [*rows, ("Grammar", "", "✓ the same")]
    return [*rows, ("Grammar", french(gold.french), "✗ not what the search found")]


def _score(search: Search, state: State) -> str:
    log_p, length = number(search.winner.log_p), len(search.winner.words)
    return f"log p {log_p}, score {log_p} / {length}^{state['penalty']:.1f} = {number(search.score(search.winner))}"


_CSS = """
.course-said {line-height:1.35}
.course-said > [lang] {font-size:1.7em;line-height:1.25;font-weight:700}
.course-below {display:flex;flex-wrap:wrap;gap:.3em 2.5em;line-height:1.3}
.course-said sup {font-size:.95em;line-height:0}
.reveal .course-said {font-size:17px}
.reveal .course-said > div {display:inline-block;margin-right:1.5em}
.reveal .course-below,.reveal .course-below code {font-size:16px;line-height:1.2}
.reveal .course-below .course-map :is(td,tbody th) {line-height:1}
.reveal .course-below .course-map caption {display:none}
.reveal .course-below {gap:.3em 1.5em}
.reveal .course-legend {max-width:12em}
"""


def _explorer_html(search: Search, state: State) -> str:
    words = chosen(search, state)
    raised = re.sub(r"\^([0-9.]+)", r"<sup>\1</sup>", _score(search, state))
    rows = f"<div><b>Beam search</b> {raised}</div>"
    for name, text, said in _compared(search):
        rest = html.escape(f"({said})" if text else said)
        rows += f'<div><b>{name}</b> <span lang="fr">{html.escape(text)}</span> {rest}</div>'
    winner = f'<div lang="fr">{html.escape(french(search.winner.words)) or "–"}</div>'
    below = _one_step(search, words) if state["look"] == EVERY else _one_head(search, state)
    said = f'<style>{_CSS}</style><div class="course-said">{winner}{rows}</div>'
    legend = f'<div class="course-legend">{LEGEND}</div>'
    return f'{said}{tree_html(search, words)}<div class="course-below">{below}{legend}</div>'


def _after(words: Words) -> str:
    return f"after “{french(words)}”" if words else "at the start"


def _rounded(weights: Float[Tensor, "T_q T_k"]) -> list[list[float]]:
    return weights.double().numpy().round(4).tolist()


def _look_at(search: Search, words: Words) -> State:
    """Where each head attends to while it writes the last of these words, and the most probable words there: JSON."""
    look, step = search.look(words), len(words)
    chances = look.chances[-1].topk(5)
    vocabulary = vocabularies()[1].vocabulary
    maps = look.maps[:, :, -1].flatten(0, 1)  # (L H, T_k)
    pairs = zip(chances.values.tolist(), chances.indices.tolist(), strict=True)
    return {
        "maps": _rounded(maps),
        "links": sorted(i for j, i in search.links(words) if j == step - 1),
        "next": [(_shown(vocabulary[i]), p) for p, i in pairs],
        "where": f"Step {step}, “{_shown(words[-1])}” {_after(words[:-1])}: "
        f"the most attended word of each head is {_most(search, look)}.",
    }


def _most(search: Search, look: Look) -> str:
    at = look.maps[:, :, -1].argmax(dim=-1)
    return ", ".join(f"{i + 1}.{j + 1} “{search.source[k]}”" for (i, j), k in np.ndenumerate(at.numpy()))


def _heads(search: Search, heads: list[tuple[int, int]]) -> list[State]:
    """Where each head attends to while the winner is written, and how far it follows the grammar: JSON."""
    maps, states = search.look(search.winner.words).maps, [{"look": at} for at in heads]
    return [
        {
            "map": _rounded(maps[state["look"]]),
            "follows": follows(search, state),
            "where": _head_in_words(search, state),
        }
        for state in states
    ]


def _told(search: Search, state: State) -> State:
    """The winner, who says what else, and the sentences about the search: JSON."""
    return {
        "source": search.source,
        "winner": french(search.winner.words),
        "rows": [_shown(word) for word in search.winner.words],
        "links": sorted(search.links(search.winner.words)),
        "score": _score(search, state),
        "compared": _compared(search),
        "words": _found_in_words(search, state),
    }


def _one_step(search: Search, words: Words) -> str:
    look, step = _look_at(search, words), len(words)
    names = [f"layer {i + 1}, head {j + 1}" for i, j in _all_heads(search)]
    marks = [(row, i) for row in range(len(names)) for i in look["links"]]
    label = f"Step {step}: cross-attention of each head for “{_shown(words[-1])}” {_after(words[:-1])}"
    table = heat_map(torch.tensor(look["maps"]), names, search.source, label=label, marks=marks)
    return f"{table}<div>{token_bars(look['next'], label='Most probable next words')}</div>"


def _one_head(search: Search, state: State) -> str:
    layer, head = state["look"]
    words = search.winner.words
    label = f"Layer {layer + 1}, head {head + 1}: cross-attention for each word of the winner"
    maps = search.look(words).maps[layer, head]
    table = heat_map(maps, [_shown(w) for w in words], search.source, label=label, marks=search.links(words))
    return f'{table}<div style="max-width:18em">{_agreement_in_words(search, state)}</div>'


def _agreement_in_words(search: Search, state: State) -> str:
    hit, count = agreement(search, state)
    if not count:
        return "The grammar has no alignment for these words."
    return f"{hit} of {count} words attend most to a word that the grammar links to them (ringed)."


def _shown(word: str) -> str:
    return "end" if word == END else word


def _found_in_words(search: Search, state: State) -> str:
    losers = search.led_and_lost()
    compared = " ".join(f"{name}: {f'“{text}”, ' if text else ''}{said}." for name, text, said in _compared(search))
    led = ""
    if losers:
        leader = search.levels[losers[-1] - 1].running[0]
        led = f" “{french(leader.words)}” led at step {losers[-1]}, but did not win."
    return (
        f"Beam search with {state['beams']:.0f} beams: “{french(search.winner.words)}”, {_score(search, state)}. "
        f"{compared} It took {len(search.levels)} steps; {search.deaths()} hypotheses died on the way.{led}"
    )


def _head_in_words(search: Search, state: State) -> str:
    return f"Layer {state['look'][0] + 1}, head {state['look'][1] + 1}: {_agreement_in_words(search, state)}"


def _search_in_words(search: Search, state: State) -> str:
    if state["look"] == EVERY:
        where = _look_at(search, chosen(search, state))["where"]
    else:
        where = _head_in_words(search, state)
    return f"{_found_in_words(search, state)} {where}"


# ---------------------------------------------------------------------------------------------- byte-pair encoding

TEXTS = (
    "low low low low low lower lower newest newest newest newest newest newest widest widest widest",  # Sennrich et al.
    "how much wood would a woodchuck chuck if a woodchuck could chuck wood",
    "les chaussettes de l'archiduchesse sont-elles sèches, archi-sèches ?",
)
MAX_LETTERS, MAX_MERGES = 600, 30


def bpe() -> Explorer:
    """Byte-pair encoding learned on a text of one's own, merge by merge."""

    @lru_cache(maxsize=1)
    def learned(text: str) -> Merging:
        if len(text) > MAX_LETTERS:
            raise ValueError(f"This text has {len(text)} letters; please keep to {MAX_LETTERS}.")
        return Merging(text)

    def at(state: State) -> tuple[Merging, int]:
        merging = learned(" ".join(state["text"].split()))
        return merging, min(int(state["merges"]), len(merging.merges))

    start = {"text": TEXTS[0], "merges": 1, "word": "lowest"}
    return Explorer(
        name="bpe",
        title="Byte-pair encoding, merge by merge",
        controls=[
            TextBox(name="text", label="Text to learn from", value=start["text"], examples=TEXTS),
            Slider(name="merges", label="Number of merges", low=0, high=MAX_MERGES, step=1, value=start["merges"]),
            TextBox(name="word", label="A word to cut", value=start["word"]),
        ],
        draw=lambda state: merging_html(*at(state), state["word"]),
        alt=lambda state: merging_in_words(*at(state), state["word"]),
        speaks=True,
        height="28em",
        goals=(
            Goal("a text of 40 letters or more in half as many tokens, or fewer", lambda state: is_short(*at(state))),
            Goal("two words that end in the same token of three letters or more", lambda state: has_ending(*at(state))),
            Goal(
                "a word of five letters or more that is not in the text, in two tokens",
                lambda state: is_composed(*at(state), state["word"]),
            ),
        ),
        steps={"text": TEXTS[:2], "merges": (1, 3, 5, 8, 12)},
        script="bpe",
        config={
            "texts": [[f"{' '.join(text.split()[:2])} …", text] for text in TEXTS],
            "most": MAX_MERGES,
            "letters": MAX_LETTERS,
            "start": start,
        },
    )


PLAYGROUNDS = {"explorer": explorer, "bpe": bpe}
