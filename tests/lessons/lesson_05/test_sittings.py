"""The learner's translator and her multi-head attention go on in a new kernel, and in another lesson."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.lessons.lesson_05.tasks import TASKS

IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
USED = {"encoder": "Encoder", "decoder": "Decoder"}  # exercises that others build on, and their names on the page


def first():
    yield IMPORTS + "from course_lib.lessons.lesson_05 import page\npage.open()"
    yield f'{TASKS["attention"].solution}\npage.check("attention", my_attention)'
    yield 'attention = page.use("attention", my_attention)'
    for name in ("encoder", "decoder", "seq2seq", "multi_head"):
        called = {"seq2seq": "Seq2Seq", "multi_head": "MultiHeadAttention"}.get(name) or USED[name]
        yield f'{TASKS[name].solution}\npage.check("{name}", {called})'
        if name in USED:
            yield f'{called} = page.use("{name}", {called})'


SECOND = [
    "from course_lib.lessons.lesson_05 import page\nmade = page.resume('seq2seq')\nmodel = page.load('seq2seq', made)",
    "from course_lib.lessons.lesson_08 import page as other\nlayer = other.from_lesson('05', 'multi_head')",
]


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_HOME", str(tmp_path_factory.mktemp("home")))
        shown(first())
        return shown(SECOND)


def shown(cells):
    """What all cells show in one kernel."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    assert nbformat.validate(notebook) is None
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "\n".join(output.get("text") or output["data"].get("text/plain", "") for output in outputs)


def test_her_translator_opens_the_trained_weights_in_a_new_kernel(second):
    assert "Your Seq2Seq goes on here." in second
    assert "Seq2Seq opens the trained weights." in second and "the page runs on your model" in second


def test_another_lesson_gets_her_multi_head_attention(second):
    assert "Your MultiHeadAttention goes on here, of lesson 05." in second
