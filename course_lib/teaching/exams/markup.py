"""The Markdown of a question: prose, `code`, code blocks and $formulas$, with drawn numbers filled in."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from course_lib.teaching.exams.arithmetic import evaluate, names_in

SEGMENT = re.compile(r"(?P<block>^```.*?^```$)|(?P<code>`[^`\n]+`)|(?P<math>\$[^$\n]+\$)", re.MULTILINE | re.DOTALL)
FIRST_KEPT = 0xE000  # of the characters that Unicode leaves to private use
PLACEHOLDER = re.compile(r"\{([^{}\n]+?)(?::(,?(?:\.\d+[ef])?))?\}")


def segments(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with its kind: prose, block, code or math, with their marks."""
    end = 0
    for found in SEGMENT.finditer(text):
        yield "prose", text[end : found.start()]
        yield found.lastgroup, found.group()
        end = found.end()
    yield "prose", text[end:]


def shown(value: float, spec: str | None = None) -> str:
    """A number as a person writes it: whole, or with four significant digits; very large or small ones as powers."""
    if spec:
        return format(value, spec)
    if value == round(value) and abs(value) < 1e9:
        return str(round(value))
    if value and not 1e-3 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.3e}".split("e")
        return rf"${float(mantissa):g} \cdot 10^{{{int(exponent)}}}$"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else str(round(value))


def fill(text: str, values: Mapping[str, float]) -> str:
    """The text with a number for each `{formula}` and `{formula:,}`; formulas of LaTeX and code keep other braces.

    Raises ValueError if braces in prose hold a name that is not drawn, or no formula.
    """
    pieces = ((partial(_filled, kind, values), piece) for kind, piece in segments(text))
    return "".join(PLACEHOLDER.sub(replace, piece) for replace, piece in pieces)


def _filled(kind: str, values: Mapping[str, float], found: re.Match) -> str:
    """What stands for braces in a piece of this kind."""
    formula, spec = found.groups()
    if kind == "prose":
        return shown(evaluate(formula, values), spec)
    try:
        names = names_in(formula)
    except ValueError:
        names = set()
    if not names or not names <= values.keys():  # braces that belong to LaTeX or to Python
        return found.group()
    number = shown(evaluate(formula, values), spec)
    return f"{{{number.strip('$')}}}" if kind == "math" else number


class Target(NamedTuple):
    """How a format writes each thing."""

    escape: Callable[[str], str]
    block: Callable[[str], str]  # of code, not escaped
    code: Callable[[str], str]  # within a line, not escaped
    math: Callable[[str], str]  # LaTeX without its dollar signs
    bold: str  # \1 stands for what is inside
    italic: str
    paragraph: str
    gap: Callable[[int], str] = "({})".format


def convert(text: str, target: Target) -> str:
    """The text of a question in another format, paragraph by paragraph."""
    kept: list[str] = []  # finished pieces, each a private character in the prose meanwhile
    keep = partial(_keep, kept)
    prose = ""
    for kind, piece in segments(text):
        match kind:
            case "prose":
                pieces = re.split(r"\[\[(\d+)\]\]", piece)  # every other one is the number of a gap
                prose += "".join(
                    keep(target.gap(int(one))) if i % 2 else target.escape(one) for i, one in enumerate(pieces)
                )
            case "block":
                prose += f"\n\n{keep(target.block(chr(10).join(piece.splitlines()[1:-1])))}\n\n"
            case "code":
                prose += keep(target.code(piece[1:-1]))
            case "math":
                prose += keep(target.math(piece[1:-1]))
    prose = re.sub(r"\*\*([^*\n]+)\*\*", target.bold, prose)
    prose = re.sub(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])", target.italic, prose)
    blocks = {chr(FIRST_KEPT + index) for index, piece in enumerate(kept) if "\n" in piece or "<pre>" in piece}
    parts = [part.strip() for part in re.split(r"\n{2,}", prose) if part.strip()]
    done = "\n".join(part if part in blocks else target.paragraph.replace("{}", part) for part in parts)
    return re.sub(f"[{chr(FIRST_KEPT)}-\uf8ff]", lambda found: kept[ord(found.group()) - FIRST_KEPT], done)


def _keep(kept: list[str], piece: str) -> str:
    kept.append(piece)
    return chr(FIRST_KEPT + len(kept) - 1)
