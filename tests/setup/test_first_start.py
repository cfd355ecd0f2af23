import ast
import re
import socket
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_first_start_sets_up_and_hands_all_arguments_to_the_command(course):
    code, output = course.start("run", "05", "--timeout", "9")
    assert code == 0
    assert output.splitlines()[-1] == 'course ["run", "05", "--timeout", "9"]'
    assert [line[:3] for line in output.splitlines() if line[:1].isdigit()] == ["1/3", "2/3", "3/3"]
    *_, last = course.pip_calls()  # packages as tested, and the course as it lies there
    assert last[-2:] == ["--editable", str(course.folder)]
    assert last[last.index("--constraint") + 1] == "constraints.txt"


def test_while_pip_is_silent_it_says_how_many_packages_are_installed(course):
    process = course.begin("lab", FAKE_PIP="slow", FAKE_PROGRESS_SECONDS="0.1")
    give_up = threading.Timer(300, course.allow_pip_to_go_on)
    give_up.start()
    said = course.read_until(process, "packages installed\n")
    give_up.cancel()
    course.allow_pip_to_go_on()
    assert course.finish(process)[0] == 0
    assert re.fullmatch(r" +\d+:\d\d  1 of 3 packages installed", said.splitlines()[-1])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [([], 0, ("course.py lab", "course.py test")), (["lob"], 1, ("no command 'lob'", "lab"))],
)
def test_without_a_command_that_there_is_it_says_what_it_can_do_and_sets_nothing_up(course, arguments, code, words):
    ended, output = course.start(*arguments)
    assert ended == code and all(word in output for word in words)
    assert not course.venv.exists()


def test_the_file_can_be_read_by_python_3_6_and_imports_the_standard_library_only():
    tree = ast.parse((ROOT / "course.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    assert {alias.name.split(".")[0] for node in imports for alias in node.names} <= sys.stdlib_module_names
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


@pytest.fixture
def silent_index():
    """The address of a package index that takes each connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def torch_calls(course):
    return [call for call in course.pip_calls() if "torch" in call and "--no-index" not in call]


@pytest.mark.needs("linux")
class TestTorch:
    """Elsewhere plain pip brings the right build."""

    def test_comes_from_the_index_of_cpu_builds(self, course, index):
        assert course.start("lab", FAKE_CPU_INDEX=index, PATH="/usr/bin:/bin")[0] == 0
        (call,) = torch_calls(course)
        assert call[call.index("--index-url") + 1] == index

    def test_comes_from_the_usual_index_if_asked_for_cuda(self, course, index):
        assert course.start("lab", FAKE_CPU_INDEX=index, COURSE_CUDA="1")[0] == 0
        (call,) = torch_calls(course)
        assert "--index-url" not in call

    def test_comes_from_the_usual_index_and_says_so_if_the_other_is_silent(self, course, silent_index):
        code, output = course.start("lab", FAKE_CPU_INDEX=silent_index)
        (call,) = torch_calls(course)
        assert code == 0 and "--index-url" not in call
        assert "does not answer" in output and "several GB" in output

    def test_is_not_downloaded_again_by_an_update(self, installed, index):
        before = len(torch_calls(installed))
        assert installed.start("test", FAKE_CPU_INDEX=index)[0] == 0
        assert len(torch_calls(installed)) == before


@pytest.mark.parametrize("version", [(2, 7), (3, 6), (3, 10), (3, 15)])
def test_another_python_is_refused_in_one_sentence_that_names_the_right_ones(module, version):
    with pytest.raises(module.Trouble, match=r"Python {}\.{} is too (old|new).* 3\.11 to 3\.14".format(*version)):
        module.check_python(version)
    for right in ((3, 11), (3, 14, 2)):
        module.check_python(right)
