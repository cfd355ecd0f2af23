"""Open the course in JupyterLab, with nothing fetched from the network."""

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import zmq

from course_lib.commands.lessons import CannotStart, course_folder, find_lesson
from course_lib.commands.unpack import get_files
from course_lib.data.place import VARIABLE as FOLDER
from course_lib.data.place import unpacked_folder

CONFIG = Path(__file__).parent / "jupyter"  # no news, no update check, no look-up of extensions


def open_lab(lesson: str = "00", *, port: int | None = None, browser: bool = True, source: Path | None = None) -> int:
    """Start JupyterLab at a lesson and stay until it is stopped; returns its exit code.

    Without `port` it takes the first free one from 8888 on. Where the library was installed from a wheel, the files of
    the course are unpacked first, from the archive `source` or from the release. Raises CannotStart if the port asked
    for is taken, and if the files are not to be had.
    """
    get_files(source)
    command = lab_command(find_lesson(lesson), port=port, browser=browser)
    require_free(port, "lab")
    print("Opening the course in JupyterLab. If no browser opens, copy an address from below into one.")
    print("To stop it, press Ctrl-C here twice.", flush=True)
    return serve(command, folder=course_folder(), environment=lab_environment())


def lab_environment() -> dict[str, str]:
    """This process's environment, with the course's settings, and `course` within reach of JupyterLab's terminals."""
    path = os.pathsep.join(filter(None, [str(Path(sys.executable).parent), os.environ.get("PATH")]))
    folder = {FOLDER: str(course_folder())} if unpacked_folder() else {}
    return os.environ | folder | {"JUPYTER_CONFIG_PATH": config_path(), "PATH": path}


def lab_command(notebook: Path, *, port: int | None, browser: bool) -> list[str]:
    """The command line that starts JupyterLab at a notebook of the course."""
    if find_spec("jupyterlab") is None:
        raise CannotStart("JupyterLab is not installed here. Set the course up with: python3 course.py lab")
    folder = course_folder()
    place = notebook.resolve()
    if not place.is_relative_to(folder):
        raise CannotStart(f"{notebook} lies outside of the course in {folder}. Open it with: jupyter lab {notebook}")
    page = f"/lab/tree/{place.relative_to(folder).as_posix()}"
    settings = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url={page}"]
    return server_command(settings, port=port, browser=browser)


def server_command(settings: list[str], *, port: int | None, browser: bool) -> list[str]:
    """The command line that starts JupyterLab with these settings, and with nothing in the terminal that alarms."""
    command = [
        sys.executable, "-m", "jupyterlab", *settings,
        "--ServerApp.log_level=ERROR", "--LabApp.log_level=ERROR",
        "--ServerApp.websocket_ping_timeout=30000",  # as the server would set it, and say so
    ]  # fmt: skip
    if zmq.has("curve"):
        command += ["--KernelManager.transport_encryption=auto"]  # else each kernel warns of eavesdropping
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        command += ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command += ["--allow-root"]  # in a container everyone is root; the server listens locally only
    return command


def serve(command: list[str], *, folder: Path, environment: dict[str, str]) -> int:
    """Run a server in a folder until it is stopped; returns its exit code.

    Where it can, the server takes this process's place: no signal can end the one and leave the other.
    """
    if os.name != "nt":
        os.chdir(folder)
        os.execve(command[0], command, environment)
    server = subprocess.Popen(command, cwd=folder, env=environment)
    while True:
        try:
            return server.wait()
        except KeyboardInterrupt:
            pass  # the server has heard Ctrl-C too, and asks its own question


def require_free(port: int | None, command: str) -> None:
    """Raise CannotStart if the port that was asked for is taken; `command` is what `course` was called with."""
    if port is not None and not is_free(port):
        raise CannotStart(
            f"Port {port} is taken by another program. Leave out --port to use the next free one, or name another: "
            f"course {command} --port {port + 1}"
        )


def config_path() -> str:
    earlier = os.environ.get("JUPYTER_CONFIG_PATH")
    return os.pathsep.join([str(CONFIG), earlier] if earlier else [str(CONFIG)])


def is_free(port: int) -> bool:
    """True if a server can listen on this port of this machine."""
    with socket.socket() as listener:
        if os.name != "nt":  # where it would share a port that is in use
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
