"""Each thing that can go wrong gives one clear sentence that says what to do, and no traceback."""

import shlex

import pytest

from tests.needs import mount_namespace_command, network_namespace_command, with_system_tools


def only_a_sentence(code, output, *words):
    assert code == 1, output
    assert "Traceback" not in output
    message = output.strip().splitlines()[-1]
    for word in words:
        assert word in message, message


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"FAKE_NO_VENV": "1"}, ("module venv is missing", "apt-get install python3", "-venv")),
        ({"FAKE_PIP": "no network"}, ("No network", "Connect to the internet", "course-setup.log")),
        ({"FAKE_PIP": "proxy"}, ("certificate", "PIP_CERT", "course-setup.log")),
        ({"FAKE_PIP": "full disk"}, ("No space left", "Free some space", "Les leçons d'été")),
        ({"FAKE_PIP": "conflict"}, ("ResolutionImpossible", "course-setup.log")),
    ],
)
def test_what_stops_a_set_up_is_said_with_what_to_do(course, environment, words):
    only_a_sentence(*course.start("lab", **environment), *words)
    assert course.venv.exists() == ("FAKE_PIP" in environment)


@pytest.mark.needs("network_namespace")
def test_no_network_with_the_real_pip(course):
    """The real course.py and pip, where the only network is loopback."""
    environment = with_system_tools() | {
        "PIP_RETRIES": "1",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_FIND_LINKS": "",
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_EXTRA_INDEX_URL": "",
    }
    command = [course.command()[0], str(course.folder / "course.py"), "lab"]
    answer = course.run([*network_namespace_command(), *command], **environment)
    only_a_sentence(*answer, "No network", "run the same command again")


@pytest.mark.needs("mount_namespace")
@pytest.mark.parametrize("when", ["at the first look", "while .venv is made", "before anything is made"])
def test_no_space_on_a_real_full_disk(course, when):
    folder = course.folder
    source = folder.rename(folder.with_name("source"))
    folder.mkdir()
    target = shlex.quote(str(folder))
    size = "60k" if when == "while .venv is made" else "1m"
    script = [f"mount -t tmpfs -o size={size} tmpfs {target}", f"cp {shlex.quote(str(source))}/* {target}"]
    if when != "at the first look":
        script += ["export FAKE_SMALL_SETUP=1"]
    if when == "before anything is made":
        script += [f"(cat /dev/zero > {target}/filler || true) 2> /dev/null"]
    script += [f"exec {shlex.join(course.command('lab'))}"]
    answer = course.run([*mount_namespace_command(), "sh", "-c", " && ".join(script)])
    only_a_sentence(*answer, "No space left", "Free some space", str(folder))


def test_folder_without_write_permission(course, without_root_powers):
    course.folder.chmod(0o555)
    try:
        answer = course.run([*without_root_powers, *course.command("lab")])
    finally:
        course.folder.chmod(0o755)
    only_a_sentence(*answer, "No permission to write", "folder of your own")


def test_a_file_in_the_place_of_the_environment(course):
    course.venv.touch()
    only_a_sentence(*course.start("lab"), "is a file", "Rename or delete")


def test_pythonpath_of_other_programs_does_not_reach_the_course(course, tmp_path):
    (tmp_path / "typer.py").write_text("raise SystemExit('the wrong typer')")
    code, output = course.start("lab", PYTHONPATH=str(tmp_path))
    assert code == 0 and "wrong" not in output
