"""The page with a learner's answers in it: her class opens the trained weights, and a second kernel goes on with it."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.lessons.lesson_08.tasks import TASKS

PAGE = Path(__file__).parents[3] / "notebooks" / "08_gpt.ipynb"
LEFT_OUT = ("page.play(", "page.result(", "ByteLevelBPE")  # they take long, and need nothing of hers
AFTER = "score_n_gram"  # where the experiments begin


def answered(source):
    """A cell with the solution where a learner is to write, and a training of few steps."""
    asked = re.search(r'^page\.check\("(\w+)", \w+\)', source, re.MULTILINE)
    if asked is None:
        return source.replace("steps=2000", "steps=20")
    stub = re.search(r"^(class|def) ", source, re.MULTILINE).start()
    return source[:stub] + TASKS[asked[1]].solution + "\n" + asked[0]


def shown(sources):
    """All that cells show in a kernel of their own."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(notebook, kernel_name="python3", timeout=600).execute()
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "\n".join(output.get("text") or output["data"].get("text/plain", "") for output in outputs)


@pytest.fixture(scope="module")
def sittings(tmp_path_factory):
    cells = [cell.source for cell in nbformat.read(PAGE, as_version=4).cells if cell.cell_type == "code"]
    stop, end = (next(i for i, cell in enumerate(cells) if words in cell) for words in ("page.resume", AFTER))
    first = [answered(cell) for cell in cells[:stop] if not any(words in cell for words in LEFT_OUT)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_HOME", str(tmp_path_factory.mktemp("home")))
        return shown(first), shown([answered(cell) for cell in cells[stop:end]])


def test_her_model_is_built_of_her_parts_and_opens_the_trained_weights(sittings):
    first, _ = sittings
    for name in ("CausalSelfAttention", "Block", "MyGPT"):
        assert f"your {name} passes its check" in first and f"the lesson runs on your {name}." in first
    assert "MyGPT opens the trained weights." in first and "the page runs on your model" in first


def test_the_second_sitting_trains_her_model_in_a_new_kernel(sittings):
    _, second = sittings
    assert "Your MyGPT goes on here." in second and "the lesson runs on your my_shifted_loss" in second
    losses = [float(loss) for loss in re.findall(r"first loss, GPT-2's weights +([\d.]+)", second)]
    assert losses == [pytest.approx(7.62, abs=0.1)]
    assert float(re.search(r"one batch after 300 steps: ([\d.]+)", second)[1]) < 1
