"""What a student's code finds inside a box, wall by wall, however the box was built."""

import os
import platform
import secrets
from pathlib import Path

import psutil
import pytest

from course_lib.grading.boxed.syscalls import MACHINES, REFUSED
from course_lib.grading.sandbox import Limits

pytestmark = pytest.mark.needs("sandbox")

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def run(box, source, *arguments):
    """What the function `f` of a cell returns."""
    assert box.load(source) is None
    return box.call("f", *arguments, seconds=20)


def outside(box):
    """The first process of a box as this machine sees it, known by a name that the box gave itself."""
    name = secrets.token_hex(6)
    run(box, "import ctypes\ndef f(name): ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)", name)
    (found,) = [process for process in psutil.Process().children(recursive=True) if process.name() == name]
    return found.pid


def test_each_process_of_a_box_has_hard_limits(zygote):
    limits = Limits(memory=3 << 29, cpu_seconds=7.5, processes=9, disk=5 << 20, open_files=77)
    wanted = {
        "AS": (3 << 29, 3 << 29),  # bytes
        "CORE": (0, 0),
        "CPU": (8, 9),  # seconds; the first is a warning
        "FSIZE": (5 << 20, 5 << 20),  # bytes
        "MSGQUEUE": (0, 0),
        "NOFILE": (77, 77),
        "NPROC": (9, 9),
        "SIGPENDING": (36, 36),
    }
    source = """
import resource
def f(names): return {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names}
"""
    with zygote.box(limits) as box:
        assert run(box, source, list(wanted)) == wanted


@pytest.mark.parametrize("kind", NAMESPACES)
def test_no_namespace_of_a_box_is_ours(box, kind):
    """Nor is one of the processes that its own comes from: what they could reach would be one hole away."""

    def namespace(process, kind=kind):
        return os.readlink(f"/proc/{process}/ns/{kind}")

    first = outside(box)
    assert namespace(first) != namespace("self")
    family = {process.pid for process in psutil.Process().children(recursive=True)}
    inside = [process.pid for process in psutil.Process(first).parents() if process.pid in family]
    inside = [process for process in inside if namespace(process, "mnt") != namespace("self", "mnt")]
    assert len(inside) >= 2  # the warden and what forked it
    if kind != "user":  # root's sandbox has none, each box has
        assert namespace("self") not in map(namespace, inside)


def test_a_box_is_nobody_as_this_machine_sees_it_too(box):
    process = psutil.Process(outside(box))
    assert 0 not in {*process.uids(), *process.gids()}
    if os.getuid() == 0:  # others cannot leave their groups
        assert "Groups:\t \n" in Path(f"/proc/{process.pid}/status").read_text()


def test_boxes_share_no_namespace_by_which_one_could_reach_another(zygote):
    with zygote.box() as one, zygote.box() as other:
        processes = outside(one), outside(other)
        for kind in ("ipc", "mnt", "pid", "user"):
            assert len({os.readlink(f"/proc/{process}/ns/{kind}") for process in processes}) == 2, kind


def test_what_a_box_mounts_for_itself_is_seen_by_no_other(zygote):
    with zygote.box() as one, zygote.box() as other:
        run(one, "def f():\n    for folder in ('/tmp', '/dev/shm'): open(folder + '/mine', 'w').close()")
        assert run(other, "import os\ndef f(): return os.listdir('/tmp') + os.listdir('/dev/shm')") == []
        assert not Path("/tmp/mine").exists() and not Path("/dev/shm/mine").exists()


def test_files_of_a_box_are_its_own_and_no_way_to_privileges_or_devices(box):
    source = """
import os, stat
def f(folder):
    flags = os.statvfs(folder).f_flag
    names = ("ST_RDONLY", "ST_NOSUID", "ST_NODEV", "ST_NOEXEC")
    return stat.S_IMODE(os.stat(folder).st_mode), [name for name in names if flags & getattr(os, name)]
"""
    assert run(box, source, "/tmp") == run(box, source, "/dev/shm") == (0o700, ["ST_NOSUID", "ST_NODEV"])
    assert run(box, source, "/proc")[1] == ["ST_RDONLY", "ST_NOSUID", "ST_NODEV", "ST_NOEXEC"]
    for folder in ("/", "/usr/lib", "/dev"):
        assert {"ST_RDONLY", "ST_NOSUID"} <= set(run(box, source, folder)[1]), folder


def test_a_box_begins_in_its_own_folder_with_an_environment_that_names_nothing_of_ours(box):
    folder, environment = run(box, "import os\ndef f(): return os.getcwd(), dict(os.environ)")
    assert folder == "/tmp"
    libraries = environment.pop("PYTHONPATH").split(":")
    assert libraries[0] == "/course" and len(libraries) > 1
    assert environment.pop("PWD", "/tmp") == "/tmp"
    wanted = {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin", "USER": "student", "OMP_THREAD_LIMIT": "8"}
    wanted |= {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    wanted |= dict.fromkeys(("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    assert wanted.items() <= environment.items()
    of_libraries = ("GLIBC_", "MALLOC_", "PYTHON", "TORCH")  # how memory is handed out, and what torch sets itself
    assert [name for name in environment.keys() - wanted if not name.startswith(of_libraries)] == []


def test_of_the_course_only_what_runs_in_boxes_is_inside(box):
    assert set(run(box, "import os\ndef f(): return os.listdir('/course')")) - {"tmp"} == {"boxed"}  # tmp: libraries


def test_pythons_own_settings_of_this_machine_do_not_reach_a_box(box):
    """No site: its .pth files name folders of the instructor's; nothing is imported from where a box stands."""
    assert run(box, "import sys\ndef f(): return sys.flags.no_site, sys.flags.safe_path") == (1, True)


def test_memory_that_shows_a_file_is_not_counted_again_in_each_process(zygote):
    """Three processes see 60 MB of /tmp in 17 places each: 3 GB that are 60 MB."""
    source = """
import mmap, os, time
def f():
    with open("/tmp/file", "wb") as file:
        file.write(bytes(60 << 20))
    first = os.fork() and os.fork()
    with open("/tmp/file", "rb") as file:
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        seen = [mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ) for _ in range(17)]
    if not first:
        open(f"/tmp/done-{os.getpid()}", "wb").close()
        time.sleep(60)
    while len(os.listdir("/tmp")) < 3:
        time.sleep(0.01)
    time.sleep(0.3)  # the warden looks several times
    return len(seen)
"""
    with zygote.box(Limits(memory=2 << 30)) as box:
        assert run(box, source) == 17


CALLS = {  # what must be refused in a box, and why each group is: see `boxed.syscalls`
    "sockets": "socket connect accept sendto recvfrom sendmsg recvmsg bind listen socketpair accept4 recvmmsg sendmmsg",
    "other processes": "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease"
    " move_pages migrate_pages perf_event_open",
    "files of others": "inotify_init inotify_init1 flock",
    "keyrings": "add_key request_key keyctl",
    "namespaces and mounts": "unshare setns mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig"
    " fsmount fspick mount_setattr name_to_handle_at open_by_handle_at",
    "often broken into": "bpf userfaultfd io_uring_setup io_uring_enter io_uring_register personality modify_ldt"
    " remap_file_pages fanotify_init fanotify_mark",
    "memory of nobody": "shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open"
    " mq_unlink memfd_create memfd_secret vmsplice",
    "the machine": "reboot kexec_load kexec_file_load init_module finit_module delete_module sync syncfs swapon swapoff"
    " iopl ioperm acct syslog quotactl quotactl_fd sethostname setdomainname settimeofday clock_settime adjtimex"
    " clock_adjtime vhangup nfsservctl lookup_dcookie",
}


@pytest.mark.parametrize("names", CALLS.values(), ids=CALLS)
def test_calls_that_a_box_has_no_use_for_are_refused(box, names):
    source = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def f(numbers):
    answers = {}
    for name, number in numbers.items():
        result = libc.syscall(number, -1, 0, 0, 0, 0, 0)
        answers[name] = errno.errorcode.get(ctypes.get_errno()) if result == -1 else "allowed"
    return answers
"""
    column = MACHINES[platform.machine()].column
    numbers = {name: REFUSED[name][column] for name in names.split()}
    numbers = {name: number for name, number in numbers.items() if number is not None}  # None: no such call here
    assert run(box, source, numbers) == dict.fromkeys(numbers, "EPERM")


def test_the_list_of_refused_calls_is_the_whole_table():
    assert set(" ".join(CALLS.values()).split()) == REFUSED.keys()
