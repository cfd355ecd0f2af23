"""What `course lab` keeps when a notebook is saved: the page, and nothing of the kernel that showed it."""

import asyncio
import json
from copy import deepcopy

import nbformat
import pytest
from ipykernel.ipkernel import IPythonKernel as Kernel
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from traitlets.config import Config

from course_lib.commands.files import KERNELSPEC, LANGUAGE, WIDGET_VIEW, before_saving, write_notebook
from course_lib.commands.lab import CONFIG

FALLBACK = {"text/plain": "Question. What is 1 + 1?", "text/html": "<p>What is 1 + 1?</p>"}
VIEW = {WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": "4f2a"}}
WIDGET_STATE = {"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2, "version_minor": 0}}


@pytest.fixture
def notebook():
    """A notebook as an open page sends it to the server, with a live widget in it."""
    outputs = [
        new_output("stream", name="stdout", text="a line\n"),
        new_output("display_data", data=VIEW | FALLBACK),
        new_output("execute_result", data=VIEW | FALLBACK, execution_count=1),
    ]
    cells = [new_markdown_cell("# A title"), new_code_cell("quiz('sum')", outputs=outputs)]
    return new_notebook(cells=cells, metadata={"widgets": WIDGET_STATE, "course": {"lesson": "05"}})


def server(folder):
    """The part of the server of `course lab` that reads and writes files."""
    config = Config(json.loads((CONFIG / "jupyter_server_config.json").read_text()))
    return AsyncLargeFileManager(root_dir=str(folder), config=config)


def saved(model, path, folder):
    """The file that the server of `course lab` writes for this model."""
    asyncio.run(server(folder).save(model, path))
    return folder / path


def test_a_saved_notebook_keeps_what_stands_beside_a_widget_and_not_its_view(notebook, tmp_path):
    model = {"type": "notebook", "format": "json", "content": deepcopy(notebook)}
    stored = nbformat.read(saved(model, "n.ipynb", tmp_path), as_version=4)
    nbformat.validate(stored)
    stream, shown, result = stored.cells[1].outputs
    assert (stream.text, shown.data, result.data) == ("a line\n", FALLBACK, FALLBACK)
    assert stored.metadata == {"course": {"lesson": "05"}}
    assert [cell.source for cell in stored.cells] == ["# A title", "quiz('sum')"]


def test_opening_a_notebook_changes_no_byte_of_its_file(notebook, tmp_path):
    notebook.metadata.pop("widgets")
    notebook.metadata.update(kernelspec=KERNELSPEC, language_info=LANGUAGE)
    notebook.cells[1].outputs = []
    write_notebook(notebook, tmp_path / "n.ipynb")
    before = (tmp_path / "n.ipynb").read_bytes()
    model = asyncio.run(server(tmp_path).get("n.ipynb"))
    kernel = Kernel.language_info  # what JupyterLab notes, and then saves, when a kernel has started
    model["content"]["metadata"]["language_info"] = dict(kernel)
    assert "version" in kernel and saved(model, "n.ipynb", tmp_path).read_bytes() == before


def test_a_file_that_is_no_notebook_is_saved_as_it_is(tmp_path):
    text = json.dumps({"metadata": {"widgets": 1}, "cells": []})
    model = {"type": "file", "format": "text", "content": text}
    assert saved(model, "notes.json", tmp_path).read_text() == text


@pytest.mark.parametrize("model", [{"type": "directory"}, {"type": "notebook"}, {"type": "notebook", "content": {}}])
def test_a_model_without_cells_is_left_alone(model):
    before = deepcopy(model)
    before_saving(model=model, path="n.ipynb", contents_manager=None)
    assert model == before
