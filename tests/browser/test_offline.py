"""The course with the network cut off: server, kernel and browser in a network namespace that holds loopback alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import network_namespace_command, with_system_tools

pytestmark = pytest.mark.needs("chromium", "network_namespace")

HERE = Path(__file__).parent
# One for each way in: a notebook in JupyterLab and a lecture by Voila. All other browser tests
# fail at the first request to another machine, and decks are opened by a browser that is offline.
REPEATED = (
    "test_classroom.py::test_a_notebook_runs_from_top_to_bottom",
    "test_classroom.py::test_a_wrong_answer_is_explained_and_the_right_one_praised",
    "test_classroom.py::test_a_result_opens_with_the_bet_drawn_in_when_the_bet_is_placed",
    "test_classroom.py::test_a_learner_can_write_and_run_a_cell",
    "test_classroom.py::test_the_page_did_nothing_wrong",
    "test_live.py::test_each_control_recomputes_by_keyboard_and_keeps_the_focus",
)
REACH_OUT = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"


def without_network(*command, seconds):
    """Run a command in an empty network namespace; what it printed comes back with its exit status."""
    inherited = ("PYTEST_", "COURSE_HOME")  # the tests inside are a run of their own
    env = {key: value for key, value in with_system_tools().items() if not key.startswith(inherited)}
    return subprocess.run(
        [*network_namespace_command(), "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command],
        env=env, cwd=HERE.parents[1], timeout=seconds, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def test_nothing_can_be_reached_from_the_namespace_but_loopback():
    refused = without_network(sys.executable, "-c", REACH_OUT, seconds=600)
    assert refused.returncode != 0 and "Network is unreachable" in refused.stdout
    interfaces = without_network(sys.executable, "-c", "import socket; print(socket.if_nameindex())", seconds=600)
    assert interfaces.stdout.strip() == "[(1, 'lo')]"


def test_the_course_works_without_a_network():
    pytest_alone = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run = without_network(*pytest_alone, *(str(HERE / test) for test in REPEATED), seconds=7200)
    assert run.returncode == os.EX_OK and f"{len(REPEATED)} passed" in run.stdout, run.stdout
