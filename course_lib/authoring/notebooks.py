"""Edit the course's notebooks as text, build and check them. An author works with

python -m course_lib.authoring.notebooks text  notebooks/05_attention.ipynb --to drafts
python -m course_lib.authoring.notebooks build notebooks/05_attention.ipynb --from drafts/05_attention.py
python -m course_lib.authoring.notebooks check notebooks/05_attention.ipynb --runs 3
python -m course_lib.authoring.notebooks check notebooks/05_attention.ipynb --threads 1,2,4
"""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course_lib.authoring.stamps import STAMP, code_digests, compared_outputs, digest, is_current, make_stamp
from course_lib.authoring.thread_counts import claims_by_threads, read_claims, shipped_measurements, table
from course_lib.classroom.results import SHIPPED
from course_lib.commands.execute import CELL_TIMEOUT, RunReport, execute_notebook, reproducible_environment
from course_lib.commands.files import (
    KERNELSPEC,
    LANGUAGE,
    MAX_BYTES,
    code_cells,
    drop_session,
    read_notebook,
    write_notebook,
)
from course_lib.lectures.story import fold, unfold

# ---------------------------------------------------------------------------------------- text and back


def notebook_to_text(notebook: NotebookNode) -> str:
    """The notebook's cells, tags and course metadata as a Python script in jupytext's percent format.

    The slides of its lecture stand above the cells that carry them (`course_lib.lectures.story`).
    """
    notebook = nbformat.from_dict(notebook)
    notebook["cells"] = unfold(notebook.cells)
    notebook.metadata.pop(STAMP, None)
    notebook.metadata["jupytext"] = {"notebook_metadata_filter": "course,-all", "cell_metadata_filter": "all"}
    return _jupytext().writes(notebook, fmt="py:percent")


def text_to_notebook(text: str, *, previous: NotebookNode | None = None, name: str = "notebook") -> NotebookNode:
    """A notebook without outputs from a script in percent format.

    Equal cells keep the ids they had in `previous`; the ids of new cells follow from `name` and their source,
    so the same text always gives the same file. Raises ValueError for a slide that is not as it should be.
    """
    notebook = _jupytext().reads(text, fmt="py:percent")
    notebook["cells"] = fold(notebook.cells)
    old = previous.cells if previous is not None else []
    ids = _kept_ids(notebook.cells, old)
    taken = {cell_id for cell_id in ids if cell_id}
    for cell, kept in zip(notebook.cells, ids, strict=True):
        cell["id"] = kept or _new_id(name, cell.source, taken)
        taken.add(cell["id"])
    fields = {"cells": notebook.cells, "metadata": _metadata(notebook), "nbformat": 4, "nbformat_minor": 5}
    return nbformat.from_dict(fields)


def _metadata(notebook: NotebookNode) -> NotebookNode:
    """What the course says about the notebook, and nothing that depends on who saved it last."""
    course = {key: value for key, value in notebook.metadata.items() if key == "course"}
    return nbformat.from_dict(course | {"kernelspec": KERNELSPEC, "language_info": LANGUAGE})


def _kept_ids(cells: list[NotebookNode], old: list[NotebookNode]) -> list[str | None]:
    """For each cell the id of the old cell it continues: same source, or same place between such."""
    new_keys = [(cell.cell_type, cell.source) for cell in cells]
    old_keys = [(cell.cell_type, cell.source) for cell in old]
    ids: list[str | None] = [None] * len(cells)
    matcher = difflib.SequenceMatcher(a=old_keys, b=new_keys, autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            places = zip(range(old_start, old_end), range(new_start, new_end), strict=False)
            for old_index, new_index in places:
                if old[old_index].cell_type == cells[new_index].cell_type:
                    ids[new_index] = old[old_index].get("id")
    return ids


def _new_id(name: str, source: str, taken: set[str]) -> str:
    copy = 0
    while (cell_id := digest([name, source, copy])[:8]) in taken:
        copy += 1
    return cell_id


def _jupytext():
    try:
        import jupytext
    except ImportError as error:
        raise ValueError("editing notebooks as text needs jupytext: pip install -e '.[dev]'") from error
    return jupytext


# ---------------------------------------------------------------------------------------- build and check


def build_notebook(
    path: str | os.PathLike,
    *,
    text: str | None = None,
    force: bool = False,
    timeout: int | float = CELL_TIMEOUT,
    on_cell: Callable[[int, int], None] | None = None,
) -> RunReport | None:
    """Execute a notebook afresh and store its outputs with a stamp; None if its stamp is current.

    What was measured for each claim is stored in the notebook's metadata, for learners to compare with.
    `text` is a script in percent format that replaces the cells first. A run that fails leaves the file as it
    was. Raises ValueError if the built notebook is larger than 1.5 MB.
    """
    path = Path(path)
    previous = read_notebook(path) if path.exists() or text is None else None
    notebook = previous if text is None else text_to_notebook(text, previous=previous, name=path.stem)
    if previous is not None and not force and _only_prose_changed(notebook, previous):
        if text is not None:
            _take_outputs(notebook, previous)
            _write_built(notebook, path, previous.metadata.get(SHIPPED, {}))
        return None
    with _beside(path, notebook) as draft, reproducible_environment() as env:
        report = execute_notebook(draft, timeout=timeout, on_cell=on_cell, env=env)
        shipped = shipped_measurements(read_claims(env))
    report = replace(report, path=path)
    if report.error is None:
        _write_built(report.notebook, path, shipped)
    return report


def _only_prose_changed(notebook: NotebookNode, previous: NotebookNode) -> bool:
    return is_current(previous) and code_digests(notebook) == code_digests(previous)


def _take_outputs(notebook: NotebookNode, previous: NotebookNode) -> None:
    for cell, old in zip(code_cells(notebook), code_cells(previous), strict=True):
        cell["outputs"], cell["execution_count"] = old.outputs, old.execution_count


@contextmanager
def _beside(path: Path, notebook: NotebookNode) -> Iterator[Path]:
    """The notebook as a draft in the same folder, where its relative paths hold; removed afterwards."""
    draft = path.with_name(f".{path.stem}.draft.ipynb")
    write_notebook(notebook, draft)
    try:
        yield draft
    finally:
        draft.unlink()


def _write_built(notebook: NotebookNode, path: Path, shipped: Mapping[str, str]) -> None:
    normalise(notebook)
    if shipped:
        notebook.metadata[SHIPPED] = shipped
    notebook.metadata[STAMP] = make_stamp(notebook)
    size = len(nbformat.writes(notebook).encode())
    if size > MAX_BYTES:
        raise ValueError(
            f"{path.name} would have {size / 1e6:.2f} MB with its outputs, and {MAX_BYTES / 1e6:.1f} MB is "
            "the most; draw smaller figures or fewer of them"
        )
    write_notebook(notebook, path)


def normalise(notebook: NotebookNode) -> None:
    """Remove, in place, what differs between two builds of the same code.

    Views of widgets go too: without a kernel they show an error or a control that does nothing, and the text
    or figure that each widget carries beside its view is shown instead.
    """
    notebook["metadata"] = _metadata(notebook)
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    for cell in notebook.cells:
        for key in ("execution", "collapsed", "scrolled", "ExecuteTime", "trusted"):
            cell.metadata.pop(key, None)
    drop_session(notebook)
    for number, cell in enumerate(code_cells(notebook), start=1):
        cell["execution_count"] = number
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output["execution_count"] = number


def differences(stored: NotebookNode, fresh: NotebookNode) -> list[str]:
    """One sentence for each code cell whose compared outputs differ between two runs of a notebook.

    Compares what nbval compares, and leaves out the cells tagged `nbval-ignore-output`, as nbval does.
    """
    before, after = code_cells(stored), code_cells(fresh)
    if [cell.source for cell in before] != [cell.source for cell in after]:
        return ["the two notebooks do not have the same code"]
    found = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        was, is_now = compared_outputs(old), compared_outputs(new)
        if "nbval-ignore-output" not in old.metadata.get("tags", []) and was != is_now:
            lines = difflib.unified_diff(_lines(was), _lines(is_now), "stored", "fresh", lineterm="", n=0)
            found.append(f"code cell {number} gave other text than is stored:\n" + "\n".join(lines))
    return found


def _lines(outputs: dict[str, list[str]]) -> list[str]:
    return [
        line for kind, texts in sorted(outputs.items()) for text in texts for line in (f"[{kind}]", *text.splitlines())
    ]


def check_notebook(path: str | os.PathLike, *, runs: int = 1, timeout: int | float = CELL_TIMEOUT) -> list[str]:
    """Execute a notebook `runs` times and list where a run failed or gave other text than is stored."""
    if runs < 1:
        raise ValueError(f"a check needs at least one run, not {runs}")
    stored = read_notebook(path)
    problems = []
    for run in range(1, runs + 1):
        with reproducible_environment() as env:
            report = execute_notebook(path, timeout=timeout, env=env)
        found = [report.error] if report.error else differences(stored, report.notebook)
        problems += [f"run {run} of {runs}: {problem}" for problem in found]
    return problems


# ---------------------------------------------------------------------------------------- command line


def argument_parser() -> argparse.ArgumentParser:
    """The author's commands and their options."""
    program = "python -m course_lib.authoring.notebooks"
    parser = argparse.ArgumentParser(prog=program, description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, meaning in (
        ("text", "write a notebook as a Python script to edit"),
        ("build", "execute afresh and store the outputs with a stamp"),
        ("check", "compare fresh runs, the stamp and the lesson rules with what is stored"),
    ):
        command = commands.add_parser(name, help=meaning, description=meaning)
        command.add_argument("notebook", nargs="+", help="a file, or a lesson's number such as 05")
        if name == "text":
            command.add_argument("--to", type=Path, default=Path("."), help="folder for the scripts")
        if name == "build":
            command.add_argument("--from", dest="script", type=Path, help="a script that replaces the cells")
            command.add_argument("--force", action="store_true", help="execute even if the stamp is current")
        if name == "check":
            command.add_argument("--runs", type=int, default=1, help="how often to execute, 0 for not at all")
            command.add_argument(
                "--threads", type=_thread_counts, metavar="N,N,...", help="report every claim with so many threads each"
            )
        if name != "text":
            command.add_argument("--timeout", type=float, default=CELL_TIMEOUT, help="seconds for each cell")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The author's commands; returns the exit status."""
    options = argument_parser().parse_args(arguments)
    try:
        paths = [_notebook_path(name) for name in options.notebook]
        run = {"text": _text_command, "build": _build_command, "check": _check_command}[options.command]
        return run(paths, options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _thread_counts(text: str) -> list[int]:
    counts = [int(count) for count in text.split(",")]  # argparse makes a sentence of a ValueError
    if min(counts) < 1:
        raise ValueError
    return counts


def _notebook_path(name: str) -> Path:
    if not re.fullmatch(r"\d\d", name):
        return Path(name)
    folder = Path(__file__).parents[2] / "notebooks"
    found = sorted(folder.glob(f"{name}_*.ipynb"))
    if not found:
        raise ValueError(f"there is no lesson {name} in the folder notebooks; give the name of a file")
    return found[0]


def _text_command(paths: list[Path], options: argparse.Namespace) -> int:
    for path in paths:
        script = options.to / f"{path.stem}.py"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(notebook_to_text(read_notebook(path)), encoding="utf-8")
        print(script)
    return 0


def _build_command(paths: list[Path], options: argparse.Namespace) -> int:
    if options.script and len(paths) != 1:
        raise ValueError(f"--from replaces the cells of one notebook, but {len(paths)} were named")
    text = options.script.read_text(encoding="utf-8") if options.script else None
    failed = 0
    for path in paths:

        def show(done: int, total: int, name: str = path.name) -> None:
            if sys.stderr.isatty():
                print(f"\r{name}: {done}/{total}", end="", file=sys.stderr, flush=True)

        report = build_notebook(path, text=text, force=options.force, timeout=options.timeout, on_cell=show)
        if report is None:
            print(f"{path.name}: its code has not changed, its outputs are kept (--force executes it again)")
        elif report.error:
            failed += 1
            print(f"{path.name}: not built, {report.error}", file=sys.stderr)
        else:
            slow = sorted(enumerate(report.cell_seconds, start=1), key=lambda pair: -pair[1])[:3]
            slowest = ", ".join(f"cell {number} {seconds:.1f} s" for number, seconds in slow)
            size = path.stat().st_size / 1e6
            print(f"{path.name}: {report.cells} cells in {report.seconds:.1f} s ({slowest}), {size:.2f} MB")
    return int(failed > 0)


def _check_command(paths: list[Path], options: argparse.Namespace) -> int:
    from course_lib.authoring.lesson_rules import read_lesson, violations

    if options.threads:
        return _threads_command(paths, options)
    found = 0
    for path in paths:
        problems = violations(read_lesson(path))
        if options.runs:
            problems += check_notebook(path, runs=options.runs, timeout=options.timeout)
        for problem in problems:
            print(f"{path.name}: {problem}", file=sys.stderr)
        found += len(problems)
        if not problems:
            print(f"{path.name}: keeps every rule and gave the stored text in {options.runs} fresh runs")
    return int(found > 0)


def _threads_command(paths: list[Path], options: argparse.Namespace) -> int:
    failed = 0
    for path in paths:
        found, errors = claims_by_threads(path, options.threads, timeout=options.timeout)
        print("\n".join([f"{path.name}:", *table(found), *errors]), flush=True)
        failed += len(errors) + sum(not told.holds for claims in found.values() for told in claims)
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
