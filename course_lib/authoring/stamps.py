"""A notebook's stamp: the proof that its stored outputs were made by the code that stands in it.

The stamp is one list in the notebook's metadata, so it survives saving in JupyterLab, where cells may get new
ids. Its entry i holds a digest of all code up to and including cell i, because an output depends on the cells
above it too, and a digest of the outputs stored in cell i, so that an output edited by hand is found as well.
"""

import hashlib
import json
from collections.abc import Iterator

from nbformat import NotebookNode

from course_lib.classroom.imported import course_sources, imported_names
from course_lib.classroom.output import PIXELS, PIXELS_CUT, VARYING, VARYING_CUT
from course_lib.commands.files import code_cells

STAMP = "course_stamp"
FORMAT = 1

# nbval does not compare these: pixels differ between font versions, the ids of widgets are random.
NOT_COMPARED = ("application/vnd.jupyter.widget-view+json", "image/png", "image/jpeg")


def make_stamp(notebook: NotebookNode) -> dict:
    """The stamp that fits the notebook's present code, outputs and imported course_lib sources."""
    cells = [
        {"code": code, "outputs": outputs_digest(cell)}
        for cell, code in zip(code_cells(notebook), code_digests(notebook), strict=True)
    ]
    return {"format": FORMAT, "cells": cells, "library": library_digest(notebook)}


def stamp_problems(notebook: NotebookNode) -> list[str]:
    """One sentence for each way in which the stored outputs are not those of the present code.

    Not a word about course_lib: nbval compares the text that its present version prints with the stored text.
    """
    stamp = notebook.metadata.get(STAMP)
    if not stamp:
        return ["the notebook has no stamp: its outputs were not made by a build"]
    if stamp.get("format") != FORMAT:
        return [f"the stamp has format {stamp.get('format')!r} and {FORMAT} is read: build the notebook"]
    cells, stored, present = code_cells(notebook), stamp["cells"], code_digests(notebook)
    if len(cells) != len(stored):
        return [f"{len(stored)} code cells were executed and {len(cells)} stand in the notebook now"]
    for number, (code, entry) in enumerate(zip(present, stored, strict=True), start=1):
        if code != entry["code"]:
            return [f"the outputs from code cell {number} on were made by other code than stands there now"]
    return [
        f"the outputs of code cell {number} were changed after they were made"
        for number, (cell, entry) in enumerate(zip(cells, stored, strict=True), start=1)
        if outputs_digest(cell) != entry["outputs"]
    ]


def is_current(notebook: NotebookNode) -> bool:
    """Whether executing again has nothing to add: same code, same outputs, same library sources."""
    return not stamp_problems(notebook) and notebook.metadata[STAMP]["library"] == library_digest(notebook)


def code_digests(notebook: NotebookNode) -> list[str]:
    """For each code cell a digest of its source and of all code above it."""
    digests, above = [], ""
    for cell in code_cells(notebook):
        above = digest([above, cell.source])
        digests.append(above)
    return digests


def outputs_digest(cell: NotebookNode) -> str:
    """A digest of all that a reader sees below the cell, figures included, but for views of widgets."""
    seen = []
    for output in _joined_streams(cell.outputs):
        fields = {key: value for key, value in output.items() if key not in ("execution_count", "transient")}
        if "data" in fields:
            fields["data"] = {
                mime: value.rstrip("\n") if isinstance(value, str) else value
                for mime, value in fields["data"].items()
                if mime not in NOT_COMPARED[:1]
            }
        seen.append(fields)
    return digest(seen)


def compared_outputs(cell: NotebookNode) -> dict[str, list[str]]:
    """What nbval compares of a cell: for each kind of output its texts, in order."""
    texts: dict[str, list[str]] = {}
    for output in _joined_streams(cell.outputs):
        found = output.get("data", {key: output[key] for key in ("text", "ename", "evalue") if key in output})
        for kind, value in found.items():
            if kind not in NOT_COMPARED:
                text = value if isinstance(value, str) else json.dumps(value)
                texts.setdefault(kind, []).append(VARYING.sub(VARYING_CUT, PIXELS.sub(PIXELS_CUT, text)))
    return texts


def _joined_streams(outputs: list[NotebookNode]) -> Iterator[dict]:
    """The outputs with neighbouring pieces of one stream joined: only timing decides where it is cut."""
    pending: dict | None = None
    for output in map(dict, outputs):
        if pending and output["output_type"] == "stream" and output["name"] == pending["name"]:
            pending["text"] += output["text"]
            continue
        if pending:
            yield pending
            pending = None
        if output["output_type"] == "stream":
            pending = output
        else:
            yield output
    if pending:
        yield pending


def library_digest(notebook: NotebookNode) -> str:
    """A digest of the course_lib sources that the notebook imports, directly or through one another."""
    imported = [name for cell in code_cells(notebook) for name in imported_names(cell.source)]
    return digest(sorted(course_sources(imported).items()))


def digest(value: object) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
