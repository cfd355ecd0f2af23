"""The page with a learner's answers: as a plain file, in four kernels, and in another lesson."""

from pathlib import Path

import nbformat

from course_lib.lessons.lesson_05.tasks import TASKS
from tests.lessons.answered import run_alone, shown, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "05_attention.ipynb"
DRIVER = """
attention = my_attention

class learner:
    def batches(pairs, steps):
        for _ in range(steps):
            x = torch.randint(3, 9, (16, 4))
            ends = torch.full((16, 1), 2)
            target = torch.cat([ends - 1, x.flip(1), ends], dim=1)
            yield x, x > 0, target, target > 0

class data: train = None
class screen:
    stopped = False
    def update(step, steps, loss): screen.loss = loss

torch.manual_seed(0)
model = Seq2Seq(9, 9, 32)
train(model, 200, screen)
x, valid, *_ = next(learner.batches(None, 1))
right = (my_greedy(model, x, valid, 1, 2, 9)[:, :4] == x.flip(1)).float().mean().item()
print(screen.loss, right)
"""
OTHER = "from course_lib.lessons.lesson_08 import page\nlayer = page.from_lesson('05', 'multi_head')"


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    printed = run_alone(
        tmp_path,
        TASKS,
        nbformat.read(PAGE, as_version=4),
        solutions=("attention", "encoder", "decoder", "seq2seq", "greedy"),
        cells=("loss_of", "train"),
        driver=DRIVER,
        lines=150,
    )
    loss, right = map(float, printed.split())
    assert loss < 0.2 and right > 0.9


def test_her_translator_and_her_heads_go_on_in_new_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    notebook, few = nbformat.read(PAGE, as_version=4), (("steps=1000", "steps=3"), ("range(80)", "range(2)"))
    first, second, third = sittings(
        notebook, TASKS, begin=1, end="neighbours.train_reader", left_out=("data.test",), shorter=few
    )
    for name in ("Encoder", "Decoder", "Seq2Seq"):
        assert f"your {name} passes its check" in first and f"the lesson runs on your {name}." in first
    assert "Seq2Seq opens the trained weights." in first and "the page runs on your model" in first
    assert all(f"Your {name} goes on here." in second for name in ("my_attention", "Seq2Seq", "my_greedy"))
    assert "Your my_attention goes on here." in third and "your MultiHeadAttention passes its check" in third
    assert "Your MultiHeadAttention goes on here, of lesson 05." in shown([OTHER])
