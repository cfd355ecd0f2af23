"""The playgrounds of all lessons as their notebooks store them, where no script of theirs may run."""

import re

import pytest
from nbformat.v4 import new_notebook
from playwright.sync_api import expect

from course_lib.commands.files import read_notebook, write_notebook
from course_lib.commands.lessons import find_lesson
from tests.browser.playgrounds import PYTHON

pytestmark = pytest.mark.needs("chromium")

SHOWN = {  # lesson and playground: which of the stored steps is opened, and what stands there then
    ("01", "stages"): (1, "its probe reads"),
    ("02", "plane"): (1, "The map by pixels. Picture 50 is a 2"),
    ("03", "reader"): (1, "kamboçya"),
    ("04", "reader"): (1, "Cell 27 over"),
    ("06", "explorer"): (3, "juge"),
    ("07", "blank"): (1, "“loi” stood there"),
    ("07", "search"): (None, "by meaning"),
    ("08", "writer"): (0, "The most probable next tokens"),
    ("08", "lookup"): (2, "dogfish (noun)"),
    ("08", "guess"): (1, "The score so far"),
    ("09", "fit"): (8, "exponent 0.40 and floor 1.00"),
    ("10", "labeller"): (2, "written for 20 votes"),
    ("11", "draw"): (1, "4 of 16 patches are hidden"),
    ("11", "hide"): (2, "It says 9"),
    ("12", "reach"): (2, "after 2 blocks its receptive field"),
    ("13", "ruin"): (0, "No patch is hidden"),
    ("14", "scene"): (1, "pixels are labelled as digits"),
    ("15", "transcribe"): (1, "Played: C E G c."),
    ("16", "agent"): (2, "Asked for -34"),
    ("16", "search"): (None, "highest cosine for “sunflower”"),
    ("17", "scores"): (8, "One head, 4,096 tokens: linear attention"),
    ("17", "dream"): (2, "The label 8 is clamped. After 30 Gibbs steps"),
}


def stored(lesson: str, name: str):
    """The cell that plays with `name`, with what it has put out, and a source that nothing else has."""
    (cell,) = (cell for cell in read_notebook(find_lesson(lesson)).cells if f'page.play("{name}"' in cell.source)
    cell.source, cell.id = f"# {lesson} {name}", f"{lesson}-{name}"
    return cell


@pytest.fixture(scope="module")
def page(tmp_path_factory, start_lab, open_notebook):
    path = tmp_path_factory.mktemp("stored") / "97_stored.ipynb"
    write_notebook(new_notebook(cells=[stored(*place) for place in SHOWN], metadata=PYTHON), path)
    return open_notebook(start_lab([path]), path.name)


@pytest.mark.parametrize("place", SHOWN, ids="-".join)
def test_an_untrusted_notebook_steps_through_it(page, place):
    number, words = SHOWN[place]
    cell = page.cell("# " + " ".join(place))
    cell.scroll_into_view_if_needed()
    assert cell.locator("script, style").count() == 0
    if number is not None:
        cell.locator("summary").nth(number).click()
        cell = cell.locator("details").nth(number).locator(":scope > :not(summary)")
    expect(cell.get_by_text(re.compile(re.escape(words))).locator("visible=true").first).to_be_visible()


def test_an_untrusted_notebook_has_the_tree_of_a_search_in_its_colours(page):
    cell = page.cell("# 06 explorer")
    step = cell.locator("details", has=page.page.locator("summary", has_text="Judge is the young.; Step: 2"))
    step.last.evaluate("(one) => { one.open = true; }")
    box = cell.get_by_title(re.compile("le juge: log p .*, went on")).locator("visible=true").last
    expect(box).to_have_css("background-color", "rgb(0, 114, 178)")  # the winner's
    expect(cell.get_by_text("Can you get there")).to_be_visible()
