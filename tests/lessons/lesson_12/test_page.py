"""The page with a learner's answers: as a plain file, in three kernels, and with a trained network in her class."""

from pathlib import Path

import nbformat

from course_lib.classroom.opening import compare, copy_weights
from course_lib.lessons.lesson_12.models import MODELS
from course_lib.lessons.lesson_12.tasks import TASKS
from tests.lessons.answered import run_alone, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "12_swin_transformer.ipynb"
DRIVER = """
class learner:
    def batch(size, step):
        torch.manual_seed(step)
        labels = torch.randint(0, 4, (size,))
        images = 0.3 * torch.randn(size, 1, 16, 16)
        for image, label in zip(images, labels):          # stripes in none, one or both directions
            image[:, ::2] += label % 2
            image[:, :, ::2] += label // 2
        return images, labels

class page:
    stopped = False
    def watch(*_, **__): return page
    def update(done, steps, loss): page.losses.append(loss)
    def close(): pass

page.losses, example = [], None
sizes = {"in_channels": 1, "num_classes": 4, "patch_size": 2, "dim": 8,
         "depths": (2, 2), "num_heads": (1, 2), "size": 4, "grid": 8}
_, steps = training(MySwin, sizes, steps=120, peak=1e-2)
print(page.losses[0], page.losses[-1], steps)
page.stopped = True
print(training(MySwin, sizes)[1])
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    names = "in_windows, shift_mask, position_index = my_in_windows, my_shift_mask, my_position_index\n"
    first, last, steps, stopped = map(
        float,
        run_alone(
            tmp_path,
            TASKS,
            nbformat.read(PAGE, as_version=4),
            solutions=[name for name in TASKS if name != "attention_cost"],
            cells=("training",),
            driver=names + DRIVER,
            lines=190,
        ).split(),
    )
    assert 1 < first < 2 and last < 0.5, (first, last)  # ln 4 = 1.39
    assert (steps, stopped) == (120, 1)


def test_the_solution_opens_the_shipped_network():
    shipped = MODELS["swin"]
    ours = shipped.model().eval()
    mine = TASKS["swin"].module(**shipped.sizes(ours)).eval()
    copy_weights(ours, mine, shipped.names)
    compare(ours, mine, shipped.inputs(), shipped.names)


def test_her_parts_go_on_in_new_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    notebook = nbformat.read(PAGE, as_version=4)
    shorter = (("steps=600", "steps=2"), ("shifted=True", "shifted=True, steps=2"),
               ("shifted=False", "shifted=False, steps=2"), ("1000)", "40)"))  # fmt: skip
    second, third = sittings(notebook, TASKS, begin=1, end="page.close()", shorter=shorter)
    for name in ("my_in_windows", "my_shift_mask", "my_position_index", "WindowAttention", "SwinBlock", "PatchMerging"):
        assert f"your {name} passes its check" in second
    assert "MySwin opens the trained weights." in second and "the same result: True" in second
    assert "Your MySwin goes on here." in third and "one batch is memorised: True" in third
