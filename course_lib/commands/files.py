"""Notebook files: what one is like in this course, and how it is read and written."""

import os
from pathlib import Path

import nbformat
from nbformat import NotebookNode

MAX_BYTES = 1_500_000
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3"}
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


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The notebook's code cells, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def before_saving(*, model: dict, **_) -> None:
    """What `course lab` does before it saves: a pre-save hook of Jupyter's contents manager."""
    if model.get("type") == "notebook" and model.get("content"):
        drop_session(model["content"])


def drop_session(notebook: dict) -> None:
    """Remove, in place, what belongs to the kernel of a moment and not to the page.

    A widget lives as long as its kernel: opened again its view would be an error, so only the text and HTML beside it
    stay. A kernel also tells the version of its Python: kept, a page that was only opened would count as changed.
    """
    metadata = notebook.get("metadata", {})
    metadata.pop("widgets", None)
    if metadata.get("language_info", {}).get("name") == LANGUAGE["name"]:
        metadata["language_info"] = dict(LANGUAGE)
    for cell in notebook.get("cells", []):
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
