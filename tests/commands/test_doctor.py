import importlib.metadata
import json
import os
import sys
from types import SimpleNamespace

import jupyter_core.paths
import pytest
import torch

from course_lib.commands import doctor
from course_lib.commands.doctor import Finding


def fresh(check):
    """The finding of one check."""
    (finding,) = doctor.examine([check])
    return finding


@pytest.mark.parametrize("check", doctor.CHECKS, ids=lambda check: check.__name__)
def test_every_check_is_green_on_a_machine_that_runs_the_tests(check, monkeypatch):
    monkeypatch.setattr(doctor, "STEPS_PER_SECOND", 0.1)  # other tests may run beside this one
    finding = fresh(check)
    assert finding.ok, finding
    assert finding.found and not finding.remedy


def free(size):
    return lambda *_: SimpleNamespace(available=size, free=size)


def red(finding, *words):
    assert not finding.ok
    assert all(word in f"{finding.found} {finding.remedy}" for word in words), finding
    assert finding.remedy


@pytest.fixture
def versions(monkeypatch):
    """Lets a test say which versions are installed; None is missing."""

    def pretend(**told):
        def version(name):
            found = told.get(name, "unchanged")
            if found is None:
                raise importlib.metadata.PackageNotFoundError(name)
            return importlib.metadata.version(name) if found == "unchanged" else found

        monkeypatch.setattr(doctor, "version", version)

    return pretend


@pytest.mark.parametrize(
    ("told", "check", "words"),
    [
        ({"einops": None}, "packages", ("einops is missing", "course.py")),
        ({"numpy": "1.26.0"}, "packages", ("numpy 1.26.0 is not within",)),
        ({"jupyterlab_widgets": "1.0.0"}, "widgets", ("jupyterlab_widgets 1.0.0 is not within", "course.py")),
    ],
)
def test_a_package_that_is_missing_or_out_of_bounds_is_red(versions, told, check, words):
    versions(**told)
    red(fresh(getattr(doctor, f"check_{check}")), *words)


def test_a_package_within_bounds_but_not_as_tested_is_named_and_green(versions):
    versions(einops="0.8.99")
    finding = fresh(doctor.check_packages)
    assert finding.ok and "einops 0.8.99 for 0.8" in finding.found


def test_a_local_build_of_the_tested_version_is_the_tested_version(versions, tmp_path):
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("torch==2.13.0\n")
    versions(torch="2.13.0+cu130")
    assert doctor.differing_versions(constraints) == []
    versions(torch="2.13.1")
    assert doctor.differing_versions(constraints) == ["torch 2.13.1 for 2.13.0"]


def test_a_kernel_of_another_python_is_red(monkeypatch, tmp_path):
    """A kernel of the same name in the user's folder hides ours."""
    other = tmp_path / "elsewhere"
    program = f"import sys; sys.prefix = {str(other)!r}; from ipykernel.kernelapp import launch_new_instance as start; "
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    command = [sys.executable, "-c", program + "start()", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "another", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    red(fresh(doctor.check_kernel), str(other), "kernelspec remove")


@pytest.mark.parametrize(
    ("place", "name", "value", "check", "words"),
    [
        (sys, "version_info", (3, 9, 1), "interpreter", ("3.9.1", ">=3.11", "delete .venv")),
        (jupyter_core.paths, "jupyter_path", lambda *_: [os.devnull], "widgets", ("lab-manager", "course.py")),
        (torch, "get_num_threads", lambda: 4096, "threads", ("4096 on", "OMP_NUM_THREADS")),
        (doctor.psutil, "virtual_memory", free(0.4e9), "memory", ("0.4 GB", "close other programs")),
        (doctor.shutil, "disk_usage", free(0.1e9), "disk", ("0.1 GB", "Free at least")),
        (torch.optim.Adam, "step", lambda self: None, "model_step", ("does not learn",)),
        (doctor, "STEPS_PER_SECOND", 1e9, "model_step", ("steps per second", "close other programs")),
    ],
)
def test_what_would_spoil_a_lesson_is_red(monkeypatch, place, name, value, check, words):
    monkeypatch.setattr(place, name, value)
    red(fresh(getattr(doctor, f"check_{check}")), *words)


def test_progress_that_cannot_be_kept_is_red(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file" / "home"))
    red(fresh(doctor.check_home), "file", "COURSE_HOME")


def test_a_check_that_breaks_is_a_red_line_and_the_others_go_on():
    def check_first():
        raise RuntimeError("out of order")

    first, second = doctor.examine([check_first, lambda: Finding(name="second", ok=True, found="fine")])
    red(first, "RuntimeError: out of order", "course.py")
    assert first.name == "first"
    assert second.ok


@pytest.mark.parametrize(("ok", "code", "end"), [(True, 0, "All is well"), (False, 1, "1 of 2 checks need something")])
def test_the_report_shows_each_line_and_what_to_do(monkeypatch, capsys, ok, code, end):
    findings = [Finding(name="one", ok=True, found="[fine]")]
    findings += [Finding(name="two", ok=ok, found="two?", remedy="do this")]
    monkeypatch.setattr(doctor, "CHECKS", [lambda finding=finding: finding for finding in findings])
    assert doctor.report() == code
    output = capsys.readouterr().out
    assert "[fine]" in output and "do this" in output and end in output
