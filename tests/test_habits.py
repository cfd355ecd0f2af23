"""The files by which a change is checked, reported and released: they can be read, and what they run exists."""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
import yaml

import course_lib
from course_lib import cli
from course_lib.authoring import changes

ROOT = Path(__file__).parents[1]
YAML = [ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff", *sorted((ROOT / ".github").rglob("*.yml"))]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands():
    """Every command that a hook or a workflow runs."""
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        yield from (hook["entry"] for hook in repository["hooks"])
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            yield from (line for step in job["steps"] for line in step.get("run", "").splitlines())


def missing(command):
    """What a command names that there is not: a program, a script, a module, a subcommand or an option; or None."""
    program, *words = shlex.split(command)
    if program == "bash":
        return None if (ROOT / words[0]).is_file() else words[0]
    if (tool := program.removeprefix(".venv/bin/")) in ("mypy", "ruff"):
        done = subprocess.run([sys.executable, "-m", tool, *words, "--help"], capture_output=True)
        return None if done.returncode == 0 and tool in PROJECT_DEV else command
    if program not in ("python", "python3", ".venv/bin/python"):
        return program
    if words[0] == "-m":
        module, words = words[1], words[2:]
        if importlib.util.find_spec(module) is None:
            return module
    elif not (ROOT / words[0]).is_file():
        return words[0]
    else:
        module, words = words[0].removesuffix(".py").replace("/", "."), words[1:]
    return unread(module, words)


PROJECT_DEV = {re.split(r"[><=]", line)[0] for line in PROJECT["optional-dependencies"]["dev"]}


def unread(module, words):
    """The words that the program of a module does not take; None if it takes them."""
    try:
        if module == "course":
            command = typer.main.get_command(cli.app)
            while hasattr(command, "commands") and words:
                command = command.commands[words.pop(0)]
            command.make_context("course", words)
        elif hasattr(program := importlib.import_module(module), "argument_parser"):
            program.argument_parser().parse_args([*words, "x.ipynb"] if words == ["stamps"] else words)
    except (Exception, SystemExit):
        return " ".join([module, *words])
    return None


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_each_file_can_be_read(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_each_command_exists(command):
    assert missing(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "bash .ci/walk",
        "python -m course_lib.authoring.chances large",
        "python -m course_lib.authoring.changes large --bass x",
        "python3 course.py sight --to public",
        "python3 course.py site --two public",
        "make site",
        ".venv/bin/ruff cheque",
    ],
)
def test_a_command_that_there_is_not_is_found(command):
    assert missing(command) is not None


def test_each_change_runs_the_whole_proof_and_the_weight_of_the_clone():
    lines = list(commands())
    assert "bash .ci/run" in lines and sum("changes" in line and " large" in line for line in lines) == 2
    assert {"push", "pull_request"} <= set(read(ROOT / ".github" / "workflows" / "tests.yml")[True])  # `on` means true


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_action_has_a_version(path):
    actions = [step["uses"] for job in read(path)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert actions and all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in actions)


def test_the_hook_of_stamps_looks_at_lessons_and_at_nothing_else():
    hooks = {hook["id"]: hook for hook in read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]}
    pattern = re.compile(hooks["stamps"]["files"])
    assert pattern.search("notebooks/05_attention.ipynb")
    assert not pattern.search("notebooks/assignments/source/05/attention.ipynb")


def test_forms_of_issues_have_what_their_host_asks_for():
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form = read(path)
        if path.name != "config.yml":
            assert form["name"] and form["description"]
            for field in form["body"]:
                assert field["type"] in ("input", "textarea") and field["attributes"]["label"]


def test_the_version_is_one_and_the_changelog_has_it():
    assert course_lib.__version__ == version("course-lib")
    assert read(ROOT / "CITATION.cff")["version"] == PROJECT["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+?)(,.*)?$", changelog, flags=re.MULTILINE)[1] == PROJECT["version"]
    with pytest.raises(AttributeError, match="__vision__"):
        course_lib.__vision__  # noqa: B018


def test_addresses_of_the_project_stand_in_one_place():
    files = [*(ROOT / ".github").rglob("*.*"), ROOT / "SECURITY.md", ROOT / "CODE_OF_CONDUCT.md"]
    texts = {path.name: path.read_text("utf-8") for path in files if path.is_file()}
    assert not [name for name, text in texts.items() if re.search(r"https?://|@\w+\.", text)]
    assert {"Repository", "Issues", "Releases"} <= PROJECT["urls"].keys()


def test_the_check_of_the_clone_needs_nothing_but_python():
    """A workflow runs it before anything is installed."""
    command = [sys.executable, "-I", "-S", changes.__file__, "large", "--base", "HEAD"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 or "git rev-list failed" in done.stderr
