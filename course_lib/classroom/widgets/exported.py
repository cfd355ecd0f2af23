"""The trained models that a page without a kernel computes with: their weights, their configs and their tokenizers."""

import base64
import json
from collections.abc import Iterable
from dataclasses import asdict

from course_lib.data.checkpoints import FOLDER, MODEL
from course_lib.data.files import data_path
from course_lib.models.seq2seq import Seq2Seq
from course_lib.training.translation import vocabularies
from course_lib.weights import own


def model_files(name: str) -> tuple[bytes, bytes]:
    """The JSON and the safetensors of a checkpoint of the course.

    The JSON has the model's class (`model`), its whole `config`, and the states of its `tokenizers` by their names: of
    a translator "english" and "french", of another model of text "text". Raises FileNotFoundError if there is no such
    checkpoint.
    """
    path = data_path(FOLDER, name, MODEL)
    model, extra = own.load(path), own.load_extra(path)
    states = {key: value for key, value in extra.items() if isinstance(value, dict) and "tokenizer" in value}
    if isinstance(model, Seq2Seq):  # its vocabularies are the grammar's: no checkpoint keeps them
        states = {key: each.state_dict() for key, each in zip(("english", "french"), vocabularies(), strict=True)}
    elif len(states) == 1:
        states = {"text": next(iter(states.values()))}
    facts = {"model": type(model).__name__, "config": asdict(model.config), "tokenizers": states}
    return json.dumps(facts, ensure_ascii=False).encode(), path.read_bytes()


def models_script(names: Iterable[str]) -> str:
    """A script that puts models into the page itself, where `siteModel` of site.js finds them."""
    models = {}
    for name in sorted(set(names)):
        facts, weights = model_files(name)
        models[name] = [base64.b64encode(part).decode() for part in (facts, weights)]
    return f"window.courseModels = {json.dumps(models)};"
