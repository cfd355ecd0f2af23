"""pyproject.toml is the one list of dependencies; all else agrees with it."""

import ast
import importlib.util
import sys
import tomllib
from importlib.metadata import distributions, packages_distributions, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = [Requirement(line) for line in PROJECT["dependencies"]]
DEV = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
EXTRAS = {name: set(lines) for name, lines in PROJECT["optional-dependencies"].items()}
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]


def constraints():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_conda_installs_what_pip_installs_on_the_same_pythons():
    (pip,) = (entry["pip"] for entry in ENVIRONMENT if isinstance(entry, dict))
    packages = [line for line in pip if not line.startswith("-")]
    assert packages == PROJECT["dependencies"] and f"python{PROJECT['requires-python']}" in ENVIRONMENT
    assert "--editable ." in pip and "--constraint constraints.txt" in pip


def test_the_tests_run_with_every_extra():
    assert all(lines <= EXTRAS["dev"] for lines in EXTRAS.values())


def test_course_py_takes_the_same_pythons():
    spec = importlib.util.spec_from_file_location("course_set_up", ROOT / "course.py")
    course = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(course)
    allowed = SpecifierSet(PROJECT["requires-python"])
    taken = [minor for minor in range(30) if f"3.{minor}" in allowed]
    assert course.OLDEST == (3, taken[0]) and course.NEWEST == (3, taken[-1])


@pytest.mark.parametrize("requirement", CORE + DEV, ids=str)
def test_each_dependency_is_bounded_below_and_above_and_the_tested_version_lies_within(requirement):
    assert {specifier.operator for specifier in requirement.specifier} == {">=", "<"}
    assert requirement.specifier.contains(constraints()[canonicalize_name(requirement.name)])


def test_constraints_are_exact_and_portable():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(line.count("==") == 1 and "+" not in line and "@" not in line for line in lines)


def test_each_tested_version_can_be_installed_on_the_python_of_debian_12():
    installed = {canonicalize_name(each.name): each.metadata.get("Requires-Python") for each in distributions()}
    wanted = {name: SpecifierSet(installed.get(name) or "") for name in constraints()}
    assert [f"{name} {pythons}" for name, pythons in wanted.items() if not pythons.contains("3.11.2")] == []


def top_level_imports(folder):
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield node.module.split(".")[0]


def test_the_package_imports_only_what_the_core_installs():
    """Directly listed, or brought along by a listed package; what authors and the benchmarks' peers need comes late."""
    core = {canonicalize_name(name) for name in constraints()} - {canonicalize_name(r.name) for r in DEV}
    core |= {"jupytext", "scikit-image", "scikit-learn", "tokenizers", "transformers"}
    core |= {"dask", "distributed", "filelock", "lightning-fabric", "nbgrader"}
    core |= {"huggingface-hub", "pooch", "sacrebleu"}  # asked for with a sentence that says how to get them
    core |= {"fonttools", "jinja2", "nbconvert", "python-pptx", "websocket-client"}  # see the next two tests
    core |= {"furo", "myst-nb", "sphinx"}
    core |= {"cairosvg"}  # draws the icons anew, which no learner does
    core |= {"google"}  # is there where the students' notebook of Colab runs
    modules = packages_distributions()
    third_party = set(top_level_imports(ROOT / "course_lib")) - sys.stdlib_module_names - {"course_lib"}
    unlisted = {name for name in third_party if not {canonicalize_name(d) for d in modules.get(name, [name])} & core}
    assert not unlisted


def used_by_lectures():
    modules = packages_distributions()
    third_party = set(top_level_imports(ROOT / "course_lib" / "lectures")) - sys.stdlib_module_names - {"course_lib"}
    return {canonicalize_name(name) for module in third_party for name in modules[module]}


def test_what_lectures_import_is_listed():
    listed = {canonicalize_name(r.name) for r in CORE + [Requirement(line) for line in EXTRAS["lectures"]]}
    assert used_by_lectures() <= listed


def test_slides_and_hand_outs_are_made_with_what_a_learner_has():
    """All that they import comes along with the core, so that only the live lecture needs its extra."""
    installed, waiting = set(), list(CORE)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        if name in installed or (marker and not any(marker.evaluate({"extra": e}) for e in ["", *requirement.extras])):
            continue
        installed.add(name)
        waiting += [Requirement(line) for line in requires(name) or ()]
    assert {"fonttools", "nbconvert"} <= used_by_lectures() - {"python-pptx"} <= installed
