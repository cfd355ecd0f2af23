"""The engine's files can be read alone, shipped, and joined to one script without their imports."""

import re
import tomllib
from fnmatch import fnmatch
from graphlib import TopologicalSorter

import pytest

from tests.engine.modules import ENGINE, FILES

SOURCES = {file.name: file.read_text(encoding="utf-8") for file in FILES}
IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([a-z0-9]+\.js)";$', re.MULTILINE)
TOP_LEVEL = re.compile(r"^(?:export )?(?:function|class|const|let) (\w+)", re.MULTILINE)


def exported(name):
    return set(re.findall(r"^export (?:function|class|const) (\w+)", SOURCES[name], re.MULTILINE))


@pytest.mark.parametrize("name", SOURCES)
def test_imports_are_single_lines_of_names_that_are_exported_and_used(name):
    imports = IMPORT.findall(SOURCES[name])
    assert len(imports) == SOURCES[name].count("import ") and "import(" not in SOURCES[name]
    for names, source in imports:
        assert set(names.split(", ")) <= exported(source)
        rest = IMPORT.sub("", SOURCES[name])
        assert [each for each in names.split(", ") if not re.search(rf"\b{each}\b", rest)] == []


@pytest.mark.parametrize("name", SOURCES)
def test_exports_are_functions_classes_and_constants(name):
    assert len(exported(name)) == len(re.findall(r"\bexport\b", SOURCES[name]))


def test_no_name_at_the_top_level_occurs_twice():
    names = [name for source in SOURCES.values() for name in TOP_LEVEL.findall(source)]
    assert sorted(names) == sorted(set(names))


def test_lines_have_at_most_120_letters():
    long = [(name, line) for name, text in SOURCES.items() for line in text.splitlines() if len(line) > 120]
    assert long == []


def test_the_engine_is_in_the_package():
    project = tomllib.loads((ENGINE.parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["course_lib.classroom"]
    assert [name for name in SOURCES if not any(fnmatch(f"widgets/engine/{name}", each) for each in patterns)] == []


@pytest.mark.needs("chromium")
def test_the_joined_files_are_one_script_that_computes(engine):
    """As a page that is one file holds them: no modules, no requests."""
    order = TopologicalSorter({name: {source for _, source in IMPORT.findall(text)} for name, text in SOURCES.items()})
    joined = "\n".join(SOURCES[name] for name in order.static_order())
    script = re.sub(r"^export ", "", IMPORT.sub("", joined), flags=re.MULTILINE)
    names = sorted(set().union(*map(exported, SOURCES)))
    page = engine.page.context.browser.new_page()
    page.set_content(f"<script>{script}\nvar joined = {{ {', '.join(names)} }};</script>")
    assert set(page.evaluate("Object.keys(joined)")) == set(names)
    assert page.evaluate("Array.from(softmaxRows(new Float32Array([0, 0])))") == [0.5, 0.5]
