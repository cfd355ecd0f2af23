#!/usr/bin/env python3
"""Set the course up, once, and start it:  python3 course.py lab

Makes the folder .venv beside this file, installs the course and what it needs there, then runs the `course` command
from it with the same arguments. Needs nothing but Python. A stamp, written last, marks a finished set-up; without it
the next start does not believe the folder and makes it again.

The file keeps to the syntax of Python 3.6, so that an older Python can say kindly that it is too old.
"""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

FOLDER = os.path.dirname(os.path.realpath(__file__))
OLDEST, NEWEST = (3, 11), (3, 14)  # as in pyproject.toml
COMMANDS = "lab run test doctor train data slides handout lecture site assign class exam syllabus grade bench".split()
STUDENTS = ([], ["fetch"], ["validate"], ["submit"], ["verify"], ["list"], ["--help"])  # `course assign` needs no extra
SCALE = ("--device", "--precision", "--compile", "--accumulate")  # of `course train`: through Lightning Fabric
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_INDEX_SECONDS = 4  # how long we wait for it before plain pip takes over
PROGRESS_SECONDS = 20  # between two lines that say how far pip is; a terminal shows it each second
DISK_BYTES = {"cpu": 3e9, "cuda": 9e9}  # the installed packages and the room that pip needs to unpack them

WINDOWS = os.name == "nt"
VENV = os.path.join(FOLDER, ".venv")
PYTHON = os.path.join(VENV, "Scripts", "python.exe") if WINDOWS else os.path.join(VENV, "bin", "python")
INSTALLING = "Installing collected packages:"  # the last line of pip before it installs them
LOCK, LOG, STAMP = (os.path.join(VENV, "course-setup" + end) for end in (".lock", ".log", ".json"))
FULL_DISK = (
    f"No space left on the disk of {FOLDER}. Free some space, or copy the course to a larger disk, and run the same "
    "command again. "
)
USAGE = f"""Sets the course up in the folder .venv, the first time, and then

  python3 course.py lab      opens it in JupyterLab
  python3 course.py test     runs every test

All commands: {", ".join(COMMANDS)}. Each says more with --help."""


class Trouble(Exception):
    """A sentence that says what is wrong and what to do; shown without a traceback."""


# ---------------------------------------------------------------------------------------------- this Python


def check_python(version=sys.version_info):
    """Raise Trouble if this Python is too old or too new, naming a better one where there is one."""
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return
    oldest, found, newest = ("{}.{}".format(*numbers) for numbers in (OLDEST, version, NEWEST))
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    better = next(filter(shutil.which, names), "one from https://www.python.org/downloads")
    age = "old" if tuple(version[:2]) < OLDEST else "new"
    raise Trouble(
        f"Python {found} is too {age}: the course needs Python {oldest} to {newest}. Run course.py with {better}."
    )


def check_venv_module():
    """Raise Trouble where the distribution has split the module venv off Python."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise Trouble(
            "This Python cannot make virtual environments: its module venv is missing. On Debian or Ubuntu: sudo "
            "apt-get install python{}.{}-venv - then run the same command again.".format(*sys.version_info)
        ) from None


# ------------------------------------------------------------------------------------------------- the stamp


def wanted(extras):
    """What a finished set-up must have been made for: the dependencies, the extras and this folder."""
    import tomllib  # Python 3.11: check_python comes first

    with open(os.path.join(FOLDER, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)["project"]
    names = ("dependencies", "optional-dependencies", "requires-python", "scripts")
    parts = json.dumps([project.get(name) for name in names], sort_keys=True).encode()
    with open(os.path.join(FOLDER, "constraints.txt"), "rb") as file:
        parts += file.read()
    return {"folder": FOLDER, "dependencies": hashlib.sha256(parts).hexdigest(), "extras": sorted(extras)}


def read_stamp():
    """What the last finished set-up was made for; nothing if there was none."""
    try:
        with open(STAMP, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def remove_stamp():
    if os.path.exists(STAMP):
        os.remove(STAMP)


def venv_python():
    """The version of .venv's own Python, such as "3.11"; "" if it does not start or lacks a package."""
    names = "torch numpy jupyterlab ipykernel typer course_lib".split()
    complete = f"all(map(importlib.util.find_spec, {names}))"
    probe = f"import importlib.util, sys; print('%d.%d' % sys.version_info[:2] if {complete} else '')"
    try:
        answer = subprocess.run([PYTHON, "-I", "-c", probe], stdin=subprocess.DEVNULL, capture_output=True)
    except OSError:
        return ""
    return answer.stdout.decode().strip()


def is_sound(stamp):
    """True if .venv can be built upon: a set-up of this folder was finished, and its packages are still there."""
    return stamp.get("folder") == FOLDER and stamp.get("python") == venv_python()


def serves(stamp, want):
    """True if what was installed includes what is wanted."""
    return stamp.get("dependencies") == want["dependencies"] and set(want["extras"]) <= set(stamp["extras"])


# ------------------------------------------------------------------------------------------------ the set-up


def set_up(extras):
    """Make .venv hold the course with these extras; a finished set-up costs one start of Python."""
    want, stamp = wanted(extras), read_stamp()
    if serves(stamp, want) and is_sound(stamp):
        return
    check_venv_module()
    with lock():
        stamp = read_stamp()  # another set-up may have finished while we waited
        sound = is_sound(stamp)
        if sound and serves(stamp, want):
            return
        started = time.time()
        if sound:
            say("The list of packages has changed, or this command needs more of them: updating .venv.")
            want["extras"] = sorted(set(want["extras"]) | set(stamp["extras"]))
        else:
            remove_stamp()
            if len(os.listdir(VENV)) > 1:
                say("The set-up in .venv is not finished, or not sound any more. Starting it afresh.")
            check_disk()
            make_venv()
        install(want["extras"])
        want["python"] = venv_python()
        if not want["python"]:
            raise Trouble(f"The set-up ended, but packages are missing. Run the same command again, or read {LOG}")
        with open(STAMP, "w", encoding="utf-8") as file:
            json.dump(want, file, indent=1)  # half a stamp cannot be read, and counts as none
        say(f"Ready after {time.time() - started:.0f} s.")


def check_disk():
    needed, free = DISK_BYTES["cuda" if wants_cuda() else "cpu"], shutil.disk_usage(FOLDER).free
    if free < needed:
        raise Trouble(FULL_DISK + f"{free / 1e9:.1f} GB are free, and the set-up needs about {needed / 1e9:.0f} GB.")


def make_venv():
    say(f"1/3 Making .venv in {FOLDER}")
    for entry in os.scandir(VENV):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        elif entry.path != LOCK:  # held by us: whoever waits, waits on this very file
            os.remove(entry.path)
    # Not sys.executable: that may be the very Python in .venv that was just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    run_logged([base, "-m", "venv", VENV], "Python could not make the virtual environment")


def install(extras):
    say("2/3 Installing PyTorch")
    install_torch()
    say("3/3 Installing the course and its packages" + (f" (with {', '.join(extras)})" if extras else ""))
    pip("--editable", f"{FOLDER}[{','.join(extras)}]" if extras else FOLDER)


def install_torch():
    """Take the CPU build from PyTorch's own index: on Linux plain pip brings gigabytes of CUDA libraries."""
    if not sys.platform.startswith("linux"):
        return  # plain pip, in the next step, brings the right build
    try:
        return pip("--no-deps", "torch", "--no-index")  # it is there, or a local folder of wheels has it
    except Trouble:
        pass
    if wants_cuda():
        say("    the build for NVIDIA GPUs, several GB")
    elif answers(CPU_INDEX + "/torch/", CPU_INDEX_SECONDS):
        say("    the build for CPUs, about 200 MB (COURSE_CUDA=1 asks for the one with CUDA)")
        try:
            return pip("--no-deps", "torch", "--index-url", CPU_INDEX)
        except Trouble:
            say("    it could not be had there; asking pip's usual index (may be several GB)")
    else:
        say("    PyTorch's index of CPU builds does not answer; asking pip's usual one (may be several GB)")
    pip("--no-deps", "torch")  # what it depends on comes in the next step


def wants_cuda():
    """True if CUDA was asked for, or on Linux a GPU is there to use it."""
    smi = sys.platform.startswith("linux") and shutil.which("nvidia-smi")
    has_gpu = smi and subprocess.run([smi], capture_output=True).returncode == 0
    return has_gpu or os.environ.get("COURSE_CUDA") == "1"


def answers(address, seconds):
    """True if the address answers in time. A process of its own: a look-up of a name knows no time-out."""
    ask = "import sys, urllib.request as web; web.urlopen(web.Request(sys.argv[1], method='HEAD'))"
    try:
        return subprocess.run([PYTHON, "-c", ask, address], timeout=seconds, capture_output=True).returncode == 0
    except subprocess.TimeoutExpired:
        return False


# ------------------------------------------------------------------------------------- programs that we start


def pip(*arguments):
    options = ["--disable-pip-version-check", "--no-input", "install", "--constraint", "constraints.txt"]
    run_logged([PYTHON, "-m", "pip", *options, *arguments], "pip could not install the packages")


def own_environment():
    """This environment without what makes another Python look elsewhere for its modules."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}


def run_logged(command, failure):
    """Run a command of the set-up, its output kept in the log; raise Trouble if it fails."""
    lines = []
    with open(LOG, "a", encoding="utf-8", errors="replace") as log:
        log.write(f"$ {' '.join(command)}\n")
        child = subprocess.Popen(
            command,
            cwd=FOLDER,
            env=dict(own_environment(), PIP_USER="0", PYTHONUNBUFFERED="1", PYTHONIOENCODING="utf-8"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            close_fds=False,  # the child holds the lock, too
        )
        try:
            with progress(lines):
                for line in child.stdout:
                    lines.append(line.decode("utf-8", "replace"))
                    if INSTALLING in lines[-1]:
                        remove_stamp()  # from here on .venv is neither the old one nor the new one
                    log.write(lines[-1])
                    log.flush()
                child.wait()
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if child.returncode != 0:
        raise cause("".join(lines), failure)


def cause(output, failure):
    """The Trouble that the output of a failed command, or an error of the system, tells of."""
    log = f"The full log: {LOG}"
    if re.search(r"No space left|Errno 28|not enough space|WinError 112|Disk quota", output):
        return Trouble(FULL_DISK + log)
    if "CERTIFICATE_VERIFY_FAILED" in output:
        return Trouble(
            "The package index is not trusted: its certificate could not be checked. Behind a proxy that inspects "
            f"traffic, name its certificate in PIP_CERT and run the same command again. {log}"
        )
    # Where no index can be reached, there is in pip's words no version of anything.
    if re.search(r"ConnectionError|ResolutionError|Timeout|Proxy|Max retries|getaddrinfo|from versions: none", output):
        return Trouble(
            "No network: the first set-up has to download the packages (about 600 MB), and the package index cannot be "
            f"reached. Connect to the internet and run the same command again; afterwards all works offline. {log}"
        )
    if re.search(r"Permission denied|Errno 13|WinError 5\b|not permitted|Read-only file system", output):
        return Trouble(
            f"No permission to write to {FOLDER}. Close JupyterLab if it runs from there, or copy the course to a "
            f"folder of your own, for example in your home folder, and run the same command there. {log}"
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no message"]
    last = next((line for line in reversed(lines) if line.lower().startswith("error")), lines[-1])
    return Trouble(f"{failure}: {last}. Run the same command again; if it fails again, read {LOG}")


@contextlib.contextmanager
def progress(lines):
    """While a command adds to these lines, say what it is doing: a terminal shows one line that changes."""
    started, ended, terminal = time.time(), threading.Event(), sys.stdout.isatty()

    def tell():
        while not ended.wait(1 if terminal else PROGRESS_SECONDS):
            minutes, seconds = divmod(int(time.time() - started), 60)
            text = f"    {minutes}:{seconds:02d}  {doing(lines[-1] if lines else '')}".rstrip()
            if terminal:
                print("\r\033[K" + text[: shutil.get_terminal_size().columns - 2], end="", flush=True)
            else:
                say(text)
        if terminal:
            print("\r\033[K", end="", flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def doing(line):
    """What pip does when this is the last line that it wrote; it is silent while it installs what it has fetched."""
    if INSTALLING not in line:
        return " ".join(line.split())
    names = {re.sub(r"[-_.]+", "_", name.strip()).lower() for name in line.split(":", 1)[1].split(",")}
    places = [os.path.join(glob.escape(VENV), *parts) for parts in (("Lib",), ("lib", "python*"))]
    folders = [path for place in places for path in glob.glob(os.path.join(place, "site-packages", "*.dist-info"))]
    there = {re.sub(r"[-_.]+", "_", os.path.basename(path).split("-")[0]).lower() for path in folders}
    return f"{len(names & there)} of {len(names)} packages installed"


def say(text):
    print(text, flush=True)


@contextlib.contextmanager
def lock():
    """One set-up at a time in a folder; the system releases the lock when its holders end, however they end."""
    if os.path.isfile(VENV):
        raise Trouble(f"{VENV} is a file. Rename or delete it, then run the same command again.")
    os.makedirs(VENV, exist_ok=True)
    if os.listdir(VENV) and not os.path.exists(LOCK):
        raise Trouble(f"{VENV} was not made by course.py. Rename or delete it, then run the same command again.")
    with open(LOCK, "a+") as file:
        if not take(file):
            say("Another set-up is at work in this folder: waiting for it to end.")
            while not take(file):
                time.sleep(0.2)
        os.set_inheritable(file.fileno(), True)  # if we are killed, others wait until our children have ended too
        yield


def take(file):
    """Lock an open file for this process and its children; False if another one has it."""
    try:
        if WINDOWS:
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


# ------------------------------------------------------------------------------------------------------ start


def start(arguments):
    """Become the `course` command of .venv; returns its exit code where a process cannot be replaced."""
    command = [PYTHON, "-P", "-m", "course_lib.cli", *arguments]
    sys.stdout.flush()
    if not WINDOWS:
        os.execve(PYTHON, command, own_environment())
    child = subprocess.Popen(command, env=own_environment())
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            pass  # the child has heard Ctrl-C too, and ends in its own way


def uses(arguments, option):
    return any(argument.split("=")[0] == option for argument in arguments)


def extras(arguments):
    """What these arguments need besides the course itself; the names are those of pyproject.toml."""
    command, rest = arguments[0], arguments[1:]
    if command == "grade" or (command == "assign" and rest[:1] not in STUDENTS):
        return ["instructor"]
    if command == "train":
        return ["data"] * uses(rest, "--data") + ["scale"] * any(uses(rest, option) for option in SCALE)
    if command == "data" and rest[:1] == ["fetch"]:
        return ["data"]
    if command == "bench":
        return {"grading": ["instructor"], "language": ["bench"], "vision": ["bench"]}.get("".join(rest[:1]), [])
    if command == "slides":
        return ["lectures"] * uses(rest, "--pptx")
    return {"test": ["dev"], "lecture": ["lectures"], "site": ["site"]}.get(command, [])


def main(arguments):
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # Python 3.7
            stream.reconfigure(errors="replace")  # a path may hold letters that a terminal cannot show
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        say(USAGE)
        return 0
    try:
        check_python()
        if arguments[0] not in COMMANDS:
            raise Trouble(f"There is no command {arguments[0]!r}. The commands are: {', '.join(COMMANDS)}.")
        set_up(extras(arguments))
        return start(arguments)
    except Trouble as trouble:
        problem = trouble
    except KeyboardInterrupt:
        problem = "Stopped. Run the same command again to go on: it finds out by itself what is left to do."
    except OSError as error:
        problem = cause(str(error), "The set-up failed")
    sys.stderr.write(f"\n{problem}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
