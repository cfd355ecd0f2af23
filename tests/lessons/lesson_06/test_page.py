"""The page with a learner's answers: as a plain file, in two kernels, and in another lesson."""

from pathlib import Path

import nbformat

from course_lib.lessons.lesson_05.tasks import TASKS as TASKS_05
from course_lib.lessons.lesson_06.tasks import TASKS
from tests.lessons.answered import run_alone, shown, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "06_transformer.ipynb"
MODEL = ("layernorm", "mlp", "residual", "encoder_block", "decoder_block", "transformer")
DRIVER = """
attention, positions, residual = my_attention, my_positions, my_residual
schedule, smoothed_loss = my_schedule, my_smoothed_loss

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
model = Transformer(9, 9, 32, 1, 4, 64)
for parameter in model.parameters():
    if parameter.dim() > 1:
        nn.init.xavier_uniform_(parameter)
for table in (model.source_embed, model.target_embed):
    nn.init.normal_(table.weight, std=32**-0.5)
train(model, 300, screen, peak=0.005, warmup=50)
x, valid, *_ = next(learner.batches(None, 1))
right = (my_greedy(model, x, valid, 1, 2, 9)[:, :4] == x.flip(1)).float().mean().item()
print(screen.loss, right)
"""
OTHER = "from course_lib.lessons.lesson_07 import page\nblock = page.from_lesson('06', 'encoder_block')"


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    printed = run_alone(
        tmp_path,
        TASKS_05 | TASKS,
        nbformat.read(PAGE, as_version=4),
        solutions=("attention", "multi_head", "positions", *MODEL, "greedy", "schedule", "smoothed_loss"),
        cells=("loss_of", "train"),
        driver=DRIVER,
        lines=240,
    )
    loss, right = map(float, printed.split())
    assert loss < 0.9 and right > 0.9


def test_her_transformer_goes_on_in_new_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    notebook, few = nbformat.read(PAGE, as_version=4), (("steps=1000", "steps=3"), ("range(80)", "range(2)"))
    left_out = ("data.test", "learner.gradient_norms")
    first, second = sittings(notebook, TASKS, begin=1, end="hard = (", left_out=left_out, shorter=few)
    for name in ("LayerNorm", "MLP", "EncoderBlock", "DecoderBlock", "Transformer"):
        assert f"your {name} passes its check" in first and f"the lesson runs on your {name}." in first
    assert "Transformer opens the trained weights." in first and "the page runs on your model" in first
    assert all(f"Your {name} goes on here." in second for name in ("Transformer", "my_greedy"))
    assert "Transformer opens the trained weights." in second and "the page runs on your model" in second
    assert "Your EncoderBlock goes on here, of lesson 06." in shown([OTHER])
