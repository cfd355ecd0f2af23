"""From a docstring to its paragraphs: no headings, lists, tables, code or marks of reStructuredText."""

import itertools
import re
from collections.abc import Iterator

_SKIPPED_SECTIONS = re.compile(r"(references?|see also|examples?|methods|raises|warns|usage)(:|$)", re.IGNORECASE)
_LISTS = re.compile(
    r"(other |keyword )*(parameters|arg(ument)?s|returns?|yields|attributes|raises|inputs?|outputs?|shape|examples?):",
    re.IGNORECASE,
)
_UNDERLINE = re.compile(r"([=\-~^\"'#*+])\1{2,}$")
# a list item, a directive or comment, a doctest, a field (but not a role such as :func:)
_ASIDE = re.compile(r"([-*+\u2022]|\(?(\d{1,3}|[a-zA-Z]|[ivx]+)[.)])\s+|\.\.|>>>|:(?![\w:+.-]+:`)|In \[|@\w+:?\s")
_KEPT_DIRECTIVE = re.compile(r"\.\. (note|warning|important|hint|tip|caution|attention)::$", re.IGNORECASE)
_MARKS = (
    (re.compile(r":[\w:+.-]+:`[~!.]?(?:[^`<]*\.)?([^`<.]+?)(?:\s*<[^>`]*>)?`"), r"\1"),  # :func:`~numpy.fft.fft`
    (re.compile(r"`([^`<]+?)\s*<[^>`]*>`__?"), r"\1"),  # `text <address>`_
    (re.compile(r"\s?\[[\w.,\s]{1,12}\]_"), ""),  # [1]_
    (re.compile(r"``?([^`]+)``?_?"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*])\*([\w\s-]+)\*(?![\w*])"), r"\1"),
    (re.compile(r"[\u2018\u2019]"), "'"),
    (re.compile(r"[\u201c\u201d]"), '"'),
    (re.compile(r"\s+"), " "),
    (re.compile(r"^(note|notes|warning|caution|tip|important|remark)[:.] +", re.IGNORECASE), ""),
)


def paragraphs(docstring: str) -> Iterator[str]:
    """The running text of a cleaned docstring, one line per paragraph.

    A paragraph is a run of lines of one indentation. Left out are references and examples, headings, terms and lists,
    directives other than notes, the input of doctests, and what is indented after a line that ends with "::".
    """
    lines = [*docstring.expandtabs().splitlines(), ""]
    skipping = False  # inside a section that is left out, up to the next heading
    hidden_beyond: int | None = None  # deeper lines belong to a list, a directive, code or a section
    block: list[str] = []
    block_indent = 0
    for line, following in itertools.pairwise([*lines, ""]):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        heading = bool(text) and bool(_UNDERLINE.match(following.strip()))
        if block and (not text or heading or indent != block_indent):
            if block[-1].endswith("::"):
                hidden_beyond = block_indent
            elif not skipping and not (text and indent > block_indent):  # else a term before its definition
                yield _without_marks(" ".join(block))
            block = []
        if heading:
            skipping, hidden_beyond = bool(_SKIPPED_SECTIONS.fullmatch(text)), None
        elif not text or _UNDERLINE.match(text) or (hidden_beyond is not None and indent > hidden_beyond):
            continue
        elif _KEPT_DIRECTIVE.match(text):
            hidden_beyond = None
        elif _ASIDE.match(text) or _LISTS.fullmatch(text):
            hidden_beyond = indent
        else:
            hidden_beyond = None
            block, block_indent = [*block, text], indent


def _without_marks(text: str) -> str:
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return text.strip()
