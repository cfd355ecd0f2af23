"""The papers that a lesson cites stand at the foot of its figures and on slides at the end."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import lessons
from course_lib.lectures.deck import build_deck
from course_lib.lectures.references import ON_SLIDE, papers_of, with_references
from course_lib.lectures.story import compose, fold
from tests.lectures.small_lesson import slide

PROSE = """The LSTM ([Gers, Schmidhuber & Cummins 2000](https://arxiv.org/abs/0000.00001)) forgets, as in
van den Oord et al. (2018) and (SGD, Robbins & Monro 1951). In 2020 nobody did."""
LIST = """- Elman 1990, *Finding structure in time*; Cho et al. 2014, *Learning phrases*,
  [arXiv 1406.1078](https://arxiv.org/abs/1406.1078).
- Llama Team 2024, [arXiv 2407.21783](https://arxiv.org/abs/2407.21783); McCandlish et al. 2018."""


def lesson():
    figure = new_output("display_data", {"text/plain": "Figure: F", "text/html": '<img alt="A figure." src="">'})
    cells = [
        slide("# 98 · Papers", paths="90"),
        new_markdown_cell(PROSE),
        slide("## A figure", paths="90", show="figure"),
        new_code_cell("show()", outputs=[figure]),
        slide("## Another", paths="90", show="figure"),
        new_code_cell("show()", outputs=[figure]),
        new_markdown_cell(LIST),
    ]
    return new_notebook(cells=fold(cells))


def test_papers_are_found_in_sentences_and_in_lists():
    found = [(paper.short, paper.title, paper.arxiv) for paper in papers_of(lesson())]
    assert found == [
        ("Cho et al. 2014", "Learning phrases", "1406.1078"),
        ("Elman 1990", "Finding structure in time", ""),
        ("Gers et al. 2000", "", "0000.00001"),
        ("Llama Team 2024", "", "2407.21783"),
        ("McCandlish et al. 2018", "", ""),
        ("Robbins & Monro 1951", "", ""),
        ("van den Oord et al. 2018", "", ""),
    ]


def test_a_figure_has_the_papers_of_the_text_above_it_and_no_other_has_them():
    notebook = lesson()
    made = with_references(compose(notebook), notebook)
    papers = {cell.metadata.lecture.name: cell.metadata.lecture.get("papers", []) for cell in starts(made)}
    assert [len(papers[name]) for name in ("98-papers", "a-figure", "another")] == [0, 3, 0]
    assert papers["a-figure"][0].startswith('<a href="https://arxiv.org/abs/0000.00001"')


@pytest.mark.needs("lecture_assets")
def test_the_last_slide_names_them_all():
    deck = build_deck(with_references(compose(lesson()), lesson()))
    last = deck.partition('<section id="references"')[2].partition("</section>")[0]
    assert last.count("<li>") == 7 and "<em>Finding structure in time</em>" in last and "</section>" in deck


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem)
def test_every_lesson_has_its_papers_on_slides_that_hold_them(path):
    notebook = read_notebook(path)
    made = with_references(compose(notebook), notebook)
    counts = [
        cell.source.count("<li>") for cell in starts(made) if "references" in cell.metadata.lecture.get("show", ())
    ]
    assert sum(counts) == len(papers_of(notebook)) > 5 and max(counts) <= ON_SLIDE


def starts(slideshow):
    return [cell for cell in slideshow.cells if cell.metadata.slideshow.slide_type == "slide"]
