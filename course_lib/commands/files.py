"""Notebook files: what one is like in this course, and how it is read and written."""

import os
from pathlib import Path

import nbformat
from nbformat import NotebookNode

MAX_BYTES = 1_500_000
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def read_notebook(path: str | os.PathLike) -> NotebookNode:
    """The notebook in the file. Raises ValueError if there is none."""
    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError as error:
        raise ValueError(f"there is no notebook {str(path)!r}") from error
    except Exception as error:
        raise ValueError(f"{str(path)!r} is not a readable notebook: {error}") from error


def write_notebook(notebook: NotebookNode, path: str | os.PathLike) -> None:
    """Write the notebook as JupyterLab would, in one step: a reader never sees half a file."""
    nbformat.validate(notebook)
    path = Path(path)
    part = path.with_name(f".{path.name}.part")
    part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    os.replace(part, path)
