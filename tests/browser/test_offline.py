"""The course with the network cut off: server, kernel and browser in a network namespace that holds loopback alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import network_namespace_command, with_system_tools

pytestmark = pytest.mark.needs("chromium", "network_namespace")

HERE = Path(__file__).parent
# Formgrader's students are judged in a sandbox, which cannot be made in this namespace; its own test watches requests.
BROWSER_TESTS = sorted(set(HERE.glob("test_*.py")) - {Path(__file__), HERE / "test_formgrader.py"})
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
    refused = without_network(sys.executable, "-c", REACH_OUT, seconds=60)
    assert refused.returncode != 0 and "Network is unreachable" in refused.stdout
    interfaces = without_network(sys.executable, "-c", "import socket; print(socket.if_nameindex())", seconds=60)
    assert interfaces.stdout.strip() == "[(1, 'lo')]"


@pytest.mark.parametrize("path", BROWSER_TESTS, ids=lambda path: path.stem)
def test_every_browser_test_passes_without_a_network(path):
    run = without_network(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path), seconds=1800)
    assert run.returncode == os.EX_OK, run.stdout
