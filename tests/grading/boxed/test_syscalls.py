import errno
import os
import struct
import sys

import pytest

from course_lib.grading.boxed import syscalls
from course_lib.grading.boxed.syscalls import (
    ALLOW,
    CLONE,
    CLONE3,
    ERROR,
    FCNTL,
    KILL,
    MACHINES,
    MMAP,
    NOTHING_DONE,
    REFUSED,
    SETSID,
    filter_program,
)

pytestmark = pytest.mark.needs("linux")

REFUSAL, MISSING = ERROR | errno.EPERM, ERROR | errno.ENOSYS
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
X32 = 1 << 30
NEW = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}


def run_filter(program, number, *arguments, audit):
    """What the kernel would do: the few instructions that the filter is made of, on a description of a call."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    description = struct.pack("=iIQ6Q", number - (1 << 32 if number >= 1 << 31 else 0), audit, 0, *padded)
    word, position = 0, 0
    while True:
        code, jump_true, jump_false, value = struct.unpack_from("=HBBI", program, 8 * position)
        position += 1
        match code:
            case 0x20:
                (word,) = struct.unpack_from("=I", description, value)
            case 0x15:
                position += jump_true if word == value else jump_false
            case 0x35:
                position += jump_true if word >= value else jump_false
            case 0x45:
                position += jump_true if word & value else jump_false
            case 0x06:
                return value
            case other:
                raise ValueError(f"instruction {other:#x}")


@pytest.fixture(params=MACHINES)
def machine(request):
    return request.param


@pytest.fixture
def decide(machine):
    program = filter_program(machine)
    return lambda number, *arguments: run_filter(program, number, *arguments, audit=MACHINES[machine].audit)


def test_each_call_of_the_table_is_refused_and_its_neighbours_are_not(machine, decide):
    column = MACHINES[machine].column
    refused = {numbers[column] for numbers in REFUSED.values()} - {None}
    for number in set(range(syscalls.LAST_KNOWN + 1)) - {CLONE3[column], SETSID[column]}:
        assert decide(number) == (REFUSAL if number in refused else ALLOW), number


def test_calls_newer_than_the_table_and_those_of_x32_do_not_exist(decide):
    for number in (syscalls.LAST_KNOWN + 1, 500, X32, X32 | 41, (1 << 32) - 1):
        assert decide(number) == MISSING


def test_calls_of_another_architecture_end_the_process(machine):
    (other,) = set(MACHINES) - {machine}
    for audit in (MACHINES[other].audit, 0x40000003, 0):  # 0x40000003: 32-bit programs on x86_64
        assert run_filter(filter_program(machine), 0, audit=audit) == KILL


@pytest.mark.parametrize("flag", NEW.values(), ids=NEW)
def test_a_clone_with_a_new_namespace_is_refused(machine, decide, flag):
    number = CLONE[MACHINES[machine].column]
    assert decide(number, flag | 17) == REFUSAL
    assert decide(number, 0x3D0F00) == ALLOW  # as for a thread
    assert decide(number, 0x1200011) == ALLOW  # as for fork


def test_clone3_seems_not_to_exist(machine, decide):
    assert decide(CLONE3[MACHINES[machine].column]) == MISSING


def test_a_new_session_seems_to_begin(machine, decide):
    assert decide(SETSID[MACHINES[machine].column]) == NOTHING_DONE


def test_memory_without_an_owner_is_refused(machine, decide):
    shared, private, anonymous = 0x01, 0x02, 0x20
    for flags, wanted in {
        shared | anonymous: REFUSAL,
        shared | private | anonymous: REFUSAL,  # MAP_SHARED_VALIDATE
        private | anonymous: ALLOW,
        shared: ALLOW,
        private: ALLOW,
    }.items():
        assert decide(MMAP[MACHINES[machine].column], 0, 4096, 3, flags) == wanted


def test_files_cannot_be_held_and_other_commands_go_on(machine, decide):
    import fcntl

    number = FCNTL[MACHINES[machine].column]
    holds = [fcntl.F_SETLK, fcntl.F_SETLKW, fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW, fcntl.F_SETLEASE, fcntl.F_NOTIFY]
    for command in {*range(41), *range(1024, 1040)}:
        assert decide(number, 3, command) == (REFUSAL if command in holds else ALLOW), command


def test_the_numbers_are_those_of_the_kernel(machine):
    if not os.path.exists(HEADERS[machine]):
        pytest.skip("the kernel's headers are not installed: sudo apt-get install linux-libc-dev")
    known = {}
    with open(HEADERS[machine]) as header:
        for line in header:
            match line.split():
                case ["#define", name, number] if number.isdigit():
                    known.setdefault(name.removeprefix("__NR3264_").removeprefix("__NR_"), int(number))
    column = MACHINES[machine].column
    ours = {name: numbers[column] for name, numbers in REFUSED.items()}
    ours |= {
        name: numbers[column]
        for name, numbers in {
            "clone": CLONE,
            "clone3": CLONE3,
            "mmap": MMAP,
            "fcntl": FCNTL,
            "setsid": SETSID,
        }.items()
    }
    assert {name: known.get(name) for name in ours} == ours


def test_a_machine_without_a_table_gets_no_box():
    with pytest.raises(OSError, match="riscv64"):
        filter_program("riscv64")


def test_the_filter_itself_holds(in_child):
    def socket_refused():
        import socket

        syscalls.refuse_calls()
        try:
            socket.socket()
        except PermissionError:
            return "refused"

    assert in_child(socket_refused) == "refused"


def test_what_the_process_starts_is_filtered_too(in_child):
    def start():
        import subprocess

        syscalls.refuse_calls()
        code = "import socket\ntry: socket.socketpair()\nexcept PermissionError: print('refused')"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()

    assert in_child(start) == "refused"
