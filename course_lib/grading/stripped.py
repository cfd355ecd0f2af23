"""The students' version of an assignment, made from the instructor's source, with the cells that nbgrader makes."""

import nbformat

STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
WRITTEN_STUB = "YOUR ANSWER HERE"
NOT_OURS = ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS", "BEGIN MARK SCHEME", "END MARK SCHEME")
KEPT_METADATA = ("kernelspec", "language_info")


def clear_solution(source: str, *, stub: str = STUB) -> str:
    """The cell as it is released: each region from BEGIN SOLUTION to END SOLUTION replaced by the indented stub.

    As nbgrader does it: without such a region the whole cell becomes the stub. Raises ValueError for a region that
    begins twice or does not end.
    """
    released, inside, cleared = [], False, False
    for line in source.split("\n"):
        if "BEGIN SOLUTION" in line:
            if inside:
                raise ValueError("a second BEGIN SOLUTION stands before the END SOLUTION of the first")
            inside = cleared = True
            indent = line[: len(line) - len(line.lstrip())]
            released += [indent + part for part in stub.split("\n")]
        elif "END SOLUTION" in line:
            inside = False
        elif not inside:
            released.append(line)
    if inside:
        raise ValueError("a BEGIN SOLUTION has no END SOLUTION")
    return "\n".join(released) if cleared else stub


def student_version(source: bytes, place: str) -> nbformat.NotebookNode:
    """The notebook without solutions, outputs and execution counts.

    Raises ValueError, naming `place`, if it cannot be read, if a solution has no end or stands in another cell, or if
    there are hidden tests in it.
    """
    try:
        notebook = nbformat.reads(source.decode("utf-8"), as_version=4)
    except Exception as error:
        raise ValueError(f"{place} cannot be read as a notebook: {type(error).__name__}: {error}") from error
    kept = {key: notebook.metadata[key] for key in KEPT_METADATA if key in notebook.metadata}
    notebook.metadata = nbformat.NotebookNode(kept)
    for number, cell in enumerate(notebook.cells, start=1):
        tags = cell.metadata.get("nbgrader", {})
        cell.metadata = nbformat.NotebookNode({"nbgrader": tags} if tags else {})
        solution = bool(tags.get("solution"))
        if mark := next((mark for mark in NOT_OURS if mark in cell.source), None):
            raise ValueError(
                f"{place}: cell {number} holds nbgrader's mark {mark!r}. The judge does not look into cells: hidden "
                "checks belong into hidden/, and what a written answer is marked for into its solution."
            )
        if not solution and ("BEGIN SOLUTION" in cell.source or "END SOLUTION" in cell.source):
            raise ValueError(f"{place}: cell {number} holds a solution, but is no solution cell.")
        if solution:
            try:
                cell.source = clear_solution(cell.source, stub=STUB if cell.cell_type == "code" else WRITTEN_STUB)
            except ValueError as problem:
                raise ValueError(f"{place}, cell {tags.get('grade_id')!r}: {problem}.") from None
        if tags:
            cell.metadata["deletable"] = False
            if not solution and (tags.get("grade") or tags.get("locked")):
                cell.metadata["editable"] = False
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook
