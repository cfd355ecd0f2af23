"""Each rule of prose sees a planted fault, and nothing in a text without one."""

from pathlib import Path

import pytest

from course_lib.authoring import prose_rules as rules
from course_lib.authoring.lesson_pages import read_lesson
from course_lib.authoring.prose_rules import LessonProse, _prose

ROOT = Path(__file__).parents[2]
GOOD = """# Attention

A **query** is compared with every key. The query attends to positions (see Figure 1) and pixels of an image. The
learning rate $\\eta$ and the temperature $\\tau$ scale the loss $L / \\tau$. `places` and `shares` are code.

```python
picture = places
```

- [x] Its feature map has the ground truth.
"""


def prose(text):
    made = LessonProse.__new__(LessonProse)
    made.page = made.texts = [_prose("page", text)]
    return made


@pytest.mark.parametrize("rule", rules.PROSE_RULES, ids=lambda rule: rule.__name__)
def test_nothing_is_found_in_a_good_text(rule):
    assert list(rule(prose(GOOD))) == []


@pytest.mark.parametrize(
    ("rule", "fault", "said"),
    [
        (rules.private_words, "The places of the text.", "page has 'places'; the field says: position"),
        (rules.private_words, "*Whose* share is it?", "'share'"),
        (rules.private_words, "Each map is small.", "'map'"),
        (rules.private_words, "A rate of 0.1.", "'rate'"),
        (rules.terms_before_definitions, "Its **attends** now.", "'attends' is used above"),
        (rules.undeclared_symbols, "$$a_i = \\tau$$", "symbol a is not declared"),
        (rules.undeclared_symbols, "$x + \\sigma$", "symbol \\sigma is not declared"),
        (rules.long_sentences, "One " + "two " * 32 + "end.", "a sentence of 34 words: One two"),
        (rules.long_parentheses, "One (" + "two " * 13 + ").", "has 13 words in parentheses"),
    ],
)
def test_a_fault_is_told_with_its_place(rule, fault, said):
    (found,) = rule(prose(f"{GOOD}\n\n{fault}\n"))
    assert said in found


def test_the_texts_of_a_lesson_are_its_page_and_its_folder():
    lesson = read_lesson(ROOT / "notebooks" / "05_attention.ipynb")
    read = LessonProse(lesson)
    markdown = [cell for cell in lesson.notebook.cells if cell.cell_type == "markdown"]
    assert len(read.page) == len(markdown)
    assert [text.where for text in read.texts[len(markdown) :]] == ["questions.md", "results.md", "tasks.md"]
