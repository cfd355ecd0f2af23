#!/usr/bin/env python3
"""Set the course up, once, and start it:  python3 course.py lab

Makes the folder .venv beside this file, installs the course and what it needs there, then runs the `course`
command from it with the same arguments. Needs nothing but Python. A stamp, written last, marks a finished
set-up; without it the next start does not believe the folder and makes it again.

The file keeps to the syntax of Python 3.6, so that an older Python can say kindly that it is too old.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

FOLDER = os.path.dirname(os.path.realpath(__file__))
OLDEST, NEWEST = (3, 11), (3, 14)  # as in pyproject.toml
COMMANDS = {
    "lab": "open the course in JupyterLab",
    "run": "run lessons from top to bottom, without a browser",
    "test": "run every test of the course",
    "doctor": "check this machine and say what to repair",
    "train": "train a model that a lesson shows",
    "slides": "write the slides of a lesson as one file",
    "handout": "write the hand-outs of a lesson",
    "lecture": "teach from slides whose widgets recompute",
    "assign": "assignments: fetch, validate and submit one; release, collect and prove one",
    "grade": "grade the submissions of an assignment",
    "bench": "measure our layers and models against their peers",
}
# The extras of pyproject.toml, and what they are for
EXTRAS = {"dev": "the tests", "instructor": "grading", "dask": "a cluster", "lectures": "live lectures"}
STUDENTS = ([], ["fetch"], ["validate"], ["submit"], ["verify"], ["list"], ["--help"])  # `course assign` needs no extra
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CPU_INDEX_SECONDS = 4  # how long we wait for it before plain pip takes over
DISK_BYTES = {"cpu": 3e9, "plain": 9e9}  # the installed packages and the room that pip needs to unpack them


class Trouble(Exception):
    """A sentence that says what is wrong and what to do; shown without a traceback."""

    changed = False  # True if packages were being replaced when it came up


# ---------------------------------------------------------------------------------------------- this Python


def check_python(version=sys.version_info):
    """Raise Trouble if this Python is too old or too new, naming a better one where there is one."""
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return
    found, oldest, newest = dotted(version), dotted(OLDEST), dotted(NEWEST)
    age = "old" if tuple(version[:2]) < OLDEST else "new"
    better = installed_python()
    advice = (
        "Run it with the other Python on this machine: {} course.py lab".format(better)
        if better
        else "Install Python {} or newer (https://www.python.org/downloads) and run this again with it.".format(
            oldest
        )
    )
    raise Trouble(
        "Python {} is too {}: the course needs Python {} to {}. {}".format(found, age, oldest, newest, advice)
    )


def installed_python():
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        name = "python3.{}".format(minor)
        try:
            # A name alone proves nothing: pyenv, for one, puts names on the path that do not start.
            if shutil.which(name) and subprocess.run([name, "-c", ""], **SILENT).returncode == 0:
                return name
        except OSError:
            pass
    return None


def check_venv_module():
    """Raise Trouble where the distribution has split the module venv off Python."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise Trouble(
            "This Python cannot make virtual environments: its module venv is missing. On Debian or "
            "Ubuntu: sudo apt-get install python{}-venv - then run the same command again.".format(
                dotted(sys.version_info)
            )
        ) from None


def dotted(version):
    return "{}.{}".format(version[0], version[1])


# ------------------------------------------------------------------------------------------------- the stamp

VENV = os.path.join(FOLDER, ".venv")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PYTHON = os.path.join(VENV, SCRIPTS, "python.exe" if os.name == "nt" else "python")
LOCK, LOG, STAMP = (
    os.path.join(VENV, name) for name in ("course-setup.lock", "course-setup.log", "course-setup.json")
)
SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


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
    """What the last finished set-up was made for; None if there is none."""
    try:
        with open(STAMP, encoding="utf-8") as file:
            stamp = json.load(file)
        return stamp if {"folder", "dependencies", "extras", "python"} <= set(stamp) else None
    except (OSError, ValueError, TypeError):
        return None


def write_stamp(stamp):
    partial = STAMP + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(stamp, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, STAMP)  # atomic: a stamp is whole or absent


def remove_stamp():
    if os.path.exists(STAMP):
        os.remove(STAMP)


PROBE = """
import importlib.util, sys
names = ["torch", "numpy", "jupyterlab", "ipykernel", "typer", "course_lib"]
print("%d.%d" % sys.version_info[:2], *[name for name in names if importlib.util.find_spec(name) is None])
"""


def venv_python():
    """("3.11", [missing packages]) as .venv's own Python sees it, or (None, []) if that does not start."""
    try:
        answer = subprocess.run(
            [PYTHON, "-I", "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None, []
    words = answer.stdout.decode().split()
    return (words[0], words[1:]) if answer.returncode == 0 and words else (None, [])


def reason_to_redo(stamp):
    """Why the packages in .venv cannot be built upon, as a sentence; None if they can."""
    if stamp is None:
        return "An earlier set-up was not finished."
    if stamp["folder"] != FOLDER:
        return "The course was set up in another folder."
    version, missing = venv_python()
    if version is None:
        return "The Python in .venv does not start any more."
    if version != stamp["python"]:
        return "The Python in .venv is another one now."
    if missing:
        return "The packages in .venv are damaged: there is no {}.".format(missing[0])
    return None


def serves(stamp, want):
    """True if what is installed includes what is wanted."""
    return stamp["dependencies"] == want["dependencies"] and set(want["extras"]) <= set(stamp["extras"])


# ------------------------------------------------------------------------------------------------ the set-up


def set_up(extras):
    """Make .venv hold the course with these extras; a finished set-up costs one start of Python."""
    want = wanted(extras)
    stamp = read_stamp()
    if stamp and serves(stamp, want) and reason_to_redo(stamp) is None:
        return
    check_venv_module()
    with Lock():
        stamp = read_stamp()  # another set-up may have finished while we waited
        why = reason_to_redo(stamp)
        if why is None and serves(stamp, want):
            return
        started = time.time()
        if why:
            remove_stamp()
            if len(os.listdir(VENV)) > 1:
                say("{} Starting it afresh.".format(why))
            check_disk()
            make_venv()
        else:
            say(
                "The list of packages has changed: updating .venv."
                if stamp["dependencies"] != want["dependencies"]
                else "Adding the packages for the tests."
            )
            want["extras"] = sorted(set(want["extras"]) | set(stamp["extras"]))
        install(want["extras"], earlier=stamp)
        version, missing = venv_python()
        if version is None or missing:
            raise NotInstalled(
                "The set-up ended without {}. Read {}".format(", ".join(missing) or "a Python", LOG)
            )
        write_stamp(dict(want, python=version))
        say("Ready after {:.0f} s.".format(time.time() - started))


def make_venv():
    say("1/3 Making .venv in {}".format(FOLDER))
    for name in os.listdir(VENV):
        path = os.path.join(VENV, name)
        if path == LOCK:
            continue  # held by us: whoever waits, waits on this very file
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
    # Not sys.executable: that may be the very Python in .venv that was just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    run_logged([base, "-m", "venv", VENV], "Python could not make the virtual environment")


def install(extras, earlier):
    """Install PyTorch, then the course; bring the earlier stamp back if a failure changed nothing."""
    remove_stamp()
    target = "{}[{}]".format(FOLDER, ",".join(extras)) if extras else FOLDER
    new_torch = False
    try:
        say("2/3 Installing PyTorch")
        new_torch = install_torch()
        say(
            "3/3 Installing the course and its packages{}".format(
                " (with those for {})".format(" and ".join(EXTRAS[extra] for extra in extras)) if extras else ""
            )
        )
        pip("install", "--constraint", "constraints.txt", "--editable", target)
    except Trouble as trouble:
        if earlier and not new_torch and not trouble.changed:
            write_stamp(earlier)  # an earlier set-up is as good as it was
        raise


def install_torch():
    """Take the CPU build from PyTorch's own index: on Linux plain pip brings gigabytes of CUDA libraries.

    Returns True if it installed something. What torch depends on comes in the next step, from the usual index.
    """
    torch = ["install", "--no-deps", "--constraint", "constraints.txt", "torch"]
    if not sys.platform.startswith("linux"):
        return False  # plain pip, in the next step, brings the right build
    try:
        return changed(pip(*torch, "--no-index"))  # it is there, or a local folder of wheels has it
    except NotInstalled:
        pass
    if os.environ.get("COURSE_CUDA") == "1" or has_gpu():
        say("    the build for NVIDIA GPUs, several GB")
        return changed(pip(*torch))
    if answers(CPU_INDEX + "/torch/", CPU_INDEX_SECONDS):
        say("    the build for CPUs, about 200 MB (COURSE_CUDA=1 asks for the one with CUDA)")
        try:
            return changed(pip(*torch, "--index-url", CPU_INDEX))
        except NotInstalled:
            pass
    say("    PyTorch's index of CPU builds does not answer; asking pip's usual one (may be several GB)")
    return changed(pip(*torch))


def has_gpu():
    try:
        return bool(shutil.which("nvidia-smi")) and subprocess.run(["nvidia-smi"], **SILENT).returncode == 0
    except OSError:
        return False


def answers(address, seconds):
    """True if the address answers in time; name look-ups, which know no time-out, are bounded too."""
    reached = []

    def ask():
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=seconds).close()
            reached.append(True)
        except (OSError, ValueError):
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(reached)


# ------------------------------------------------------------------------------------- programs that we start


class NotInstalled(Trouble):
    pass


class NoNetwork(NotInstalled):
    pass


def pip(*arguments):
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input"] + list(arguments)
    try:
        return run_logged(command, "pip could not install the packages")
    except NoNetwork:
        raise
    except NotInstalled as trouble:
        # Without a network pip may say no more than that it found no package: so we look ourselves.
        if "--no-index" in arguments or trouble.changed or index_answers():
            raise
        raise NoNetwork(no_network()) from None


def index_answers():
    """True if the address that pip asks for packages answers, or pip does not say which it is."""
    address = os.environ.get("PIP_INDEX_URL")
    if not address:
        default = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
        try:
            address = subprocess.check_output([PYTHON, "-c", default], universal_newlines=True).strip()
        except (OSError, subprocess.CalledProcessError):
            return True
    return answers(address, CPU_INDEX_SECONDS)


def changed(output):
    """True if pip, by its own words, began to change the installed packages."""
    return "Installing collected packages" in output


def run_logged(command, failure):
    """Run a command of the set-up and return its output, kept in the log too; raise Trouble if it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    environment.update(PIP_USER="0", PYTHONUNBUFFERED="1", PYTHONIOENCODING="utf-8")
    lines = []
    # The child inherits the lock: if we are killed, the next set-up waits until the child has ended too.
    inherited = () if os.name == "nt" else (Lock.held.fileno(),)
    with open(LOG, "a", encoding="utf-8", errors="replace") as log:
        log.write("$ {}\n".format(" ".join(command)))
        log.flush()
        child = subprocess.Popen(
            command,
            cwd=FOLDER,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=inherited,
        )
        try:
            for line in child.stdout:
                line = line.decode("utf-8", "replace")
                log.write(line)
                log.flush()
                lines.append(line)
                show_passing(line)
            child.wait()
        except BaseException:
            child.terminate()
            child.wait()
            raise
        finally:
            show_passing("")
    output = "".join(lines)
    if child.returncode != 0:
        trouble = cause(output, failure)
        trouble.changed = changed(output)
        raise trouble
    return output


def cause(output, failure):
    """The Trouble that the output of a failed command tells of."""
    log = "The full log: {}".format(LOG)
    if re.search(r"No space left|Errno 28|not enough space|WinError 112|Disk quota", output):
        return Trouble(full_disk(log))
    if re.search(r"CERTIFICATE_VERIFY_FAILED", output):
        return NoNetwork(
            "The connection to the package index is not trusted: its certificate could not be checked. Behind "
            "a proxy that inspects traffic, name its certificate in PIP_CERT and run the same command again. " + log
        )
    if re.search(
        r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ReadTimeout|Connection broken|ProxyError"
        r"|Max retries exceeded|connection broken by|getaddrinfo failed|Network is unreachable",
        output,
    ):
        return NoNetwork(no_network())
    if re.search(r"Permission denied|Errno 13|WinError 5\b", output):
        return Trouble(not_writable(VENV) + " " + log)
    errors = [line.strip() for line in output.splitlines() if re.match(r"\s*(ERROR|Error|error)", line)]
    last = errors[-1] if errors else (output.strip().splitlines() or ["no message"])[-1].strip()
    return NotInstalled(
        "{}: {}. Run the same command again; if it fails again, read {}".format(failure, last, LOG)
    )


def show_passing(line):
    """On a terminal, show what pip is doing on one line that the next one overwrites."""
    if sys.stdout.isatty():
        words = line.split()
        if not words or words[0] in ("Collecting", "Downloading", "Installing", "Building"):
            text = " ".join(words)
            width = shutil.get_terminal_size().columns - 6
            sys.stdout.write("\r\033[K" + ("    " + text[:width] if text else ""))
            sys.stdout.flush()


def say(text):
    print(text, flush=True)


# ------------------------------------------------------------------------------------------- disk and the lock


def check_disk():
    plain = os.environ.get("COURSE_CUDA") == "1" or (sys.platform.startswith("linux") and has_gpu())
    needed = DISK_BYTES["plain" if plain else "cpu"]
    free = shutil.disk_usage(FOLDER).free
    if free < needed:
        raise Trouble(
            full_disk(
                "{:.1f} GB are free, and the set-up needs about {:.0f} GB.".format(free / 1e9, needed / 1e9)
            )
        )


def no_network():
    return (
        "No network: the first set-up has to download the packages (about 600 MB), and the package index cannot be "
        "reached. Connect to the internet and run the same command again; afterwards the course works offline. "
        "The full log: {}".format(LOG)
    )


def full_disk(detail):
    return (
        "No space left on the disk of {}. Free some space, or copy the course to a larger disk, and run the "
        "same command again. {}".format(FOLDER, detail)
    )


def not_writable(path):
    open_files = " If JupyterLab runs from there, close it first." if os.name == "nt" else ""
    return (
        "No permission to write to {}. Copy the course to a folder of your own, for example in your home folder, "
        "and run the same command there.{}".format(path, open_files)
    )


class Lock:
    """One set-up at a time in a folder; the system releases it when its holders end, however they end."""

    held = None

    def __enter__(self):
        try:
            os.makedirs(VENV, exist_ok=True)
            if os.listdir(VENV) and not os.path.exists(LOCK):
                raise Trouble(
                    "The folder {} was not made by course.py, so it is left alone. Rename or delete it, then run "
                    "the same command again.".format(VENV)
                )
            self.file = open(LOCK, "a+")
        except FileExistsError:
            raise Trouble(
                "{} is a file. Rename or delete it, then run the same command again.".format(VENV)
            ) from None
        waiting = False
        while not self.take():
            if not waiting:
                say("Another set-up is at work in this folder: waiting for it to end.")
                waiting = True
            time.sleep(0.2)
        Lock.held = self.file
        return self

    def take(self):
        try:
            if os.name == "nt":
                import msvcrt

                self.file.seek(0)
                msvcrt.locking(self.file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                raise
            return False

    def __exit__(self, *exception):
        Lock.held = None
        self.file.close()


# ------------------------------------------------------------------------------------------------------ start


def start(arguments):
    """Become the `course` command of .venv; returns its exit code where a process cannot be replaced."""
    command = [PYTHON, "-P", "-m", "course_lib.cli"] + arguments
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONPATH")}
    sys.stdout.flush()
    if os.name != "nt":
        os.execve(PYTHON, command, environment)
    child = subprocess.Popen(command, env=environment)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            pass  # the child has heard Ctrl-C too, and ends in its own way


def extras(arguments):
    """What these arguments need besides the course itself; the names are those of pyproject.toml."""
    if arguments[0] == "test":
        return ["dev"]
    instructor = arguments[0] == "grade" or (arguments[0] == "assign" and arguments[1:2] not in STUDENTS)
    cluster = any(argument.split("=")[0] == "--cluster" for argument in arguments[1:])
    live = arguments[0] == "lecture"
    return ["instructor"] * instructor + ["dask"] * cluster + ["lectures"] * live


def usage():
    lines = ["  python3 course.py {:8} {}".format(name, text) for name, text in COMMANDS.items()]
    return "\n".join(
        ["Sets the course up in the folder .venv, the first time, and starts it:", ""]
        + lines
        + ["", "`python3 course.py lab --help` and its like say more about each."]
    )


def main(arguments):
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # Python 3.7
            stream.reconfigure(errors="replace")  # a path may hold letters that a terminal cannot show
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        say(usage())
        return 0
    try:
        check_python()
        if arguments[0] not in COMMANDS:
            raise Trouble(
                "There is no command {!r}. The commands are: {}.".format(arguments[0], ", ".join(COMMANDS))
            )
        set_up(extras=extras(arguments))
        return start(arguments)
    except Trouble as trouble:
        message = str(trouble)
    except KeyboardInterrupt:
        message = "Stopped. Run the same command again to go on: it finds out by itself what is left to do."
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
            message = full_disk(str(error))
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message = not_writable(error.filename or FOLDER)
        else:
            message = "The set-up failed: {}. Run the same command again.".format(error)
    sys.stderr.write("\n{}\n".format(message))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
