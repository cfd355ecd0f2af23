"""An exam in LaTeX, with packages of every TeX distribution only; what it says is that of the Markdown exam."""

import re
from collections.abc import Iterator
from itertools import groupby

from course_lib.teaching.exams import markdown
from course_lib.teaching.exams.markup import Target, convert
from course_lib.teaching.exams.paper import Item, Paper

GREEK = "alpha beta gamma delta epsilon eta theta lambda mu pi rho sigma tau phi omega"
SPECIAL = str.maketrans(
    {char: rf"\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"×": r"$\times$", "→": r"$\to$", "≤": r"$\leq$", "≥": r"$\geq$", "−": "$-$", "±": r"$\pm$", "…": r"\dots{}"}
    | {"·": r"$\cdot$", "‖": r"$\|$", "²": "$^2$", "ᵀ": r"$^\top$"}
    | {letter: rf"$\{name}$" for letter, name in zip("αβγδεηθλμπρστφω", GREEK.split(), strict=True)}
)
LATEX = Target(
    escape=lambda text: text.translate(SPECIAL),
    block=lambda code: f"\\begin{{verbatim}}\n{code}\n\\end{{verbatim}}",
    code=lambda code: rf"\texttt{{{code.translate(SPECIAL)}}}",
    math=lambda formula: f"${formula}$",
    bold=r"\\textbf{\1}",
    italic=r"\\emph{\1}",
    paragraph="{}\n",
    gap=lambda number: rf"\textbf{{({number})}}~\underline{{\hspace{{3em}}}}",
)
LIST = re.compile(r"(- \[[ x]\]|-|1\.) ")
LISTS = {"- [ ]": r"\item[$\square$]", "- [x]": r"\item[$\boxtimes$]", "-": r"\item", "1.": r"\item"}
HEAD = r"""\documentclass[11pt,a4paper]{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{lmodern}
\usepackage{amsmath,amssymb}
\usepackage[margin=25mm]{geometry}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.5em}
\begin{document}
"""
TABLE = r"\begin{tabular}{rlllr}" "\n" r"question & lesson & kind & points & minutes \\ \hline"


def exam(paper: Paper) -> str:
    """The paper that students get, with space for the answers."""
    lines = [rf"\section*{{{markdown.title(paper)}}}", convert(markdown.facts(paper), LATEX)]
    lines += [r"Name: \underline{\hspace{8cm}}", "", convert(markdown.RULES, LATEX)]
    for number, item in enumerate(paper.items, start=1):
        lines += [*_blocks(markdown.question(number, item, gap=r"[[\1]]")), rf"\vspace{{{_space(item)}cm}}"]
    return f"{HEAD}{chr(10).join(lines)}\n\\end{{document}}\n"


def solutions(paper: Paper) -> str:
    """The solutions and the marking scheme."""
    lines = [rf"\section*{{{markdown.title(paper)}: solutions and marking scheme}}"]
    lines += [convert(markdown.facts(paper), LATEX), TABLE]
    lines += [rf"{' & '.join(row)} \\" for row in markdown.overview(paper)] + [r"\end{tabular}"]
    for number, item in enumerate(paper.items, start=1):
        lines += _blocks(markdown.solution(number, item))
    return f"{HEAD}{chr(10).join(lines)}\n\\end{{document}}\n"


def unprintable(item: Item) -> str:
    """The characters of a question and its solution that LaTeX has no sign for with these packages."""
    lines = [*_blocks(markdown.question(1, item)), *_blocks(markdown.solution(1, item))]
    return "".join(sorted({letter for line in lines for letter in line if ord(letter) > 0xFF}))


def _space(item: Item) -> int:
    """Centimetres for an answer: more points, more lines; options are marked where they stand."""
    if item.options or item.gaps:
        return 1
    return 2 if item.accepted or item.steps else 1 + 2 * item.question.points


def _blocks(lines: list[str]) -> Iterator[str]:
    """A question's lines as LaTeX: its heading, lists, and all else as paragraphs and code."""
    fenced, kinds = False, []
    lines = "\n".join(lines).split("\n")
    for line in lines:
        fence = line.startswith("```")
        kinds.append("" if fenced or fence else "heading" if line.startswith("## ") else _list_of(line))
        fenced ^= fence
    for kind, group in groupby(zip(kinds, lines, strict=True), key=lambda pair: pair[0]):
        texts = [line for _, line in group]
        if kind == "heading":
            yield rf"\subsection*{{{convert(texts[0].removeprefix('## '), LATEX).strip()}}}"
        elif kind:
            items = [f"{LISTS[LIST.match(line)[1]]} {convert(LIST.sub('', line, count=1), LATEX)}" for line in texts]
            yield "\n".join([rf"\begin{{{kind}}}", *items, rf"\end{{{kind}}}"])
        elif any(text.strip() for text in texts):
            yield convert("\n".join(texts), LATEX)


def _list_of(line: str) -> str:
    found = LIST.match(line)
    return "" if not found else "enumerate" if found[1] == "1." else "itemize"
