"""The solutions and the cells of lesson 04, put together in one file, train and write without the course."""

import ast
import math
import subprocess
import sys
from pathlib import Path

from course_lib.authoring.lesson_pages import read_lesson
from course_lib.lessons.lesson_04.tasks import TASKS

FILE_LINES = 150
PAGE = Path(__file__).parents[3] / "notebooks" / "04_lstm_and_gru.ipynb"
TEXT = "the cat sat on the mat and the dog sat on the log. "
TAKEN = ("detached", "train", "write", "open_gates")
DRIVER = f"""
class Screen:
    def update(self, *args, **kwargs):
        pass

class tokenizer:
    encode = staticmethod(lambda text: list(text.encode()))
    decode = staticmethod(lambda ids: bytes(ids).decode())

rows = torch.tensor(list(({TEXT!r} * 90).encode()))[:4400].view(2, 2200)
for layer in (LSTM, GRU):
    torch.manual_seed(0)
    model = CharacterModel(128, 16, 32, layer)
    losses = train(model, 0.02, Screen(), steps=40)
    print(losses[0], losses[-1], sep="|")
model = CharacterModel(10, 10, 4)
open_gates(model, 4.0)
print((model.rnn.ih.bias + model.rnn.hh.bias).view(4, 4)[:2].tolist(), len(write(model, "", 1.0, 0)), sep="|")
"""


def test_a_plain_file_of_the_solutions_and_the_cells_trains_without_the_course(tmp_path):
    solutions = [TASKS[name].solution for name in ("lstm_cell", "lstm", "gru", "character_model")]
    cells = [cell.source for cell in read_lesson(PAGE).notebook.cells if cell.cell_type == "code"]
    functions = [
        ast.get_source_segment(source, node, padded=True)
        for source in cells
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name in TAKEN
    ]
    assert len(functions) == len(TAKEN)
    head = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
    whole = "\n\n".join([head, *solutions, *functions, DRIVER])
    assert len(whole.splitlines()) <= FILE_LINES
    (tmp_path / "cells.py").write_text(whole)
    done = subprocess.run([sys.executable, "-I", "cells.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    *trained, opened = [line.split("|") for line in done.stdout.splitlines()]
    assert len(trained) == 2
    for first, last in trained:
        assert abs(float(first) - math.log(128)) < 0.3 and float(last) < 2
    assert opened == [str([[-2.0] * 4, [4.0] * 4]), "0"]
