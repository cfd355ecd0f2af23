"""The page with a learner's answers in it: her class opens the trained weights, and two more kernels go on with it."""

import re
from pathlib import Path

import nbformat
import pytest

from course_lib.lessons.lesson_08.tasks import TASKS
from tests.lessons.answered import sittings

PAGE = Path(__file__).parents[3] / "notebooks" / "08_gpt.ipynb"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    notebook = nbformat.read(PAGE, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_HOME", str(tmp_path_factory.mktemp("home")))
        few = (("steps=2000", "steps=20"), ("steps=300", "steps=200"), ("count=40", "count=2"), ("ids, 30)", "ids, 2)"))
        told = 'first["GPT-2\'s weights"] = loss(model(tokens), tokens).item()'
        few += ((told, f"{told}\nprint('with GPT-2:', first[\"GPT-2's weights\"])"),)
        few += (("tokenized_dictionary(2048)", "tokenized_dictionary()"),)  # characters: no tokenizer is trained
        few += (("lengths = [16, 64, 256, 1024]", "print('cached and slow:', torch.equal(fast, slow))"),)
        left_out = ("ByteLevelBPE", "mean_loss", "n_gram", "stems_copied", "held_out")
        return list(sittings(notebook, TASKS, end="import contextmanager", left_out=left_out, shorter=few))


def test_her_model_is_built_of_her_parts_and_opens_the_trained_weights(shown):
    first, _, _ = shown
    for name in ("CausalSelfAttention", "Block", "MyGPT"):
        assert f"your {name} passes its check" in first and f"the lesson runs on your {name}." in first
    assert "MyGPT opens the trained weights." in first and "the page runs on your model" in first


def test_the_second_sitting_trains_her_model_in_a_new_kernel(shown):
    _, second, _ = shown
    assert "Your MyGPT goes on here." in second and "the lesson runs on your my_shifted_loss" in second
    losses = [float(loss) for loss in re.findall(r"with GPT-2: ([\d.]+)", second)]
    assert losses == [pytest.approx(7.62, abs=0.1)]
    assert float(re.search(r"one batch after 300 steps: ([\d.]+)", second)[1]) < 1


def test_the_third_sitting_samples_and_caches_with_her_functions(shown):
    _, _, third = shown
    assert "Your MyGPT goes on here." in third and "the page runs on your model" in third
    for name in ("my_top_p", "my_cached_step"):
        assert f"the lesson runs on your {name}" in third
    assert "cached and slow: True" in third
