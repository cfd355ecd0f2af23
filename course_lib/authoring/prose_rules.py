"""What a program can see of a lesson's prose: terms of the field, definitions first, symbols declared, short sentences.

Learners' text is the Markdown of the notebook and of the lesson's folder, without code.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import course_lib
from course_lib.authoring.lesson_pages import Lesson

WORDS_IN_A_SENTENCE, WORDS_IN_PARENTHESES = 32, 12
NOT_THE_FIELDS = {  # what papers do not call it: what they do
    r"places?": "position, pixel, index",
    r"shares?": "probability, fraction, percentage",
    r"named right|shares? right": "accuracy, classified correctly",
    r"looks? at|hears? of": "attends to",
    r"dear(?:er|est)?|cheap(?:er|est|ly)?": "expensive, low cost",
    r"trunks?": "backbone, encoder",
    r"way around|detours?": "skip connection, residual connection",
    r"(?<!feature )(?<!attention )(?<!heat )maps?": "feature map, attention map",
    r"(?<!ground )truth": "ground truth, label",
    r"judges?": "discriminator",
    r"walks?|walkers?": "trajectory, agent",
    r"paint(?:s|ed|ing)?|repair(?:s|ed|ing)?": "reconstruct, reconstruction",
    r"pictures?": "image",
    r"(?<!model )cards?": "results file, model card",
    r"bets?": "prediction",
    r"told|paid": "conditioned on, labelled, evaluated, rewarded",
    r"by lot|(?-i:dice)": "at random, sampling",
    r"goes? on|writing": "generation, continuation, autoregressive decoding",
    r"likeliest": "argmax, greedy decoding",
    r"turns in circles": "repetition, degenerate loops",
    r"grain": "resolution",
    r"by heart": "memorised",
    r"spreads?": "standard deviation",
    r"whole game": "end to end",
    r"(?<!learning )(?<!error )(?<!frame )(?<!sampling )rates?": "learning rate",
    r"(?<!U-)nets?": "network",
    r"foreign": "off-distribution",
    r"contestants?": "methods, baselines, variants",
}
NOTATION = (  # of the whole course
    *("x", "y", "h", "W", "z", "p", r"\theta", "L", r"\eta", "B", "T", "N", "D", "H", "C", "V"),
    *("e", r"\pi", "i", "j", "k", "n", "t", "d"),  # numbers and indices as everywhere
)
COMMANDS = (
    r"theta|eta|alpha|beta|gamma|delta|epsilon|lambda|mu|sigma|tau|phi|psi|rho|kappa|Lambda|Sigma|Delta|Theta|Phi"
)
SYMBOL = re.compile(rf"\\(?:{COMMANDS})\b|(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
ALONE = re.compile(r"\$(\\?[A-Za-z]+)(?:[_^](?:\{[^}]*\}|\w))*\$")  # as where a text says what it is
MATH = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)


class Prose(NamedTuple):
    """One of a lesson's texts: where it stands, and its Markdown without code."""

    where: str
    text: str

    @property
    def plain(self) -> str:
        """The text without mathematics, links and marks of Markdown."""
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", MATH.sub("x", self.text))
        return re.sub(r"^[ \t]*(?:[-*>|#]+|\d+\.)[ \t]*(?:\[[ x]\])?", "\n\n", words, flags=re.MULTILINE)

    @property
    def sentences(self) -> list[str]:
        """The sentences of the text; a list's item, a heading, a cell of a table each stand alone."""
        blocks = re.split(r"\n\s*\n|\|", self.plain)
        return [" ".join(one.split()) for block in blocks for one in re.split(r"(?<=[.!?:;])\s+(?=[A-Z*\"“])", block)]


class LessonProse:
    """All that a learner reads of a lesson."""

    def __init__(self, lesson: Lesson):
        folder = Path(course_lib.__file__).parent / "lessons" / f"lesson_{lesson.path.name[:2]}"
        cells = enumerate(lesson.notebook.cells)
        self.texts = [_prose(lesson.where(index), cell.source) for index, cell in cells if cell.cell_type == "markdown"]
        self.page = list(self.texts)
        self.texts += [_prose(file.name, file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.md"))]

    @cached_property
    def math(self) -> list[tuple[str, str]]:
        """Each formula with where it stands."""
        return [(prose.where, formula) for prose in self.texts for formula in MATH.findall(prose.text)]


def _prose(where: str, text: str) -> Prose:
    text = re.sub(r"^ *(`{3,}).*?^ *\1", "", text, flags=re.DOTALL | re.MULTILINE)
    return Prose(where, re.sub(r"`[^`\n]+`", "x", re.sub(r"<[^>]+>", " ", text)))


def private_words(prose: LessonProse) -> Iterator[str]:
    """No word that the course's glossary replaces by the field's own."""
    for text in prose.texts:
        for pattern, instead in NOT_THE_FIELDS.items():
            for found in re.findall(rf"\b(?:{pattern})\b", text.plain, re.IGNORECASE):
                yield f"{text.where} has {found!r}; the field says: {instead}"


def terms_before_definitions(prose: LessonProse) -> Iterator[str]:
    """A term that the page defines, in bold, is not used above its definition."""
    whole = "\n\n".join(text.text for text in prose.page)
    defined: set[str] = set()
    for found in re.finditer(r"\*\*([a-z][\w -]{3,40})\*\*", whole):
        term, before = found[1], whole[: found.start()]
        if term not in defined and re.search(rf"\b{re.escape(term)}\b", before, re.IGNORECASE):
            yield f"the term {term!r} is used above the sentence that defines it"
        defined.add(term)


def undeclared_symbols(prose: LessonProse) -> Iterator[str]:
    """A symbol of a formula is in the course's notation, or the lesson says in words what it is."""
    declared = {found[1] for _, formula in prose.math if (found := ALONE.fullmatch(formula))} | set(NOTATION)
    for symbol in dict.fromkeys(
        symbol
        for _, formula in prose.math
        for symbol in SYMBOL.findall(re.sub(r"\\(?:text|mathrm|operatorname)\{[^}]*\}", "", formula))
    ):
        if symbol not in declared:
            yield f"the symbol {symbol} is not declared"


def long_sentences(prose: LessonProse) -> Iterator[str]:
    """No sentence of more than 32 words."""
    for text in prose.texts:
        for sentence in text.sentences:
            if (words := len(sentence.split())) > WORDS_IN_A_SENTENCE:
                yield f"{text.where} has a sentence of {words} words: {sentence[:60]}..."


def long_parentheses(prose: LessonProse) -> Iterator[str]:
    """Nothing of more than twelve words in parentheses."""
    for text in prose.texts:
        for aside in re.findall(r"\(([^()]+)\)", text.plain):
            if (words := len(aside.split())) > WORDS_IN_PARENTHESES:
                yield f"{text.where} has {words} words in parentheses: ({aside[:50]}...)"


PROSE_RULES: tuple[Callable[[LessonProse], Iterator[str]], ...] = (
    private_words,
    terms_before_definitions,
    undeclared_symbols,
    long_sentences,
    long_parentheses,
)
