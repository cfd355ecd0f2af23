"""The trained models that the site's pages compute with, as files beside the pages."""

from pathlib import Path

from course_lib.classroom.widgets.exported import model_files

MOST = 8_000_000  # bytes of a file that a reader's browser loads


def export_model(name: str, folder: Path) -> None:
    """Writes NAME.json and NAME.safetensors of a checkpoint of the course, as `model_files` has them.

    Raises FileNotFoundError if there is no such checkpoint, and ValueError for a file of more than 8 MB.
    """
    files = dict(zip((f"{name}.json", f"{name}.safetensors"), model_files(name), strict=True))
    for file, content in files.items():
        if len(content) > MOST:
            raise ValueError(f"{file} has {len(content):,} bytes, and a page may load {MOST:,} at most")
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
