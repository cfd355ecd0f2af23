"""A word hidden in an English or French sentence: what BERT would put there, and where its heads look for it."""

import html
import math
import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.widgets import Explorer, Goal, Sentence, heat_map, linked, token_bars
from course_lib.data.translation import english_words, french_words, tokenize_english
from course_lib.data.translation.lexicon import ADJECTIVES
from course_lib.layers.recording import record_attention
from course_lib.lessons.lesson_07.recipes.pretraining import encode, vocabulary
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.viz.style import PALETTE

MASK = "[MASK]"
MAX_WORDS, MAX_BLANKS, BARS = 30, 3, 5
SURE = 0.7
EXAMPLES = (
    "The minister [signs] the law.",
    "La [loi] est nouvelle.",
    "The ministers [sign] the law.",
    "Elle ne [les] voit pas.",
    "Il [est] riche.",
)
_PIECE = re.compile(r"\[[^\[\]]*\]|_+|[^\W_]+(?:['’][^\W_]+)*['’]?")


# ------------------------------------------------------------------------------------------------- the sentence


class Word(NamedTuple):
    """A word of the sentence, None where nobody says which; and whether the model may not see it."""

    text: str | None
    hidden: bool


FULL_STOP = Word(".", hidden=False)


def words_of(text: str) -> list[Word]:
    """The words of an English or French sentence and its full stop; `[word]` is hidden, so is `[MASK]` or `___`.

    Raises ValueError for a bracket with more than one word in it.
    """
    words = []
    for piece in _PIECE.findall(text):
        if piece.startswith("[") or piece.startswith("_"):
            inside = piece.strip("[]_").strip()
            found = [] if inside in ("", "MASK") else _cut(inside)
            if len(found) > 1:
                raise ValueError(f"One word to a blank, please: “{inside}” is {len(found)} of them.")
            words.append(Word(found[0] if found else None, hidden=True))
        else:
            words += [Word(word, hidden=False) for word in _cut(piece)]
    return [*words, FULL_STOP] if words else []


def _cut(piece: str) -> list[str]:
    """One word as the grammar writes it: l'accord is two, and so is doesn't."""
    piece = piece.lower().replace("’", "'")
    before, apostrophe, after = piece.partition("'")
    if apostrophe and before + "'" in _known():
        return [before + "'", *([after] if after else [])]
    return list(tokenize_english(piece)[:-1]) or [piece]


@cache
def _known() -> frozenset[str]:
    return frozenset((*english_words(), *french_words()))


# ------------------------------------------------------------------------------------------------- the answer


class Filled(NamedTuple):
    """What a model says of a sentence: the chances of each word in each blank, and where the first blank's heads look.

    Without a blank `seen` has for each word the chance that the model gives it when that word alone is hidden.
    """

    words: list[Word]
    places: list[int]  # of the blanks among the words
    chances: Float[Tensor, "N V"]
    heads: Float[np.ndarray, "H T"] | None  # over [CLS], the words, [SEP]; layer by layer
    num_layers: int
    seen: list[float]

    def numbers(self) -> Float[np.ndarray, " N"]:
        """All that the page needs: of each blank the chances, then the heads; without a blank what was seen."""
        if not self.places:
            return np.array(self.seen, np.float32)
        return np.concatenate([self.chances.flatten().numpy(), self.heads.flatten()])

    def likeliest(self, blank: int) -> tuple[str, float]:
        """The word that the model would put into a blank, and its chance."""
        chance, position = self.chances[blank].max(dim=0)
        return vocabulary().vocabulary[int(position)], float(chance)

    def chance(self, blank: int, word: str) -> float:
        return float(self.chances[blank][vocabulary().token_to_id(word)]) if word in vocabulary() else 0.0

    def truths(self) -> list[tuple[int, str | None]]:
        """The blanks, each with the word that stood there, if anybody knows."""
        return [(blank, self.words[position].text) for blank, position in enumerate(self.places)]

    def best(self, blank: int) -> list[tuple[str, float]]:
        """The most probable words."""
        found = self.chances[blank].topk(BARS)
        return [
            (vocabulary().vocabulary[i], p) for i, p in zip(found.indices.tolist(), found.values.tolist(), strict=True)
        ]


@torch.no_grad()
def fill(model: BERTForMaskedLM, text: str) -> Filled:
    """Raises ValueError for a text without words, with too many, or with too many blanks."""
    words = words_of(text)
    places = [position for position, word in enumerate(words) if word.hidden]
    if not words:
        raise ValueError("Type a sentence, or take one of the examples.")
    if len(words) > MAX_WORDS + 1:
        raise ValueError(f"This sentence has {len(words) - 1} words; please keep to {MAX_WORDS}.")
    if len(places) > MAX_BLANKS:
        raise ValueError(f"Hide at most {MAX_BLANKS} words at a time; there are {len(places)} blanks.")
    read = [MASK if word.hidden else word.text if word.text in _known() else "[UNK]" for word in words]
    tokens = torch.tensor([encode(read).ids])
    mask_id = vocabulary().mask_id
    if places:
        with record_attention(model) as record:
            chances = model(tokens, masked=tokens == mask_id).softmax(dim=-1)
        maps = record.maps()[0, :, :, places[0] + 1]  # (L, H, T) of the first blank
        return Filled(words, places, chances, maps.flatten(0, 1).numpy(), len(maps), [])
    rows, diagonal = tokens.repeat(len(words), 1), range(len(words))
    rows[diagonal, range(1, len(words) + 1)] = mask_id
    of_words = model(rows, masked=rows == mask_id).softmax(dim=-1)
    return Filled(words, [], of_words[:0], None, 0, of_words[diagonal, tokens[0, 1:-1]].tolist())


@cache
def other_gender() -> dict[str, frozenset[str]]:
    """French articles and adjectives that have another form in the other gender: its forms, both ways."""
    pairs = {("le", "la"), ("un", "une"), ("mon", "ma"), ("son", "sa"), ("ce", "cette")}
    pairs |= {(a.masculine, a.feminine) for a in ADJECTIVES.values()}
    pairs |= {(a.masculine_plural, a.feminine_plural) for a in ADJECTIVES.values()}
    known = [pair for pair in pairs if pair[0] != pair[1] and {*pair} <= _known()]
    both = [*known, *(pair[::-1] for pair in known)]  # "vieux" is one old man or many: it has two others
    return {word: frozenset(other for one, other in both if one == word) for word, _ in both}


def gender_decides(filled: Filled) -> bool:
    """Whether a blank was filled right where the same word in the other gender has less than 1 percent."""
    return any(
        truth in other_gender()
        and filled.likeliest(blank)[0] == truth
        and all(filled.chance(blank, other) < 0.01 for other in other_gender()[truth])
        for blank, truth in filled.truths()
    )


def both_languages(filled: Filled) -> bool:
    """Whether a word of English alone and one of French alone have 5 percent or more in one blank."""
    english, french = frozenset(english_words()), frozenset(french_words())
    likely = [{word for word, p in filled.best(blank) if p >= 0.05} for blank, _ in filled.truths()]
    return any(words & (english - french) and words & (french - english) for words in likely)


def sure_and_wrong(filled: Filled) -> bool:
    """Whether the model is sure of a word where another one stood, that it knows, too."""
    return any(
        truth in _known() and filled.likeliest(blank)[0] != truth and filled.likeliest(blank)[1] > SURE
        for blank, truth in filled.truths()
    )


# ------------------------------------------------------------------------------------------------- the playground


def blank(model: BERTForMaskedLM) -> Explorer:
    """A sentence in either language with words to hide, and what the model puts in their place."""
    latest: dict[str, Filled] = {}

    def result(text: str) -> Filled:
        if text not in latest:  # one answer to draw, to say and to judge
            found = fill(model, text)
            latest.clear()
            latest[text] = found
        return latest[text]

    def goal(text: str, reached: Callable[[Filled], bool]) -> Goal:
        return Goal(text, lambda state: reached(result(state["text"])))

    return Explorer(
        name="blank",
        title="Hide a word, in English or French",
        controls=[
            Sentence(
                name="text",
                label="Sentence",
                value=EXAMPLES[0],
                examples=EXAMPLES,
                vocabulary=sorted(_known()),
                split=lambda text: [word.text for word in _words_or_none(text) if word.text],
            )
        ],
        draw=lambda state: _html(result(state["text"])),
        alt=lambda state: _in_words(result(state["text"])),
        speaks=True,
        height="31em",
        goals=(
            goal(
                "right, and the same word in the other gender is below 1%: only a noun elsewhere can tell",
                gender_decides,
            ),
            goal("a blank in which words of both languages have 5% or more", both_languages),
            goal(f"sure (above {SURE:.0%}) and wrong: try a second noun before the verb", sure_and_wrong),
        ),
        steps={"text": EXAMPLES},
        script="blank",
        config={
            "models": ["bert"],
            "examples": EXAMPLES,
            "english": " ".join(english_words()),
            "french": " ".join(french_words()),
            "gender": {word: sorted(others) for word, others in sorted(other_gender().items())},
            "layers": len(model.bert.blocks),
            "most": MAX_WORDS,
            "blanks": MAX_BLANKS,
            "bars": BARS,
            "sure": SURE,
        },
        answers={"fill": lambda text: fill(model, text).numbers()},
    )


def _words_or_none(text: str) -> list[Word]:
    try:
        return words_of(text)
    except ValueError:
        return []


def _verdict(filled: Filled, blank: int) -> str:
    """What stood there, and what the model says."""
    (said, chance), (_, truth) = filled.likeliest(blank), filled.truths()[blank]
    if truth is None:
        return f"The model says “{said}” ({chance:.0%})."
    if said == truth:
        return f"✓ The model says “{said}” ({chance:.0%}), and that stood there."
    own = filled.chance(blank, truth)
    better = int((filled.chances[blank] > own).sum())
    return f"✗ The model says “{said}” ({chance:.0%}); “{truth}” stood there: {own:.0%}, rank {better + 1}."


def _in_words(filled: Filled) -> str:
    sentence = " ".join(MASK if word.hidden else word.text for word in filled.words)
    if not filled.places:
        shares = zip(filled.words, filled.seen, strict=True)
        said = ", ".join(f"“{word.text}” {share:.0%}" for word, share in shares)
        return f"No word is hidden. The probability of each, if it alone were hidden: {said}."
    verdicts = " ".join(_verdict(filled, blank) for blank in range(len(filled.places)))
    names = ["[CLS]", *(word.text or "?" for word in filled.words), "[SEP]"]
    head, position = np.unravel_index(filled.heads.argmax(), filled.heads.shape)
    return (
        f"“{sentence}” {verdicts} Of all heads, head {_name(filled, int(head))} attends most to one token from the "
        f"first blank: to “{names[position]}” ({filled.heads[head, position]:.2f})."
    )


def _name(filled: Filled, head: int) -> str:
    per_layer = len(filled.heads) // filled.num_layers
    return f"{head // per_layer + 1}.{head % per_layer + 1}"


def _sentence_html(filled: Filled) -> str:
    """The sentence with the model's words in its blanks; `column-j` links it with the map of the heads."""
    body, blanks = "", {position: number for number, position in enumerate(filled.places)}
    for position, word in enumerate(filled.words):
        space = "" if not body or word.text == "." or body.endswith("&#x27;</span>") else " "
        if position in blanks:
            said = filled.likeliest(blanks[position])[0]
            colour = {True: PALETTE["green"], False: PALETTE["vermilion"]}.get(said == word.text if word.text else None)
            mark = {True: " ✓", False: " ✗"}.get(said == word.text if word.text else None, "")
            style = f"border:2px solid {colour or 'currentColor'};border-radius:4px;padding:0 .25em"
            shown = f'<b style="{style}">{html.escape(said)}{mark}</b>'
        else:
            shown = html.escape(word.text)
        ground = ""
        if not filled.places:
            share = filled.seen[position]
            strength = min(0.55, -0.07 * math.log2(max(share, 1e-9)))
            ground = f' style="background-color:rgba(230,159,0,{strength:.2f})" title="{share:.0%}"'
        body += f'{space}<span class="column-{position + 1}"{ground}>{shown}</span>'
    return f'<p style="font-size:1.6em;line-height:1.5;margin:.2em 0">{body}</p>'


def _html(filled: Filled) -> str:
    sentence = _sentence_html(filled)
    if not filled.places:
        return (
            f"{sentence}<p>No word is hidden: click one. The stronger a word's colour, the less the model would expect "
            "it if it alone were hidden.</p>"
        )
    bars = "".join(
        f'<div style="margin-bottom:.6em">'
        f"{token_bars(filled.best(blank), label=_verdict(filled, blank)).replace('width:14em', 'width:9em')}</div>"
        for blank in range(len(filled.places))
    )
    rows = [f"head {_name(filled, head)}" for head in range(len(filled.heads))]
    columns = ["[CLS]", *(MASK if word.hidden else word.text for word in filled.words), "[SEP]"]
    which = "first blank" if len(filled.places) > 1 else "blank"
    label = f"Attention of each head (layer.head) from the {which}: point at one, and its words light up"
    table = heat_map(filled.heads, rows, columns, label=label)
    both = f'<div style="display:flex;flex-wrap:wrap;gap:.4em 2.4em"><div>{bars}</div>{table}</div>'
    return linked(f"{sentence}{both}", filled.heads)
