"""Ways out of the box: network, namespaces, mounts, privileges, other processes, kernel interfaces. All are shut."""

import os
import socket
import threading

import pytest

from tests.grading.attacks.course import HONEST, POINTS, points, printed

pytestmark = pytest.mark.needs("sandbox")

# attempt() says OPEN when an action got through, and shut with the reason when it did not.
TOOLS = """
import ctypes, fcntl, platform, socket, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": dict(
        add_key=248, request_key=249, keyctl=250, io_uring_setup=425, bpf=321, perf_event_open=298, userfaultfd=323,
        clone3=435, pidfd_open=434, pidfd_getfd=438, process_vm_readv=310, process_vm_writev=311, open_by_handle_at=304,
        kcmp=312, fanotify_init=300, init_module=175, kexec_load=246, reboot=169, open_tree=428, fsopen=430,
        mount_setattr=442, landlock=444, syslog=103, move_pages=279, vmsplice=278,
    ),
    "aarch64": dict(
        add_key=217, request_key=218, keyctl=219, io_uring_setup=425, bpf=280, perf_event_open=241, userfaultfd=282,
        clone3=435, pidfd_open=434, pidfd_getfd=438, process_vm_readv=270, process_vm_writev=271, open_by_handle_at=265,
        kcmp=272, fanotify_init=262, init_module=105, kexec_load=104, reboot=142, open_tree=428, fsopen=430,
        mount_setattr=442, landlock=444, syslog=116, move_pages=239, vmsplice=75,
    ),
}[platform.machine()]
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def call(name, *args):
    return check(libc.syscall(NUMBERS[name], *args))
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
def run(*command):
    done = subprocess.run(command, capture_output=True, timeout=3)
    if done.returncode:
        raise OSError(done.returncode, done.stderr.decode("utf-8", "replace")[-100:])
    return done.stdout
def connect(family, address, kind=socket.SOCK_STREAM):
    client = socket.socket(family, kind)
    client.settimeout(1)
    if kind == socket.SOCK_DGRAM:
        client.sendto(b"hello", address)
    else:
        client.connect(address)
def attempt(action):
    try:
        result = action()
    except BaseException as error:
        os.write(1, ("shut: " + repr(error)[:150] + "\\n").encode("utf-8", "replace"))
    else:
        os.write(1, ("OPEN: " + repr(result)[:150] + "\\n").encode("utf-8", "replace"))
"""

WAYS = {
    # network
    "TCP to a server of this machine": "connect(socket.AF_INET, ('127.0.0.1', PORT))",
    "UDP to a server of this machine": "connect(socket.AF_INET, ('127.0.0.1', PORT), socket.SOCK_DGRAM)",
    "TCP to an address outside": "connect(socket.AF_INET, ('192.0.2.1', 80))",
    "UDP to an address outside": "connect(socket.AF_INET, ('192.0.2.1', 53), socket.SOCK_DGRAM)",
    "TCP over IPv6 to this machine": "connect(socket.AF_INET6, ('::1', PORT))",
    "TCP over IPv6 to an address outside": "connect(socket.AF_INET6, ('2001:db8::1', 80))",
    "a look-up of a name": "socket.getaddrinfo('example.org', 80)",
    "a Unix socket of this machine": "connect(socket.AF_UNIX, UNIX)",
    "an abstract socket of this machine": "connect(socket.AF_UNIX, '\\0' + ABSTRACT)",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
    "a vsock to the host": "connect(40, (2, 22))",
    "a new network interface": "run('/usr/sbin/ip', 'link', 'add', 'x', 'type', 'dummy')",
    "the kernel's crypto sockets": "socket.socket(38, socket.SOCK_SEQPACKET).bind(('hash', 'sha256'))",
    # namespaces and mounts
    "a nested user namespace": "check(libc.unshare(0x10000000))",
    "a nested network namespace": "check(libc.unshare(0x40000000))",
    "a nested mount namespace": "check(libc.unshare(0x20000))",
    "all nested namespaces at once": "check(libc.unshare(0x7E020000))",
    "unshare as a program": "run('unshare', '--user', '--map-root-user', 'id')",
    "a sandbox in the sandbox": "run('bwrap', '--ro-bind', '/', '/', '/usr/bin/id')",
    "clone into a user namespace": "clone_into_user_namespace()",
    "clone3 into a user namespace": "clone3_into_user_namespace()",
    "setns into the namespaces of the first process": "setns_of('/proc/1/ns/mnt')",
    "setns into the parent's user namespace": "setns_of('/proc/self/ns/user', parent=True)",
    "a mount of a file system in memory": "check(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "a mount of proc": "check(libc.mount(b'none', b'/tmp', b'proc', 0, None))",
    "a bind mount": "check(libc.mount(b'/usr', b'/tmp', None, 4096, None))",
    "the root mounted writable": "check(libc.mount(None, b'/', None, 0x20 | 0x1000, None))",
    "an unmount": "check(libc.umount2(b'/proc', 2))",
    "a new root": "check(libc.chroot(b'/tmp'))",
    "a swapped root": "check(libc.pivot_root(b'/tmp', b'/tmp'))",
    "a mount by the new calls": "call('fsopen', b'tmpfs', 0)",
    "a tree of mounts opened": "call('open_tree', -100, b'/', 1)",
    "a device node for the disk": "os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0)); open('/tmp/disk', 'rb')",
    "a device node for memory": "os.mknod('/tmp/mem', 0o20666, os.makedev(1, 1)); open('/tmp/mem', 'rb')",
    # privileges
    "the user 0": "os.setuid(0)",
    "the user 0 in all three": "os.setresuid(0, 0, 0)",
    "the group 0": "os.setgid(0)",
    "more groups": "os.setgroups([0, 1, 2, 3])",
    "sudo": "run('sudo', '-n', 'id')",
    "su": "run('su', '-c', 'id')",
    "a program with the setuid bit": "run('/usr/bin/mount', '-t', 'tmpfs', 'none', '/tmp')",
    "chmod of a program to setuid, and a run": "setuid_copy()",
    "all capabilities": "capabilities()",
    "an ambient capability": "check(libc.prctl(47, 2, 21, 0, 0))",
    "no-new-privileges taken back": "check(libc.prctl(38, 0, 0, 0, 0))",
    "limits raised": "raise_limits()",
    "a higher priority": "os.nice(-10)",
    "real-time scheduling": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))",
    "the time set": "__import__('time').clock_settime(0, 0)",
    "the host's name": "check(libc.sethostname(b'mallory', 7))",
    # other processes
    "ptrace of its parent": "check(libc.ptrace(16, os.getppid(), None, None))",
    "ptrace of the first process": "check(libc.ptrace(16, 1, None, None))",
    "ptrace by seizing": "check(libc.ptrace(0x4206, os.getppid(), None, None))",
    "a list of processes": "some([name for name in os.listdir('/proc') if name.isdigit()])",
    "memory of the first process": "open('/proc/1/mem', 'r+b', 0)",
    "memory of another process": "read_memory_of(1 if os.getpid() != 1 else os.getppid() or 2)",
    "a descriptor of another process": "call('pidfd_getfd', call('pidfd_open', 1 if os.getpid() != 1 else 2, 0), 3, 0)",
    "kill of a process of this machine": "os.kill(PID, 0)",
    "a higher limit for a process of this machine": "__import__('resource').prlimit(PID, 7, (9, 9))",
    # kernel interfaces
    "a key in the user's keyring": "call('add_key', b'user', b'message', b'hello', 5, -4)",
    "a key in the session's keyring": "call('add_key', b'user', b'message', b'hello', 5, -3)",
    "a new keyring": "call('keyctl', 1, b'ring')",
    "a key asked of the kernel": "call('request_key', b'user', b'message', None, -3)",
    "io_uring": "call('io_uring_setup', 8, ctypes.create_string_buffer(240))",
    "bpf": "call('bpf', 0, ctypes.create_string_buffer(120), 120)",
    "perf": "perf()",
    "userfaultfd": "call('userfaultfd', 0)",
    "fanotify": "call('fanotify_init', 0, 0)",
    "files by handle": "call('open_by_handle_at', -100, ctypes.create_string_buffer(128), 0)",
    "a kernel module": "call('init_module', b'', 0, b'')",
    "another kernel": "call('kexec_load', 0, 0, None, 0)",
    "a reboot": "call('reboot', 0xFEE1DEAD, 672274793, 0x89ABCDEF, None)",
    "the kernel's log": "call('syslog', 3, ctypes.create_string_buffer(1000), 1000)",
    "keys typed into the terminal": "fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x')",
    "the terminal behind standard input": "fcntl.ioctl(0, 0x5412, b'x')",
    # files
    "a file in the packages": "write(os.path.join(torch.__path__[0], 'evil.py'), '')",
    "another torch": "write(torch.__file__, 'evil')",
    "another Python": "write(sys.executable, 'evil')",
    "another standard library": "write(os.__file__, 'evil')",
    "the worker": "write(sys.modules['boxed.worker'].__file__ if 'boxed.worker' in sys.modules else WORKER, 'evil')",
    "a new file beside the worker": "write(os.path.dirname(sys.modules['boxed.wire'].__file__) + '/evil.py', '')",
    "a right taken for the packages": "os.chmod(torch.__path__[0], 0o777)",
    "a renamed package": "os.rename(torch.__path__[0], '/tmp/torch')",
    "a file in /usr": "write('/usr/evil', '')",
    "a file in /etc": "write('/etc/evil', '')",
    "a file in the root": "write('/evil', '')",
    "a file in the root's home": "write('/root/evil', '')",
    "a file in the course": "write(COURSE + '/gradebook.db', 'evil')",
    "the course's folder": "os.listdir(COURSE)",
    "the kernel's settings": "write('/proc/sys/kernel/core_pattern', '|/tmp/evil')",
    "the kernel's settings for namespaces": "write('/proc/sys/user/max_user_namespaces', '1000')",
    "the system's triggers": "write('/proc/sysrq-trigger', 'h')",
    "the out-of-memory score": "write('/proc/self/oom_score_adj', '-1000')",
    "another map of users": "write('/proc/self/uid_map', '0 0 4294967295')",
    "the block devices": (
        "open('/dev/sda', 'rb').read(1) if os.path.exists('/dev/sda') else open('/dev/vda', 'rb').read(1)"
    ),
    "the machine's memory": "open('/dev/mem', 'rb').read(1)",
    "virtual machines": "open('/dev/kvm', 'r+b')",
    "file systems in user space": "open('/dev/fuse', 'r+b')",
    "network tunnels": "open('/dev/net/tun', 'r+b')",
    "control groups": "os.mkdir('/sys/fs/cgroup/evil')",
    "the graphics card": "open('/dev/nvidiactl', 'r+b')",
}

HELPERS = """
def clone_into_user_namespace():
    stack = ctypes.create_string_buffer(1 << 16)
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda argument: 0)
    top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16) - 64)
    return check(libc.clone(entry, top, 0x10000000 | 17, None))
def clone3_into_user_namespace():
    arguments = ctypes.create_string_buffer(struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)
    if call("clone3", arguments, 88) == 0:
        os._exit(0)
    return "cloned"
def setns_of(path, parent=False):
    file = os.open(path, os.O_RDONLY)
    if parent:
        file = fcntl.ioctl(file, 0xB702)
    return check(libc.setns(file, 0))
def setuid_copy():
    import shutil
    shutil.copy("/usr/bin/id", "/tmp/id")
    os.chmod("/tmp/id", 0o6755)
    text = run("/tmp/id")
    if b"uid=0" not in text and b"euid=0" not in text:
        raise OSError(1, text.decode())
def capabilities():
    header = struct.pack("Ii", 0x20080522, 0)
    return check(libc.capset(header, struct.pack("6I", *[0xFFFFFFFF] * 6)))
def raise_limits():
    import resource
    raised = []
    for name in ("AS", "NPROC", "NOFILE", "FSIZE", "CPU", "CORE"):
        kind = getattr(resource, "RLIMIT_" + name)
        soft, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY:
            raised.append(name)
            continue
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
            raised.append(name)
        except (ValueError, OSError):
            pass
    if not raised:
        raise OSError(1, "no limit can be raised")
    return raised
def read_memory_of(pid):
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_void_p * 2)(id(None), 8)
    return call("process_vm_readv", pid, here, 1, there, 1, 0)
def some(names):
    if not names:
        raise OSError(1, "there is none")
    return names
def perf():
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0), 112)
    return call("perf_event_open", attributes, 0, -1, -1, 0)
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Servers on this machine that a box must not reach; what connects to them is counted."""
    path = tmp_path_factory.mktemp("socket") / "s"
    abstract = f"attacks-{path.parent.name}-{id(path)}"
    connections, sockets = [], []

    def listen(family, address, kind=socket.SOCK_STREAM):
        server = socket.socket(family, kind)
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()
        sockets.append(server)

        def wait():
            while True:
                try:
                    connections.append(server.accept() if kind == socket.SOCK_STREAM else server.recv(100))
                except OSError:
                    return

        threading.Thread(target=wait, daemon=True).start()
        return server.getsockname()

    port = listen(socket.AF_INET, ("127.0.0.1", 0))[1]
    listen(socket.AF_INET, ("127.0.0.1", port), socket.SOCK_DGRAM)
    if socket.has_ipv6:
        try:
            listen(socket.AF_INET6, ("::1", port))
        except OSError:
            pass  # no IPv6 on this machine: the attempt is made all the same
    listen(socket.AF_UNIX, str(path))
    listen(socket.AF_UNIX, "\0" + abstract)
    path.chmod(0o777)
    path.parent.chmod(0o755)
    yield {"PORT": port, "UNIX": str(path), "ABSTRACT": abstract, "connections": connections}
    for server in sockets:
        server.close()


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out(course, servers, way):
    names = {
        "PORT": servers["PORT"],
        "UNIX": servers["UNIX"],
        "ABSTRACT": servers["ABSTRACT"],
        "PID": os.getpid(),
        "COURSE": str(course.folder),
        "WORKER": "/boxed/worker.py",
    }
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    statements = WAYS[way].split("; ")
    action = "\n".join(["def action():", *(f"    {line}" for line in statements[:-1]), f"    return {statements[-1]}"])
    source = f"{head}{TOOLS}{HELPERS}{action}\nattempt(action)\n{HONEST['attention']}"
    verdict = course.judge(course.submit("mallory", {"attention": source}))
    out = printed(verdict)
    assert "OPEN" not in out
    assert "shut" in out or verdict["tasks"]["attention"]["ended"]  # refused, or ended for trying
    assert not {"NameError", "AttributeError", "SyntaxError", "TypeError"} & set(out.replace("(", " ").split())
    assert points(verdict) == POINTS | {"attention": points(verdict)["attention"]}
    assert servers["connections"] == []
