"""The page with a learner's answers: as a plain file, and in two kernels."""

from pathlib import Path

import nbformat
import pytest

from course_lib.lessons.lesson_05.tasks import TASKS as TASKS_05
from course_lib.lessons.lesson_11.tasks import TASKS
from tests.lessons.answered import run_alone, sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "11_vision_transformer.ipynb"
DRIVER = """
attention, tokens, mixup, standardise = my_attention, my_tokens, my_mixup, lambda images: images

class drawings:
    def __init__(self, categories):
        self.names = self.categories = categories
    def take(self, rows):
        return drawings(self.categories[rows])

class learner:
    def random_views(some):
        rows = torch.arange(8)[:, None]
        images = 0.3 * torch.randn(len(some.names), 3, 8, 8)
        for image, kind in zip(images, some.categories):
            image[0, 3:5] += (kind % 3 == 0)
            image[1, :, 3:5] += (kind % 3 == 1)
            image[2, 2:6, 2:6] += (kind % 3 == 2)
            image[:, 0] += (kind > 2)
        return images

known = drawings(torch.arange(600) % 6)
torch.manual_seed(0)
model = ViT(8, 4, 3, 6, 32, 2, 2, 64)
images, targets = random_batch(64)
print(F.cross_entropy(model(images), targets).item())
train(model, 150, warmup=10)
some = known.take(torch.arange(300))
print((model(learner.random_views(some)).argmax(dim=1) == some.categories).float().mean().item())
"""


def test_a_plain_file_of_the_solutions_and_the_page_s_loop_learns_without_the_course(tmp_path):
    printed = run_alone(
        tmp_path,
        TASKS_05 | TASKS,
        nbformat.read(PAGE, as_version=4),
        solutions=("attention", "multi_head", "tokens", "block", "vit", "mixup"),
        cells=("random_batch", "train"),
        driver=DRIVER,
        lines=190,
    )
    first, right = map(float, printed.split())
    assert first == pytest.approx(1.7918, abs=1e-3) and right > 0.9


def test_her_vit_goes_on_in_a_new_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    notebook = nbformat.read(PAGE, as_version=4)
    few = (("steps=300", "steps=3"), ("range(40)", "range(3)"), ("warmup=50", "warmup=1"))
    few += (("(mine, some)", "(mine, some.take(torch.arange(9)))"), ("print(official.opened_by_both())", ""))
    left_out = ("learner.at_size", "by_data", "test_digits(1000)", "held_out(1000)", "released.vit_tiny")
    first, second = sittings(notebook, TASKS, end="on_real_data", left_out=left_out, shorter=few)
    assert "your ViT passes its check" in first and "equal: True" in first
    assert "ViT opens the trained weights." in first and "the page runs on your model" in first
    assert "Your ViT goes on here." in second and "a Mixer on it agrees: True" in second
