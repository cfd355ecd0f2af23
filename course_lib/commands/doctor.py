"""Check that this machine can run the course, and say what to do where it cannot."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

import psutil
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rich.console import Console
from rich.table import Table
from rich.text import Text

from course_lib.commands.lessons import CannotStart, course_folder

GB = 1e9  # bytes
FREE_MEMORY = 1.0  # GB: a lesson takes about half of it
FREE_DISK = 0.5  # GB
STEPS_PER_SECOND = 20.0  # of the small model below; a laptop makes hundreds

AFRESH = "Delete the folder .venv and run: python3 course.py lab"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report: what was looked at, what was found, and what to do if it is red."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


def report() -> int:
    """Run all checks, printing a table of them; returns 1 if one is red, else 0."""
    console = Console()
    table = Table(title="This machine and the course")
    for column in ("", "check", "found", "what to do"):
        table.add_column(column, overflow="fold")
    findings = []
    with console.status("Looking at this machine"):
        for finding in examine():
            findings.append(finding)
            mark = Text("ok", style="green") if finding.ok else Text("NO", style="bold red")
            table.add_row(mark, finding.name, Text(finding.found), Text(finding.remedy, style="red"))
    console.print(table)
    red = sum(not finding.ok for finding in findings)
    console.print(
        f"{red} of {len(findings)} checks need something." if red else "All is well: course lab", highlight=False
    )
    return int(red > 0)


def examine(checks: list[Callable[[], Finding]] | None = None) -> Iterator[Finding]:
    """Run the checks one by one; a check that itself breaks is a red finding, not a traceback."""
    for check in CHECKS if checks is None else checks:
        try:
            yield check()
        except Exception as error:
            name = check.__name__.removeprefix("check_").replace("_", " ")
            yield Finding(name=name, ok=False, found=f"{type(error).__name__}: {error}", remedy=AFRESH)


def needed() -> tuple[str, list[Requirement], Path | None]:
    """Which Python and packages the course needs, and its folder; None where the library is installed alone."""
    try:
        folder = course_folder()
    except CannotStart:
        folder = None
    if folder is None or not (folder / "pyproject.toml").is_file():  # installed from a wheel
        own = [Requirement(line) for line in requires("course-lib") or () if "extra ==" not in line]
        return metadata("course-lib")["Requires-Python"], own, folder
    with (folder / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    return project["requires-python"], [Requirement(line) for line in project["dependencies"]], folder


def check_interpreter() -> Finding:
    wanted, _, _ = needed()
    found = "{}.{}.{}".format(*sys.version_info)
    ok = Requirement(f"python{wanted}").specifier.contains(found)
    remedy = f"The course needs Python {wanted}: install one, delete .venv and run course.py with it."
    return Finding(name="Python", ok=ok, found=f"{found} in {sys.prefix}", remedy="" if ok else remedy)


def check_packages() -> Finding:
    """Every package that the course needs is there, within its bounds; others than the tested ones are named."""
    _, wanted, folder = needed()
    wrong = [problem for requirement in wanted if (problem := misfit(requirement))]
    different = differing_versions(folder / "constraints.txt") if folder else []
    found = f"{len(wanted)} needed, all there" if not wrong else "; ".join(wrong)
    if folder is None:
        found += "; the library alone, `course lab` gets its lessons"
    if different:
        found += f" ({len(different)} not in the tested version: {', '.join(different)})"
    return Finding(name="packages", ok=not wrong, found=found, remedy=AFRESH if wrong else "")


def misfit(requirement: Requirement) -> str | None:
    """What is wrong with the installed version of a package, or None."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return f"{requirement.name} is missing"
    if requirement.specifier.contains(found, prereleases=True):
        return None
    return f"{requirement.name} {found} is not within {requirement.specifier}"


def differing_versions(constraints: Path) -> list[str]:
    """The installed packages whose version is not the tested one, as "name 1.2 for 1.3"."""
    different = []
    for line in constraints.read_text(encoding="utf-8").splitlines():
        match = re.match(r"([\w.-]+)==([^\s;]+)", line)
        if match:
            try:
                found = version(match[1]).split("+")[0]  # 2.13.0+cpu is a build of 2.13.0
            except PackageNotFoundError:
                continue  # for the tests, or for another system
            if found != match[2]:
                different.append(f"{canonicalize_name(match[1])} {found} for {match[2]}")
    return different


def check_kernel() -> Finding:
    """A notebook kernel starts, computes, and is the Python that has the course."""
    from jupyter_client.manager import start_new_kernel

    started = time.perf_counter()
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=60, stderr=subprocess.DEVNULL)
    try:
        answers = []
        client.execute_interactive(
            "import sys; (1 + 1, sys.prefix)",
            timeout=60,
            output_hook=lambda message: answers.append(message["content"].get("data", {}).get("text/plain")),
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    if repr((2, sys.prefix)) in answers:
        seconds = time.perf_counter() - started
        return Finding(name="notebook kernel", ok=True, found=f"1 + 1 is 2 after {seconds:.1f} s")
    answer = " ".join(filter(None, answers)) or "no answer"
    if answer.startswith("(2,"):
        remedy = (
            "Notebooks run in another Python: remove that kernel with: jupyter kernelspec remove python3, "
            "or set JUPYTER_PREFER_ENV_PATH=1 before you start the course."
        )
        return Finding(name="notebook kernel", ok=False, found=f"it is the Python in {answer[4:-1]}", remedy=remedy)
    return Finding(name="notebook kernel", ok=False, found=f"1 + 1 gave {answer}", remedy=AFRESH)


def check_widgets() -> Finding:
    """The two halves of the widgets, in the kernel and in JupyterLab, belong together."""
    from jupyter_core.paths import jupyter_path

    half = next(r for r in map(Requirement, requires("ipywidgets")) if r.name == "jupyterlab_widgets")
    problem = misfit(half)
    manifests = [
        Path(folder, "@jupyter-widgets", "jupyterlab-manager", "package.json")
        for folder in jupyter_path("labextensions")
    ]
    manifest = next((path for path in manifests if path.is_file()), None)
    if manifest is None:
        problem = problem or "JupyterLab does not find the extension @jupyter-widgets/jupyterlab-manager"
    if problem:
        return Finding(name="widgets", ok=False, found=problem, remedy=AFRESH)
    extension = json.loads(manifest.read_text(encoding="utf-8"))["version"]
    found = f"ipywidgets {version('ipywidgets')}, JupyterLab extension {extension}"
    return Finding(name="widgets", ok=True, found=found)


def check_threads() -> Finding:
    import torch

    cores, threads = usable_cores(), torch.get_num_threads()
    ok = threads <= cores
    remedy = f"More threads than cores slow each other down: set OMP_NUM_THREADS={cores} before you start the course."
    return Finding(name="threads", ok=ok, found=f"{threads} on {cores} cores", remedy="" if ok else remedy)


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_memory() -> Finding:
    free = psutil.virtual_memory().available / GB
    ok = free >= FREE_MEMORY
    remedy = f"A lesson needs {FREE_MEMORY:g} GB: close other programs, and kernels of lessons that you have left."
    return Finding(name="free memory", ok=ok, found=f"{free:.1f} GB", remedy="" if ok else remedy)


def check_disk() -> Finding:
    folder = needed()[2] or Path(sys.prefix)
    free = shutil.disk_usage(folder).free / GB
    ok = free >= FREE_DISK
    remedy = f"Free at least {FREE_DISK:g} GB on the disk of {folder}."
    return Finding(name="free disk", ok=ok, found=f"{free:.1f} GB", remedy="" if ok else remedy)


def check_home() -> Finding:
    """The folder that keeps the learner's progress can be written to."""
    from course_lib.data.place import course_home

    home = course_home()
    trial = home / f".doctor-{os.getpid()}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        trial.write_text("a trial", encoding="utf-8")
        trial.unlink()
    except OSError as error:
        remedy = "Your progress cannot be kept there: make it writable, or set COURSE_HOME to a folder of your own."
        return Finding(name="your progress", ok=False, found=f"{home}: {error.strerror}", remedy=remedy)
    return Finding(name="your progress", ok=True, found=f"kept in {home}")


def check_sandbox() -> Finding:
    """Which of the two ways of judging assignments this machine has; learners do without a sandbox."""
    from course_lib.grading.sandbox import sandbox_problem

    problem = sandbox_problem()
    if problem is None:
        return Finding(name="assignments", ok=True, found="judged in a sandbox (bubblewrap)")
    found = f"no sandbox: `course grade` refuses without --trusted-students. {problem}"
    return Finding(name="assignments", ok=True, found=found)


def check_model_step() -> Finding:
    """A small attention model of the course learns for a second."""
    import torch

    from course_lib.layers.transformer import MultiHeadAttention

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(16, 20, 64, generator=generator)
    model = MultiHeadAttention(64, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses, started = [], None
    while started is None or time.perf_counter() - started < 1.0:
        loss = (model(x, causal=True) - x.flip(-1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        started = started or time.perf_counter()  # the first step sets things up: it is not timed
    speed = (len(losses) - 1) / (time.perf_counter() - started)
    found = f"{speed:.0f} steps per second, loss {losses[0]:.2f} to {losses[-1]:.2f}"
    if not losses[-1] < losses[0]:
        return Finding(name="model step", ok=False, found=found, remedy=f"It does not learn. {AFRESH}")
    ok = speed >= STEPS_PER_SECOND
    remedy = "Lessons will take long here: close other programs, or see the line on threads."
    return Finding(name="model step", ok=ok, found=found, remedy="" if ok else remedy)


CHECKS = [
    check_interpreter,
    check_packages,
    check_kernel,
    check_widgets,
    check_threads,
    check_memory,
    check_disk,
    check_home,
    check_sandbox,
    check_model_step,
]
