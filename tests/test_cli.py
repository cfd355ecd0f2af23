import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
from pathlib import Path

import nbformat
import psutil
import pytest

from course_lib import cli
from course_lib.commands import lab, lessons, testing

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A course with three short lessons, one of which fails."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    sources = {"00_start_here": "print('hello')", "05_attention": "x = 1", "06_broken": "raise ValueError('no [x]')"}
    for name, source in sources.items():
        lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        nbformat.write(lesson, notebooks / f"{name}.ipynb")
    for module in (lessons, lab, testing):
        monkeypatch.setattr(module, "course_folder", lambda: tmp_path)
    return tmp_path


def test_help_comes_without_torch_and_jupyterlab():
    program = "import sys; sys.argv = ['course', '--help']\nfrom course_lib import cli\ntry: cli.main()\nfinally: "
    program += "print('torch' in sys.modules or 'jupyterlab' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "False" and "course lab" in output
    assert all(name in output for name in ("lab", "run", "test", "doctor", "data", "assign", "grade", "bench"))


COMMANDS = ["lab", "run", "test", "doctor", "train", "site", "grade", "bench"]
COMMANDS += [f"data {info.name}" for info in cli.data_sets.registered_commands]
COMMANDS += [f"assign {info.name or info.callback.__name__}" for info in cli.assign.registered_commands]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_gives_an_example(course, command):
    code, output, _ = course(*command.split(), "--help")
    assert code == 0 and f"course {command}" in output.split("Example")[1]


def test_course_py_knows_the_same_commands():
    listed = re.search(r'^COMMANDS = "(.*)"', (ROOT / "course.py").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    commands = [info.name or info.callback.__name__ for info in cli.app.registered_commands]
    groups = [info.typer_instance.info.name for info in cli.app.registered_groups]
    assert sorted(listed.split()) == sorted(commands + groups)


@pytest.mark.parametrize("name", ["5", "05", "attention", "Attention", "05_attention", "05_attention.ipynb"])
def test_a_lesson_is_found_by_number_name_or_file(folder, name):
    assert lessons.find_lesson(name) == folder / "notebooks" / "05_attention.ipynb"


def test_a_whole_name_wins_over_a_part_of_another(folder):
    (folder / "notebooks" / "07_attention_again.ipynb").touch()
    assert lessons.find_lesson("attention").stem == "05_attention"
    with pytest.raises(lessons.CannotStart, match="More than one lesson fits 'atten'"):
        lessons.find_lesson("atten")


@pytest.mark.parametrize(("name", "reason"), [("9", "no lesson '9'"), ("e", "More than one"), ("_", "no lesson '_'")])
def test_a_lesson_that_is_not_clear_gets_a_sentence_with_the_choice(folder, course, name, reason):
    code, _, error = course("run", name)
    assert code == 1 and reason in error and "00_start_here" in error and "Traceback" not in error


def test_run_prints_a_line_for_each_lesson_and_a_summary_and_fails_at_the_end_after_a_failure(folder, course):
    before = (folder / "notebooks" / "00_start_here.ipynb").read_bytes()
    code, output, _ = course("run", "0", "5")
    assert code == 0 and "2 in all" in output and "all ran through" in output
    assert re.search(r"1/2  00_start_here +ok +1 cells +\d+\.\d s", output)
    assert re.search(r"2/2  05_attention +ok +1 cells +\d+\.\d s", output)
    code, output, _ = course("run", "6", "0")
    assert code == 1 and "1 failed" in output and "no [x]" in output
    assert re.search(r"1/2  06_broken +failed", output) and re.search(r"2/2  00_start_here +ok", output)
    assert (folder / "notebooks" / "00_start_here.ipynb").read_bytes() == before


def test_ctrl_c_stops_a_run_with_a_word_and_takes_its_kernel_along(folder, tmp_path):
    note = f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))"
    source = f"import os, pathlib, time\n{note}\ntime.sleep(600)"
    lesson = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    nbformat.write(lesson, folder / "notebooks" / "05_attention.ipynb")
    program = "import sys; from course_lib import cli; cli.main()"
    command = [sys.executable, "-c", program, "run", str(folder / "notebooks" / "05_attention.ipynb")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1 and output.strip() == "Stopped."
    wait_until(lambda: not psutil.pid_exists(int((tmp_path / "pid").read_text())))


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_run_without_a_lesson_runs_all(folder, course, monkeypatch):
    from course_lib.commands import execute as execution

    seen = []

    def execute(path, *, timeout, on_cell):
        seen.append((path.stem, timeout))
        on_cell(1, 2)
        return types.SimpleNamespace(path=path, seconds=1.0, cells=2, error=None)

    monkeypatch.setattr(execution, "execute_notebook", execute)
    assert course("run", "--timeout", "7")[0] == 0
    assert seen == [("00_start_here", 7), ("05_attention", 7), ("06_broken", 7)]


def test_test_runs_all_tests_and_all_notebooks_strictly_or_only_the_paths_that_are_named():
    command = testing.test_command(["-k", "attention"])
    assert command[-4:] == ["notebooks", "tests", "-k", "attention"]
    assert {"--nbval", "--nbval-current-env", "loadscope"} < set(command) and "--nbval-lax" not in command
    command = testing.test_command(["-x", "tests/test_cli.py::test_one"])
    assert command[-2:] == ["-x", "tests/test_cli.py::test_one"] and "notebooks" not in command


def test_test_hands_options_through_and_returns_pytests_exit_code(course):
    code, *_ = course("test", "tests/test_floors.py", "-k", "nothing_of_this_name", "-n", "0", "-q")
    assert code == 5  # pytest: no tests were collected


def test_test_without_its_packages_says_how_to_get_them(course, monkeypatch):
    monkeypatch.setattr(testing, "find_spec", lambda name: None if name == "nbval" else object())
    monkeypatch.setattr(testing.subprocess, "call", lambda *command, **options: pytest.fail("pytest was started"))
    code, _, error = course("test")
    assert code == 1 and "(nbval)" in error and "python3 course.py test" in error


def test_instructors_commands_without_nbgrader_say_how_to_get_it():
    commands = ("grade 05", "assign release 05", "assign collect 05", "assign feedback 05", "assign export 05")
    program = (
        "import sys\nsys.modules['nbgrader'] = None\nfrom course_lib import cli\n"
        f"for command in {(*commands, 'assign formgrader')!r}:\n"
        "    sys.argv = ['course', *command.split()]\n"
        "    try: cli.main()\n"
        "    except SystemExit as end: assert end.code == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in (*commands, "assign formgrader"):
        assert "This needs nbgrader, which is not installed here." in done.stderr
        assert f"goes on: python3 course.py {command} " in done.stderr


def test_bench_runs_the_benchmark_and_returns_its_exit_code_and_an_unknown_one_gets_a_sentence(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "course_lib.bench.attention", types.SimpleNamespace(main=lambda: 3))
    assert course("bench", "attention")[0] == 3
    code, _, error = course("bench", "speed")
    assert code == 1 and "no benchmark 'speed'" in error and "attention" in error


def test_a_taken_port_and_an_impossible_one_get_a_sentence(folder, course, monkeypatch):
    monkeypatch.setattr(lab.os, "execve", lambda *command: pytest.fail("JupyterLab was started"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, _, error = course("lab", "--no-browser", "--port", str(port))
    assert code == 1 and f"Port {port} is taken" in error and "Leave out --port" in error
    code, _, error = course("lab", "--port", "70000")
    assert code == 2 and "65535" in error


def test_a_terminal_of_jupyterlab_finds_the_course_command_of_this_environment(monkeypatch):
    monkeypatch.setenv("PATH", "/of/mine")
    found = lab.lab_environment()["PATH"]
    assert Path(shutil.which("course", path=found)).parent == Path(sys.executable).parent
    assert found.endswith(f"{os.pathsep}/of/mine")


def test_a_notebook_outside_of_the_course_is_refused(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere") / "mine.ipynb"
    with pytest.raises(lessons.CannotStart, match="outside of the course"):
        lab.lab_command(other, port=None, browser=True)


@pytest.mark.parametrize(
    ("command", "called"), [("slides", "write_slides"), ("lecture", "teach"), ("handout", "write_handouts")]
)
def test_a_lecture_is_as_long_as_one_says_else_the_longest(course, folder, monkeypatch, command, called):
    from course_lib.lectures import commands

    asked = []
    monkeypatch.setattr(commands, called, lambda lesson, *, path, **_: asked.append((lesson.stem, path)) or 0)
    assert course(command, "00")[0] == course(command, "05", "--minutes", "60")[0] == 0
    assert asked == [("00_start_here", None), ("05_attention", 60)]
