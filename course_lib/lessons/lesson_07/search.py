"""A search over the course's own pages: by meaning, with one vector for each sentence, beside counting shared words.

Reimers & Gurevych, "Sentence-BERT", EMNLP 2019, arXiv 1908.10084. Salton & Buckley, "Term-weighting approaches in
automatic text retrieval", Information Processing & Management 24, 1988, for tf-idf.
"""

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.classroom.widgets import Choice, Explorer, Goal, TextBox
from course_lib.classroom.widgets.explorer import State
from course_lib.classroom.widgets.sentence import split_words
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_07.sentences import Passage, minilm, ours, passages
from course_lib.viz.style import PALETTE

Encoder = Callable[[Sequence[str]], Float[Tensor, "N D"]]

HITS = 4
AT_ONCE = 600  # sentences whose vectors a page may make at the start: some seconds
MAX_WORDS = 60
COMMON = 0.04  # a word in more of the sentences than this says nothing about them
QUESTIONS = (
    "How does a decoder avoid cheating?",
    "Is a single run enough to tell which network is better?",
    "translate into another language",
    "What is hidden from the model?",
)
_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z“‘\"'(])")


class Hit(NamedTuple):
    """A sentence of the course and how near it is to the question."""

    passage: Passage
    score: float
    shared: frozenset[str]  # words of the question that are in it, common ones left out


class Found(NamedTuple):
    """What each search finds, the nearest first."""

    by_meaning: list[Hit]
    by_words: list[Hit]  # none where no word is shared


class Remembering:
    """An encoder that encodes each text once."""

    def __init__(self, encoder: Encoder):
        self.encoder, self.name = encoder, getattr(encoder, "name", "an encoder")
        self._vectors: dict[str, Tensor] = {}

    def __call__(self, texts: Sequence[str]) -> Float[Tensor, "N D"]:
        new = [text for text in texts if text not in self._vectors]
        self._vectors |= dict(zip(new, self.encoder(new), strict=True)) if new else {}
        return torch.stack([self._vectors[text] for text in texts])


class Shelf:
    """The sentences of some pages, their vectors and their words."""

    def __init__(self, encoder: Encoder, found: Sequence[Passage]):
        self.encoder, self.sentences = encoder, sentences(found)
        if not self.sentences:
            raise ValueError("There is no sentence to search in: the pages of these lessons are not there.")
        self.words = [Counter(words_of(sentence.text)) for sentence in self.sentences]
        self.occurs = Counter(word for words in self.words for word in words)

    @cached_property
    def vectors(self) -> Float[Tensor, "N D"]:
        """Of the sentences; those of like length together, since a batch is padded to its longest."""
        texts = [sentence.text for sentence in self.sentences]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors = F.normalize(self.encoder([texts[i] for i in order]), dim=-1)
        return vectors[torch.tensor(order).argsort()]

    @cached_property
    def neighbours(self) -> Float[Tensor, " N"]:
        """How near each sentence has its nearest neighbour."""
        return (self.vectors @ self.vectors.T - 2 * torch.eye(len(self.vectors))).max(dim=1).values

    def is_common(self, word: str) -> bool:
        return self.occurs[word] > max(2, COMMON * len(self.sentences))

    def search(self, question: str) -> Found:
        """Raises ValueError for a question without words, or with too many."""
        asked = words_of(question)
        if not asked:
            raise ValueError("Type a question or a few words.")
        if len(asked) > MAX_WORDS:
            raise ValueError(f"This question has {len(asked)} words; please keep to {MAX_WORDS}.")
        near = self.vectors @ F.normalize(self.encoder([question])[0], dim=0)
        return Found(self._hits(near, asked), self._hits(self._shared_words(asked), asked, least=1e-6))

    def _shared_words(self, asked: Sequence[str]) -> Float[Tensor, " N"]:
        """The cosine of tf-idf vectors: each word counts by ln(sentences / sentences that have it)."""

        def weights(words: Counter[str]) -> dict[str, float]:
            total = len(self.sentences)
            return {word: n * math.log(total / self.occurs[word]) for word, n in words.items() if self.occurs[word]}

        def length(weighted: dict[str, float]) -> float:
            return math.sqrt(sum(weight**2 for weight in weighted.values())) or 1.0

        question = weights(Counter(asked))
        scores = []
        for words in self.words:
            sentence = weights(words)
            shared = sum(weight * sentence.get(word, 0.0) for word, weight in question.items())
            scores.append(shared / (length(question) * length(sentence)))
        return torch.tensor(scores)

    def _hits(self, scores: Float[Tensor, " N"], asked: Sequence[str], least: float = -1.0) -> list[Hit]:
        best = scores.topk(min(HITS, len(scores)))
        return [
            Hit(self.sentences[i], score, frozenset(w for w in asked if self.words[i][w] and not self.is_common(w)))
            for i, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if score > least
        ]


def words_of(text: str) -> list[str]:
    """In small letters; Bahdanau's counts as Bahdanau."""
    return [re.sub("['’]s$", "", word) for word in split_words(text)]


def sentences(found: Sequence[Passage]) -> list[Passage]:
    """Each sentence of five words or more, once; those with mathematics in them are left out."""
    parts = [Passage(part.lesson, part.heading, text.strip()) for part in found for text in _END.split(part.text)]
    kept = {part.text: part for part in parts if len(part.text.split()) >= 5 and "\\" not in part.text}
    return list(kept.values())


# --------------------------------------------------------------------------------------------------- the playground


def search(encoder: Encoder | None = None, found: Sequence[Passage] | None = None) -> Explorer:
    """A question, and the sentences of the course's pages nearest to it, by meaning and by shared words.

    `encoder` gives each text a vector: MiniLM where it is installed, or else `bert`, unless told. `found` are the
    paragraphs to search in: all pages that there are, unless told; vectors are made when a choice needs them.
    """
    encoder = encoder or minilm() or ours(load_trained("bert").model)
    found = passages() if found is None else list(found)
    lessons = list(dict.fromkeys(part.lesson for part in found))
    shelves: dict[str, Shelf] = {}
    encoder = Remembering(encoder)

    def shelf(state: State) -> Shelf:
        where = state["where"]
        if where not in shelves:
            shelves[where] = Shelf(encoder, [part for part in found if where in ("", part.lesson)])
        return shelves[where]

    latest: dict[tuple[str, str], Found] = {}

    def result(state: State) -> Found:
        key = state["where"], " ".join(state["question"].split())
        if key not in latest:
            answer = shelf(state).search(key[1])
            latest.clear()
            latest[key] = answer
        return latest[key]

    options = {"all pages": ""} | {f"lesson {lesson}": lesson for lesson in lessons}
    start = "" if len(sentences(found)) <= AT_ONCE else lessons[0]
    neighbours = shelf({"where": start}).neighbours
    near, lonely = float(neighbours.median()), float(neighbours.min())
    goals = (
        Goal(
            f"the first hit by meaning has no rare word of your question, and a cosine above {near:.2f}",
            lambda at: by_meaning_only(result(at), near),
        ),
        Goal("both searches put the same sentence first", lambda at: agree(result(at))),
        Goal(
            f"a question that is far from every sentence: no cosine above {lonely:.2f}",
            lambda at: result(at).by_meaning[0].score < lonely,
        ),
    )
    return Explorer(
        name="search",
        title=f"Search the course's own pages, with the vectors of {encoder.name}",
        controls=[
            TextBox(name="question", label="Question", value=QUESTIONS[0], examples=QUESTIONS),
            Choice(name="where", label="In", options=options, value=start),
        ],
        draw=lambda state: _html(result(state)),
        alt=lambda state: _in_words(result(state)),
        speaks=True,
        height="27em",
        goals=goals,
        steps={"question": QUESTIONS},
        script="search",
        config={
            "examples": QUESTIONS,
            "options": [("all", ""), *((lesson, lesson) for lesson in lessons)],
            "start": {"question": QUESTIONS[0], "where": start},
            "encoder": encoder.name,
            "near": near,
            "lonely": lonely,
        },
        answers={"search": lambda state: _answer(result(state))},
    )


def by_meaning_only(found: Found, near: float) -> bool:
    """Whether the nearest sentence is near, though it has no word of the question but common ones."""
    first = found.by_meaning[0]
    return not first.shared and first.score > near


def agree(found: Found) -> bool:
    """Whether both searches have the same sentence on top."""
    return bool(found.by_words) and found.by_words[0].passage == found.by_meaning[0].passage


# ---------------------------------------------------------------------------------------------------- the drawing


def _pieces(hit: Hit) -> list[tuple[str, bool]]:
    """The sentence in pieces, each with whether it is a word that the question has, too."""
    pieces = re.split(r"([^\W_]+(?:['’-][^\W_]+)*)", hit.passage.text)
    return [(piece, bool(hit.shared & set(words_of(piece)))) for piece in pieces if piece]


def _from(hit: Hit) -> str:
    return f"lesson {hit.passage.lesson}, {hit.passage.heading}"


def _answer(found: Found) -> dict[str, list[dict]]:
    """What the page draws."""

    def hits(of: list[Hit]) -> list[dict]:
        return [{"pieces": _pieces(hit), "score": hit.score, "from": _from(hit)} for hit in of]

    return {"meaning": hits(found.by_meaning), "words": hits(found.by_words)}


def _marked(hit: Hit) -> str:
    """The sentence with the words that it shares in bold."""
    return "".join(f"<b>{html.escape(text)}</b>" if bold else html.escape(text) for text, bold in _pieces(hit))


def _list_html(title: str, hits: list[Hit], colour: str, none: str) -> str:
    items = "".join(
        f'<li style="margin:0 0 .5em"><div style="display:flex;align-items:center;gap:.5em"><div aria-hidden="true" '
        f'style="width:{max(0.0, 7 * hit.score):.2f}em;height:.7em;background-color:{colour}"></div>{hit.score:.2f} '
        f"<small>{html.escape(_from(hit))}</small></div>{_marked(hit)}</li>"
        for hit in hits
    )
    style = "margin:.3em 0 0;padding-left:1.4em"
    body = f'<ol class="course-found" style="{style}">{items}</ol>' if hits else f"<p>{none}</p>"
    return f'<div style="flex:1 1 22em;max-width:34em;line-height:1.35"><b>{title}</b>{body}</div>'


def _html(found: Found) -> str:
    left = _list_html("by meaning: cosine of the vectors", found.by_meaning, PALETTE["blue"], "")
    none = "No sentence has a word of yours."
    right = _list_html("by words: tf-idf, what they share in bold", found.by_words, PALETTE["orange"], none)
    on_slides = "<style>.reveal .course-found li:nth-child(n+3) {display:none}</style>"
    return f'{on_slides}<div style="display:flex;flex-wrap:wrap;gap:.6em 2.4em">{left}{right}</div>'


def _in_words(found: Found) -> str:
    def said(hit: Hit) -> str:
        return f"“{hit.passage.text}” ({_from(hit)}; {hit.score:.2f})"

    words = f"By words: {said(found.by_words[0])}." if found.by_words else "By words nothing is found."
    same = " Both put the same sentence first." if agree(found) else ""
    return f"By meaning the nearest sentence is {said(found.by_meaning[0])}. {words}{same}"
