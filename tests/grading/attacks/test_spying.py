"""Code that looks for references, hidden inputs, the gradebook, other submissions: it finds none of them."""

import pytest

from tests.grading.attacks.course import HONEST, POINTS, Attack, by_name, points, printed, tiny_notebook

pytestmark = pytest.mark.needs("sandbox")

# Looks for the secret by a pattern that does not hold it; what it finds is printed as SEEN.
SEEK = """
import re
PATTERN = re.compile(rb"secret-" + rb"[0-9a-f]{32}")
def seek(place, data):
    if isinstance(data, str):
        data = data.encode("utf-8", "replace")
    if found := PATTERN.search(data):
        os.write(1, b"SEEN " + place.encode() + b" " + found.group() + b"\\n")
def done(count):
    os.write(1, b"tried " + str(count).encode() + b"\\n")
"""

SPIES = [
    Attack(
        name="frames",
        source=SEEK
        + """
def look():
    frame, count = sys._getframe(), 0
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                count += 1
                seek(f"frame {name}", name + repr(value)[:10_000])
        frame = frame.f_back
    done(count)
""",
    ),
    Attack(
        name="the garbage collector",
        source=SEEK
        + """
import gc
def look():
    count = 0
    for thing in gc.get_objects():
        if type(thing) in (dict, list, tuple, set):
            for value in (thing.values() if type(thing) is dict else thing):
                if type(value) in (str, bytes):
                    count += 1
                    seek("gc", value)
    done(count)
""",
    ),
    Attack(
        name="the process's own memory",
        source=SEEK
        + """
def look():
    count = 0
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
            for line in maps:
                bounds, rights, _, _, inode = line.split()[:5]
                start, end = (int(part, 16) for part in bounds.split("-"))
                if rights.startswith("rw") and inode == "0" and end - start < 64 << 20:
                    try:
                        memory.seek(start)
                        data = memory.read(end - start)
                    except OSError:
                        continue
                    count += 1
                    seek("memory", data)
    except OSError:
        pass
    done(count)
""",
    ),
    Attack(
        name="the environment",
        source=SEEK
        + """
def look():
    for name, value in os.environ.items():
        seek(f"environment {name}", value)
    import ctypes, glob
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            seek(path, open(path, "rb").read())
        except OSError:
            pass
    done(len(os.environ))
""",
    ),
    Attack(
        name="other processes",
        source=SEEK
        + """
def look():
    count = 0
    for pid in range(1, 300):
        for what in ("environ", "cmdline", "mem", "cwd", "root", "fd", "maps"):
            path = f"/proc/{pid}/{what}"
            try:
                if what in ("cwd", "root", "fd"):
                    names = os.listdir(path)
                    seek(path, " ".join(names))
                    for name in names:
                        with open(f"{path}/{name}", "rb") as file:
                            os.set_blocking(file.fileno(), False)
                            seek(path, file.read(100_000) or b"")
                else:
                    seek(path, open(path, "rb").read(100_000))
                count += 1
            except OSError:
                pass
    done(count)
""",
    ),
    Attack(
        name="open file descriptors",
        source=SEEK
        + """
def look():
    import socket, stat
    count = 0
    for number in range(256):
        try:
            kind = os.fstat(number).st_mode
            seek("descriptor", os.readlink(f"/proc/self/fd/{number}") if os.path.exists("/proc/self/fd") else "")
            if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
                os.write(1, f"SEEN file {number}\\n".encode())
            if stat.S_ISREG(kind):
                seek("descriptor", os.pread(number, 100_000, 0))
            count += 1
        except OSError:
            pass
    done(count)
""",
    ),
    Attack(
        name="the whole file system",
        source=SEEK
        + """
def look():
    count = 0
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr")]
        if "site-packages" in folder or "/lib/python" in folder:
            folders[:] = []
            continue
        for name in files:
            path = os.path.join(folder, name)
            count += 1
            if name in ("gradebook.db", "instructor.key", "tasks.py", "wrong_solutions.py", "nbgrader_config.py"):
                os.write(1, b"SEEN " + path.encode() + b"\\n")
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                    seek(path, open(path, "rb").read())
            except OSError:
                pass
    done(count)
""",
    ),
    Attack(
        name="paths that it knows",
        source=SEEK
        + """
def look():
    for path in PATHS:
        try:
            if os.path.isdir(path):
                os.write(1, b"SEEN folder " + path.encode() + b" " + " ".join(os.listdir(path)).encode() + b"\\n")
            else:
                seek(path, open(path, "rb").read())
                os.write(1, b"SEEN " + path.encode() + b"\\n")
        except OSError:
            pass
    done(len(PATHS))
""",
    ),
    Attack(
        name="imports of the grader",
        source=SEEK
        + """
def look():
    import importlib
    for name in ("course_lib.grading.judge", "course_lib.grading.spec", "hidden", "checks", "judge"):
        try:
            module = importlib.import_module(name)
            seek(name, repr(vars(module)))
            os.write(1, b"SEEN " + name.encode() + b"\\n") if name in ("checks", "hidden") else None
        except BaseException:
            pass
    for name, module in list(sys.modules.items()):
        seek(name, repr(getattr(module, "__file__", "")))
        if name.startswith(("course_lib.grading.judge", "course_lib.grading.spec", "checks", "hidden")):
            os.write(1, b"SEEN loaded " + name.encode() + b"\\n")
    done(len(sys.modules))
""",
    ),
    Attack(
        name="the machine's name, mounts and users",
        source=SEEK
        + """
def look():
    for path in ("/proc/mounts", "/proc/self/mountinfo", "/etc/passwd", "/etc/shadow", "/etc/hostname", "/root"):
        try:
            text = open(path).read()
        except OSError:
            continue
        seek(path, text)
        if COURSE in text:
            os.write(1, b"SEEN the course's folder in " + path.encode() + b"\\n")
        if path == "/etc/shadow":
            os.write(1, b"SEEN /etc/shadow\\n")
    done(6)
""",
    ),
]


@pytest.fixture(scope="module")
def planted(course, secret):
    """The secret in every file that would be worth reading."""
    victim = course.submit("victim", {"softmax": f"# {secret}\n{HONEST['softmax']}"})
    paths = [victim]
    for name in ("gradebook.db", "instructor.key", "verdicts/01/victim.json", "feedback/victim/01/tiny.html"):
        path = course.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(secret, encoding="utf-8")
        paths.append(path)
    return [*paths, course.folder / "hidden/01/tasks.py", course.folder / "source/01/tiny.ipynb", course.folder]


@pytest.mark.parametrize("spy", **by_name(SPIES))
def test_a_spy_sees_nothing(course, planted, spy):
    head = f"PATHS = {[str(path) for path in planted]!r}\nCOURSE = {str(course.folder)!r}\n"
    tail = "\nlook()\ndef attention(q, k, v):\n    look()\n    return torch.zeros_like(v)\n"
    verdict = course.attack(Attack(name=spy.name, source=head + spy.source + tail))
    assert "SEEN" not in printed(verdict)


def test_the_seed_of_the_inputs_is_not_a_small_number(course):
    source = """
def attention(q, k, v):
    tried = 0
    for seed in [*range(3000), torch.initial_seed()]:
        generator = torch.Generator().manual_seed(seed)
        if torch.equal(torch.randn(q.shape, generator=generator), q):
            os.write(1, f"SEEN seed {seed}".encode())
        tried += 1
    if torch.equal(torch.randn(q.shape), q):
        os.write(1, b"SEEN the global seed")
    os.write(1, f"tried {tried}".encode())
    return torch.zeros_like(v)
"""
    verdict = course.attack(Attack(name="seed", source=source))
    assert "SEEN" not in printed(verdict)


def test_no_seed_can_be_derived_from_the_submission(course):
    source = """
import hashlib, inspect
def attention(q, k, v):
    words = ["", "01", "tiny", "mallory", "attention", "Attention", "01/attention/Attention", "course"]
    words += [digest(word.encode()).hexdigest() for word in words for digest in (hashlib.sha256, hashlib.md5)]
    for word in words:
        data = hashlib.sha256(word.encode()).digest()
        for size in (4, 7, 8):
            for order in ("big", "little"):
                seed = int.from_bytes(data[:size], order) % 2**63
                generator = torch.Generator().manual_seed(seed)
                if torch.equal(torch.randn(q.shape, generator=generator), q):
                    os.write(1, b"SEEN seed")
    os.write(1, b"tried")
    return torch.zeros_like(v)
"""
    verdict = course.attack(Attack(name="derived seed", source=source))
    assert "SEEN" not in printed(verdict)


def test_another_submission_gets_other_inputs(course):
    source = "def softmax(x):\n    print(x.flatten()[0].item(), flush=True)\n    return x.softmax(dim=-1)\n"
    first = course.judge(course.submit("mallory", {"softmax": source}))
    again = course.judge(course.submit("mallory", {"softmax": source}))
    other = course.judge(course.submit("mallory", {"softmax": source + "# other\n"}))
    one, two, three = (verdict["tasks"]["softmax"]["printed"] for verdict in (first, again, other))
    assert one == two != three
    assert len(one.split()) == 2


def test_inputs_seen_in_one_submission_do_not_help_in_the_next(course):
    """What a student could carry out of one grading is of no use in the next: a table of those inputs earns nothing."""
    spy = "def softmax(x):\n    print(x.tolist(), flush=True)\n    return torch.zeros_like(x)\n"
    seen = course.judge(course.submit("mallory", {"softmax": spy}))["tasks"]["softmax"]["printed"]
    table = [line for line in seen.splitlines() if line.startswith("[")]
    assert table
    source = f"""
TABLE = [torch.tensor(rows) for rows in ({", ".join(table)},)]
def softmax(x):
    os.write(1, b"tried")
    for known in TABLE:
        if known.shape == x.shape and torch.allclose(known, x):
            return x.softmax(dim=-1)
    return torch.zeros_like(x)
"""
    course.attack(Attack(name="table", source=source, task="softmax"))


def test_the_clock_tells_nothing_about_the_check(course):
    """The answer is wrong when it is first asked, also when it is asked again: the judge notices at which check."""
    source = """
import time
start, calls = time.monotonic(), 0
def softmax(x):
    global calls
    calls += 1
    os.write(1, f"tried {time.monotonic() - start}".encode())
    return x.softmax(dim=-1) if calls > 2 else torch.zeros_like(x)
"""
    course.attack(Attack(name="clock", source=source, task="softmax", points=1))


# Channels from a hidden input to what a student reads ----------------------------------------------------------

CODE = '''
def code(x):
    """The digits of the first hidden number, which no feedback may show."""
    return str(int(abs(float(x.flatten()[0])) * 1e6) + 10**7)
def note(x):
    print("CODE", code(x), flush=True)
'''
CHANNELS = {
    "the text of an exception": "def softmax(x):\n    note(x)\n    raise ValueError(code(x))\n",
    "the name of an exception": (
        "def softmax(x):\n    note(x)\n    raise type('E' + code(x), (ValueError,), {'__module__': 'builtins'})()\n"
    ),
    "an exception that claims to be torch's": (
        "def softmax(x):\n    note(x)\n    raise type('E' + code(x), (Exception,), {'__module__': 'torch'})()\n"
    ),
    "the notes and causes of an exception": (
        "def softmax(x):\n    note(x)\n    e = ValueError('a')\n    e.add_note(code(x))\n"
        "    raise e from RuntimeError(code(x))\n"
    ),
    "printed text": "def softmax(x):\n    note(x)\n    return torch.zeros_like(x)\n",
    "the type of the result": (
        "def softmax(x):\n    note(x)\n    return type('T' + code(x), (), {'__module__': 'torch'})()\n"
    ),
    "the shape of the result": "def softmax(x):\n    note(x)\n    return torch.zeros(int(code(x)), 0)\n",
    "the number of axes and their sizes": (
        "def softmax(x):\n    note(x)\n    return torch.zeros([int(d) for d in code(x)] + [0])\n"
    ),
    "the size of the result": ("def softmax(x):\n    note(x)\n    return torch.full_like(x, float(code(x)))\n"),
    "a text as result": "def softmax(x):\n    note(x)\n    return code(x)\n",
    "a number as result": "def softmax(x):\n    note(x)\n    return int(code(x))\n",
    "the length of a tuple": "def softmax(x):\n    note(x)\n    return (x,) * int(code(x)[-3:])\n",
    "the keys of a dictionary": "def softmax(x):\n    note(x)\n    return {code(x): x}\n",
    "a warning": "def softmax(x):\n    note(x)\n    import warnings\n    warnings.warn(code(x))\n    return None\n",
}


def texts_for_the_student(verdict):
    """Every text of a verdict but what was printed, which only the instructor sees."""

    def texts(value):
        if isinstance(value, dict):
            for key, part in value.items():
                if key not in ("printed", "submission", "spec", "seconds"):
                    yield from texts(part)
        elif isinstance(value, list):
            for part in value:
                yield from texts(part)
        else:
            yield str(value)

    return "\n".join(texts(verdict))


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_hidden_number_comes_out_through(course, channel):
    leak = CODE + CHANNELS[channel]
    module = leak.replace("def softmax(x)", "def leak(x)")
    module += HONEST["affine"].replace("return x * self.weight + self.bias", "return leak(x)")
    verdict = course.judge(course.submit("mallory", {"softmax": leak, "affine": module}))
    codes = [word for word in printed(verdict).split() if word.isdecimal()]
    assert len(codes) >= 2
    shown = texts_for_the_student(verdict)
    for code in codes:
        digits = "".join(character for character in shown if character.isdigit())
        assert code not in shown
        assert code[-5:] not in digits
        assert str(list(map(int, code)))[1:-1] not in shown
    assert points(verdict) == POINTS | {"softmax": 0, "affine": 0}


# Between two boxes ----------------------------------------------------------------------------------------------

BETWEEN = {
    "a file in /tmp": ("open('/tmp/message', 'w').write('hello')", "open('/tmp/message').read()"),
    "a file in the home folder": (
        "open(os.path.expanduser('~/message'), 'w').write('hello')",
        "open(os.path.expanduser('~/message')).read()",
    ),
    "a file in the current folder": ("open('message', 'w').write('hello')", "open('message').read()"),
    "a file in /dev/shm": ("open('/dev/shm/message', 'w').write('hello')", "open('/dev/shm/message').read()"),
    "a file in /var/tmp": ("open('/var/tmp/message', 'w').write('hello')", "open('/var/tmp/message').read()"),
    "a file in /run": ("open('/run/message', 'w').write('hello')", "open('/run/message').read()"),
    "a file in the root": ("open('/message', 'w').write('hello')", "open('/message').read()"),
    "a module among the packages": (
        "open(os.path.join(os.path.dirname(torch.__path__[0]), 'message.py'), 'w').write('said = 1')",
        "__import__('message').said",
    ),
    "the worker's own package": (
        "open(os.path.join(os.path.dirname(sys.modules['boxed.wire'].__file__), 'message.py'), 'w').write('said = 1')",
        "__import__('boxed.message').message.said",
    ),
    "a module in memory": ("sys.modules.update(message=os)", "__import__('message')"),
    "an attribute of torch": ("setattr(torch, 'message', 1)", "torch.message"),
    "the environment": ("os.environ.update(MESSAGE='1')", "os.environ['MESSAGE']"),
    "System V shared memory": (
        "check(libc.shmget(4711, 4096, 0o1666))",
        "check(libc.shmget(4711, 4096, 0o666))",
    ),
    "a System V queue": ("check(libc.msgget(4711, 0o1666))", "check(libc.msgget(4711, 0o666))"),
    "System V semaphores": ("check(libc.semget(4711, 1, 0o1666))", "check(libc.semget(4711, 1, 0o666))"),
    "a POSIX queue": (
        "check(libc.mq_open(b'/message', 0o102, 0o666, None))",
        "check(libc.mq_open(b'/message', 0))",
    ),
    "the user's keyring": (
        "check(libc.syscall(NUMBERS['add_key'], b'user', b'message', b'hello', 5, -4))",
        "check(libc.syscall(NUMBERS['keyctl'], 10, -4, b'user', b'message', 0))",
    ),
    "the session's keyring": (
        "check(libc.syscall(NUMBERS['add_key'], b'user', b'message', b'hello', 5, -3))",
        "check(libc.syscall(NUMBERS['keyctl'], 10, -3, b'user', b'message', 0))",
    ),
    "the name of the host": (
        "check(libc.sethostname(b'message', 7))",
        "1 / (os.uname().nodename == 'message')",
    ),
    "a daemon on an abstract socket": (
        "daemon(lambda: listen('\\0message'))",
        "connect('\\0message')",
    ),
    "a daemon on a port": ("daemon(lambda: listen(('127.0.0.1', 47_113)))", "connect(('127.0.0.1', 47_113))"),
    "the limits of the parent": (
        "__import__('resource').prlimit(os.getppid(), __import__('resource').RLIMIT_NOFILE, (33, 33))",
        "1 / (__import__('resource').getrlimit(__import__('resource').RLIMIT_NOFILE)[0] == 33)",
    ),
}
TOOLS = """
import ctypes, platform, socket
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": {"add_key": 248, "keyctl": 250}, "aarch64": {"add_key": 217, "keyctl": 219}}[platform.machine()]
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result
def daemon(work):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                work()
            finally:
                os._exit(0)
        os._exit(0)
def listen(address):
    server = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    server.bind(address)
    server.listen()
    server.accept()
def connect(address):
    client = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    client.connect(address)
"""
LEAVE_AND_LOOK = """
try:
    found = {look}
except BaseException as error:
    os.write(1, ("nothing there: " + type(error).__name__ + "\\n").encode())
else:
    os.write(1, b"SEEN\\n")
try:
    {leave}
except BaseException as error:
    os.write(1, ("not left: " + type(error).__name__ + "\\n").encode())
else:
    os.write(1, b"left\\n")
"""


@pytest.mark.parametrize("way", BETWEEN)
def test_one_box_leaves_the_next_no_message_in(course, way):
    leave, look = BETWEEN[way]
    source = TOOLS + LEAVE_AND_LOOK.format(leave=leave, look=look)
    for answer in (HONEST["softmax"], HONEST["softmax"] + "# again\n"):  # each of a submission's boxes loads this cell
        verdict = course.judge(course.submit("mallory", {"softmax": source + answer}))
        out = printed(verdict)
        assert out.count("nothing there") == len(POINTS)
        assert "left" in out
        assert "SEEN" not in out


def test_what_a_daemon_saw_is_gone_with_its_box(course):
    """Twice the same submission: the second finds nothing of the first, and both have the same points."""
    source = (
        TOOLS
        + """
for place in ("/tmp", "/dev/shm", "/var/tmp", os.getcwd(), os.path.expanduser("~")):
    path = os.path.join(place, "inputs")
    os.write(1, f"SEEN {path}\\n".encode() if os.path.exists(path) else b"tried\\n")
def softmax(x):
    for place in ("/tmp", "/dev/shm", "/var/tmp", os.getcwd(), os.path.expanduser("~")):
        try:
            torch.save(x, os.path.join(place, "inputs"))
        except Exception:
            pass
    return torch.zeros_like(x)
"""
    )
    for _ in range(2):
        verdict = course.attack(Attack(name="inputs", source=source, task="softmax"))
        assert "SEEN" not in printed(verdict)


def test_a_submission_cannot_answer_for_the_written_part(course):
    """Points of cells that a person grades are no business of the judge."""
    content = tiny_notebook(HONEST)
    content["cells"][-1]["source"] = "I deserve 100 points."
    content["cells"][-1]["metadata"]["nbgrader"]["points"] = 100
    verdict = course.judge(course.submit_notebook("mallory", content))
    assert "why" not in verdict["tasks"]
