"""How a notebook shows that something runs: a bar below the cell, redrawn in place, gone at the end."""

from IPython.display import DisplayHandle, display

from course_lib.training.progress import NotebookLine


def notebook_line(title: str) -> NotebookLine:
    """A progress line for the cell that runs; it takes its place on the page when it is first drawn."""
    shown: list[DisplayHandle] = []

    def write(markup: str) -> None:
        data = {"text/plain": "", "text/html": markup}
        if shown:
            shown[0].update(data, raw=True)
        else:
            shown.append(display(data, raw=True, display_id=True))

    return NotebookLine(title, write)
