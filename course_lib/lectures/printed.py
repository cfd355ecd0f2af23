"""What a cell printed, set for a hall: aligned columns as a table, a matrix as a grid, a sentence as a sentence."""

import ast
import html
import re
from collections.abc import Iterator, Sequence
from functools import cache

MATRIX = re.compile(r"^tensor\((\[\[[^a-z]*?\]\])(?:, dtype=[\w.]+)?\)$", re.MULTILINE)
NUMBER = re.compile(r"[-+]?[\d.,]+( ?%)?")
PIECES = re.compile(r"Ġ|##|</w>|^[\[(]")  # tokens, lists, shapes: a cell in the typeface of code
NAME = re.compile(r"\S*(?:\w_\w|[{}#]\S*\.|\w\.\w+\.\w)\S*")  # of a parameter or a function
SHORT = 16  # characters of a cell that is not broken
WRAPPED = 60  # a line at least as long goes on in the next one, if that is indented; a shorter one ends where it does


def printed_html(text: str) -> str:
    """Printed text as HTML, in its order."""
    made = ""
    for number, part in enumerate(re.split(MATRIX, text.strip("\n"))):
        made += _grid(ast.literal_eval(part)) if number % 2 else "".join(_blocks(_lines(part)))
    return f'<div class="printed">{made}</div>'


def _lines(text: str) -> list[str]:
    """The lines, each with the indented ones that go on with it."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("    ") and lines:
            lines[-1] += (" " if len(lines[-1]) >= WRAPPED else "\n") + line.strip()
        elif line.strip():
            lines.append(line.rstrip())
    return lines


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Paragraphs and tables: blocks of lines, chosen so that as many cells as possible stand below each other."""

    @cache
    def best(start: int) -> tuple[int, tuple[int, ...]]:
        """How many cells can be aligned from this line on, and where the blocks end."""
        if start == len(lines):
            return 0, ()
        ways = []
        for end in range(len(lines), start, -1):
            columns = len(_columns(lines[start:end])) if end > start + 1 else 1
            cells, ends = best(end)
            if columns > 1 or end == start + 1:
                ways.append(((end - start) * (columns - 1) + cells, (end, *ends)))
        return max(ways, key=lambda way: way[0])

    start = 0
    for end in best(0)[1]:
        block = lines[start:end]
        yield f"<p>{_words(block[0])}</p>" if len(block) == 1 else _table(_columns(block))
        start = end


def _columns(lines: Sequence[str], inner: bool = False) -> list[list[str]]:
    """The columns of some lines: where they are aligned, else what stands before and behind a colon, or an arrow."""
    width = max(map(len, lines))
    cuts = _cuts([line.ljust(width) for line in lines])
    if cuts:
        bounds = [0, *(at for cut in cuts for at in cut), width]
        parts = [[line[a:b].strip() for line in lines] for a, b in zip(bounds[::2], bounds[1::2], strict=True)]
    elif all(": " in line for line in lines):
        parts = [list(part) for part in zip(*(line.split(": ", 1) for line in lines), strict=True)]
    elif all(" -> " in line for line in lines):
        parts = [list(part) for part in zip(*(line.rsplit(" -> ", 1) for line in lines), strict=True)]
    elif inner and len({line.count(", ") for line in lines}) == 1 and re.search(r"^[^\[(]*, [^\[(]*$", lines[0]):
        parts = [list(part) for part in zip(*(line.split(", ") for line in lines), strict=True)]
    else:
        return [[line.strip().rstrip(",:;") for line in lines]]
    return [column for number, part in enumerate(parts) for column in _columns(part, inner=inner or number > 0)]


def _cuts(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Where columns end and begin: all lines have a space there, and one of them two or more side by side."""
    free = "".join(" " if all(line[at] == " " for line in lines) else "x" for at in range(len(lines[0])))
    found: list[tuple[int, int]] = []
    for river in reversed(list(re.finditer(r"(?<=x) +(?=x)", free))):  # the last of several is behind the longest cell
        start, end = river.span()
        last = found[-1][0] if found else len(free)
        filled = all(line[:start].strip() and line[end:last].strip() for line in lines)
        if filled and any("  " in line[start - 1 : end + 1] for line in lines):
            found.append((start, end))
    return found[::-1]


def _table(columns: Sequence[Sequence[str]]) -> str:
    numbers = [all(NUMBER.fullmatch(cell) for cell in column) for column in columns]
    rows = "".join(
        "<tr>" + "".join(_cell(cell, number) for cell, number in zip(row, numbers, strict=True)) + "</tr>"
        for row in zip(*columns, strict=True)
    )
    return f"<div><table><tbody>{rows}</tbody></table></div>"


def _cell(text: str, number: bool) -> str:
    kind = "number" if number else "short" if len(text) <= SHORT else ""
    return f'<td class="{kind}">{_words(text)}</td>' if kind else f"<td>{_words(text)}</td>"


def _words(text: str) -> str:
    """A sentence, with names in the typeface of code and real arrows; tokens, lists and shapes are all in it."""
    if PIECES.search(text):
        return f"<code>{html.escape(text)}</code>"
    text = html.escape(text).replace("-&gt;", "→").replace("\n", "<br>")
    return NAME.sub(lambda found: f"<code>{found[0]}</code>", text)


def _grid(matrix: Sequence[Sequence[float]]) -> str:
    rows = "".join("<tr>" + "".join(f"<td>{number:g}</td>" for number in row) + "</tr>" for row in matrix)
    return f'<table class="grid"><tbody>{rows}</tbody></table>'
