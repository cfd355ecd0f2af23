"""Written answers: what they are marked for, and on an instructor's screen their text stays and what could act goes."""

import re

import pytest

from course_lib.data.place import CannotStart
from course_lib.grading.nbgrader_plugin import safe_markdown
from course_lib.grading.spec import read_assignment
from course_lib.grading.written import written_questions
from tests.grading import courses

MODEL = "*A good answer.*\n\n**Sizes (1.5).** They are 3 and 4.\n\nIn rows. (1)\n\n**A reason (0.5).** Because.\n"
TYPICAL = "# why\n\n## Sizes\n- 1: Only one size is right.\n- 0.5: A slip.\n"


def asked(tmp_path, model=MODEL, typical=TYPICAL):
    """The written question of a course directory with this model answer and these partial answers."""
    extra = [
        {"cell_type": "markdown", "id": "q", "metadata": {}, "source": "## 3 · Why?\n\nSay why."},
        courses.cell("data", source="1 + 1"),
        courses.answer("why", model, 2),
    ]
    folders = courses.small_course(tmp_path, leave_out="why", extra=extra)
    if typical is not None:
        (folders.hidden(courses.NAME) / "written.md").write_text(typical)
    return written_questions(read_assignment(tmp_path, courses.NAME), folders.hidden(courses.NAME))["why"]


def test_aspects_have_their_points_texts_and_partial_answers(tmp_path):
    question = asked(tmp_path)
    sizes, reason = question.aspects
    assert (sizes.title, sizes.points, sizes.model) == ("Sizes", 1.5, "They are 3 and 4.\n\nIn rows. (1)")
    assert sizes.typical == ((1.0, "Only one size is right."), (0.5, "A slip."))
    assert (reason.title, reason.points, reason.typical) == ("A reason", 0.5, ())
    assert question.text == "## 3 · Why?\n\nSay why."


def test_an_answer_without_aspects_is_one_aspect(tmp_path):
    (aspect,) = asked(tmp_path, model="### BEGIN SOLUTION\nBecause.\n### END SOLUTION", typical=None).aspects
    assert (aspect.points, aspect.typical) == (2.0, ()) and "Because." in aspect.model


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": MODEL.replace("0.5", "1")}, "have 2.5 points, and the cell has 2"),
        ({"typical": TYPICAL.replace("# why", "# because")}, "written.md:1: there is no written question 'because'"),
        ({"typical": TYPICAL.replace("## Sizes", "## Size")}, "written.md:3: there is no aspect 'Size'"),
        ({"typical": TYPICAL.replace("- 1:", "- 2:")}, "written.md:4: .* up to 1.5"),
        ({"typical": TYPICAL.replace("- 0.5: A slip.", "A slip.")}, "written.md:5: .* reads"),
    ],
)
def test_a_slip_is_told_with_its_line(tmp_path, change, says):
    with pytest.raises(CannotStart, match=says):
        asked(tmp_path, **change)


# on the screen -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "<script>steal()</script>",
        "<ScRiPt src=//evil>",
        '<img src="x" onerror="steal()">',
        "<svg onload=steal()>",
        "<svg><script>steal()</script></svg>",
        "<math><mtext></form><form><mglyph><style></math><img src onerror=steal()>",
        "[x](javascript:steal())",
        "[x](JaVaScRiPt&colon;steal())",
        '<a href="java\nscript:steal()">x</a>',
        '<a href="data:text/html,<script>steal()</script>">x</a>',
        "![x](javascript:steal())",
        "![x](https://evil.example/seen.png)",
        '<img src="//evil.example/seen.png">',
        '<iframe src="https://evil.example"></iframe>',
        '<object data="x"></object><embed src="x">',
        '<form action="/api"><button>Full credit</button></form>',
        '<input class="score" id="check-softmax" value="10">',
        '<div class="nbgrader_cell" id="check-softmax">x</div>',
        '<b style="position:fixed;top:0;left:0;width:100%;height:100%">x</b>',
        "<style>.score {display: none}</style>",
        '<base href="https://evil.example/">',
        '<meta http-equiv="refresh" content="0;url=https://evil.example">',
        '<link rel="stylesheet" href="https://evil.example">',
        "$<img src=x onerror=steal()>$",
        "$$</p><script>steal()</script>$$",
        "```html\n</code></pre><script>steal()</script>\n```",
        "<!-- --!><script>steal()</script> -->",
        "<details ontoggle=steal() open>x</details>",
    ],
)
def test_what_could_act_is_gone(source):
    html = safe_markdown(source)
    tags = re.findall(r"<[^>]*>", html)
    acting = re.compile(r"\bon\w+\s*=|\b(id|class|style|src)\s*=|script|evil", re.IGNORECASE)
    assert not [tag for tag in tags if acting.search(tag)], html
    kinds = {re.match(r"</?(\w+)", tag)[1] for tag in tags}
    assert not kinds & set("base button embed form iframe input link math meta object style svg textarea".split())
    assert "javascript:" not in "".join(tags).lower() and "data:" not in "".join(tags)


def test_words_formulas_code_tables_and_links_stay():
    html = safe_markdown(
        "# Why\n\n**A product** of $a_1 < b$ and `x < y`: [the paper](https://arxiv.org/abs/1706.03762).\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nreturn 1 < 2\n```\n\n![a](data:image/png;base64,iVBORw0KGgo=)\n"
    )
    text = re.sub(r"<[^>]*>", "", html)
    assert "<h1>Why</h1>" in html and "<strong>A product</strong>" in html and "<td>1</td>" in html
    assert "$a_1 &lt; b$" in text and "x &lt; y" in text and "return 1 &lt; 2" in text
    assert '<a href="https://arxiv.org/abs/1706.03762">the paper</a>' in html
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in html
