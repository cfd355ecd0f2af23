"""Questions and the words of results in Markdown: what is read, and what an author is told of a slip."""

import re

import pytest

from course_lib.classroom import Page, Result
from course_lib.classroom.cards import html_card, plain_card, section_cells
from course_lib.classroom.texts import read_questions, read_results

QUESTIONS = """# Sections

| section | minutes | holds |
|---|---|---|
| The prediction: how much? | 5 | ones, gain |
| More | 12, optional | bug |

# Questions

## ones

How many *ones*?

= 0.5 ± 0.1

Half of them.

- 1: That would be all: none is left.

## bug

What is wrong?

```python
# no heading
x = 1
```

- [ ] Nothing
  It is: look again.
- [x] The `x`
  It is 2.

# Predictions

## gain

How much better?

from -1 to 20, in steps of 0.5, points

## which

Which wins?

- the first
- the second
"""
RESULTS = """# gain

A line that rises, up to
{end:.1f}.

- rises: the line *rises*
- ends: it ends above $e^{2}$

## Outcome

It rose by {end:.2f}.

So it is.

# gain, small

A short line.
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "questions.md").write_text(QUESTIONS)
    (tmp_path / "results.md").write_text(RESULTS)
    return tmp_path


def test_sections_questions_and_predictions_are_read(folder):
    sections, quizzes, predictions = read_questions(folder / "questions.md")
    assert [(one.title, one.minutes, one.holds, one.optional) for one in sections] == [
        ("The prediction: how much?", 5, ("ones", "gain"), False),
        ("More", 12, ("bug",), True),
    ]
    ones, bug = quizzes.values()
    assert (ones.question, ones.answer, ones.tolerance, ones.why) == ("How many *ones*?", 0.5, 0.1, "Half of them.")
    assert ones.near == {1: "That would be all: none is left."}
    assert (bug.kind, bug.code, bug.answer) == ("bug", "\n# no heading\nx = 1\n", 1)
    assert bug.options == {"Nothing": "It is: look again.", "The `x`": "It is 2."}
    gain, which = predictions.values()
    assert (gain.low, gain.high, gain.step, gain.unit) == (-1, 20, 0.5, "points")
    assert which.options == ["the first", "the second"]


def test_a_result_is_told_in_its_words_with_its_values(folder):
    texts = read_results(folder / "results.md")
    told = Result("<p>", claims={"rises": True, "ends": (True, 3 > 2)}, values={"end": 1.234}).told("gain", texts)
    assert told.alt == "A line that rises, up to 1.2." and told.outcome == "It rose by 1.23.\n\nSo it is."
    assert told.claims == {"the line *rises*": True, "it ends above $e^{2}$": (True, True)}
    assert Result("<p>", variant="small").told("gain", texts).alt == "A short line."


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (Result("<p>", claims={"rises": True}, values={"end": 1}), "gain: only one of .* has the claim 'ends'"),
        (Result("<p>", claims={"rises": 1, "ends": 1, "more": 1}), "gain: only one of .* has the claim 'more'"),
        (
            Result("<p>", claims={"rises": 1, "ends": 1}, values={"end": 1, "start": 1.0}),
            "^results.md:1: neither alt text nor outcome has a slot for start",
        ),
        (Result("<p>", claims={"rises": 1, "ends": 1}), r"^results.md:1: \{end:.1f\} has no value; give `values="),
        (
            Result("<p>", claims={"rises": 1, "ends": 1}, values={"end": "two"}),
            r"^results.md:1: \{end:.1f\} cannot show the value 'two'",
        ),
        (Result("<p>", variant="large"), "no entry 'gain, large'"),
    ],
)
def test_a_result_that_does_not_fit_its_words_is_refused(folder, result, said):
    with pytest.raises(ValueError, match=said):
        result.told("gain", read_results(folder / "results.md"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# Predictions", "# Guesses", "questions.md has to have the parts"),
        ("12, optional", "12, maybe", "questions.md:6: the minutes of 'More' are '12, maybe'"),
        ("12, optional", "twelve", "questions.md:6: the minutes of 'More' are 'twelve'; write `15` or `15, optional`"),
        ("12, optional", "0", "questions.md:6: the minutes of 'More' are '0'"),
        ("12, optional", "-3", "questions.md:6: the minutes of 'More' are '-3'"),
        (
            "| bug |",
            "|",
            "questions.md:6: '| More | 12, optional |' is no row of the table; write `| title | minutes | nam",
        ),
        ("| bug |", "| bug | 3 |", "questions.md:6: '| More | 12, optional | bug | 3 |' is no row"),
        ("| More |", "More |", "questions.md:6: 'More | 12, optional | bug |' is no row"),
        ("|---|---|---|\n", "", "questions.md:1: the table of sections has a head"),
        (
            QUESTIONS[QUESTIONS.index("| The") : QUESTIONS.index("# Que")],
            "",
            "questions.md:1: the table of sections has",
        ),
        ("# Questions", "# Sections\n\n# Questions", "questions.md has to have the parts"),
        ("# Questions\n", "# Questions\n\nFour of them.\n", "questions.md:10: this text is above the first heading"),
        ("= 0.5", "= half", "questions.md:10: 'half' is not a number"),
        ("± 0.1", "± little", "questions.md:10: 'little' is not a number"),
        ("- 1: That", "- one: That", "questions.md:10: 'one' is not a number"),
        ("- 1: That would be all: none is left.", "- 1", "questions.md:10: below a number is its explanation"),
        ("Half of them.\n", "", "questions.md:10: below a number is its explanation"),
        ("Half of them.\n", "Half.\n\nSo it is.\n", "questions.md:10: below a number is its explanation"),
        ("- 1: That", "- 1: No.\n- 1: That", "questions.md:10: the mistake 1 comes twice"),
        ("- [x] The `x`", "- [x] Nothing", "questions.md:20: the option 'Nothing' comes twice"),
        ("  It is 2.", "It is 2.", "questions.md:20: a question has options"),
        ("x = 1\n```", "x = 1", "questions.md:24: the code fence that begins here is not closed"),
        ("- the second", "- the first", "questions.md:42: the option 'the first' comes twice"),
        ("- the second", "the second", "questions.md:42: a prediction has options"),
        ("\n- the first\n- the second\n", "", "questions.md:42: a prediction has options"),
        ("in steps of 0.5", "in steps of half", "questions.md:36: 'half' is not a number"),
        ("- [ ] Nothing", "- [x] Nothing", "questions.md:20: a question has options"),
        ("  It is 2.\n", "", "questions.md:20: a question has options"),
        ("## bug", "## ones", "questions.md:20: 'ones' comes twice"),
        ("from -1 to 20", "between -1 and 20", "questions.md:36: a prediction has options, or"),
        ("from -1 to 20", "from 30 to 20", "questions.md:36: The prediction"),
        ("A line that rises, up to\n{end:.1f}.\n", "", "results.md:1: a result needs an alt text"),
        ("- rises: the", "- the", "results.md:1: a result needs an alt text; a claim is `- key: words`"),
        ("# gain, small", "# gain", "results.md:15: 'gain' comes twice"),
        ("- ends: it", "- rises: it", "results.md:1: the claim 'rises' comes twice"),
        ("So it is.", "```\nSo it is.", "results.md:13: the code fence that begins here is not closed"),
        (
            "So it is.",
            "```\nSo it is.\n\n```python\n```",
            "results.md:13: the code fence that begins here is not closed",
        ),
        ("# gain\n\nA", "A", "results.md:1: this text is above the first heading, `# name`"),
        (RESULTS, "", "results.md has no entries: each begins with `# name`"),
        ("## Outcome", "## Meaning", "results.md:1: a result has its alt text"),
    ],
)
def test_a_slip_is_told_with_file_and_line(folder, old, new, said):
    for name in ("questions.md", "results.md"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        read_questions(folder / "questions.md"), read_results(folder / "results.md")


def test_braces_of_latex_are_no_slots(tmp_path):
    file = tmp_path / "results.md"
    file.write_text("# gain\n\nA line.\n\n## Outcome\n\n$\\sqrt{x}$ and $p(x_{1:T} \\mid h_{t:n})$ at {end:.1f}.\n")
    told = Result("<p>", values={"end": 2}).told("gain", read_results(file))
    assert told.outcome == "$\\sqrt{x}$ and $p(x_{1:T} \\mid h_{t:n})$ at 2.0."


@pytest.mark.parametrize(("name", "line"), [("questions.md", 12), ("results.md", 3)])
def test_a_file_that_is_not_utf_8_is_named_with_its_line(folder, name, line):
    text = (folder / name).read_text().replace("How many", "Wie große").replace("A line that", "Eine größere")
    (folder / name).write_bytes(text.encode("latin-1", "replace"))
    with pytest.raises(ValueError, match=f"^{name}:{line}: this line is not UTF-8"):
        read_questions(folder / "questions.md"), read_results(folder / "results.md")


def test_a_page_tells_its_results_and_refuses_those_that_have_no_words(folder, page):
    def gain(end, predicted=None):
        return Result("<p></p>", claims={"rises": True, "ends": True}, came=end, values={"end": end})

    empty = {"results": {"gain": gain}, "tasks": {}, "playgrounds": {}}
    Page("06", folder=folder, **empty).result("gain", 2.0)
    assert page[-1]["text/plain"].startswith("Figure: A line that rises, up to 2.0.\n✓ the line rises")
    with pytest.raises(ValueError, match=r"Only one of results.md and results.py of lesson 06 has 'loss'"):
        Page("06", folder=folder, results={"gain": gain, "loss": gain})


def test_a_stop_divides_the_sections_into_two_sittings(tmp_path):
    file = tmp_path / "questions.md"
    file.write_text(QUESTIONS.replace("| More |", "| stop | | |\n| Then | 7 | |\n| More |"))
    sections = read_questions(file).sections
    assert [(section.title, section.sitting) for section in sections] == [
        ("The prediction: how much?", 1),
        ("Then", 2),
        ("More", 2),
    ]
    plain, shown = plain_card("08", sections), html_card("08", sections)
    assert plain.startswith("Lesson 08, GPT: 12 minutes in 2 sittings (5 and 7), and 12 that are optional")
    assert shown.index("how much?") < shown.index("Sitting 2") < shown.index("Then")


def test_a_row_of_the_card_leads_to_its_cell_in_the_notebook_that_is_open(tmp_path, monkeypatch):
    file = tmp_path / "questions.md"
    file.write_text(QUESTIONS)
    sections, cell = read_questions(file).sections, section_cells("08")["1"]
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert f'<a href="08_gpt.ipynb#cell-id={cell}">The prediction' in html_card("08", sections)
    monkeypatch.setenv("JPY_SESSION_NAME", "notebooks/my copy.ipynb")
    assert f'<a href="my%20copy.ipynb#cell-id={cell}">' in html_card("08", sections)
    monkeypatch.setattr("course_lib.classroom.cards._notebooks", list)  # no course folder
    assert "<a" not in html_card("08", sections)
