import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import course_lib
from course_lib.grading import bubblewrap
from course_lib.grading.sandbox import Zygote

ORDINARY = 60_901  # a user that is not root


def test_outermost_folders_hold_the_others(tmp_path):
    for name in ("a/b/c", "ab", "d"):
        (tmp_path / name).mkdir(parents=True)
    paths = [tmp_path / name for name in ("a/b", "a", "a/b/c", "ab", "missing", "a")]
    assert bubblewrap.outermost(paths) == [tmp_path / "a", tmp_path / "ab"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "lib").symlink_to("usr/lib")
    assert bubblewrap.bind(tmp_path / "lib") == ["--symlink", "usr/lib", str(tmp_path / "lib")]


def test_folders_above_are_open_to_all():
    assert bubblewrap.parents(Path("/a/b/c")) == ["--perms", "0755", "--dir", "/a", "--perms", "0755", "--dir", "/a/b"]


def test_what_is_ours_or_the_instructors_is_covered_where_it_would_be_visible(tmp_path, monkeypatch):
    visible, elsewhere = tmp_path / "lib", tmp_path / "home"
    folders = {name: visible / name for name in ("course_lib", "notebooks", "assignments", "exchange", "hidden")}
    for folder in (*folders.values(), elsewhere):
        folder.mkdir(parents=True)
    (folders["course_lib"] / "__init__.py").touch()
    link = tmp_path / "link"
    link.symlink_to(folders["hidden"])
    monkeypatch.setattr(course_lib, "__file__", str(folders["course_lib"] / "__init__.py"))
    monkeypatch.setattr(bubblewrap, "EXCHANGES", [str(folders["exchange"])])
    monkeypatch.setenv("COURSE_ASSIGNMENTS", str(folders["assignments"]))
    shown_as = tmp_path / "shown as"  # as /lib is /usr/lib on most systems
    shown_as.symlink_to(visible)
    for shown in (visible, shown_as):
        assert set(bubblewrap.covered([link, elsewhere, tmp_path / "missing"], [shown])) == set(folders.values())


def test_a_folder_above_what_is_visible_is_not_covered(tmp_path):
    visible = tmp_path / "course" / ".venv" / "lib"
    visible.mkdir(parents=True)
    assert tmp_path / "course" not in bubblewrap.covered([tmp_path / "course"], [visible])


def test_the_interpreter_is_the_file_behind_all_links(tmp_path, monkeypatch):
    (tmp_path / "python3.11").touch()
    (tmp_path / "python3").symlink_to("python3.11")
    monkeypatch.setattr(sys, "_base_executable", str(tmp_path / "python3"))
    assert bubblewrap.interpreter() == tmp_path / "python3.11"


def test_each_library_is_inside_wherever_it_lies(tmp_path, monkeypatch):
    def find(name):
        (tmp_path / name).mkdir()
        return SimpleNamespace(origin=tmp_path / name / name / "__init__.py")

    monkeypatch.setattr(bubblewrap, "find_spec", find)
    assert {tmp_path / name for name in ("torch", "numpy", "einops")} <= set(bubblewrap.library_folders())


def test_what_is_covered_comes_after_what_shows_it(tmp_path, monkeypatch):
    torch_folder = bubblewrap.library_folders()[0]
    options = bubblewrap.command("trial", "3", hidden=[torch_folder / "torch"])
    cover = options.index(str(bubblewrap.inside(torch_folder / "torch")))
    assert options[cover - 1] == "--tmpfs"
    assert options[cover + 1 : cover + 3] == ["--remount-ro", options[cover]]
    assert "--ro-bind" not in options[cover:]


def test_nothing_of_the_disk_is_writable_inside():
    options = bubblewrap.command("trial", "3")
    assert not {"--bind", "--bind-try", "--dev", "--overlay"} & set(options)
    assert options[options.index("--dev-bind") + 1] == "/dev/null"
    shown = {options[at + 1] for at, option in enumerate(options) if option in ("--ro-bind", "--dev-bind")}
    sealed = {options[at + 1] for at, option in enumerate(options) if option == "--remount-ro"}
    assert {"/", "/dev"} <= sealed and "--clearenv" in options
    assert not shown & {"/", "/usr", "/etc", "/home", "/root", "/var", "/tmp", "/usr/local", "/sys", "/dev"}


def test_memory_in_huge_pages_is_to_be_had_inside_too():
    """A zygote in small pages takes several times as long to fork a box."""
    options = bubblewrap.command("trial", "3")
    assert options[options.index("GLIBC_TUNABLES") + 1] == "glibc.malloc.hugetlb=1"
    if bubblewrap.HUGE_PAGES.exists():
        assert options[options.index(str(bubblewrap.HUGE_PAGES), options.index("--ro-bind")) - 1] == "--ro-bind"


def test_the_sandbox_has_all_namespaces_of_its_own_and_no_terminal():
    wanted = {f"--unshare-{kind}" for kind in ("pid", "net", "ipc", "uts", "cgroup-try")}
    assert wanted | {"--new-session"} <= set(bubblewrap.command("trial", "3"))


def test_root_gives_its_privileges_up(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 0)
    options = bubblewrap.command("trial", "3")
    assert "--unshare-user-try" not in options
    inside = options[options.index("--") + 1 :]
    assert inside[0].endswith("/setpriv")
    assert {"--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--clear-groups"} < set(inside)
    user, group = (int(inside[inside.index(option) + 1]) for option in ("--reuid", "--regid"))
    assert bubblewrap.FIRST_USER <= user == group


def test_sandboxes_of_different_graders_are_different_users(monkeypatch):
    """The kernel counts processes by user, and a user may send signals to its own."""
    monkeypatch.setattr(os, "getuid", lambda: 0)
    users = set()
    for process in (7, 8):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        options = bubblewrap.command("trial", "3")
        users.add(options[options.index("--reuid") + 1])
    assert len(users) == 2


def test_a_python_in_tmp_is_told(monkeypatch):
    assert bubblewrap.misplaced() is None
    monkeypatch.setattr(bubblewrap, "interpreter", lambda: Path("/tmp/python/bin/python3"))
    assert bubblewrap.misplaced() == Path("/tmp/python/bin/python3")
    monkeypatch.undo()
    monkeypatch.setattr(bubblewrap, "standard_library", lambda: Path("/tmp/python/lib"))
    assert bubblewrap.misplaced() == Path("/tmp/python/lib")


@pytest.mark.needs("sandbox")
def test_a_virtual_environment_in_tmp_is_shown_under_another_name():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        packages = Path(folder, "site-packages")
        (packages / "answer").mkdir(parents=True)
        (packages / "answer" / "__init__.py").write_text("ANSWER = 42")
        secret = packages / "secret"
        secret.mkdir()
        (secret / "__init__.py").write_text("ANSWER = 42")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "path", [*sys.path, str(packages)])
            with Zygote(hidden=[secret]) as zygote, zygote.box() as box:
                assert box.load("from answer import ANSWER") is None
                assert box.load("from secret import ANSWER") == "ImportError"
                assert box.load(f"import os; assert not os.path.exists({folder!r})") is None


@pytest.mark.needs("sandbox")
def test_an_ordinary_user_gets_the_same_sandbox(monkeypatch):
    user = {}
    if os.getuid() == 0:  # otherwise we are one
        monkeypatch.setattr(os, "getuid", lambda: ORDINARY)
        user = {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
        monkeypatch.setattr(bubblewrap, "interpreter", readable_interpreter)
        monkeypatch.setattr(bubblewrap, "standard_library", lambda: Path("/usr/lib"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        number = theirs.fileno()
        command = bubblewrap.command("trial", str(number))
        run = subprocess.run(command, env={}, pass_fds=[number], capture_output=True, text=True, timeout=60, **user)
        theirs.close()
        assert ours.recv(64) == b"ready", run.stderr


def readable_interpreter():
    """The system's: the one that runs the tests may lie in root's home."""
    system = Path("/usr/bin/python3").resolve()
    if not system.exists():
        pytest.skip("root's own Python cannot be read by others, and the system has none")
    return system
