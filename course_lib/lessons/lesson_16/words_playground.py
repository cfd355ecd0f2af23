"""What one plays with in lesson 16: a search of icons by words."""

import html
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8

from course_lib.classroom.widgets import Choice, Explorer, Goal, TextBox, in_base64, in_rows, pixel_image
from course_lib.data.icons import SIZE, icon_names, icons
from course_lib.lessons.lesson_16.recipes import icon_words
from course_lib.models.clip import CLIP

HITS = 6
EXAMPLES = ("sunflower", "yellow face", "green book", "fish", "kitten")
SETS = {
    "known things by a new designer": "new designer",
    "unseen things": "new names",
    "new drawings by known designers": "test",
}
LONGEST = 40  # characters of a query
SURE = 0.6  # a cosine


class Hit(NamedTuple):
    """An icon that was found."""

    name: str
    cosine: float
    pixels: UInt8[np.ndarray, "H W 3"]


def search(model: CLIP) -> Explorer:
    """A query in words, and the icons with the highest cosine among drawings that training lacks."""
    known = {icon_names()[number] for number in icon_words.known_names().tolist()}

    @lru_cache(maxsize=64)
    def found(query: str, split: str) -> tuple[Hit, ...]:
        return find(model, query, split)

    def hits(state) -> tuple[Hit, ...]:
        return found(" ".join(state["query"].lower().split()), state["where"])

    def words(state) -> str:
        return said(state["query"].strip(), hits(state))

    def is_name(state) -> bool:
        return " ".join(state["query"].lower().split()) in known

    def has(state, first: int) -> bool:
        return any(hit.name == " ".join(state["query"].lower().split()) for hit in hits(state)[:first])

    def answer(asked) -> dict[str, Any]:
        """What the page asks for: the icons with their pixels, and whether training had the name."""
        rows = [{"name": hit.name, "cosine": hit.cosine, "pixels": in_base64(hit.pixels)} for hit in hits(asked)]
        return {"hits": rows, "known": is_name(asked)}

    return Explorer(
        name="search",
        title="Search icons by words",
        controls=[
            TextBox(name="query", label="Words", value=EXAMPLES[0], examples=EXAMPLES),
            Choice(name="where", label="Among", options=SETS),
        ],
        draw=lambda state: drawn(hits(state), words(state)),
        alt=words,
        speaks=True,
        goals=(
            Goal(
                "an unseen name that finds its icon first, among the unseen things",
                lambda state: state["where"] == "new names" and has(state, 1),
            ),
            Goal(
                "a training name whose icon by the new designer is not among the first six",
                lambda state: state["where"] == "new designer" and is_name(state) and not has(state, HITS),
            ),
            Goal(
                f"words that are no training name, with a cosine above {SURE}",
                lambda state: not is_name(state) and hits(state)[0].cosine > SURE,
            ),
        ),
        steps={"query": EXAMPLES[:1]},
        script="iconsearch",
        config={
            "examples": EXAMPLES,
            "options": list(SETS.items()),
            "side": SIZE,
            "hits": HITS,
            "sure": SURE,
            "start": {"query": EXAMPLES[0], "where": next(iter(SETS.values()))},
        },
        answers={"search": answer},
    )


@torch.no_grad()
def find(model: CLIP, query: str, split: str) -> tuple[Hit, ...]:
    """The icons of a split with the highest cosine. Raises ValueError for no words, or too many."""
    if not query:
        raise ValueError("Type a word or two.")
    if len(query) > LONGEST:
        raise ValueError(f"This query has {len(query)} characters; please keep to {LONGEST}.")
    texts = icon_words.encoded([query])
    if texts.tokens.shape[1] > model.config.text.context_length:
        raise ValueError("This query has too many word pieces; please use fewer words.")
    features, numbers = icon_words.drawings(split)
    best = (model.embed_images(features) @ model.embed_texts(*texts)[0]).topk(HITS)
    pixels = icons(split).on(1.0)[best.indices].permute(0, 2, 3, 1)
    levels = (255 * pixels).round().to(torch.uint8).numpy()
    rows = zip(numbers[best.indices].tolist(), best.values.tolist(), levels, strict=True)
    return tuple(Hit(icon_names()[number], cosine, image) for number, cosine, image in rows)


def said(query: str, found: Sequence[Hit]) -> str:
    """What was found, in words."""
    listed = ", ".join(f"{hit.name} ({hit.cosine:.2f})" for hit in found)
    return f"The icons with the highest cosine for “{query}”: {listed}."


def drawn(found: Sequence[Hit], words: str) -> str:
    """The icons in a row, each above its name and its cosine."""
    cells = "".join(
        '<div style="width:8em">'
        + in_rows([[pixel_image(hit.pixels, 96, hit.name)]], "")
        + f'<div style="line-height:1.2">{html.escape(hit.name)}<br>{hit.cosine:.2f}</div></div>'
        for hit in found
    )
    return f'<div><div style="display:flex;flex-wrap:wrap;gap:.6em">{cells}</div><p>{html.escape(words)}</p></div>'


PLAYGROUNDS = {"search": search}
