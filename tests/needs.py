"""What some tests need from the system, how to see that it is there, and how a person gets it."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Need:
    kind: str  # which tests need it: "6 browser tests"
    remedy: str  # what a person does to get it
    available: Callable[[], bool]


def find_chromium():
    """The path of a Chromium or Chrome, or None; COURSE_CHROMIUM names one in an unusual place."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    candidates = (os.environ.get("COURSE_CHROMIUM"), *map(shutil.which, names))
    return next((path for path in candidates if path), None)


@functools.cache
def network_namespace_command():
    """A command prefix that runs a program with no network but loopback, or None if the system denies it."""
    return namespace_command("--net", prepare="ip link set lo up")


@functools.cache
def mount_namespace_command():
    """A command prefix that runs a program with mounts of its own, or None if the system denies it."""
    return namespace_command("--mount", prepare="mount -t tmpfs -o size=64k tmpfs /mnt")


def namespace_command(kind, *, prepare):
    if not shutil.which("unshare"):
        return None
    for user in (["--user", "--map-root-user"], []):  # unprivileged first; then as root in a container
        prefix = ["unshare", *user, kind]
        trial = subprocess.run([*prefix, "sh", "-c", prepare], capture_output=True, env=with_system_tools())
        if trial.returncode == 0:
            return prefix
    return None


@functools.cache
def sandbox_works():
    """Whether bubblewrap can make the sandbox that assignments are judged in."""
    from course_lib.grading.sandbox import sandbox_problem

    return sandbox_problem() is None


@functools.cache
def lecture_assets_are_there():
    """Whether reveal.js, MathJax and axe-core are on this machine, or could be fetched just now."""
    from course_lib.data.place import CannotStart
    from course_lib.lectures.assets import PACKAGES, fetch
    from tests.axe import AXE

    try:
        fetch([*PACKAGES, AXE], say=lambda words: None)
    except CannotStart:
        return False
    return True


def with_system_tools():
    """The environment with /usr/sbin on the path, where Debian hides `ip` from ordinary users."""
    return {
        **os.environ,
        "PATH": os.environ.get("PATH", "") + os.pathsep + "/usr/sbin" + os.pathsep + "/sbin",
    }


@functools.cache
def hub_can_run():
    """Whether a JupyterHub can be tried: its proxy, and, for root, accounts that only its own processes see."""
    programs = ("configurable-http-proxy", "useradd", "runuser", "nsenter")
    found = all(shutil.which(name, path=with_system_tools()["PATH"]) for name in programs)
    return found and os.geteuid() == 0 and mount_namespace_command() is not None


NEEDS = {
    "linux": Need(kind="Linux", remedy="they run on Linux", available=lambda: sys.platform == "linux"),
    "chromium": Need(
        kind="browser",
        remedy="install Chromium: sudo apt-get install chromium (or name one in COURSE_CHROMIUM)",
        available=lambda: find_chromium() is not None,
    ),
    "lecture_assets": Need(
        kind="lecture",
        remedy="run them once with a network, and with npm: sudo apt-get install npm",
        available=lecture_assets_are_there,
    ),
    "network_namespace": Need(
        kind="offline",
        remedy="they run on Linux with network namespaces: sudo apt-get install util-linux iproute2",
        available=lambda: network_namespace_command() is not None,
    ),
    "hub": Need(
        kind="hub",
        remedy="they run on Linux as root, with its proxy: sudo npm install --global configurable-http-proxy",
        available=hub_can_run,
    ),
    "mount_namespace": Need(
        kind="full-disk",
        remedy="they run on Linux with mount namespaces: sudo apt-get install util-linux mount",
        available=lambda: mount_namespace_command() is not None,
    ),
    "sandbox": Need(
        kind="sandbox",
        remedy="they run on Linux with bubblewrap: sudo apt-get install bubblewrap",
        available=sandbox_works,
    ),
}
