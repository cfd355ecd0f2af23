"""What the site's pages get of a trained model."""

import json

import pytest

from course_lib.data.checkpoints import FOLDER, MODEL, load_trained
from course_lib.data.files import data_path
from course_lib.site import models
from course_lib.site.models import export_model
from course_lib.text.tokenizer import Tokenizer
from course_lib.training.translation import vocabularies


def facts(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def test_the_weights_are_the_file_of_the_checkpoint(tmp_path):
    export_model("vit", tmp_path / "new")
    written = (tmp_path / "new" / "vit.safetensors").read_bytes()
    assert written == data_path(FOLDER, "vit", MODEL).read_bytes()


def test_the_config_is_whole_also_where_the_checkpoint_is_older_than_an_entry(tmp_path):
    export_model("mae", tmp_path)
    written = facts(tmp_path, "mae")
    assert (written["model"], written["tokenizers"]) == ("MAE", {})
    assert written["config"]["encoder"]["activation"] == "gelu"


@pytest.mark.parametrize("name, key", [("dictionary", "tokenizer"), ("bert", "vocabulary")])
def test_the_tokenizer_comes_along_whatever_the_checkpoint_calls_it(tmp_path, name, key):
    export_model(name, tmp_path)
    assert facts(tmp_path, name)["tokenizers"] == {"text": load_trained(name).extra[key]}


@pytest.mark.parametrize("name", ["attention", "translator"])
def test_a_translator_has_a_tokenizer_for_each_language(tmp_path, name):
    export_model(name, tmp_path)
    written = facts(tmp_path, name)["tokenizers"]
    assert [Tokenizer.from_state_dict(written[language]) for language in ("english", "french")] == list(vocabularies())


def test_a_file_that_is_too_large_for_a_page_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "MOST", 100_000)
    with pytest.raises(ValueError, match="vit.safetensors has 830,976 bytes, and a page may load 100,000 at most"):
        export_model("vit", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no_such_model"):
        export_model("no_such_model", tmp_path)
