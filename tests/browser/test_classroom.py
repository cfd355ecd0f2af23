"""The browser fixtures and the classroom, on a small notebook: run, answer, move, break."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from playwright.sync_api import expect

from course_lib.authoring.notebooks import KERNELSPEC, build_notebook, read_notebook
from course_lib.authoring.stamps import stamp_problems
from course_lib.classroom.cards import section_cells
from tests.axe import axe_script

pytestmark = pytest.mark.needs("chromium")

SETUP = """\
from course_lib.classroom import Prediction, Number, Page, Quiz, Result, Section, show
from matplotlib.figure import Figure
def drawn():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2, 4])
    return figure
page = Page("00", sections=(Section("One $1 + 1$", 3), Section("Optional: what it's for, later", 2, optional=True)),
    quizzes={"sum": Quiz("What is $1 + 1$?", {"$1$": "One is missing.", "`2`": "Count them."}, 1),
             "half": Number("Half of one?", 0.5, near={2.0: "That is twice one."})},
    predictions={"points": Prediction("How many points?", low=0, high=10, unit="points"),
                 "line": Prediction("Up?", ("yes", "no"))},
    results={"points": lambda predicted: Result(drawn(), f"A line and {predicted}", {"it rises": True}, came=7),
             "line": lambda predicted: Result(drawn(), "Rises", came=0)})
page.open()"""
SLIDER = """\
import ipywidgets
slider = ipywidgets.IntSlider(value=3, max=10)
square = ipywidgets.Label(value="9")
slider.observe(lambda change: setattr(
    square, "value", f"square {change.new ** 2}"), "value")
ipywidgets.VBox([slider, square])"""
FIGURE = 'show(drawn(), alt="A line that rises")'
LISTING = """\
from course_lib.classroom import show_source
from course_lib.functional.attention import attention
show_source(attention)"""
WATCHED = """\
import torch
model = torch.nn.Linear(1, 1)
display = page.watch(model, example=lambda model: "<em>a word</em>")
for step in range(9):
    display.update(step + 1, 9, loss=1 / (step + 1))
display.close()"""
TABLE = """\
from course_lib.classroom.output import present
from course_lib.classroom.widgets import heat_map
words = ["one", "economic", "area"]
table = heat_map(torch.eye(3), words, words, label="x", marks={(0, 0), (2, 1)})"""
TABLES = [
    'present("", table)',
    "ipywidgets.HTMLMath(table)",
    "page.watch(model, example=lambda model: table, height=40).update(1, 1)",
]
MEASURED = """(one) => {
    const box = (part) => part.getBoundingClientRect(), rows = [...one.querySelectorAll(".course-map tbody tr")];
    const text = (head) => { const all = document.createRange(); all.selectNodeContents(head); return box(all); };
    const heads = [...one.querySelectorAll(".course-map thead th")];
    return {
        rows: new Set(rows.map((row) => getComputedStyle(row).backgroundColor)).size,
        heads: Math.max(...heads.map((head) => Math.abs(box(head).bottom - text(head).bottom))),
        squares: Math.max(...[...one.querySelectorAll(".course-map td[title]")].map(
            (square) => Math.abs(box(square).width - box(square).height))),
        scrolled: [...one.querySelectorAll(":not(.heard)")].filter((part) =>
            part.scrollHeight > part.clientHeight + 1 && getComputedStyle(part).overflowY !== "visible").length,
    };
}"""
PARTS = [f'page.{kind}("{name}")' for kind, name in (
    ("quiz", "sum"), ("quiz", "half"), ("predict", "points"), ("result", "points"), ("predict", "line"),
    ("result", "line"),
)]  # fmt: skip


@pytest.fixture(scope="module")
def notebook(start_lab, open_notebook, tmp_path_factory):
    path = tmp_path_factory.mktemp("scratch") / "scratch.ipynb"
    sources = [SETUP, *PARTS, SLIDER, FIGURE, LISTING, WATCHED, TABLE, *TABLES]
    prose = [new_markdown_cell(f"Paragraph {n}: $x_{n}^2$\n\n" + "And so on.\n\n" * 20) for n in range(8)]
    prose.append(new_markdown_cell("## Optional: what it's for, later", id=section_cells("00")["optional"]))
    cells = [*map(new_code_cell, sources), *prose, new_code_cell("last = 40 + 2\nlast")]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), path)
    page = open_notebook(start_lab([path]), "scratch.ipynb")
    page.run_all()
    return page


def test_a_notebook_runs_from_top_to_bottom(notebook):
    assert notebook.errors() == []
    expect(notebook.cell("last = 40").locator(".jp-OutputArea-output")).to_have_text("42")


def test_a_row_of_the_head_card_leads_to_its_section(notebook):
    heading = notebook.page.get_by_role("heading", name="Optional: what it's for, later")
    notebook.cell("page.open()").get_by_role("link", name="Optional: what it's for, later").click()
    expect(heading).to_be_in_viewport()
    notebook.cell("page.open()")


def test_a_wrong_answer_is_explained_and_the_right_one_praised(notebook):
    cell = notebook.cell('quiz("sum"')
    cell.get_by_role("button", name="A", exact=True).click()
    expect(cell.get_by_role("alert")).to_contain_text("One is missing.")
    notebook.screenshot("scratch-quiz", of=cell)
    cell.get_by_role("button", name="Close").click()
    expect(cell.get_by_role("alert")).to_have_count(0)


def test_an_option_is_clicked_on_its_text_or_chosen_by_keyboard(notebook):
    cell = notebook.cell('quiz("sum"')
    text = cell.locator(".course-text").nth(1).bounding_box()
    notebook.page.mouse.click(text["x"] + text["width"] / 2, text["y"] + text["height"] / 2)
    expect(cell.get_by_role("alert")).to_contain_text("B is right")
    cell.get_by_role("button", name="A", exact=True).press("Enter")
    expect(cell.get_by_role("alert")).to_contain_text("A is not right")


def test_a_number_is_typed(notebook):
    cell = notebook.cell('quiz("half"')
    field = cell.get_by_role("textbox", name="Your answer")
    field.fill("2")
    field.press("Enter")
    expect(cell.get_by_role("alert")).to_contain_text("That is twice one.")
    field.fill("1/2")
    cell.get_by_role("button", name="Check").click()
    expect(cell.get_by_role("alert")).to_contain_text("1/2 is right")


def test_a_result_opens_with_the_bet_drawn_in_when_the_bet_is_placed(notebook):
    cell = notebook.cell('result("points"')
    expect(cell.get_by_text("Make your prediction first")).to_be_visible()
    expect(cell.get_by_role("img")).to_have_count(0)
    prediction = notebook.cell('predict("points"')
    prediction.get_by_role("slider", name="Your prediction").press("ArrowRight")
    prediction.get_by_role("button", name="This is my prediction").click()
    expect(prediction.get_by_role("status").last).to_contain_text("You predicted 6 points")
    cell = notebook.cell('result("points"')
    expect(cell.get_by_role("img", name="A line and 6")).to_be_visible()
    expect(cell).to_contain_text("You predicted 6 points; it was 7 points.")
    notebook.screenshot("scratch-result", of=cell)


def test_a_result_can_be_seen_without_a_bet(notebook):
    cell = notebook.cell('result("line"')
    cell.get_by_role("button", name="Show me anyway").click()
    expect(cell.get_by_role("img", name="Rises")).to_be_visible()
    expect(notebook.cell('predict("line"').get_by_role("button", name="A", exact=True)).to_be_disabled()


def test_a_watched_training_stays_on_the_page(notebook):
    cell = notebook.cell("page.watch")
    expect(cell.get_by_role("img", name="Loss over 9 steps: from 1 to 0.111")).to_be_visible()
    expect(cell.get_by_text("a word", exact=True)).to_be_visible()


@pytest.mark.parametrize("shown", TABLES)
def test_a_table_of_weights_has_one_look_wherever_it_stands(notebook, shown):
    output = notebook.cell(shown).locator(".jp-OutputArea").first
    expect(output.locator(".course-map")).to_be_visible()
    found = output.evaluate(MEASURED)
    assert found["rows"] == 1  # no zebra
    assert found["scrolled"] == 0  # nothing is cut off, however low the display was asked to be
    assert found["heads"] < 8 and found["squares"] < 1, found  # heads stand on their columns; rings are round


def test_lines_of_a_listing_are_never_broken(notebook):
    listing = notebook.cell("show_source").locator("pre[tabindex]").first
    heights = listing.evaluate("(one) => [one.querySelector('code').getBoundingClientRect().height, one.textContent]")
    lines = heights[1].count("\n") + 1
    assert heights[0] < 22 * lines and listing.evaluate("(one) => one.scrollWidth > one.clientWidth")


@pytest.mark.parametrize("theme", ["JupyterLab Dark", "JupyterLab Light"])
def test_axe_finds_nothing_wrong_with_what_the_classroom_shows(notebook, theme):
    change = "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
    notebook.page.evaluate(change, theme)
    notebook.page.wait_for_function(f"() => document.body.dataset.jpThemeName === '{theme}'")
    notebook.page.evaluate(axe_script())
    for text in ("page.open()", *PARTS, "show_source", "page.watch"):
        output = notebook.cell(text).locator(".jp-OutputArea").first
        found = output.evaluate("async (one) => (await axe.run(one)).violations.map((v) => v.id + v.nodes[0].html)")
        assert found == [], text


def test_moving_a_slider_changes_what_the_page_shows(notebook):
    cell = notebook.cell("IntSlider")
    notebook.move_slider(cell.locator(".widget-slider"), 4)
    expect(cell.locator(".widget-label").last).to_have_text("square 49")
    notebook.move_slider(cell.locator(".widget-slider"), -2)
    expect(cell.locator(".widget-label").last).to_have_text("square 25")


def test_a_figure_on_the_page_has_its_alt_text(notebook):
    expect(notebook.cell("show(drawn").get_by_role("img", name="A line that rises")).to_be_visible()


def test_a_learner_can_write_and_run_a_cell(notebook):
    notebook.replace_source("last = 40", "last = 40 + 3\nlast")
    cell = notebook.run_cell("last = 40")
    expect(cell.locator(".jp-OutputArea-output")).to_have_text("43")


def test_the_learners_progress_is_kept_outside_the_notebook(notebook):
    assert '"sum"' in (notebook.lab.home / "progress.json").read_text()


def test_the_page_did_nothing_wrong(notebook):
    assert notebook.problems == []


# ------------------------------------------------------------------ a built notebook in a learner's hands


def test_saving_changes_no_byte_of_a_built_notebook_and_it_opens_again_after_a_run(notebook, open_notebook):
    path = notebook.lab.notebooks / "stamped.ipynb"
    cells = [new_markdown_cell("# A title"), new_code_cell('print("one")\nprint("two")'), new_code_cell(FIGURE)]
    cells.insert(1, new_code_cell(SETUP))
    nbformat.write(new_notebook(cells=cells), path)
    assert build_notebook(path).error is None
    before = path.read_bytes()
    page = open_notebook(notebook.lab, path.name)
    page.save()
    assert path.read_bytes() == before and stamp_problems(read_notebook(path)) == []
    page.run_all()
    page.save()
    nbformat.validate(read_notebook(path))
    again = open_notebook(notebook.lab, path.name)
    again.run_all()
    assert "course_stamp" in read_notebook(path).metadata


# ------------------------------------------------------------------ the record sees what it should see


@pytest.fixture(scope="module")
def second_tab(open_notebook, notebook):
    return open_notebook(notebook.lab, "scratch.ipynb")


@pytest.fixture
def spoiled(second_tab):
    """A tab whose problems are expected, and forgotten afterwards."""
    assert second_tab.problems == []
    yield second_tab
    second_tab.watch.problems.clear()


@pytest.mark.parametrize(
    ("deed", "problem"),
    [
        ("console.error('broken widget')", "console error: broken widget"),
        ("setTimeout(() => { throw new Error('lost') })", "uncaught error: lost"),
        ("fetch('/api/contents/absent.ipynb')", "answer 404"),
        ("fetch('http://192.0.2.1/font.woff').catch(() => 0)", "request to another machine: http://192.0.2.1/"),
        ("new WebSocket('ws://127.0.0.2:9/')", "request to another machine: ws://127.0.0.2:9/"),
    ],
)
def test_the_record_sees_a_planted(spoiled, deed, problem):
    spoiled.page.evaluate(f"() => {{ {deed} }}")
    for _ in range(240):
        spoiled.page.wait_for_timeout(500)  # also for what the browser adds later: the next test must not see it
        if any(problem in said for said in spoiled.problems):
            return
    pytest.fail(f"{problem!r} is not among {spoiled.problems}")


def test_an_error_in_a_cell_is_found(spoiled):
    spoiled.replace_source("last = 40", "last = 1 / 0  # 40")
    spoiled.run_cell("last = 1 / 0")
    assert spoiled.errors() == [f"code cell {len(spoiled.code_cells())}: ZeroDivisionError: division by zero"]


def test_a_run_that_fails_is_not_taken_for_a_run_that_is_done(spoiled):
    spoiled.replace_source("last = ", "last = 1 / 0  # 40")
    last = len(spoiled.code_cells())
    with pytest.raises(RuntimeError, match=f"scratch.ipynb stopped: code cell {last}: ZeroDivisionError"):
        spoiled.run_all()


def test_a_second_run_is_waited_for_though_the_cells_have_numbers_already(spoiled):
    spoiled.replace_source("last = ", "import time\ntime.sleep(4)\nlast = 44\nlast")
    spoiled.run_all()
    (result,) = spoiled.code_cells()[-1]["outputs"]
    assert result["data"]["text/plain"] == "44"  # now, and not a little later
