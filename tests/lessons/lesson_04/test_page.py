"""The page with a learner's answers: as a plain file, and in two kernels."""

import math
from pathlib import Path

import nbformat

from course_lib.lessons.lesson_04.tasks import TASKS
from tests.lessons.answered import run_alone, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "04_lstm_and_gru.ipynb"
TEXT = "the cat sat on the mat and the dog sat on the log. "
DRIVER = f"""
class Screen:
    stopped = False
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
Screen.stopped = True
print(len(train(model, 0.02, Screen())))
model = CharacterModel(10, 10, 4)
open_gates(model, 4.0)
print((model.rnn.ih.bias + model.rnn.hh.bias).view(4, 4)[:2].tolist(), len(write(model, "", 1.0, 0)), sep="|")
"""


def test_a_plain_file_of_the_solutions_and_the_cells_trains_without_the_course(tmp_path):
    printed = run_alone(
        tmp_path,
        TASKS,
        nbformat.read(PAGE, as_version=4),
        solutions=("lstm_cell", "lstm", "gru", "character_model"),
        cells=("detached", "train", "write", "open_gates"),
        driver=DRIVER,
        lines=150,
    )
    *trained, [stopped], opened = [line.split("|") for line in printed.splitlines()]
    assert len(trained) == 2
    for first, last in trained:
        assert abs(float(first) - math.log(128)) < 0.3 and float(last) < 2
    assert stopped == "1"
    assert opened == [str([[-2.0] * 4, [4.0] * 4]), "0"]


def test_her_classes_open_the_trained_weights_and_train_in_a_second_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    few = (("steps=200", "steps=4"), ("range(300)", "range(3)"))
    first, second = sittings(nbformat.read(PAGE, as_version=4), TASKS, end='page.result("highway")', shorter=few)
    for name in ("LSTM", "CharacterModel"):
        assert f"your {name} passes its check" in first and f"the lesson runs on your {name}." in first
        assert f"Your {name} goes on here." in second
    assert "CharacterModel opens the trained weights." in first and "the page runs on your model" in first
    assert "the lesson runs on your GRU" in second and "the lesson runs on your my_long_bias" in second
