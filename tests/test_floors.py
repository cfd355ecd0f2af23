"""The architecture of course_lib: imports point down only, and types hold together."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "course_lib"
FLOORS = (
    "functional text layers models weights generation data training viz tasks classroom lessons "
    "lectures grading teaching commands site bench authoring cli"
).split()
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
MODEL_LINES = 200
BACKBONES = {  # models of papers that build on another one
    "bert_tasks": {"bert"},
    "clip": {"gpt"},
    "fcn": {"cnn", "resnet"},
    "flamingo": {"gpt"},
    "mae": {"vit"},
    "marian": {"transformer"},
    "mixture_gpt": {"gpt"},
    "multimodal_gpt": {"gpt"},
    "reward": {"gpt"},
    "simclr": {"resnet", "vit"},
    "t5": {"transformer"},
    "unet": {"resnet"},
    "vilbert": {"bert"},
}


def module_name(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def floor(name):
    return FLOORS.index(name.split(".")[1])


NAMES = {module_name(path) for path in PACKAGE.rglob("*.py")}


def imports(path):
    """The full names of all modules that a file imports, inside functions too."""
    package = module_name(path).split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            names = {f"{source}.{alias.name}" for alias in node.names}
            yield from (names & NAMES) or {source}


def own_imports(path):
    return [name for name in imports(path) if name.startswith("course_lib.")]


def each_module(modules=MODULES):
    return pytest.mark.parametrize("path", modules, ids=module_name)


@each_module()
def test_imports_point_down(path):
    upward = [name for name in own_imports(path) if floor(name) > floor(module_name(path))]
    assert not upward


@each_module([path for path in MODULES if path.parent.name == "models"])
def test_a_model_fits_in_the_head_and_imports_no_other_models_but_the_backbone_of_its_paper(path):
    others = {name.split(".")[2] for name in own_imports(path) if name.startswith("course_lib.models.")}
    assert others <= BACKBONES.get(path.stem, set())
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODEL_LINES


@each_module([path for path in MODULES if path.relative_to(PACKAGE).parts[0] != "classroom"])
def test_only_the_classroom_imports_the_notebook(path):
    assert not {name.split(".")[0] for name in imports(path)} & {"IPython", "ipywidgets"}


@each_module()
def test_errors_are_raised_and_not_asserted(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def test_no_import_cycles():
    graph = {module_name(path): set(own_imports(path)) & NAMES for path in MODULES}
    while leaves := [name for name, needed in graph.items() if not needed & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert not graph


def test_every_floor_is_known():
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= set(FLOORS)


def test_mypy_finds_no_error():
    """As far as pyproject.toml has it check the types."""
    run = subprocess.run([sys.executable, "-m", "mypy"], cwd=PACKAGE.parent, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
