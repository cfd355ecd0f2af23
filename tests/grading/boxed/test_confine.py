import errno
import os
import select
import signal
import time

import pytest

from course_lib.grading.boxed import kernel
from course_lib.grading.boxed.confine import become_first, fork_first, hide_files, leave_namespaces
from course_lib.grading.boxed.limits import Limits, limit_process

pytestmark = pytest.mark.needs("sandbox")


def status(name):
    with open("/proc/self/status") as lines:
        return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def test_each_box_is_a_process_namespace_of_its_own(in_child):
    def look():
        namespace = become_first()
        found = []
        for _ in range(2):
            reading, writing = os.pipe()
            if fork_first(namespace) == 0:
                os.write(writing, f"{os.getpid()} {os.readlink('/proc/self/ns/pid')}".encode())
                os._exit(0)
            found += os.read(reading, 100).decode().split()
        return os.getpid(), len({found[1], found[3], os.readlink("/proc/self/ns/pid")}), found[0], found[2]

    assert in_child(look) == "(1, 3, '1', '1')"


def test_what_is_forked_after_a_box_is_no_part_of_it(in_child):
    def look():
        namespace = become_first()
        box = fork_first(namespace)
        if box == 0:
            signal.pause()
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, os.readlink("/proc/self/ns/pid").encode())
            os._exit(0)
        return os.read(reading, 100).decode() == os.readlink("/proc/self/ns/pid")

    assert in_child(look) == "True"


@pytest.mark.parametrize("kind", ["ipc", "user"])
def test_a_box_has_namespaces_of_its_own(in_child, kind):
    before = os.readlink(f"/proc/self/ns/{kind}")

    def look():
        leave_namespaces(kernel.NEW_IPC)
        return os.readlink(f"/proc/self/ns/{kind}")

    assert in_child(look) not in (before, "")


def test_processes_are_hidden_and_files_are_its_own(in_child, tmp_path):
    (tmp_path / "secret").write_text("answers")

    def look():
        leave_namespaces(0)
        hide_files(1 << 20)
        return os.listdir("/proc"), os.listdir("/tmp"), os.listdir("/dev/shm"), os.getcwd()

    assert in_child(look) == "([], [], [], '/tmp')"


def test_disk_space_is_shared_by_tmp_and_shared_memory_and_is_small(in_child):
    def fill():
        leave_namespaces(0)
        hide_files(1 << 20)
        written = 0
        for folder in ("/tmp", "/dev/shm"):
            try:
                with open(f"{folder}/{len(folder)}", "wb", buffering=0) as stream:
                    while True:
                        written += stream.write(b"x" * (1 << 16))
            except OSError as problem:
                if problem.errno != errno.ENOSPC:
                    raise
        return written

    assert int(in_child(fill)) == 1 << 20


def test_the_number_of_files_is_limited(in_child):
    def fill():
        leave_namespaces(0)
        hide_files(1 << 20)
        try:
            for number in range(10_000):
                open(f"/tmp/{number}", "wb").close()
        except OSError as problem:
            return errno.errorcode[problem.errno]

    assert in_child(fill) == "ENOSPC"


def test_hidden_folders_cannot_be_written_to(in_child):
    def write():
        leave_namespaces(0)
        hide_files(1 << 20)
        open("/proc/file", "wb").close()

    assert in_child(write).startswith("OSError: [Errno 30]")


def test_no_privileges_are_left_nor_can_be_had_again(in_child):
    def drop():
        leave_namespaces(0)
        before = int(status("CapEff"), 16)
        kernel.drop_capabilities()
        return before > 0, *(int(status(name), 16) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"))

    assert in_child(drop) == "(True, 0, 0, 0, 0, 0)"


def die_with_parent():
    kernel.set_process_option(kernel.DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


@pytest.mark.parametrize(
    ("fork", "prepare"),
    [(os.fork, die_with_parent), (lambda: fork_first(become_first()), os.setsid)],
    ids=["that asks for it", "that is a box"],
)
def test_a_process_ends_with_its_parent(in_child, fork, prepare):
    def orphan():
        (ready, say_ready), (end, alive), (over, keep) = os.pipe(), os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(keep)
            if fork() == 0:
                prepare()
                os.write(say_ready, b"!")
                os.read(over, 1)  # until the test is over: one that outlives its parent is no part of the next test
                os._exit(0)
            os.close(say_ready)
            os.read(ready, 1)
            os._exit(0)
        os.close(alive)
        has_ended, _, _ = select.select([end], [], [], 10)  # the end of the pipe: nobody holds it any more
        return "ended" if has_ended else "still there after 10 s"

    assert in_child(orphan) == "ended"


def test_what_the_kernel_refuses_is_an_error(in_child):
    with pytest.raises(OSError, match="mount"):
        kernel.mount("none", "/no/such/folder", None, kernel.BIND)


def limited(**limits):
    limit_process(Limits(**limits), own_user=False)


def test_address_space_is_limited(in_child):
    def allocate():
        limited(memory=4 << 30)
        return len(bytearray(8 << 30))

    assert in_child(allocate).startswith("MemoryError")


def test_open_files_are_limited(in_child):
    def open_many():
        limited(open_files=64)
        return [os.pipe() for _ in range(64)]

    assert "Too many open files" in in_child(open_many)


def test_the_size_of_a_file_is_limited(in_child, tmp_path):
    def write():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limited(disk=1 << 16)
        with open(tmp_path / "large", "wb", buffering=0) as stream:
            return stream.write(b"x" * (1 << 20)), stream.write(b"x")

    assert in_child(write).startswith("OSError: [Errno 27]")


def test_the_cpu_time_of_a_process_is_limited_even_if_it_ignores_the_warning(in_child):
    def work():
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        limited(cpu_seconds=0)
        while time.process_time() < 10:
            pass
        return "still there"

    assert in_child(work) == ""


def test_limits_that_were_lower_before_stay(in_child):
    def twice():
        import resource

        limited(open_files=64)
        limited(open_files=128)
        return resource.getrlimit(resource.RLIMIT_NOFILE)

    assert in_child(twice) == "(64, 64)"


@pytest.mark.parametrize("own_user", [True, False])
def test_the_number_of_processes_is_limited_only_where_a_box_has_its_own_user(in_child, own_user):
    def limit():
        import resource

        before = resource.getrlimit(resource.RLIMIT_NPROC)
        limit_process(Limits(processes=7), own_user=own_user)
        return resource.getrlimit(resource.RLIMIT_NPROC) == ((7, 7) if own_user else before)

    assert in_child(limit) == "True"
