"""A slideshow notebook becomes one page that holds all it needs."""

import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.classroom.widgets.script import classic
from course_lib.data.place import CannotStart
from course_lib.lectures.deck import build_deck, write_deck, write_file
from course_lib.lectures.rendering import inline_script, markdown_html, output_html

PICTURE = '<img alt="Waves." width="800" height="400" style="max-width:100%" src="data:image/png;base64,iVBORw0KGgo=">'


def cell(source, kind, *, outputs=None, **about):
    metadata = {"slideshow": {"slide_type": kind}, "lecture": about}
    if outputs is None:
        return new_markdown_cell(source, metadata=metadata)
    return new_code_cell(source, metadata=metadata, outputs=outputs)


def slideshow():
    return new_notebook(
        cells=[
            cell("# A <b>&amp;</b> title", "slide", name="title", minutes=1, section="One"),
            cell("Say **this**.", "notes"),
            cell("## Why $\\sqrt{d_k}$?", "slide", name="why", minutes=2, section="Two"),
            cell("- first", "fragment"),
            cell("- second", "fragment"),
            cell("plot()", "-", outputs=[new_output("display_data", {"text/html": PICTURE})], show=["figure"]),
            cell("1", "skip", outputs=[new_output("stream", text="never")]),
            cell("Ask that.", "notes"),
        ]
    )


@pytest.fixture(scope="module")
def deck():
    return build_deck(slideshow(), theme="dark")


pytestmark = pytest.mark.needs("lecture_assets")


def test_there_is_a_section_for_each_slide_with_its_notes(deck):
    sections = re.findall(r"<section .*?</section>", deck, re.DOTALL)
    assert [re.search(r'id="(.*?)"', section)[1] for section in sections] == ["title", "why"]
    assert 'aria-label="Why √d_k?"' in sections[1] and 'data-minutes="2"' in sections[1]
    assert re.search(r'<aside class="notes"><p>Ask that.</p>\s*</aside>', sections[1])
    assert "Say <strong>this</strong>." in sections[0] and "never" not in deck.partition("<script>")[0]


def test_printed_text_is_no_console_alone_or_below_its_code():
    printed = [new_output("stream", text="a  1\nbc 2\n")]
    page = new_notebook(
        cells=[
            cell("## Alone", "slide", name="alone"),
            cell("f()", "-", outputs=printed, show=["text"]),
            cell("## Below\n\n```python\nf()\n```", "slide", name="below"),
            cell("f()", "-", outputs=printed, show=["text"]),
        ]
    )
    alone, below = re.findall(r"<section .*?</section>", build_deck(page), re.DOTALL)
    assert "<pre>" not in alone and "<td" in alone and 'class="printout"' in alone
    assert "<pre>a" not in below and below.count("<td") == 4


def test_points_that_appear_one_by_one_are_one_list(deck):
    assert re.search(r'<ul><li class="fragment">first</li>\s*<li class="fragment">second</li>\s*</ul>', deck)


def test_elements_close_in_the_order_they_opened_in(deck):
    for section in re.findall(r"<section .*?</section>", deck, re.DOTALL):
        opened = []
        for closing, name in re.findall(r"<(/?)(section|div|ul|ol|li|aside|p|h1|h2|b)\b", section):
            if closing:
                assert opened.pop() == name
            else:
                opened.append(name)
        assert opened == []


def test_a_figure_keeps_its_alt_text_and_gets_its_shape(deck):
    assert 'alt="Waves."' in deck and 'style="--wide:800;--high:400;max-width:100%"' in deck


def test_the_page_names_nothing_outside_itself_and_forbids_every_request(deck):
    page = deck.partition("<script>")[0]
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", page) and not re.search(r"url\((?!data:)", page)
    assert "default-src 'none'" in page and '<html lang="en" data-theme="dark">' in page


def test_a_deck_holds_the_scripts_of_its_playgrounds_once_and_no_others(deck):
    assert "startPlayground = " not in deck
    shown = new_output("display_data", {"text/html": '<div class="course-playground" data-playground="mask"></div>'})
    slides = [cell("## Play", "slide"), cell("play()", "-", outputs=[shown, shown], show=["widget"])]
    lively = build_deck(new_notebook(cells=slides))
    assert lively.count(inline_script(classic("mask"))) == 1 and "playgrounds.softmax" not in lively
    assert lively.index("window.startPlayground = ") < lively.index("=> startPlayground(box)")


def test_a_wrong_theme_and_a_notebook_without_slides_are_refused():
    with pytest.raises(ValueError, match="light or dark, not 'pink'"):
        build_deck(slideshow(), theme="pink")
    with pytest.raises(ValueError, match="no slides"):
        build_deck(new_notebook())
    with pytest.raises(CannotStart, match="There are no slides in this lesson"):
        write_deck(new_notebook(), Path("nowhere"))
    with pytest.raises(CannotStart, match="no slides of 90 minutes"):
        write_deck(new_notebook(), Path("nowhere"), path=90)


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CannotStart, match=r"deck.html cannot be written.*--to"):
        write_file(tmp_path / "file" / "deck.html", b"")


def test_a_script_cannot_end_its_element():
    assert inline_script("a = '</script>' + '<!-- b'") == "a = '\\x3C/script>' + '\\x3C!-- b'"


def test_formulas_are_left_to_mathjax():
    assert "$a_1*b_2*c$" in markdown_html("Now $a_1*b_2*c$.")


@pytest.mark.parametrize(
    ("output", "html"),
    [
        (new_output("stream", text="a < b\n"), "<pre>a &lt; b</pre>"),
        (new_output("execute_result", {"text/plain": "<x>"}), "<pre>&lt;x&gt;</pre>"),
        (new_output("display_data", {"image/png": "aaaa", "text/plain": "A plot"}), '<img alt="A plot" src="data:'),
    ],
)
def test_an_output_is_escaped(output, html):
    assert output_html(output).startswith(html)
