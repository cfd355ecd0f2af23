"""Exams: what a bank may say, what a seed draws, and that other programs read what is written."""

import io
import re
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter

import pylatexenc.latexwalker
import pyslet.qtiv2.variables
import pyslet.qtiv2.xml
import pytest
from moodle_xml_parser.parser import parse_string

from course_lib.data.place import course_folder
from course_lib.teaching.exams import latex, markdown, moodle, qti
from course_lib.teaching.exams.arithmetic import evaluate
from course_lib.teaching.exams.bank import read_bank
from course_lib.teaching.exams.check import slips_of
from course_lib.teaching.exams.markup import fill, shown
from course_lib.teaching.exams.paper import draw_item, draw_paper

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")  # Pyslet calls its own old names

NUMBER = """# A lesson

## doubled
number · 3 points · 4 minutes
draw: width = 2 | 3 | 5; size = 1 .. 9 step 2; area = width * size
Twice {area} is how much, with $\\frac{{1}}{{2}} {{width}}$?
answer: 2 * area ± 1 %
> It is {2 * area:.1f}.
- forgets the factor: area
""".replace("{{", "{").replace("}}", "}")
CHOICE = """# A lesson

## one of three
choice · 2 points · 2 minutes
Which?
- [x] this
  It is.
- [ ] that
  It is not.
- [ ] neither
  Nor that.
> This one.
"""


@pytest.fixture
def bank(tmp_path):
    """Writes a bank of lesson 05 and returns its path."""

    def write(text):
        path = tmp_path / "05.md"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def model():
    """The questions of lesson 08's bank, which has every kind."""
    return read_bank(course_folder() / "exams" / "08.md")


@pytest.fixture(scope="module")
def whole(model):
    """A paper with every question of that bank."""
    return draw_paper(model, sum(question.points for question in model), seed=4)


# formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("2 * width ** 2 - 1", 17),
        ("sqrt(16) / log2(8)", 4 / 3),
        ("max(width, 7) // 2 % 2", 1),
        ("-pi", -3.14159265),
        ("0.999 ** 1000", 0.3677),
    ],
)
def test_formulas_are_computed(formula, value):
    assert evaluate(formula, {"width": 3}) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(
    "formula",
    ["__import__('os').getcwd()", "width.real", "[1][0]", "'a' * 9", "lambda: 1", "open('x')", "True", "1 if 1 else 2"]
    + ["9 ** 9 ** 9", "1 / 0", "log(-1)", "10.0 ** 100 * 10.0 ** 100 * 10.0 ** 100 * 10.0 ** 100", "height", "1 +"],
)
def test_nothing_but_finite_arithmetic_is_evaluated(formula):
    with pytest.raises(ValueError, match="formula"):
        evaluate(formula, {"width": 3})


def test_numbers_are_written_as_people_write_them():
    assert [shown(value) for value in (12, 3.0, 0.5, 2 / 3, 1234.5678, 34615.4)] == [
        *("12", "3", "0.5", "0.6667", "1235", "34615")
    ]
    assert shown(8192, ",") == "8,192" and shown(1.5e23) == r"$1.5 \cdot 10^{23}$"


def test_latex_and_code_keep_braces_that_name_no_draw():
    text = r"{width} in $\frac{1}{width / 2:.1f} {x}_{t - 1}$ and `{'a': width}` or `{width}`"
    assert fill(text, {"width": 64}) == r"64 in $\frac{1}{32.0} {x}_{t - 1}$ and `{'a': width}` or `64`"


# reading ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "says"),
    [
        (NUMBER, "number · 3", "sum · 3", 4, "kinds: number, choice"),
        (NUMBER, "4 minutes", "40 minutes", 4, "2 to 8 minutes"),
        (NUMBER, "{area}", "{volume}", 3, "volume"),
        (NUMBER, "answer: 2 * area", "answer: 2 * ara", 7, "ara"),
        (NUMBER, "factor: area", "factor: open('x')", 9, "no arithmetic"),
        (NUMBER, "width = 2 |", "w = 2 |", 5, "two letters"),
        (NUMBER, "size = 1 .. 9 step 2", "size = 9 .. 1", 5, "go up"),
        (NUMBER, "> It is", "It is", 3, "lines that begin with `>`"),
        (NUMBER, "answer: 2 * area ± 1 %\n", "", 3, "has answer"),
        (CHOICE, "[x] this", "[ ] this", 3, "at least one"),
        (CHOICE, "  It is.\n", "", 3, "reason"),
        (CHOICE, "that\n  It is not.\n- [ ] ", "", 3, "three"),
    ],
)
def test_a_slip_is_told_in_a_sentence_with_file_and_line(bank, text, old, new, line, says):
    assert old in text
    with pytest.raises(ValueError, match=rf"^05\.md:{line}: .*{re.escape(says)}.*\.$"):
        read_bank(bank(text.replace(old, new, 1)))


def test_the_check_finds_what_only_some_seeds_draw(bank):
    close = NUMBER.replace("± 1 %", "± 3")  # area is 2 for the first numbers only
    assert "within the tolerance" in slips_of(bank(close))[0]
    infinite = NUMBER.replace("answer: 2 * area", "answer: 2 * area / (9 - size)").replace(
        "- forgets the factor: area\n", ""
    )
    assert "cannot be computed" in slips_of(bank(infinite))[0]
    assert "always the same" in slips_of(bank(NUMBER.replace("{area} is", "it is").replace("{width}", "w")))[0]
    assert "two options are the same" in slips_of(bank(CHOICE.replace("neither", "that")))[0]
    assert "lesson's own page" in slips_of(bank(CHOICE), taken=["Which ?"])[0]
    assert "has ✓, which LaTeX cannot print" in slips_of(bank(CHOICE.replace("This one", "This ✓")))[0]
    longest = CHOICE.replace("] this", "] this one, with every detail")
    two = longest + longest.partition("\n")[2].replace("one of three", "again one of three")
    assert "the longest one in one of three, again one of three" in slips_of(bank(two))[-1]
    assert slips_of(bank(CHOICE)) == ["05.md: it has 1 questions of 1 kinds; an exam needs 12 questions of 4 kinds."]


# drawing ------------------------------------------------------------------------------------------------------------


def test_an_exam_has_exactly_the_points_that_were_asked_for_or_those_are_told_that_can_be_had(model):
    for points in (2, 10, 23, 40):
        assert draw_paper(model, points, seed=1).points == points
    with pytest.raises(ValueError, match="possible are 47 and 49"):
        draw_paper(model, 48, seed=1)


def test_each_seed_gives_a_paper_of_its_own_and_always_the_same(model):
    assert len({draw_paper(model, 20, seed).items for seed in range(200)}) == 200
    assert draw_paper(model, 20, 7) == draw_paper(model, 20, 7)


def test_lessons_get_equal_parts_and_kinds_are_mixed(model):
    lessons = [question._replace(lesson=lesson) for lesson in ("03", "04", "05") for question in model]
    for seed in range(20):
        paper = draw_paper(lessons, 45, seed)
        points, kinds = Counter(), Counter(item.question.kind for item in paper.items)
        for item in paper.items:
            points[item.question.lesson] += item.question.points
        assert max(points.values()) - min(points.values()) <= 5
        assert len(kinds) >= 5 and max(kinds.values()) <= 5


def test_the_seed_draws_the_order_of_options_steps_and_gaps(model):
    for kind, part in (("choice", "options"), ("order", "steps"), ("gaps", "gaps")):
        question = next(question for question in model if question.kind == kind)
        items = [draw_item(question, seed) for seed in range(10)]
        assert len({getattr(item, part) for item in items}) > 1
        for item in items if kind == "order" else ():  # the solution leads back to the steps
            assert tuple(item.steps["ABCDEFGH".index(letter)] for letter in item.order) == question.steps


# writing ------------------------------------------------------------------------------------------------------------


def test_the_paper_gives_no_answer_away_and_the_second_file_has_them_all(whole):
    paper, solutions = markdown.exam(whole), markdown.solutions(whole)
    for item in whole.items:
        assert item.solution not in paper and item.solution in solutions
        assert all(aspect.text not in paper and aspect.text in solutions for aspect in item.aspects)
        assert all(why not in paper and why in solutions for why, _ in item.mistakes)
        assert all(option.why not in paper and option.why in solutions for option in item.options)
    assert "[x]" not in paper and "induction head" not in paper


def test_latex_is_well_formed(whole):
    for text in (latex.exam(whole), latex.solutions(whole)):
        walker = pylatexenc.latexwalker.LatexWalker(text, tolerant_parsing=False)
        nodes, _, length = walker.get_latex_nodes()
        assert length == len(text) and nodes
        text.encode("latin-1")  # what pdflatex prints with the packages that are loaded
    assert latex.exam(whole).count(r"\subsection*") == len(whole.items)


def test_special_characters_of_latex_are_escaped():
    done = latex.convert("50 % of a_b & `x_1 = {2}` $a_b$ **bold `c_d`**", latex.LATEX)
    assert done == "50 \\% of a\\_b \\& \\texttt{x\\_1 = \\{2\\}} $a_b$ \\textbf{bold \\texttt{c\\_d}}\n"


def test_moodle_xml_has_every_question_with_its_points(whole):
    root = ET.fromstring(moodle.exam(whole))
    kinds = Counter(question.get("type") for question in root)
    assert kinds == {"category": 1, "numerical": 6, "multichoice": 3, "essay": 2, "shortanswer": 1, "cloze": 3}
    for item, question in zip(whole.items, list(root)[1:], strict=True):
        assert question.findtext("defaultgrade") == str(item.question.points)
        if question.get("type") == "numerical":
            first = question.find("answer")
            assert float(first.findtext("text")) == pytest.approx(item.value) and first.get("fraction") == "100"
            assert float(first.findtext("tolerance")) == pytest.approx(item.tolerance, rel=1e-4)


def test_another_reader_of_moodle_xml_finds_the_right_answers(whole):
    read = parse_string(moodle.exam(whole))
    choices = [item for item in whole.items if item.options]
    assert len(read["multichoice"]) == len(choices)
    for item, question in zip(choices, read["multichoice"], strict=True):
        assert question.single != item.several and question.default_grade == item.question.points
        assert [option.score_fraction > 0 for option in question.options] == [one.right for one in item.options]
        assert sum(max(0, option.score_fraction) for option in question.options) == pytest.approx(100, abs=1e-3)
    orders = [item for item in whole.items if item.steps]
    letters = [
        "".join(
            option.answer
            for gap in question.gaps
            for option in gap.options
            if option.score == 100 and len(option.answer) == 1
        )
        for question in read["cloze"]
    ]
    assert [item.order for item in orders] == [found for found in letters if found]


def scored(text, **answers):
    """What Pyslet, a reader of QTI that is not ours, gives for these answers, or for the declared ones."""
    document = pyslet.qtiv2.xml.QTIDocument()
    document.read(src=io.BytesIO(text.encode()))
    session = pyslet.qtiv2.variables.ItemSessionState(document.root)
    session.begin_session()
    for name, declared in document.root.declarations.items():
        if isinstance(declared, pyslet.qtiv2.variables.ResponseDeclaration):
            session[name].set_value(answers.get(name, declared.get_correct_value().value))
    session.end_attempt()
    return session["SCORE"].value


def test_another_reader_of_qti_gives_full_points_for_right_answers_and_none_for_wrong_ones(whole):
    for item in whole.items:
        text = qti.question("question01", item)
        if item.aspects:  # a person gives these
            assert scored(text) == 0
            continue
        assert scored(text) == pytest.approx(item.question.points)
        if item.value is not None:
            assert all(scored(text, RESPONSE=wrong) == 0 for _, wrong in item.mistakes)
            assert scored(text, RESPONSE=item.value + 0.9 * item.tolerance) == item.question.points
        elif item.accepted:
            assert scored(text, RESPONSE="softmax") == 0
        elif item.options and not item.several:
            right = [option.right for option in item.options]
            assert [scored(text, RESPONSE=letter) > 0 for letter in "ABCDEFGH"[: len(right)]] == right


def test_a_qti_package_lists_its_files_and_is_the_same_for_the_same_seed(whole, tmp_path):
    for name in ("a.zip", "b.zip"):
        qti.write(whole, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as package:
        manifest = ET.fromstring(package.read("imsmanifest.xml"))
        listed = {element.get("href") for element in manifest.iter() if element.tag.endswith("}file")}
        assert listed == set(package.namelist()) - {"imsmanifest.xml"} and len(listed) == len(whole.items) + 1
        document = pyslet.qtiv2.xml.QTIDocument()
        document.read(src=io.BytesIO(package.read("test.xml")))
        assert type(document.root).__name__ == "AssessmentTest"
