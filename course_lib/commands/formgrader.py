"""`course assign formgrader`: nbgrader's formgrader in JupyterLab, on this machine alone and without the network."""

import os
from collections.abc import Callable
from pathlib import Path

import course_lib
from course_lib.commands.lab import lab_environment, require_free, serve, server_command
from course_lib.data.place import CannotStart
from course_lib.grading.folders import CONFIG, Folders, assignments_folder, read_config

JUDGE = "course_lib.grading.nbgrader_plugin.JudgeSubmission"
EXECUTE = "Execute"
FILTER = "course_lib.grading.nbgrader_plugin.safe_markdown"
# What students use, and a button that would run a notebook, a submission included, in a kernel without walls.
LEFT_OUT = ("validate_assignment", "assignment_list", "course_list")
# nbconvert/templates/: a page without MathJax from the network
TEMPLATES = Path(course_lib.__file__).parent / "grading" / "jupyter"
# Pages fetch from this server and nowhere else, no picture, either, that tells a student when the answer is read.
FROM_HERE = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'"


def formgrader(*, folder: Path | None = None, port: int | None = None, browser: bool = True) -> int:
    """Opens formgrader on a course directory and stays until it is stopped; returns the server's exit code.

    Raises CannotStart if nothing has been released yet, if the port is taken, or if the course
    directory's settings would let formgrader run students' code outside of the sandbox.
    """
    import nbgrader  # noqa: F401  # said here if it is missing, and not by the server

    folders = assignments_folder(folder)
    check_settings(folders)
    if not folders.gradebook.exists():
        known = folders.assignments()
        raise CannotStart(
            f"There is no gradebook in {folders.root} yet. It is made by: course assign release "
            + (known[0] if known else "ASSIGNMENT")
        )
    require_free(port, "assign formgrader")
    print(f"Opening formgrader on {folders.root}. To stop it, press Ctrl-C here twice.")
    print("Points and comments that you give there stay when you grade again.", flush=True)
    command = formgrader_command(folders.root, port=port, browser=browser)
    return serve(command, folder=folders.root, environment=formgrader_environment())


def check_settings(folders: Folders) -> None:
    """Raises CannotStart if nbgrader's Autograde would run students' code anywhere but in the judge's sandbox."""
    config = read_config(folders.root)
    steps = [_name(step) for step in config.Autograde.get("autograde_preprocessors", [])]
    if JUDGE not in steps or any(step.rpartition(".")[2] == EXECUTE for step in steps):
        raise CannotStart(
            f"{folders.config} lets the Autograde button of formgrader run students' code on this machine without a "
            f"sandbox. Copy c.Autograde.autograde_preprocessors from the course's own notebooks/assignments/{CONFIG} "
            f"into it: {JUDGE} has to stand there in place of nbgrader's Execute."
        )
    if config.HTMLExporter.get("filters", {}).get("markdown2html") != FILTER:
        raise CannotStart(
            f"{folders.config} lets a script in a student's answer run when you read it in formgrader. Copy "
            f"c.HTMLExporter.filters from the course's own notebooks/assignments/{CONFIG} into it."
        )


def formgrader_command(root: Path, *, port: int | None, browser: bool) -> list[str]:
    """The command line that starts JupyterLab on a course directory, with formgrader in front."""
    headers = {"headers": {"Content-Security-Policy": FROM_HERE}}
    extensions = {f"nbgrader.server_extensions.{name}": False for name in LEFT_OUT}
    settings = [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.jpserver_extensions={extensions}",
        f"--ServerApp.tornado_settings={headers}",
        "--LabApp.default_url=/formgrader",
    ]
    return server_command(settings, port=port, browser=browser)


def formgrader_environment() -> dict[str, str]:
    """This process's environment, with the course's JupyterLab settings and nbgrader's own programs within reach."""
    templates = os.pathsep.join(filter(None, [str(TEMPLATES), os.environ.get("JUPYTER_PATH")]))
    return lab_environment() | {"JUPYTER_PATH": templates}


def _name(step: str | Callable) -> str:
    return step if isinstance(step, str) else f"{step.__module__}.{step.__qualname__}"
