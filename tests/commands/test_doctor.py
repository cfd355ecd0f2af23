import importlib.metadata
import json
import os
import sys
from types import SimpleNamespace

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


def red(finding, *words):
    assert not finding.ok
    assert all(word in f"{finding.found} {finding.remedy}" for word in words), finding
    assert finding.remedy


def test_another_python_is_red(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    red(fresh(doctor.check_interpreter), "3.9.1", ">=3.11", "delete .venv")


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


def test_a_missing_package_is_red(versions):
    versions(einops=None)
    red(fresh(doctor.check_packages), "einops is missing", "course.py")


def test_a_package_out_of_bounds_is_red(versions):
    versions(numpy="1.26.0")
    red(fresh(doctor.check_packages), "numpy 1.26.0 is not within")


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


def test_halves_of_the_widgets_that_do_not_fit_are_red(versions):
    versions(jupyterlab_widgets="1.0.0")
    red(fresh(doctor.check_widgets), "jupyterlab_widgets 1.0.0 is not within", "course.py")


def test_a_missing_extension_of_jupyterlab_is_red(monkeypatch):
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda *names: [os.devnull])
    red(fresh(doctor.check_widgets), "jupyterlab-manager", "course.py")


def test_more_threads_than_cores_are_red(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4096)
    red(fresh(doctor.check_threads), "4096 on", "OMP_NUM_THREADS")


def test_little_memory_is_red(monkeypatch):
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: SimpleNamespace(available=0.4e9))
    red(fresh(doctor.check_memory), "0.4 GB", "close other programs")


def test_a_full_disk_is_red(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0.1e9))
    red(fresh(doctor.check_disk), "0.1 GB", "Free at least")


def test_progress_that_cannot_be_kept_is_red(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file" / "home"))
    red(fresh(doctor.check_home), "file", "COURSE_HOME")


def test_a_model_that_does_not_learn_is_red(monkeypatch):
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
    red(fresh(doctor.check_model_step), "does not learn")


def test_a_slow_machine_is_red(monkeypatch):
    monkeypatch.setattr(doctor, "STEPS_PER_SECOND", 1e9)
    red(fresh(doctor.check_model_step), "steps per second", "close other programs")


def test_a_check_that_breaks_is_a_red_line_and_the_others_go_on():
    def check_first():
        raise RuntimeError("out of order")

    first, second = doctor.examine([check_first, lambda: Finding(name="second", ok=True, found="fine")])
    red(first, "RuntimeError: out of order", "course.py")
    assert first.name == "first"
    assert second.ok


@pytest.mark.parametrize(("ok", "code", "end"), [(True, 0, "All is well"), (False, 1, "1 of 2 checks need something")])
def test_the_report_shows_each_line_and_what_to_do(monkeypatch, capsys, ok, code, end):
    findings = [
        Finding(name="one", ok=True, found="[fine]"),
        Finding(name="two", ok=ok, found="two?", remedy="do this"),
    ]
    monkeypatch.setattr(doctor, "CHECKS", [lambda finding=finding: finding for finding in findings])
    assert doctor.report() == code
    output = capsys.readouterr().out
    assert "[fine]" in output and "do this" in output and end in output
