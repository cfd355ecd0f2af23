"""An exam as a QTI 2.1 content package (IMS Question and Test Interoperability), which Canvas and others import."""

import zipfile
from html import escape
from pathlib import Path

from course_lib.teaching.exams import markdown
from course_lib.teaching.exams.bank import Option
from course_lib.teaching.exams.markup import convert
from course_lib.teaching.exams.moodle import HTML, INLINE
from course_lib.teaching.exams.paper import LETTERS, Item, Paper

NAMESPACE = "http://www.imsglobal.org/xsd/imsqti_v2p1"
SCHEMA = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{NAMESPACE} http://www.imsglobal.org/xsd/qti/qtiv2p1/imsqti_v2p1.xsd"'
)
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
MAPPED = '<mapResponse identifier="{}"/>'
PLAIN = INLINE._replace(escape=str, code=str, block=str, math=r"\({}\)".format, bold=r"\1", italic=r"\1")
SCORE = '<variable identifier="SCORE"/>'


def write(paper: Paper, path: Path) -> None:
    """Writes the package: a manifest, the test, and a file for each question."""
    names = [f"question{number:02}" for number in range(1, len(paper.items) + 1)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        files = {"imsmanifest.xml": manifest(names), "test.xml": test(paper, names)}
        files |= {f"{name}.xml": question(name, item) for name, item in zip(names, paper.items, strict=True)}
        for name, text in files.items():
            package.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), text)  # the same bytes for the same seed


def manifest(names: list[str]) -> str:
    """Which files there are, for the system that imports them."""
    items = "".join(
        f'<resource identifier="{name}" type="imsqti_item_xmlv2p1" href="{name}.xml">'
        f'<file href="{name}.xml"/></resource>'
        for name in names
    )
    needs = "".join(f'<dependency identifierref="{name}"/>' for name in names)
    return (
        f'{XML}<manifest xmlns="{PACKAGE}" identifier="exam"><metadata><schema>QTIv2.1 Package</schema>'
        "<schemaversion>1.0.0</schemaversion></metadata><organizations/><resources>"
        '<resource identifier="test" type="imsqti_test_xmlv2p1" href="test.xml"><file href="test.xml"/>'
        f"{needs}</resource>{items}</resources></manifest>\n"
    )


def test(paper: Paper, names: list[str]) -> str:
    """The order of the questions."""
    items = "".join(f'<assessmentItemRef identifier="{name}" href="{name}.xml"/>' for name in names)
    title = escape(f"{markdown.title(paper)}, seed {paper.seed}")
    return (
        f'{XML}<assessmentTest xmlns="{NAMESPACE}" {SCHEMA} identifier="test" title="{title}">'
        '<testPart identifier="part" navigationMode="nonlinear" submissionMode="simultaneous">'
        f'<assessmentSection identifier="section" title="{title}" visible="true">{items}</assessmentSection>'
        "</testPart></assessmentTest>\n"
    )


def question(name: str, item: Item) -> str:
    """A question with its right answer and the rule that gives its points."""
    build = _gaps if item.gaps else _order if item.steps else _choice if item.options else _written
    declared, body, rule = (_number if item.value is not None else _short if item.accepted else build)(item)
    return (
        f'{XML}<assessmentItem xmlns="{NAMESPACE}" {SCHEMA} identifier="{name}" title="{escape(item.question.name)}" '
        f'adaptive="false" timeDependent="false">{declared}'
        f'<outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float" '
        f'normalMaximum="{item.question.points}"><defaultValue><value>0</value></defaultValue></outcomeDeclaration>'
        f"<itemBody>{body}</itemBody>{rule}</assessmentItem>\n"
    )


def _declared(kind: str, right: list[str], *, name: str = "RESPONSE", many: str = "single", mapping: str = "") -> str:
    values = "".join(f"<value>{escape(value)}</value>" for value in right)
    return (
        f'<responseDeclaration identifier="{name}" cardinality="{many}" baseType="{kind}"><correctResponse>{values}'
        f"</correctResponse>{mapping}</responseDeclaration>"
    )


def _mapping(points: dict[str, float], most: float) -> str:
    entries = "".join(f'<mapEntry mapKey="{escape(key)}" mappedValue="{value:.10g}"/>' for key, value in points.items())
    return f'<mapping lowerBound="0" upperBound="{most:.6g}" defaultValue="0">{entries}</mapping>'


def _scored(expression: str) -> str:
    return f'<setOutcomeValue identifier="SCORE">{expression}</setOutcomeValue>'


def _if(condition: str, points: float) -> str:
    """Adds points where the condition holds."""
    more = _scored(f'<sum>{SCORE}<baseValue baseType="float">{points:.10g}</baseValue></sum>')
    return f"<responseCondition><responseIf>{condition}{more}</responseIf></responseCondition>"


def _choice(item: Item) -> tuple[str, str, str]:
    points, right = item.question.points, [option.right for option in item.options]
    share = points / sum(right)
    earned = {letter: share if good else -share * item.several for letter, good in zip(LETTERS, right, strict=False)}
    keys = [letter for letter, good in zip(LETTERS, right, strict=False) if good]
    many = "multiple" if item.several else "single"
    choices = "".join(
        f'<simpleChoice identifier="{letter}">{convert(option.text, INLINE)}</simpleChoice>'
        for letter, option in zip(LETTERS, item.options, strict=False)
    )
    body = (
        f'{convert(item.text, HTML)}<choiceInteraction responseIdentifier="RESPONSE" shuffle="false" '
        f'maxChoices="{0 if item.several else 1}"><prompt>{markdown.asks(item)}</prompt>{choices}</choiceInteraction>'
    )
    declared = _declared("identifier", keys, many=many, mapping=_mapping(earned, points))
    return declared, body, f"<responseProcessing>{_scored(MAPPED.format('RESPONSE'))}</responseProcessing>"


def _short(item: Item) -> tuple[str, str, str]:
    earned = dict.fromkeys(item.accepted, float(item.question.points))
    declared = _declared("string", [item.accepted[0]], mapping=_mapping(earned, item.question.points))
    body = f'{convert(item.text, HTML)}<p><textEntryInteraction responseIdentifier="RESPONSE" expectedLength="40"/></p>'
    return declared, body, f"<responseProcessing>{_scored(MAPPED.format('RESPONSE'))}</responseProcessing>"


def _number(item: Item) -> tuple[str, str, str]:
    ends = {"gte": item.value - item.tolerance, "lte": item.value + item.tolerance}
    near = "".join(
        f'<{name}><variable identifier="RESPONSE"/><baseValue baseType="float">{end:.10g}</baseValue></{name}>'
        for name, end in ends.items()
    )
    body = f'{convert(item.text, HTML)}<p><textEntryInteraction responseIdentifier="RESPONSE" expectedLength="12"/></p>'
    rule = f"<responseProcessing>{_if(f'<and>{near}</and>', item.question.points)}</responseProcessing>"
    return _declared("float", [f"{item.value:.10g}"]), body, rule


def _order(item: Item) -> tuple[str, str, str]:
    choices = "".join(
        f'<simpleChoice identifier="{letter}">{convert(step, INLINE)}</simpleChoice>'
        for letter, step in zip(LETTERS, item.steps, strict=False)
    )
    body = (
        f'{convert(item.text, HTML)}<orderInteraction responseIdentifier="RESPONSE" shuffle="false">'
        f"<prompt>{markdown.asks(item)}</prompt>{choices}</orderInteraction>"
    )
    at = (
        '<match><index n="{}"><variable identifier="RESPONSE"/></index>'
        '<baseValue baseType="identifier">{}</baseValue></match>'
    )
    share = item.question.points / len(item.order)
    rules = "".join(_if(at.format(place, letter), share) for place, letter in enumerate(item.order, start=1))
    declared = _declared("identifier", list(item.order), many="ordered")
    return declared, body, f"<responseProcessing>{rules}</responseProcessing>"


def _gaps(item: Item) -> tuple[str, str, str]:
    share = item.question.points / len(item.gaps)

    def choice(number: int) -> str:
        options = "".join(
            f'<inlineChoice identifier="{letter}">{escape(_plain(option))}</inlineChoice>'
            for letter, option in zip(LETTERS, item.gaps[number - 1], strict=False)
        )
        names = f'responseIdentifier="GAP{number}" shuffle="false"'
        return f"<inlineChoiceInteraction {names}>{options}</inlineChoiceInteraction>"

    declared = ""
    for number, gap in enumerate(item.gaps, start=1):
        right = [letter for letter, option in zip(LETTERS, gap, strict=False) if option.right]
        mapping = _mapping(dict.fromkeys(right, share), share)
        declared += _declared("identifier", right, name=f"GAP{number}", mapping=mapping)
    total = "".join(MAPPED.format(f"GAP{number}") for number in range(1, len(item.gaps) + 1))
    body = convert(item.text, HTML._replace(gap=choice))
    return declared, body, f"<responseProcessing>{_scored(f'<sum>{total}</sum>')}</responseProcessing>"


def _written(item: Item) -> tuple[str, str, str]:
    """Points are given by a person, for whom the scheme stands in a block that students do not see."""
    aspects = [f"{markdown.points(aspect.points)}: {aspect.text}" for aspect in item.aspects]
    scheme = "\n\n".join([*aspects, item.solution])
    body = (
        f'{convert(item.text, HTML)}<rubricBlock view="scorer">{convert(scheme, HTML)}'
        '</rubricBlock><extendedTextInteraction responseIdentifier="RESPONSE" expectedLines="10"/>'
    )
    return '<responseDeclaration identifier="RESPONSE" cardinality="single" baseType="string"/>', body, ""


def _plain(option: Option) -> str:
    r"""The text of a choice within a line, which can hold no elements: \(...\) for formulas."""
    return convert(option.text, PLAIN)
