"""A learner's notebook, saved: its live widgets when it is opened again, and a plot pasted into a written answer."""

import base64
import io

import nbformat
import pytest
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from course_lib.authoring.notebooks import KERNELSPEC
from course_lib.data.place import course_folder
from course_lib.grading.intake import take_from
from course_lib.grading.spec import read_assignment
from course_lib.grading.stripped import student_version

pytestmark = pytest.mark.needs("chromium")

QUIZ = """\
from course_lib.classroom.page import Page, Quiz
quiz = Quiz("What is $1 + 1$?", options={"one": "One is missing.", "two": "Count them."}, answer=1)
page = Page("00", quizzes={"sum": quiz})
page.open()
page.quiz("sum")"""


@pytest.fixture(scope="module")
def saved(start_lab, open_notebook, tmp_path_factory):
    """A page whose quiz was answered wrong and then saved; its kernel lives."""
    path = tmp_path_factory.mktemp("scratch") / "learner.ipynb"
    cells = [new_code_cell(QUIZ), new_code_cell("import ipywidgets\nipywidgets.IntSlider(value=3)")]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": KERNELSPEC}), path)
    page = open_notebook(start_lab([path]), path.name)
    page.run_all()
    page.cell("quiz(").get_by_role("button", name="A", exact=True).click()
    expect(page.cell("quiz(").get_by_role("alert")).to_contain_text("One is missing.")
    page.save()
    return page


def test_the_file_holds_no_view_of_a_widget(saved):
    text = (saved.lab.notebooks / saved.name).read_text()
    assert "widget-view" not in text and "Show the answer" in text


def test_the_page_that_was_saved_keeps_its_widgets(saved):
    cell = saved.cell("quiz(")
    cell.get_by_role("button", name="B", exact=True).click()
    expect(cell.get_by_role("alert")).to_contain_text("B is right")
    assert saved.problems == []


def shows_what_is_stored(page):
    """Whether the page shows the text beside each widget, and complains of nothing."""
    expect(page.cell("quiz(").get_by_text("Show the answer")).to_be_visible()
    expect(page.cell("IntSlider").locator(".jp-OutputArea-output")).to_contain_text("IntSlider(value=3)")
    expect(page.page.get_by_text("Error displaying widget")).to_have_count(0)
    return page.problems == []


def test_a_page_opened_again_beside_its_kernel_shows_what_is_stored(saved, open_notebook):
    assert shows_what_is_stored(open_notebook(saved.lab, saved.name))


def test_a_page_opened_again_with_a_new_kernel_shows_what_is_stored_and_runs(saved, open_notebook):
    saved.shut_down_kernel()
    page = open_notebook(saved.lab, saved.name)
    assert shows_what_is_stored(page)
    page.screenshot("saved-and-opened-again")
    page.run_all()
    cell = page.cell("quiz(")
    cell.get_by_role("button", name="B", exact=True).click()
    expect(cell.get_by_role("alert")).to_contain_text("B is right")
    assert page.problems == []


DELIVERED = course_folder() / "notebooks" / "assignments"
PASTE = """(cell, content) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], 'image.png', { type: 'image/png' }));
  cell.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def test_a_plot_pasted_into_a_written_answer_of_the_delivered_assignment_reaches_the_instructor(
    start_lab, open_notebook, tmp_path
):
    files = read_assignment(DELIVERED, "08")
    path = tmp_path / "gpt.ipynb"
    nbformat.write(student_version(files.source_notebook, files.notebook), path)
    page = open_notebook(start_lab([path]), path.name)
    plot = io.BytesIO()
    Figure(figsize=(2, 1)).savefig(plot, format="png")
    content = base64.b64encode(plot.getvalue()).decode()
    answer = page.written_answer("experiment")
    answer.dblclick()
    answer.locator(".cm-content").evaluate(PASTE, content)
    expect(answer.locator(".cm-content")).to_contain_text("(attachment:")
    page.save()
    submission = take_from((page.lab.notebooks / path.name).read_bytes(), files, student="ada")
    assert f"(data:image/png;base64,{content})" in submission.written["experiment"]
    assert page.problems == []
