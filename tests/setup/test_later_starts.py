import json
import os
import shutil
import signal

import pytest


def another_package(course):
    path = course.folder / "constraints.txt"
    path.write_text(path.read_text() + "another==1.0\n")


def test_a_second_start_asks_pip_nothing_and_lab_uses_what_test_has_installed(course):
    assert course.start("test")[0] == 0
    before = course.pip_calls()
    assert before[-1][-1] == f"{course.folder}[dev]"
    for command in ("test", "lab"):
        assert course.start(command, FAKE_PIP="no network") == (0, f'course ["{command}"]\n')
    assert course.pip_calls() == before


def test_test_adds_its_packages_to_those_of_lab_and_an_update_by_lab_keeps_them(installed):
    (installed.venv / "witness").touch()
    code, output = installed.start("test")
    assert code == 0 and "updating .venv" in output
    another_package(installed)
    code, output = installed.start("lab")
    assert code == 0 and "changed" in output
    assert (installed.venv / "witness").exists()
    assert installed.start("test") == (0, 'course ["test"]\n')


def test_a_change_of_pyproject_that_is_not_about_packages_updates_nothing(installed):
    path = installed.folder / "pyproject.toml"
    path.write_text(path.read_text() + "\n[tool.something]\nline = 1\n")
    assert installed.start("lab") == (0, 'course ["lab"]\n')


def damage_package(course):
    (numpy,) = course.venv.glob("[Ll]ib/**/site-packages/numpy")
    shutil.rmtree(numpy)


def damage_python(course):
    for path in course.venv.glob("bin/python*"):
        path.unlink()
        path.symlink_to("/nowhere/python3")


def damage_stamp(course):
    path = course.venv / "course-setup.json"
    path.write_text(path.read_text()[:40])


def another_python(course):
    path = course.venv / "course-setup.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"python": "3.99"}))


def move_folder(course):
    new = course.folder.with_name("moved elsewhere")
    course.folder.rename(new)
    course.folder = new


@pytest.mark.parametrize("harm", [damage_package, damage_python, damage_stamp, another_python, move_folder])
def test_a_damaged_environment_is_made_afresh(installed, harm):
    (installed.venv / "witness").touch()
    harm(installed)
    code, output = installed.start("lab")
    assert code == 0 and "Starting it afresh" in output and output.endswith('course ["lab"]\n')
    assert not (installed.venv / "witness").exists()
    assert installed.start("lab") == (0, 'course ["lab"]\n')


def test_a_set_up_killed_in_the_middle_is_not_believed_and_its_orphan_is_waited_for(course):
    killed = course.begin("lab", FAKE_PIP="slow")
    course.wait_for("pip-started")
    killed.send_signal(signal.SIGKILL)
    killed.wait()  # its pip goes on alone, and writes into .venv
    second = course.begin("lab")
    course.read_until(second, "Another set-up is at work")
    assert second.poll() is None
    course.allow_pip_to_go_on()
    code, output = course.finish(second)
    assert code == 0, output
    assert "Starting it afresh" in output
    killed.stdout.close()
    assert course.start("lab") == (0, 'course ["lab"]\n')


def test_an_environment_whose_removal_was_cut_off_is_not_believed(installed):
    stamp = installed.venv / "course-setup.json"
    another_python(installed)
    assert installed.start("lab", FAKE_CRASH_WHILE_CLEARING="1")[0] == 9
    assert not stamp.exists()
    assert "Starting it afresh" in installed.start("lab")[1]


def test_two_set_ups_at_once_are_one_set_up(course):
    first = course.begin("lab", FAKE_PIP="slow")
    course.wait_for("pip-started")
    second = course.begin("lab", FAKE_PIP="slow")
    said = course.read_until(second, "Another set-up is at work")
    course.allow_pip_to_go_on()
    (code, _), (other_code, other_output) = course.finish(first), course.finish(second)
    assert code == other_code == 0, other_output
    assert "1/3" not in said + other_output
    assert sum("--editable" in call for call in course.pip_calls()) == 1


def test_ctrl_c_stops_with_a_sentence_and_takes_pip_along(course):
    process = course.begin("lab", FAKE_PIP="slow")
    course.wait_for("pip-started")
    process.send_signal(signal.SIGINT)
    code, output = course.finish(process)  # pip, alone, would hold the pipe open longer than this waits
    assert code == 1 and "Stopped. Run the same command again" in output and "Traceback" not in output
    code, output = course.start("lab")
    assert code == 0 and "Starting it afresh" in output


def test_a_failed_addition_without_network_leaves_the_earlier_set_up_in_use(installed):
    code, output = installed.start("test", FAKE_PIP="no network")
    assert code == 1 and "No network" in output
    assert "Temporary failure in name resolution" in (installed.venv / "course-setup.log").read_text()
    assert installed.start("lab", FAKE_PIP="no network") == (0, 'course ["lab"]\n')


def test_an_addition_that_failed_half_way_is_not_believed(installed):
    code, output = installed.start("test", FAKE_PIP="full disk")
    assert code == 1 and "No space left" in output
    code, output = installed.start("lab")
    assert code == 0 and "Starting it afresh" in output


def test_a_finished_set_up_starts_from_a_folder_that_cannot_be_written(installed, without_root_powers):
    for path in (installed.folder, installed.venv):
        path.chmod(0o555)
    try:
        code, output = installed.run([*without_root_powers, *installed.command("lab")])
    finally:
        for path in (installed.folder, installed.venv):
            path.chmod(0o755)
    assert (code, output) == (0, 'course ["lab"]\n')


def test_the_environment_of_someone_else_is_left_alone(course):
    course.venv.mkdir()
    (course.venv / "pyvenv.cfg").write_text("home = /somewhere\n")
    code, output = course.start("lab")
    assert code == 1 and "not made by course.py" in output and "Rename or delete" in output
    assert os.listdir(course.venv) == ["pyvenv.cfg"]
