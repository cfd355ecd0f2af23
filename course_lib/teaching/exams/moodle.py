"""An exam as Moodle XML, for "Import" in Moodle's question bank: docs.moodle.org, "Moodle XML format"."""

from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree as ET

from course_lib.teaching.exams import markdown
from course_lib.teaching.exams.bank import Option
from course_lib.teaching.exams.markup import Target, convert
from course_lib.teaching.exams.paper import Item, Paper

HTML = Target(
    escape=lambda text: escape(text, quote=False),
    block=lambda code: f"<pre><code>{escape(code, quote=False)}</code></pre>",
    code=lambda code: f"<code>{escape(code, quote=False)}</code>",
    math=lambda formula: rf"\({escape(formula, quote=False)}\)",
    bold=r"<strong>\1</strong>",
    italic=r"<em>\1</em>",
    paragraph="<p>{}</p>",
)
INLINE = HTML._replace(paragraph="{}")
IN_CLOZE = str.maketrans({char: f"&#{ord(char)};" for char in '{}~#=%/"\\'})  # characters that have a meaning there
NAMES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def exam(paper: Paper) -> str:
    """All questions of the paper, in a category of their own."""
    quiz = ET.Element("quiz")
    category = ET.SubElement(ET.SubElement(quiz, "question", type="category"), "category")
    ET.SubElement(category, "text").text = f"$course$/top/{markdown.title(paper)}, seed {paper.seed}"
    for number, item in enumerate(paper.items, start=1):
        quiz.append(_question(number, item))
    ET.indent(quiz)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(quiz, encoding="unicode")}\n'


def marks_by_hand(paper: Paper) -> list[int]:
    """The numbers of the questions whose marks have to be set in the quiz: Moodle counts one for each of their gaps."""
    return [number for number, item in enumerate(paper.items, start=1) if parts_of(item) and _weight(item) is None]


def parts_of(item: Item) -> int:
    """How many gaps a question has in Moodle."""
    return len(item.gaps) or len(item.steps)


def _weight(item: Item) -> int | None:
    whole, rest = divmod(item.question.points, parts_of(item))
    return None if rest else whole


def _question(number: int, item: Item) -> ET.Element:
    build = _cloze if parts_of(item) else _choice if item.options else _essay if item.aspects else _entry
    question = ET.Element("question")
    _text(question, "name", f"{number:02} {item.question.name}", html=False)
    build(question, item)
    for other in question.findall("answer"):  # Moodle's order: what all questions have, then the answers
        question.remove(other)
        question.append(other)
    return question


def _common(question: ET.Element, item: Item, kind: str, text: str) -> None:
    question.set("type", kind)
    _text(question, "questiontext", text)
    _text(question, "generalfeedback", convert(item.solution, HTML))
    for name, value in (("defaultgrade", item.question.points), ("penalty", 0), ("hidden", 0)):
        ET.SubElement(question, name).text = str(value)


def _text(parent: ET.Element, name: str, text: str, *, html: bool = True) -> ET.Element:
    element = ET.SubElement(parent, name, {"format": "html"} if html else {})
    ET.SubElement(element, "text").text = text
    return element


def _answer(question: ET.Element, fraction: float, text: str, why: str = "", *, html: bool = False) -> ET.Element:
    """An answer and the percentage of the points that it earns."""
    answer = _text(question, "answer", text)
    percent = f"{fraction:.5f}".rstrip("0").rstrip(".")
    answer.attrib = {"fraction": percent, "format": "html" if html else "moodle_auto_format"}
    _text(answer, "feedback", convert(why, HTML))
    return answer


def _choice(question: ET.Element, item: Item) -> None:
    _common(question, item, "multichoice", convert(item.text, HTML))
    flags = {"single": not item.several, "shuffleanswers": False, "answernumbering": "ABCD"}
    for name, value in flags.items():
        ET.SubElement(question, name).text = str(value).lower() if isinstance(value, bool) else value
    share = 100 / sum(option.right for option in item.options)
    for option in item.options:
        fraction = share if option.right else -share if item.several else 0
        _answer(question, fraction, convert(option.text, HTML), option.why, html=True)


def _entry(question: ET.Element, item: Item) -> None:
    number = item.value is not None
    _common(question, item, "numerical" if number else "shortanswer", convert(item.text, HTML))
    if not number:
        ET.SubElement(question, "usecase").text = "0"
    for text in item.accepted:
        _answer(question, 100, text)
    if number:
        near = [(item.value, item.tolerance, 100, "")]
        near += [(wrong, min(item.tolerance, abs(wrong - item.value) / 2), 0, why) for why, wrong in item.mistakes]
        for value, tolerance, fraction, why in near:
            answer = _answer(question, fraction, f"{value:.10g}", f"This {why}." if why else "")
            ET.SubElement(answer, "tolerance").text = f"{tolerance:.6g}"


def _essay(question: ET.Element, item: Item) -> None:
    _common(question, item, "essay", convert(item.text, HTML))
    for name, value in (("responseformat", "editor"), ("responserequired", "1"), ("responsefieldlines", "10")):
        ET.SubElement(question, name).text = value
    scheme = [f"- {markdown.points(aspect.points)}: {aspect.text}" for aspect in item.aspects]
    _text(question, "graderinfo", convert("\n\n".join([*scheme, item.solution]), HTML))


def _cloze(question: ET.Element, item: Item) -> None:
    """Gaps as choices within the text; of steps, a choice of a letter for each position."""
    weight = _weight(item) or 1

    def gap(options: Sequence[Option], kind: str) -> str:
        texts = (escape(convert(option.text, INLINE)).translate(IN_CLOZE) for option in options)
        marked = ("=" * option.right + text for option, text in zip(options, texts, strict=True))
        return f"{{{weight}:{kind}:{'~'.join(marked)}}}"

    if item.gaps:
        text = convert(item.text, HTML._replace(gap=lambda number: gap(item.gaps[number - 1], "MCV")))
    else:
        steps = "".join(f"<li>{convert(step, INLINE)}</li>" for step in item.steps)
        rows = [
            f"<p>{name.capitalize()}: {gap([Option(one, one == letter, '') for one in sorted(item.order)], 'MC')}</p>"
            for name, letter in zip(NAMES, item.order, strict=False)
        ]
        text = f'{convert(item.text, HTML)}<ol type="A">{steps}</ol>{"".join(rows)}'
    _common(question, item, "cloze", text)
