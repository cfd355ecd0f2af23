import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_lib.commands.files import read_notebook
from course_lib.commands.lessons import find_lesson
from course_lib.lectures.story import compose, fold, output_kind, paths_of, slides_of, unfold

FIGURE = new_output("display_data", {"text/html": "<img alt='Waves.' src=''>", "text/plain": "Figure: Waves."})
PRINTED = new_output("stream", name="stdout", text="42\n")
PROSE = "Then\n\n$$a^2 +\nb^2 .$$\n\n- one thing,\n  at length\n- another\n\n| a | b |\n|---|---|\n| 1 | 2 |\nEnd."


def slide(text="## Look back", **fields):
    return {"text": text, "notes": "Ask: why?", "paths": [60, 90], "minutes": 2} | fields


def lesson(*slides, cell=None):
    """A lesson of three cells; the middle one, or `cell`, carries the slides."""
    carrier = cell or new_code_cell("a = 1\nb = 2\nprint(a)\nplot(b)", id="plot", outputs=[PRINTED, FIGURE])
    carrier.metadata["lecture"] = {"slides": list(slides)}
    return new_notebook(cells=[new_markdown_cell("## 3 · Waves"), carrier, new_code_cell("c = 3", id="later")])


def kinds(notebook):
    return [cell.metadata.slideshow.slide_type for cell in notebook.cells]


def written(source, **metadata):
    return new_markdown_cell(source, metadata=metadata)


def test_slides_that_an_author_writes_are_folded_into_the_cell_below_and_come_back():
    above = written("## Look back\n\n- a point\n\n**Notes**\n\nAsk: why?", slide="30 90", minutes=2, show="text")
    code = new_code_cell("print(1)")
    [kept] = fold([above, code])
    assert kept.metadata.lecture["slides"] == [
        {"text": "## Look back\n\n- a point", "notes": "Ask: why?", "paths": [30, 90], "minutes": 2, "show": ["text"]}
    ]
    again, same = unfold([kept])
    assert (again.source, dict(again.metadata)) == (above.source, dict(above.metadata))
    assert "lecture" not in same.metadata and "lecture" in kept.metadata


def test_a_slide_below_the_last_cell_is_refused():
    with pytest.raises(ValueError, match="none follows '## Look back'"):
        fold([new_code_cell("1"), written("## Look back\n\n**Notes**\n\nSay.", slide="90", minutes=1)])


def test_a_slide_becomes_its_words_what_it_shows_and_its_notes():
    notebook = compose(lesson(slide(show=["figure"])), path=60)
    words, figure, notes = notebook.cells
    assert kinds(notebook) == ["slide", "-", "notes"]
    assert words.source == "## Look back" and notes.source == "Ask: why?"
    assert words.metadata.lecture == {"name": "look-back", "paths": [60, 90], "minutes": 2, "section": "3 · Waves"}
    assert figure.id == "plot" and [output_kind(output) for output in figure.outputs] == ["figure"]
    assert figure.metadata.lecture == {"show": ["figure"], "outputs": [1]} and "hide-input" in figure.metadata.tags
    nbformat.validate(notebook)


def test_a_path_has_its_own_slides_and_nothing_else():
    story = lesson(slide(), slide("## Only at length", paths=[90], minutes=3))
    assert [one.heading for one in slides_of(story, 60)] == ["Look back"]
    assert compose(story, path=60).metadata.lecture["minutes"] == 2
    assert compose(story, path=90).metadata.lecture["minutes"] == 5
    with pytest.raises(ValueError, match="30, 60, 90 minutes, not 45"):
        compose(story, path=45)


def test_a_lesson_offers_the_paths_that_its_slides_name_and_the_longest_is_taken():
    story = lesson(slide(paths=[60]), slide("## In both", paths=[60, 30], minutes=3))
    assert paths_of(story) == (30, 60)
    assert compose(story) == compose(story, path=60) != compose(story, path=30)
    assert paths_of(lesson()) == ()
    assert paths_of(read_notebook(find_lesson("00"))) == (30, 60)


@pytest.mark.parametrize("show", [["figure"], ["code"], []])
def test_all_code_is_kept_in_order_for_a_notebook_that_runs(show):
    story = lesson(slide(show=show), slide("## Again"))
    notebook = compose(story, keep_code=True)
    assert [cell.source for cell in notebook.cells if cell.cell_type == "code"] == [
        cell.source for cell in story.cells if cell.cell_type == "code"
    ]
    assert kinds(notebook)[-1] == "skip"
    without = compose(story, path=30, keep_code=True)
    assert kinds(without) == ["skip", "skip"]
    assert not any("slides" in cell.metadata.get("lecture", {}) for cell in without.cells)


def test_code_is_cut_between_two_lines_that_are_named_by_how_they_begin():
    [words, _] = compose(lesson(slide(show=["code"], code=["b =", "print"]))).cells
    assert words.source == "## Look back\n\n```python\nb = 2\nprint(a)\n```"


@pytest.mark.parametrize(
    ("part", "source"),
    [
        ("math", "$$a^2 +\nb^2$$"),
        ("list", "- one thing,\n  at length\n- another"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ],
)
def test_formulas_lists_and_tables_come_from_the_lesson(part, source):
    [words, _] = compose(lesson(slide(show=[part]), cell=new_markdown_cell(PROSE))).cells
    assert words.source == f"## Look back\n\n{source}"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"show": ["question"]}, "no such output"),
        ({"show": ["math"]}, "of a code cell"),
        ({"show": ["film"]}, "film.* are known"),
        ({"paths": [45]}, "45"),
        ({"paths": []}, "paths"),
        ({"minutes": 0}, "how long"),
        ({"text": "no heading"}, "begins with a heading"),
        ({"show": ["code"], "code": ["x =", "print"]}, "0 lines"),
        ({"show": ["code"], "code": ["", "print"]}, "4 lines"),
        ({"show": ["code"], "code": ["print", "b ="]}, "ends its code before"),
    ],
)
def test_a_slide_that_asks_for_what_is_not_there_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        compose(lesson(slide(**{"show": ["text"], **fields})))


def test_two_slides_may_not_show_the_outputs_of_one_cell():
    with pytest.raises(ValueError, match="the outputs of one cell"):
        compose(lesson(slide(show=["text"]), slide("## Again", show=["figure"])))


def test_steps_come_one_by_one_with_what_stands_below_them_and_the_outputs_last():
    notebook = compose(lesson(slide("## Look back\n\n- one\n- two", show=["text"], steps=True)))
    assert kinds(notebook) == ["slide", "fragment", "fragment", "fragment", "notes"]
    assert [cell.source for cell in notebook.cells[:3]] == ["## Look back", "- one", "- two"]
    formula = slide("## Look back\n\n- one\n- two, so", show=["math"], steps=True)
    notebook = compose(lesson(formula, cell=new_markdown_cell(PROSE)))
    assert [cell.source for cell in notebook.cells[1:4]] == ["- one", "- two, so", "$$a^2 +\nb^2$$"]
