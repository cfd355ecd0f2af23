"""The solutions are the library's Transformer."""

import ast
from pathlib import Path

import pytest
import torch

from course_lib.authoring.lesson_pages import read_lesson
from course_lib.data.checkpoints import load_trained
from course_lib.lessons.lesson_06 import learner
from course_lib.lessons.lesson_06.models import opened, some_pairs
from course_lib.lessons.lesson_06.recipes import translator
from course_lib.lessons.lesson_06.tasks import TASKS
from course_lib.lessons.lesson_06.transformer import Place, stream_words, translate
from course_lib.training.translation import splits

SOLUTION = {name: task.module or task.reference for name, task in TASKS.items()}
SIZES = {"source_vocab": 228, "target_vocab": 330, "dim": 16, "depth": 1, "num_heads": 2, "mlp_dim": 32}


@pytest.mark.parametrize("checkpoint", ["translator", "translator_tricks"])
def test_the_shipped_model_in_the_solution_is_the_library_s(checkpoint):
    source, valid, target = some_pairs()
    ours = load_trained(checkpoint).model.eval()
    with torch.no_grad():
        made, wanted = opened(checkpoint)(source, valid, target), ours(source, target, source_valid=valid)
    torch.testing.assert_close(made, wanted, rtol=0, atol=1e-3)


def test_greedy_decoding_is_that_of_the_library():
    pairs = splits().test[:10]
    said = learner.translate(opened("translator"), SOLUTION["greedy"], [" ".join(p.english) for p in pairs])
    ours = load_trained("translator").model
    assert [tuple(words) for words in said] == [
        translate(ours, " ".join(pair.english), place=Place(0), num_beams=1).target for pair in pairs
    ]


def test_words_are_streamed_as_they_would_be_written_at_once():
    model = translator.build(translator.TransformerSettings(dim=8, depth=1)).eval()
    text = " ".join(splits().train[0].english)
    words = list(stream_words(model, text))
    assert tuple(words) == translate(model, text, place=Place(0), num_beams=1).target[: len(words)]


def test_before_training_the_vectors_of_pre_norm_grow_and_those_of_post_norm_do_not():
    sizes = learner.residual_sizes(SOLUTION["transformer"], SIZES, splits().train[:8], depth=4)
    assert abs(sizes["post-norm"][-1] - 1) < 0.01 and sizes["pre-norm"][-1] > sizes["pre-norm"][0]


def page_functions():
    notebook = read_lesson(Path(__file__).parents[3] / "notebooks" / "06_transformer.ipynb").notebook
    return {
        node.name: ast.get_source_segment(cell.source, node, padded=True)
        for cell in notebook.cells
        if cell.cell_type == "code"
        for node in ast.parse(cell.source).body
        if isinstance(node, ast.FunctionDef)
    }


def test_the_page_s_beam_search_with_one_beam_is_greedy():
    names = {"torch": torch, "math": __import__("math"), "beam_step": SOLUTION["beam_step"]}
    exec(page_functions()["beam_search"].replace("@torch.no_grad()", ""), names)
    model, sentences = opened("translator_tricks"), [" ".join(pair.english) for pair in splits().test[:5]]

    def one(*given):
        return names["beam_search"](*given, k=1)

    with torch.no_grad():
        said = learner.translate(model, learner.each_sentence(one), sentences)
        assert said == learner.translate(model, SOLUTION["greedy"], sentences)


def test_with_one_block_the_last_mlp_is_the_first(monkeypatch):
    monkeypatch.setattr(learner, "DEPTHS", (1, 2))

    def loss_of(model, source, valid, target, real):
        return SOLUTION["smoothed_loss"](model(source, valid, target[:, :-1]), target[:, 1:], 0.1, real[:, 1:])

    found = learner.gradient_norms(SOLUTION["transformer"], loss_of, SIZES, splits().train[:4])
    for name in ("post-norm", "pre-norm"):
        for last, first in zip(found["last"][name], found["first"][name], strict=True):
            assert last[0] == first[0] and last[1] != first[1]
