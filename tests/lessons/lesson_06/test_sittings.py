"""The learner's Transformer opens the trained weights, in a new kernel, too."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.lessons.lesson_06.tasks import TASKS

IMPORTS = "import torch\nfrom torch import nn\nfrom course_lib.lessons.lesson_06 import page\npage.open()"
NAMES = {  # exercises that others build on: written as, used as
    "layernorm": ("LayerNorm", "LayerNorm"),
    "mlp": ("MLP", "MLP"),
    "residual": ("my_residual", "residual"),
    "encoder_block": ("EncoderBlock", "EncoderBlock"),
    "decoder_block": ("DecoderBlock", "DecoderBlock"),
    "transformer": ("Transformer", "Transformer"),
}


def first():
    yield IMPORTS
    yield 'MultiHeadAttention = page.from_lesson("05", "multi_head")\npositions = page.from_lesson("05", "positions")'
    for name, (written, used) in NAMES.items():
        yield f'{TASKS[name].solution}\npage.check("{name}", {written})'
        yield f'{used} = page.use("{name}", {written})'
    yield 'page.load("transformer", Transformer)'


SECOND = [
    "from course_lib.lessons.lesson_06 import learner, page\nmade = page.resume('transformer')\n"
    "model = page.load('transformer', made, learner.opened('translator_tricks'))",
]


def shown(cells):
    """What all cells show in one kernel."""
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    assert nbformat.validate(notebook) is None
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return "\n".join(output.get("text") or output["data"].get("text/plain", "") for output in outputs)


def test_her_transformer_opens_the_trained_weights_also_in_a_new_kernel(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_HOME", str(tmp_path))
        one, two = shown(first()), shown(SECOND)
    assert "Transformer opens the trained weights." in one and "the page runs on your model" in one
    assert "Your Transformer goes on here." in two and "Transformer opens the trained weights." in two
