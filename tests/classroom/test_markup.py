"""Lesson texts in their two forms."""

import pytest

from course_lib.classroom.markup import code_html, details, to_html, to_plain


@pytest.mark.parametrize(
    ("text", "html", "plain"),
    [
        ("a `b*c*` d", "a <code>b*c*</code> d", "a b*c* d"),
        ("**q** and *k*", "<strong>q</strong> and <em>k</em>", "q and k"),
        ("3 * 4 * 5", "3 * 4 * 5", "3 * 4 * 5"),
        ("if a < b", "if a &lt; b", "if a < b"),
        ("**in `code`**", "<strong>in <code>code</code></strong>", "in code"),
        (r"$a_*b_*$ and $$x<y$$", r"$a_*b_*$ and $$x&lt;y$$", r"$a_*b_*$ and $$x<y$$"),
    ],
)
def test_markup_becomes_html_and_plain_text(text, html, plain):
    assert html in to_html(text)
    assert to_plain(text) == plain


def test_a_blank_line_makes_a_paragraph_and_a_line_break_does_not():
    assert to_html("a\nb\n\nc").count("<p") == 2
    assert to_plain("a\n  b\n\nc") == "a b\n\nc"


def test_program_text_keeps_its_lines_and_cannot_become_html():
    assert code_html("if a < b:\n    c") == "<pre><code>if a &lt; b:\n    c</code></pre>"


def test_details_open_with_their_summary():
    assert details("Hint `x`", "<p>y</p>") == "<details><summary>Hint <code>x</code></summary><p>y</p></details>"


def test_a_list_has_an_item_for_each_line_that_begins_one():
    text = "Three steps:\n\n1. take `x`\n2. add\n   one\n\n- *a*\n- b"
    assert to_plain(text) == "Three steps:\n\n1. take x\n2. add one\n\n- a\n- b"
    shown = to_html(text)
    assert (
        "<li>take <code>x</code></li><li>add one</li></ol>" in shown and "<li><em>a</em></li><li>b</li></ul>" in shown
    )
    assert "<ol" not in to_html("In 2019. - no list\n1. is none inside a paragraph")
