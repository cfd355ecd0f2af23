"""The trained models that the site's pages compute with: their weights, their configs and their tokenizers."""

import json
from dataclasses import asdict
from pathlib import Path

from course_lib.data.checkpoints import FOLDER, MODEL
from course_lib.data.files import data_path
from course_lib.models.seq2seq import Seq2Seq
from course_lib.training.translation import vocabularies
from course_lib.weights import own

MOST = 8_000_000  # bytes of a file that a reader's browser loads


def export_model(name: str, folder: Path) -> None:
    """Writes NAME.safetensors and NAME.json of a checkpoint of the course.

    The JSON has the model's class (`model`), its whole `config`, and the states of its `tokenizers` by their names: of
    a translator "english" and "french", of another model of text "text". Raises FileNotFoundError if there is no such
    checkpoint, and ValueError for a file of more than 8 MB.
    """
    path = data_path(FOLDER, name, MODEL)
    model, extra = own.load(path), own.load_extra(path)
    states = {key: value for key, value in extra.items() if isinstance(value, dict) and "tokenizer" in value}
    if isinstance(model, Seq2Seq):  # its vocabularies are the grammar's: no checkpoint keeps them
        states = {key: each.state_dict() for key, each in zip(("english", "french"), vocabularies(), strict=True)}
    elif len(states) == 1:
        states = {"text": next(iter(states.values()))}
    facts = {"model": type(model).__name__, "config": asdict(model.config), "tokenizers": states}
    files = {f"{name}.safetensors": path.read_bytes(), f"{name}.json": json.dumps(facts, ensure_ascii=False).encode()}
    for file, content in files.items():
        if len(content) > MOST:
            raise ValueError(f"{file} has {len(content):,} bytes, and a page may load {MOST:,} at most")
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
