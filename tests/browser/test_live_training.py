"""A training that is watched in JupyterLab: nothing of it is cut off, and its button ends it."""

import nbformat
import pytest
from playwright.sync_api import expect

from course_lib.commands.files import write_notebook
from tests.browser.playgrounds import PYTHON

pytestmark = pytest.mark.needs("chromium")

TRAINING = """
import time
import torch
from torch import nn
from course_lib.classroom import live

model = nn.Linear(2, 1)
tall = "<div style='height:600px'>the tall example ends here</div>"
screen = live.watch(model, example=lambda model: tall, height=240)
steps = {steps}
for step in range(steps):
    screen.update(step + 1, steps, loss=1.0 / (step + 1))
    time.sleep(0.01)
    if screen.stopped:
        break
screen.close()
print("done after", step + 1)
"""
CUT = """(display) => {
  const cut = [];
  for (let one = display; !one.classList.contains("jp-Cell"); one = one.parentElement)
    if (getComputedStyle(one).overflowY !== "visible" && one.scrollHeight > one.clientHeight + 1)
      cut.push(one.className);
  return cut;
}"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory, start_lab, open_notebook):
    """A page with a short training and one that would take hours."""
    cells = [nbformat.v4.new_code_cell(TRAINING.format(steps=steps).strip()) for steps in (20, 10**6)]
    path = tmp_path_factory.mktemp("training") / "99_training.ipynb"
    write_notebook(nbformat.v4.new_notebook(cells=cells, metadata=PYTHON), path)
    return open_notebook(start_lab([path]), path.name)


def test_nothing_of_a_training_is_cut_off(trained):
    cell = trained.run_cell("steps = 20")
    display = cell.get_by_role("group", name="training")
    for width in (1280, 1440, 1920):
        trained.page.set_viewport_size({"width": width, "height": 900})
        expect(display.get_by_text("the tall example ends here")).to_be_attached()
        assert display.bounding_box()["height"] > 600
        assert display.evaluate(CUT) == []
    expect(cell.get_by_role("button", name="Stop here")).to_be_hidden()


def test_a_training_is_stopped_by_its_button_while_the_cell_runs(trained):
    cell = trained.cell("steps = 1000000")
    cell.locator(".cm-content").click()
    trained.page.keyboard.press("Shift+Enter")
    cell.get_by_role("button", name="Stop here").click()
    expect(cell.get_by_text("done after")).to_be_visible()
    assert trained.errors() == []
